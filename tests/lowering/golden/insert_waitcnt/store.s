// A store is not waited for; its data is.
  global_load_b32 v2, v[4:5], off
  global_store_b32 v[6:7], v2, off
  v_mov_b32_e32 v2, 0
// ==== 4 instructions
  global_load_b32 v2, v[4:5], off
  s_waitcnt vmcnt(0)                                      // wait
  global_store_b32 v[6:7], v2, off
  v_mov_b32_e32 v2, 0
