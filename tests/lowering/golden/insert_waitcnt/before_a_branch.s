// No load is on its way out of a block.
L_0000:
  global_load_b32 v2, v[4:5], off
  s_branch L_0000
// ==== 3 instructions
L_0000:
  global_load_b32 v2, v[4:5], off
  s_waitcnt vmcnt(0)                                      // wait
  s_branch L_0000
