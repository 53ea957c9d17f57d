// One counter has both, so that nothing is known of the order.
  s_load_b32 s4, s[0:1], null
  ds_load_b32 v2, v4
  ds_load_b32 v3, v4
  v_mov_b32_e32 v6, v2
// ==== 5 instructions
  s_load_b32 s4, s[0:1], null
  ds_load_b32 v2, v4
  ds_load_b32 v3, v4
  s_waitcnt lgkmcnt(0)                                    // wait
  v_mov_b32_e32 v6, v2
