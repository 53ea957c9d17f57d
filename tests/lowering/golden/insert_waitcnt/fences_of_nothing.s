  s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)                 // [fence]
  s_waitcnt_vscnt null, 0x0                               // [fence]
  buffer_gl1_inv
  buffer_gl0_inv
  s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)                 // [fence]
  s_waitcnt_vscnt null, 0x0                               // [fence]
  global_load_b32 v2, v[0:1], off
  v_mov_b32_e32 v3, v2
  s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)                 // [fence]
  s_waitcnt_vscnt null, 0x0                               // [fence]
  global_store_b32 v[0:1], v3, off
  s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)                 // [fence]
  s_waitcnt_vscnt null, 0x0                               // [fence]
  ds_store_b32 v4, v5
  s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)                 // [fence]
  s_waitcnt_vscnt null, 0x0                               // [fence]
Lx:
  s_waitcnt_vscnt null, 0x0                               // [fence]
  s_barrier
  s_waitcnt_vscnt null, 0x0                               // [fence]
// ==== 12 instructions
  s_waitcnt_vscnt null, 0x0                               // [fence]
  buffer_gl1_inv
  buffer_gl0_inv
  global_load_b32 v2, v[0:1], off
  s_waitcnt vmcnt(0)                                      // wait
  v_mov_b32_e32 v3, v2
  global_store_b32 v[0:1], v3, off
  s_waitcnt_vscnt null, 0x0                               // [fence]
  ds_store_b32 v4, v5
  s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)                 // [fence]
Lx:
  s_waitcnt_vscnt null, 0x0                               // [fence]
  s_barrier
