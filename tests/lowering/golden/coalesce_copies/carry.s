// A mask that is the second result.
  v_add_co_u32 v1, s20, v1, v2
  s_mov_b32 s12, s20
// ==== 1 instruction
  v_add_co_u32 v1, s12, v1, v2
