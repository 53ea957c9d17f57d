// reach: 24 12
// From island to island.
  s_branch L_far
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
L_far:
  s_endpgm
// ==== 28 instructions
  s_branch L_far_by1
  s_nop 0
  s_nop 0
  s_branch Lisland_1                                      // island
L_far_by1:
  s_branch L_far_by2                                      // island
Lisland_1:
  s_nop 0
  s_nop 0
  s_branch Lisland_2                                      // island
L_far_by2:
  s_branch L_far_by3                                      // island
Lisland_2:
  s_nop 0
  s_branch Lisland_3                                      // island
L_far_by3:
  s_branch L_far_by4                                      // island
Lisland_3:
  s_nop 0
  s_nop 0
  s_branch Lisland_4                                      // island
L_far_by4:
  s_branch L_far_by5                                      // island
Lisland_4:
  s_nop 0
  s_branch Lisland_5                                      // island
L_far_by5:
  s_branch L_far_by6                                      // island
Lisland_5:
  s_nop 0
  s_nop 0
  s_branch Lisland_6                                      // island
L_far_by6:
  s_branch L_far                                          // island
Lisland_6:
  s_nop 0
  s_branch Lisland_7                                      // island
L_far_by7:
  s_branch L_far                                          // island
Lisland_7:
  s_nop 0
L_far:
  s_endpgm
