// Any VALU between will do.
  v_cmpx_eq_u32_e64 v2, v3
  v_mov_b32_e32 v8, v9
  v_permlane16_b32 v4, v5, s6, s7
// ==== 3 instructions
  v_cmpx_eq_u32_e64 v2, v3
  v_mov_b32_e32 v8, v9
  v_permlane16_b32 v4, v5, s6, s7
