// reach: 24 12
// Each goes to the last island that it reaches.
  s_cbranch_scc1 L_far
  s_cbranch_vccz L_far
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
L_far:
  s_endpgm
// ==== 14 instructions
  s_cbranch_scc1 L_far_by1
  s_cbranch_vccz L_far_by1
  s_nop 0
  s_branch Lisland_1                                      // island
L_far_by1:
  s_branch L_far_by2                                      // island
Lisland_1:
  s_nop 0
  s_nop 0
  s_branch Lisland_2                                      // island
L_far_by2:
  s_branch L_far                                          // island
Lisland_2:
  s_nop 0
  s_branch Lisland_3                                      // island
L_far_by3:
  s_branch L_far                                          // island
Lisland_3:
  s_nop 0
L_far:
  s_endpgm
