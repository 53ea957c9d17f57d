// After a full wait nothing is on its way.
  global_load_b32 v2, v[4:5], off
  s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)
  v_mov_b32_e32 v6, v2
// ==== 3 instructions
  global_load_b32 v2, v[4:5], off
  s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)
  v_mov_b32_e32 v6, v2
