// As the next one's addend it is none.
  v_wmma_f32_16x16x16_f16 v[8:15], v[16:23], v[24:31], v[8:15]
  v_wmma_f32_16x16x16_f16 v[8:15], v[16:23], v[24:31], v[8:15]
// ==== 2 instructions
  v_wmma_f32_16x16x16_f16 v[8:15], v[16:23], v[24:31], v[8:15]
  v_wmma_f32_16x16x16_f16 v[8:15], v[16:23], v[24:31], v[8:15]
