// A lane mask.
  v_cmp_eq_u32_e64 s20, v1, v2
  s_mov_b32 s12, s20
// ==== 1 instruction
  v_cmp_eq_u32_e64 s12, v1, v2
