// This one writes its first word before it has read all.
  v_mad_u64_u32 v[40:41], s29, v1, v2, v[8:9]
  v_mov_b32_e32 v8, v40
  v_mov_b32_e32 v9, v41
// ==== 3 instructions
  v_mad_u64_u32 v[40:41], s29, v1, v2, v[8:9]
  v_mov_b32_e32 v8, v40
  v_mov_b32_e32 v9, v41
