// Descriptors: made, destroyed, and their attributes.
#include <new>

#include "attributes.h"
#include "lt_abi.h"

using namespace sx::lt;

namespace {

#define SX_AT(T, number, member) {number, offsetof(T, member), sizeof(T::member)}
constexpr Attribute kLayout[] = {
    SX_AT(Layout, 0, type), SX_AT(Layout, 1, order), SX_AT(Layout, 2, rows), SX_AT(Layout, 3, columns), SX_AT(Layout, 4, ld),
    SX_AT(Layout, 5, batch), SX_AT(Layout, 6, batch_step), SX_AT(Layout, 7, plane_offset), SX_AT(Layout, 8, batch_mode)};
constexpr Attribute kOperation[] = {
    SX_AT(Operation, 0, compute), SX_AT(Operation, 1, scale), SX_AT(Operation, 2, pointer_mode), SX_AT(Operation, 3, op_a),
    SX_AT(Operation, 4, op_b), SX_AT(Operation, 5, op_c), SX_AT(Operation, 6, fill), SX_AT(Operation, 7, epilogue),
    SX_AT(Operation, 8, bias), SX_AT(Operation, 10, bias_step), SX_AT(Operation, 11, aux), SX_AT(Operation, 12, aux_ld),
    SX_AT(Operation, 13, aux_step), SX_AT(Operation, 14, alpha_vector_step), SX_AT(Operation, 15, sm_count),
    SX_AT(Operation, 17, a_scale), SX_AT(Operation, 18, b_scale), SX_AT(Operation, 19, c_scale), SX_AT(Operation, 20, d_scale),
    SX_AT(Operation, 21, amax), SX_AT(Operation, 22, aux_type), SX_AT(Operation, 23, aux_scale), SX_AT(Operation, 24, aux_amax),
    SX_AT(Operation, 25, fast_accumulation), SX_AT(Operation, 26, bias_type), SX_AT(Operation, 31, a_scale_mode),
    SX_AT(Operation, 32, b_scale_mode), SX_AT(Operation, 33, c_scale_mode), SX_AT(Operation, 34, d_scale_mode),
    SX_AT(Operation, 35, aux_scale_mode), SX_AT(Operation, 36, out_scale), SX_AT(Operation, 37, out_scale_mode),
    SX_AT(Operation, 38, emulation), SX_AT(Operation, 39, alpha_step), SX_AT(Operation, 40, beta_step)};
constexpr Attribute kTransform[] = {SX_AT(Transform, 0, scale), SX_AT(Transform, 1, pointer_mode), SX_AT(Transform, 2, op_a),
                                    SX_AT(Transform, 3, op_b)};
constexpr Attribute kPreference[] = {
    SX_AT(Preference, 0, search), SX_AT(Preference, 1, workspace), SX_AT(Preference, 3, reductions), SX_AT(Preference, 5, align_a),
    SX_AT(Preference, 6, align_b), SX_AT(Preference, 7, align_c), SX_AT(Preference, 8, align_d), SX_AT(Preference, 9, waves),
    SX_AT(Preference, 12, implementations)};
constexpr Attribute kEmulation[] = {SX_AT(Emulation, 0, strategy), SX_AT(Emulation, 1, special), SX_AT(Emulation, 2, control),
                                    SX_AT(Emulation, 3, most_bits), SX_AT(Emulation, 4, bit_offset), SX_AT(Emulation, 5, bits)};
#undef SX_AT

Layout layout(int type, uint64_t rows, uint64_t columns, int64_t ld) {
  Layout made{};
  made.type = type;
  made.rows = rows;
  made.columns = columns;
  made.ld = ld;
  return made;
}
Operation operation(int compute, int scale) {
  Operation made{};
  made.compute = compute;
  made.scale = scale;
  return made;
}
Transform transform(int scale) {
  Transform made{};
  made.scale = scale;
  return made;
}

}  // namespace

#define SX_ATTRIBUTES(name, T, table)                                                                                       \
  SX_API cublasStatus cublasLt##name##SetAttribute(T *d, int number, const void *from, size_t size) {                       \
    return set_attribute(table, d, number, from, size);                                                                     \
  }                                                                                                                         \
  SX_API cublasStatus cublasLt##name##GetAttribute(const T *d, int number, void *to, size_t size, size_t *written) {        \
    return get_attribute(table, d, number, to, size, written);                                                              \
  }                                                                                                                         \
  SX_API cublasStatus cublasLt##name##Destroy(T *d) {                                                                       \
    delete d;                                                                                                               \
    return CUBLAS_STATUS_SUCCESS;                                                                                           \
  }
SX_ATTRIBUTES(MatrixLayout, Layout, kLayout)
SX_ATTRIBUTES(MatmulDesc, Operation, kOperation)
SX_ATTRIBUTES(MatrixTransformDesc, Transform, kTransform)
SX_ATTRIBUTES(MatmulPreference, Preference, kPreference)
SX_ATTRIBUTES(EmulationDesc, Emulation, kEmulation)
#undef SX_ATTRIBUTES

SX_API cublasStatus cublasLtMatrixLayoutCreate(Layout **at, int type, uint64_t rows, uint64_t columns, int64_t ld) {
  return create(at, layout(type, rows, columns, ld));
}
SX_API cublasStatus cublasLtMatrixLayoutInit_internal(Layout *at, size_t size, int type, uint64_t rows, uint64_t columns, int64_t ld) {
  return initialize(at, size, layout(type, rows, columns, ld));
}
SX_API cublasStatus cublasLtMatmulDescCreate(Operation **at, int compute, int scale) { return create(at, operation(compute, scale)); }
SX_API cublasStatus cublasLtMatmulDescInit_internal(Operation *at, size_t size, int compute, int scale) {
  return initialize(at, size, operation(compute, scale));
}
SX_API cublasStatus cublasLtMatrixTransformDescCreate(Transform **at, int scale) { return create(at, transform(scale)); }
SX_API cublasStatus cublasLtMatrixTransformDescInit_internal(Transform *at, size_t size, int scale) {
  return initialize(at, size, transform(scale));
}
SX_API cublasStatus cublasLtMatmulPreferenceCreate(Preference **at) { return create(at, Preference{}); }
SX_API cublasStatus cublasLtMatmulPreferenceInit_internal(Preference *at, size_t size) { return initialize(at, size, Preference{}); }
SX_API cublasStatus cublasLtEmulationDescCreate(Emulation **at) { return create(at, Emulation{}); }
SX_API cublasStatus cublasLtEmulationDescInit_internal(Emulation *at, size_t size) { return initialize(at, size, Emulation{}); }
