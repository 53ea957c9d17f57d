// Nothing is left open at a label.
  v_sqrt_f32_e32 v2, v3
L_0010:
  v_mov_b32_e32 v4, v2
// ==== 3 instructions
  v_sqrt_f32_e32 v2, v3
  s_waitcnt_depctr depctr_va_vdst(0)                      // hazard
L_0010:
  v_mov_b32_e32 v4, v2
