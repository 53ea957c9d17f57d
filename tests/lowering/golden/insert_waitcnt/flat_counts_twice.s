// A flat access may be LDS or global memory.
  flat_load_b32 v2, v[4:5]
  v_mov_b32_e32 v6, v2
// ==== 3 instructions
  flat_load_b32 v2, v[4:5]
  s_waitcnt vmcnt(0) lgkmcnt(0)                           // wait
  v_mov_b32_e32 v6, v2
