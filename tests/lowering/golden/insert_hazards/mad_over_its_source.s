// refused: SX0430
// MADIntraFwd
  v_mad_u64_u32 v[2:3], s4, v2, v6, v[8:9]
// ==== refused SX0430: v_mad_u64_u32 writes over its own source
