// The address is read, too.
  global_load_b64 v[4:5], v[2:3], off
  global_load_b32 v6, v[4:5], off
  v_mov_b32_e32 v7, v6
// ==== 5 instructions
  global_load_b64 v[4:5], v[2:3], off
  s_waitcnt vmcnt(0)                                      // wait
  global_load_b32 v6, v[4:5], off
  s_waitcnt vmcnt(0)                                      // wait
  v_mov_b32_e32 v7, v6
