// Loads come back in order: one may still be on its way.
  global_load_b32 v2, v[4:5], off
  global_load_b32 v3, v[4:5], off
  v_mov_b32_e32 v6, v2
  v_mov_b32_e32 v7, v3
// ==== 6 instructions
  global_load_b32 v2, v[4:5], off
  global_load_b32 v3, v[4:5], off
  s_waitcnt vmcnt(1)                                      // wait
  v_mov_b32_e32 v6, v2
  s_waitcnt vmcnt(0)                                      // wait
  v_mov_b32_e32 v7, v3
