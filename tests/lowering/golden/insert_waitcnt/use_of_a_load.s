// A result is waited for where it is read.
  global_load_b32 v2, v[4:5], off
  v_add_nc_u32_e32 v3, 1, v2
// ==== 3 instructions
  global_load_b32 v2, v[4:5], off
  s_waitcnt vmcnt(0)                                      // wait
  v_add_nc_u32_e32 v3, 1, v2
