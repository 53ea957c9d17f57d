// Pairs are even.
  s_mov_b32 s5, s9
  s_mov_b32 s6, s10
// ==== 2 instructions
  s_mov_b32 s5, s9
  s_mov_b32 s6, s10
