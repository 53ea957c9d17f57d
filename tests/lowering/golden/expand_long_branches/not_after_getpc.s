// reach: 24 12
// An address and what is added to it stay together.
  s_branch L_far
  s_nop 0
  s_getpc_b64 s[4:5]
  s_add_u32 s4, s4, 4
  s_nop 0
  s_nop 0
  s_nop 0
L_far:
  s_endpgm
// ==== 12 instructions
  s_branch L_far_by0
  s_nop 0
  s_getpc_b64 s[4:5]
  s_add_u32 s4, s4, 4
  s_branch Lisland_0                                      // island
L_far_by0:
  s_branch L_far_by1                                      // island
Lisland_0:
  s_nop 0
  s_nop 0
  s_branch Lisland_1                                      // island
L_far_by1:
  s_branch L_far                                          // island
Lisland_1:
  s_nop 0
L_far:
  s_endpgm
