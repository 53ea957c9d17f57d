// Two moves of a pair are one.
  s_mov_b32 s4, s8
  s_mov_b32 s5, s9
// ==== 1 instruction
  s_mov_b64 s[4:5], s[8:9]
