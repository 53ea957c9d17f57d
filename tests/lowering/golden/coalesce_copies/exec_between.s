// The move is of other lanes than the result.
  v_add_nc_u32_e32 v40, v1, v2
  s_and_b32 exec_lo, exec_lo, s4
  v_mov_b32_e32 v5, v40
// ==== 3 instructions
  v_add_nc_u32_e32 v40, v1, v2
  s_and_b32 exec_lo, exec_lo, s4
  v_mov_b32_e32 v5, v40
