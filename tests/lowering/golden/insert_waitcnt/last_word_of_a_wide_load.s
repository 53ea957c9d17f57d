// Each register of a wide load counts.
  global_load_b128 v[8:11], v[4:5], off
  v_mov_b32_e32 v2, v11
// ==== 3 instructions
  global_load_b128 v[8:11], v[4:5], off
  s_waitcnt vmcnt(0)                                      // wait
  v_mov_b32_e32 v2, v11
