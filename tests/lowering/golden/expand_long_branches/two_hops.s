// reach: 20 12
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
// ==== 20 instructions
  s_branch L_far_by0
  s_nop 0
  s_nop 0
  s_branch Lisland_0                                      // island
L_far_by0:
  s_branch L_far_by1                                      // island
Lisland_0:
  s_nop 0
  s_nop 0
  s_nop 0
  s_branch Lisland_1                                      // island
L_far_by1:
  s_branch L_far_by2                                      // island
Lisland_1:
  s_nop 0
  s_nop 0
  s_nop 0
  s_branch Lisland_2                                      // island
L_far_by2:
  s_branch L_far                                          // island
Lisland_2:
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
L_far:
  s_endpgm
