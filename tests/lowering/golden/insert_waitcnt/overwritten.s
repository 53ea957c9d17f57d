// A register that a load fills is not written before it comes.
  global_load_b32 v2, v[4:5], off
  v_mov_b32_e32 v2, 0
// ==== 3 instructions
  global_load_b32 v2, v[4:5], off
  s_waitcnt vmcnt(0)                                      // wait
  v_mov_b32_e32 v2, 0
