// reach: 24 12
// A branch reaches 24 bytes, an island stands after each 12, or closer where their own size asks for it.
  s_branch L_far
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
L_far:
  s_endpgm
// ==== 14 instructions
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
