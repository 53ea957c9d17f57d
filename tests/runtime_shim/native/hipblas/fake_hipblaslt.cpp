// A library in the place of hipBLASLt: double and float products with a bias and ReLU, which the host computes; what
// descriptors hold is printed (numbers of hipblaslt.h).
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>

#define API extern "C" __attribute__((visibility("default")))

namespace {

struct Layout {
  int type;
  uint64_t rows, columns;
  int64_t ld, step = 0;
  int batch = 1;
};
struct Operation {
  int compute, scale;
  int ta = 111, tb = 111, pointer_mode = 0, bias_type = 0;
  uint32_t epilogue = 1;
  const void *bias = nullptr;
};
struct Algorithm {
  uint8_t data[16];
  size_t most_workspace;
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};
enum { kSuccess = 0, kInvalidValue = 3 };

// Copies an attribute whose size must be its own.
template <class T>
int set(T &to, const void *from, size_t size) {
  if (size != sizeof to) return kInvalidValue;
  memcpy(&to, from, size);
  return kSuccess;
}

}  // namespace

API int hipblasLtCreate(void **handle) {
  *handle = new int;
  puts("hipblasLtCreate");
  return 0;
}
API int hipblasLtDestroy(void *handle) {
  delete static_cast<int *>(handle);
  puts("hipblasLtDestroy");
  return 0;
}
API int hipblasLtMatrixLayoutCreate(Layout **out, int type, uint64_t rows, uint64_t columns, int64_t ld) {
  *out = new Layout{type, rows, columns, ld};
  return 0;
}
API int hipblasLtMatrixLayoutDestroy(Layout *layout) {
  delete layout;
  return 0;
}
API int hipblasLtMatrixLayoutSetAttribute(Layout *l, int attribute, const void *from, size_t size) {
  return attribute == 0 ? set(l->batch, from, size) : attribute == 1 ? set(l->step, from, size) : kInvalidValue;
}
API int hipblasLtMatmulDescCreate(Operation **out, int compute, int scale) {
  *out = new Operation{compute, scale};
  return 0;
}
API int hipblasLtMatmulDescDestroy(Operation *operation) {
  delete operation;
  return 0;
}
API int hipblasLtMatmulDescSetAttribute(Operation *o, int attribute, const void *from, size_t size) {
  switch (attribute) {
    case 0: return set(o->ta, from, size);
    case 1: return set(o->tb, from, size);
    case 2: return set(o->epilogue, from, size);
    case 3: return set(o->bias, from, size);
    case 4: return set(o->bias_type, from, size);
    case 13: return set(o->pointer_mode, from, size);
    default: return kInvalidValue;
  }
}
API int hipblasLtMatmulPreferenceCreate(uint64_t **out) {
  *out = new uint64_t(0);
  return 0;
}
API int hipblasLtMatmulPreferenceDestroy(uint64_t *preference) {
  delete preference;
  return 0;
}
API int hipblasLtMatmulPreferenceSetAttribute(uint64_t *preference, int attribute, const void *from, size_t size) {
  return attribute == 1 ? set(*preference, from, size) : kInvalidValue;
}
// It has kernels for float.
API int hipblasLtMatmulAlgoGetHeuristic(void *, Operation *o, Layout *a, Layout *b, Layout *c, Layout *d, uint64_t *most, int wanted,
                                        Heuristic *results, int *found) {
  printf("hipblasLt heuristic compute %d scale %d epilogue %u types %d %d %d %d workspace %zu\n", o->compute, o->scale, o->epilogue, a->type,
         b->type, c->type, d->type, static_cast<size_t>(*most));
  *found = wanted >= 1 && a->type == 0 ? 1 : 0;
  if (*found) results[0] = Heuristic{{{42}, *most}, 0, 0, 1.0f, {}};
  return 0;
}
API int hipblasLtMatmul(void *, Operation *o, const float *alpha, const float *a, Layout *la, const float *b, Layout *lb, const float *beta,
                        const float *c, Layout *lc, float *d, Layout *ld, const Algorithm *algorithm, void *, size_t workspace,
                        void *stream) {
  if (!algorithm || algorithm->data[0] != 42) return kInvalidValue;
  printf("hipblasLtMatmul epilogue %u bias type %d workspace %zu stream %p\n", o->epilogue, o->bias_type, workspace, stream);
  const auto k = o->ta == 111 ? la->columns : la->rows;
  for (int i = 0; i < ld->batch; ++i)
    for (uint64_t col = 0; col < ld->columns; ++col)
      for (uint64_t row = 0; row < ld->rows; ++row) {
        float sum = 0;
        for (uint64_t n = 0; n < k; ++n) {
          const auto la_at = static_cast<int64_t>(o->ta == 111 ? row : n) + static_cast<int64_t>(o->ta == 111 ? n : row) * la->ld;
          const auto lb_at = static_cast<int64_t>(o->tb == 111 ? n : col) + static_cast<int64_t>(o->tb == 111 ? col : n) * lb->ld;
          sum += a[i * la->step + la_at] * b[i * lb->step + lb_at];
        }
        const auto r = static_cast<int64_t>(row), at = static_cast<int64_t>(col);
        float value = *alpha * sum;
        if (*beta != 0) value += *beta * c[i * lc->step + r + at * lc->ld];
        if (o->epilogue & 4) value += static_cast<const float *>(o->bias)[row];
        if (o->epilogue & 2) value = std::max(value, 0.0f);
        d[i * ld->step + r + at * ld->ld] = value;
      }
  return 0;
}
