// The old value is read by the instruction that writes the new one.
  v_add_nc_u32_e32 v40, v1, v5
  v_mov_b32_e32 v5, v40
// ==== 1 instruction
  v_add_nc_u32_e32 v5, v1, v5
