// Six VALUs between are enough.
  v_rcp_f32_e32 v2, v3
  v_mov_b32_e32 v9, v8
  v_mov_b32_e32 v9, v8
  v_mov_b32_e32 v9, v8
  v_mov_b32_e32 v9, v8
  v_mov_b32_e32 v9, v8
  v_mov_b32_e32 v9, v8
  v_mov_b32_e32 v4, v2
// ==== 8 instructions
  v_rcp_f32_e32 v2, v3
  v_mov_b32_e32 v9, v8
  v_mov_b32_e32 v9, v8
  v_mov_b32_e32 v9, v8
  v_mov_b32_e32 v9, v8
  v_mov_b32_e32 v9, v8
  v_mov_b32_e32 v9, v8
  v_mov_b32_e32 v4, v2
