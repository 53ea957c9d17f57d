  v_add_nc_u32_e32 v40, v1, v2
  v_add_nc_u32_e32 v40, v40, v3
  v_mov_b32_e32 v5, v40
// ==== 2 instructions
  v_add_nc_u32_e32 v40, v1, v2
  v_add_nc_u32_e32 v5, v40, v3
