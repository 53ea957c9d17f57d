// A product that is the next one's factor.
  v_wmma_f32_16x16x16_f16 v[8:15], v[16:23], v[24:31], v[8:15]
  v_wmma_f32_16x16x16_f16 v[32:39], v[8:15], v[24:31], v[32:39]
// ==== 3 instructions
  v_wmma_f32_16x16x16_f16 v[8:15], v[16:23], v[24:31], v[8:15]
  v_nop                                                   // hazard
  v_wmma_f32_16x16x16_f16 v[32:39], v[8:15], v[24:31], v[32:39]
