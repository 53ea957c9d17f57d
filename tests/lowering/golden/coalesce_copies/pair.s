// Both words of a result.
  v_mad_u64_u32 v[40:41], s29, v1, v2, v[6:7]
  v_mov_b32_e32 v8, v40
  v_mov_b32_e32 v9, v41
// ==== 1 instruction
  v_mad_u64_u32 v[8:9], s29, v1, v2, v[6:7]
