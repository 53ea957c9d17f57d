// Each counter is waited for by itself.
  global_load_b32 v2, v[4:5], off
  ds_load_b32 v3, v4
  v_add_nc_u32_e32 v6, v2, v3
// ==== 4 instructions
  global_load_b32 v2, v[4:5], off
  ds_load_b32 v3, v4
  s_waitcnt vmcnt(0) lgkmcnt(0)                           // wait
  v_add_nc_u32_e32 v6, v2, v3
