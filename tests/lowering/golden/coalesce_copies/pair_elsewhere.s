// Words that part stay moves.
  global_load_b64 v[40:41], v[2:3], off
  v_mov_b32_e32 v8, v40
  v_mov_b32_e32 v12, v41
// ==== 3 instructions
  global_load_b64 v[40:41], v[2:3], off
  v_mov_b32_e32 v8, v40
  v_mov_b32_e32 v12, v41
