// reach: 64 40
// Nothing to do.
  s_branch L_far
  s_nop 0
L_far:
  s_endpgm
// ==== 3 instructions
  s_branch L_far
  s_nop 0
L_far:
  s_endpgm
