// Nothing is left open at a branch.
  v_sqrt_f32_e32 v2, v3
  s_cbranch_scc1 L_0010
L_0010:
  v_mov_b32_e32 v4, v2
// ==== 4 instructions
  v_sqrt_f32_e32 v2, v3
  s_waitcnt_depctr depctr_va_vdst(0)                      // hazard
  s_cbranch_scc1 L_0010
L_0010:
  v_mov_b32_e32 v4, v2
