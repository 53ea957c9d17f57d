// VALUTransUse
  v_rcp_f32_e32 v2, v3
  v_mov_b32_e32 v4, v2
// ==== 3 instructions
  v_rcp_f32_e32 v2, v3
  s_waitcnt_depctr depctr_va_vdst(0)                      // hazard
  v_mov_b32_e32 v4, v2
