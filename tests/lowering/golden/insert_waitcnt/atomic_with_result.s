// An atomic that returns a value is a load.
  global_atomic_add_u32 v2, v[4:5], v6, off glc
  v_mov_b32_e32 v7, v2
// ==== 3 instructions
  global_atomic_add_u32 v2, v[4:5], v6, off glc
  s_waitcnt vmcnt(0)                                      // wait
  v_mov_b32_e32 v7, v2
