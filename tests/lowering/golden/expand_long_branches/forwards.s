// reach: 20 12
// A branch reaches 20 bytes, an island stands after each 12.
  s_branch L_far
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
L_far:
  s_endpgm
// ==== 10 instructions
  s_branch L_far_by0
  s_nop 0
  s_nop 0
  s_branch Lisland_0                                      // island
L_far_by0:
  s_branch L_far                                          // island
Lisland_0:
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
L_far:
  s_endpgm
