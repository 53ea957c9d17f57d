// An instruction that keeps half of its register adds to what is there.
  v_mov_b16_e32 v40.h, v1.l
  v_mov_b32_e32 v5, v40
// ==== 2 instructions
  v_mov_b16_e32 v40.h, v1.l
  v_mov_b32_e32 v5, v40
