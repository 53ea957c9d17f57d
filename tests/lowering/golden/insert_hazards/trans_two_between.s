// Two transcendentals between are enough.
  v_rcp_f32_e32 v2, v3
  v_rcp_f32_e32 v5, v6
  v_rcp_f32_e32 v7, v8
  v_mov_b32_e32 v4, v2
// ==== 4 instructions
  v_rcp_f32_e32 v2, v3
  v_rcp_f32_e32 v5, v6
  v_rcp_f32_e32 v7, v8
  v_mov_b32_e32 v4, v2
