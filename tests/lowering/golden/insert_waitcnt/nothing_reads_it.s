// No wait but at the end.
  global_load_b32 v2, v[4:5], off
  v_mov_b32_e32 v6, v7
  s_endpgm
// ==== 4 instructions
  global_load_b32 v2, v[4:5], off
  v_mov_b32_e32 v6, v7
  s_waitcnt vmcnt(0)                                      // wait
  s_endpgm
