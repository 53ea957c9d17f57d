// Temporaries are v40 and above, s20 to s29.
  v_add_nc_u32_e32 v40, v1, v2
  v_mov_b32_e32 v5, v40
// ==== 1 instruction
  v_add_nc_u32_e32 v5, v1, v2
