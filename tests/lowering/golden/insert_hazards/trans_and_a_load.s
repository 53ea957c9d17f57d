// Memory instructions wait for the VALU themselves.
  v_rcp_f32_e32 v2, v3
  global_load_b32 v6, v[4:5], off
  v_mov_b32_e32 v4, v2
// ==== 3 instructions
  v_rcp_f32_e32 v2, v3
  global_load_b32 v6, v[4:5], off
  v_mov_b32_e32 v4, v2
