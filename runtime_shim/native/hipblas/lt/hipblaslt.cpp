#include "hipblaslt.h"

#include <dlfcn.h>

#include <string>
#include <vector>

#include "device.h"
#include "library.h"

namespace sx::hipblas {
namespace {

constexpr const char *kCall = "cublasLtMatmul";

// Attributes' numbers (hipblaslt.h).
constexpr int kBatchCount = 0, kBatchOffset = 1;
constexpr int kTransA = 0, kTransB = 1, kEpilogue = 2, kBiasPointer = 3, kBiasType = 4, kPointerMode = 13;
constexpr int kMostWorkspace = 1;

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

// clang-format off
#define SX_LIGHT(F)                                                                                                    \
  F(Create, (void **)) F(Destroy, (void *))                                                                            \
  F(MatrixLayoutCreate, (void **, int, uint64_t, uint64_t, int64_t)) F(MatrixLayoutDestroy, (void *))                  \
  F(MatrixLayoutSetAttribute, (void *, int, const void *, size_t))                                                     \
  F(MatmulDescCreate, (void **, int, int)) F(MatmulDescDestroy, (void *))                                              \
  F(MatmulDescSetAttribute, (void *, int, const void *, size_t))                                                       \
  F(MatmulPreferenceCreate, (void **)) F(MatmulPreferenceDestroy, (void *))                                            \
  F(MatmulPreferenceSetAttribute, (void *, int, const void *, size_t))                                                 \
  F(MatmulAlgoGetHeuristic, (void *, void *, void *, void *, void *, void *, void *, int, Heuristic *, int *))         \
  F(Matmul, (void *, void *, const void *, const void *, void *, const void *, void *, const void *, const void *,     \
             void *, void *, void *, const Algorithm *, void *, size_t, CUstream))
// clang-format on

struct HipBlasLt {
#define F(name, parameters) int(*name) parameters = nullptr;
  SX_LIGHT(F)
#undef F
  std::string missing;
};

HipBlasLt load() {
  HipBlasLt api;
  void *handle = open_library("SASSXLATE_HIPBLASLT", {"libhipblaslt.so.1", "libhipblaslt.so.0"}, api.missing);
  if (!handle) return api;
  api.missing.clear();
#define F(name, parameters)                                                          \
  api.name = reinterpret_cast<int(*) parameters>(dlsym(handle, "hipblasLt" #name));  \
  if (!api.name) api.missing = "it has no hipblasLt" #name;
  SX_LIGHT(F)
#undef F
  return api;
}

const HipBlasLt &api() {
  static const HipBlasLt loaded = load();
  return loaded;
}

// Descriptors of one call; the first status that is not 0 stays.
class Descriptors {
 public:
  explicit Descriptors(const lt::Plan &p) {
    using namespace lt;
    const Layout *const layouts[] = {&p.a, &p.b, &p.c, &p.d};
    for (int i = 0; i < 4; ++i) {
      const Layout &l = *layouts[i];
      if (type(l.type)) return;
      if (failed(api().MatrixLayoutCreate(&layout[i], l.type, l.rows, l.columns, l.ld))) return;
      if (failed(api().MatrixLayoutSetAttribute(layout[i], kBatchCount, &l.batch, 4)) ||
          failed(api().MatrixLayoutSetAttribute(layout[i], kBatchOffset, &l.batch_step, 8)))
        return;
    }
    int compute = 0;
    refused = Compute::convert(kCall, p.o.compute, compute);
    if (refused || type(p.o.scale)) return;
    if (failed(api().MatmulDescCreate(&operation, compute, p.o.scale))) return;
    const int a = cublas::op(p.o.op_a), b = cublas::op(p.o.op_b);
    set(kTransA, a);
    set(kTransB, b);
    set(kEpilogue, p.o.epilogue);
    set(kPointerMode, p.o.pointer_mode);
    if (p.o.epilogue & kBias) {
      if (type(p.bias_type)) return;
      set(kBiasPointer, p.o.bias);
      set(kBiasType, p.bias_type);
    }
  }
  ~Descriptors() {
    for (void *l : layout)
      if (l) api().MatrixLayoutDestroy(l);
    if (operation) api().MatmulDescDestroy(operation);
  }
  Descriptors(const Descriptors &) = delete;
  Descriptors &operator=(const Descriptors &) = delete;

  cublasStatus status() const { return refused ? refused : status_of(kCall, result); }
  void *layout[4] = {}, *operation = nullptr;

 private:
  bool failed(int status) {
    if (!result) result = status;
    return result != 0;
  }
  bool type(int value) {
    int same = 0;
    if (!refused) refused = Type::convert(kCall, value, same);
    return refused != CUBLAS_STATUS_SUCCESS;
  }
  template <class T>
  void set(int attribute, const T &value) {
    if (!result) result = api().MatmulDescSetAttribute(operation, attribute, &value, sizeof value);
  }
  int result = 0;
  cublasStatus refused = CUBLAS_STATUS_SUCCESS;
};

// What hipBLASLt can be told with the same meaning; "" if all.  Order of ReLU's bits, gradients, scales: not compared.
std::string misfit(const lt::Plan &p) {
  using namespace lt;
  for (const Layout *l : {&p.a, &p.b, &p.c, &p.d}) {
    if (l->order != kOrderCol) return "matrices by rows";
    if (l->batch_mode != kBatchStrided) return "arrays of pointers with an epilogue, or with a D beside C,";
  }
  if (p.o.a_scale || p.o.b_scale || p.o.c_scale || p.o.d_scale || p.o.amax) return "scales and greatest values";
  if (p.o.pointer_mode != kHost && p.o.pointer_mode != kDevice) return "vectors of factors";
  if (p.kind == Kind::Integers) return "integers with factors of float, or with an epilogue, or with a D beside C,";
  for (const unsigned known : {kDefault + 0u, kRelu + 0u, kBias + 0u, kRelu | kBias, kGelu + 0u, kGelu | kBias})
    if (p.o.epilogue == known) return "";
  return "epilogue " + std::to_string(p.o.epilogue);
}

cublasStatus find(cublas::Mark &handle, const lt::Plan &p, const Descriptors &all, size_t workspace, Algorithm &out) {
  if (!handle.light) {
    if (const int status = api().Create(&handle.light)) return handle.light = nullptr, status_of(kCall, status);
    handle.destroy_light = [](void *light) { api().Destroy(light); };
  }
  void *preference = nullptr;
  int status = api().MatmulPreferenceCreate(&preference);
  if (status) return status_of(kCall, status);
  const uint64_t most = workspace;
  status = api().MatmulPreferenceSetAttribute(preference, kMostWorkspace, &most, sizeof most);
  Heuristic found{};
  int count = 0;
  if (!status)
    status = api().MatmulAlgoGetHeuristic(handle.light, all.operation, all.layout[0], all.layout[1], all.layout[2],
                                          all.layout[3], preference, 1, &found, &count);
  api().MatmulPreferenceDestroy(preference);
  if (status) return status_of(kCall, status);
  if (count < 1 || found.state)
    return refuse(kCall, "hipBLASLt has no kernel for data types " + std::to_string(p.a.type) + ", " + std::to_string(p.b.type) +
                             " and " + std::to_string(p.d.type) + " with compute type " + std::to_string(p.o.compute) +
                             " and epilogue " + std::to_string(p.o.epilogue));
  out = found.algorithm;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus check(const lt::Plan &p) {
  const std::string why = misfit(p);
  if (!why.empty()) return refuse(kCall, "on an AMD card " + why + " are not passed on");
  if (api().missing.empty()) return CUBLAS_STATUS_SUCCESS;
  return refuse(kCall, "an epilogue, or a D beside C, needs hipBLASLt on an AMD card, which cannot be loaded: " + api().missing);
}

}  // namespace

cublasStatus light_possible(cublas::Mark &handle, const lt::Plan &p, size_t workspace) {
  if (const cublasStatus status = check(p)) return status;
  const Descriptors all(p);
  if (const cublasStatus status = all.status()) return status;
  Algorithm any{};
  return find(handle, p, all, workspace, any);
}

cublasStatus light_matmul(cublas::Mark &handle, const lt::Plan &p, const Operands &o, CUstream stream) {
  if (const cublasStatus status = check(p)) return status;
  const Descriptors all(p);
  if (const cublasStatus status = all.status()) return status;
  Algorithm chosen{};
  if (const cublasStatus status = find(handle, p, all, o.workspace_size, chosen)) return status;
  return status_of(kCall, api().Matmul(handle.light, all.operation, o.alpha, o.a, all.layout[0], o.b, all.layout[1], o.beta, o.c,
                                       all.layout[2], o.d, all.layout[3], &chosen, o.workspace, o.workspace_size,
                                       native_stream(stream)));
}

}  // namespace sx::hipblas
