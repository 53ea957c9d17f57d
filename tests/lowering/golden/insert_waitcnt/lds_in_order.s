// LDS answers in order.
  ds_load_b32 v2, v4
  ds_load_b32 v3, v4
  v_mov_b32_e32 v6, v2
// ==== 4 instructions
  ds_load_b32 v2, v4
  ds_load_b32 v3, v4
  s_waitcnt lgkmcnt(1)                                    // wait
  v_mov_b32_e32 v6, v2
