// No path brings a load into a block.
  s_cbranch_scc1 L_0010
  global_load_b32 v2, v[4:5], off
L_0010:
  v_mov_b32_e32 v6, v2
// ==== 4 instructions
  s_cbranch_scc1 L_0010
  global_load_b32 v2, v[4:5], off
  s_waitcnt vmcnt(0)                                      // wait
L_0010:
  v_mov_b32_e32 v6, v2
