// Code with branches stays as it is.
  v_add_nc_u32_e32 v40, v1, v2
  s_cbranch_execz L_done
L_done:
  v_mov_b32_e32 v5, v40
// ==== 3 instructions
  v_add_nc_u32_e32 v40, v1, v2
  s_cbranch_execz L_done
L_done:
  v_mov_b32_e32 v5, v40
