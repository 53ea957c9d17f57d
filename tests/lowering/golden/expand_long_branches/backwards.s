// reach: 20 12
L_far:
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_branch L_far
  s_endpgm
// ==== 10 instructions
L_far:
  s_nop 0
  s_nop 0
  s_nop 0
  s_branch Lisland_0                                      // island
L_far_by0:
  s_branch L_far                                          // island
Lisland_0:
  s_nop 0
  s_nop 0
  s_nop 0
  s_branch L_far_by0
  s_endpgm
