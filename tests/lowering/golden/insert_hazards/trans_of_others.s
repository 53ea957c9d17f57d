// Another register is no hazard.
  v_rcp_f32_e32 v2, v3
  v_mov_b32_e32 v4, v3
// ==== 2 instructions
  v_rcp_f32_e32 v2, v3
  v_mov_b32_e32 v4, v3
