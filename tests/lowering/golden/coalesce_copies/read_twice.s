// What is read again stays.
  v_add_nc_u32_e32 v40, v1, v2
  v_mov_b32_e32 v5, v40
  v_add_nc_u32_e32 v6, v40, v2
// ==== 3 instructions
  v_add_nc_u32_e32 v40, v1, v2
  v_mov_b32_e32 v5, v40
  v_add_nc_u32_e32 v6, v40, v2
