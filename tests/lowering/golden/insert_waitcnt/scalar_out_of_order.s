// Scalar loads come back in any order: all are waited for.
  s_load_b32 s4, s[0:1], null
  s_load_b32 s5, s[0:1], 0x4
  s_mov_b32 s6, s4
// ==== 4 instructions
  s_load_b32 s4, s[0:1], null
  s_load_b32 s5, s[0:1], 0x4
  s_waitcnt lgkmcnt(0)                                    // wait
  s_mov_b32 s6, s4
