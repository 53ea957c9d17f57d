// All is there before the block meets.
  ds_load_b32 v2, v4
  s_barrier
// ==== 3 instructions
  ds_load_b32 v2, v4
  s_waitcnt lgkmcnt(0)                                    // wait
  s_barrier
