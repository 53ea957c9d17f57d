// cuFFT's functions: arguments are checked, and plans made, run and destroyed.
#include <new>
#include <vector>

#include "plan.h"

using namespace sx::cufft;

namespace {

constexpr int kVersion[] = {SX_CUFFT_VERSION};  // major, minor, patch
constexpr int kProperties = 4;                  // of cufftProperty, from 1 on

// Nothing but a result code leaves these functions.
template <class F>
cufftResult guarded(F body) {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return CUFFT_ALLOC_FAILED;
  } catch (...) {
    return CUFFT_INTERNAL_ERROR;
  }
}

template <class F>
cufftResult with_plan(cufftHandle handle, F body) {
  return guarded([&]() -> cufftResult {
    const std::shared_ptr<Plan> plan = find_plan(handle);
    return plan ? body(*plan) : CUFFT_INVALID_PLAN;
  });
}

// One side's arguments of the functions for many transforms, with int or long long.
struct Given {
  std::vector<long long> embed;
  bool there = false;
  long long stride = 0, distance = 0;

  template <class I>
  Given(int rank, const I *lengths, I stride_, I distance_) : there(lengths), stride(stride_), distance(distance_) {
    if (lengths && rank > 0 && rank <= 3) embed.assign(lengths, lengths + rank);
  }
  const long long *data() const { return there ? embed.data() : nullptr; }
};

template <class I>
cufftResult many(Request &request, bool typed, int rank, const I *n, const I *inembed, I istride, I idist, const I *onembed,
                 I ostride, I odist, I batch) {
  if (!typed || rank < 1 || rank > 3 || !n) return CUFFT_INVALID_VALUE;
  const std::vector<long long> lengths(n, n + rank);
  const Given in(rank, inembed, istride, idist), out(rank, onembed, ostride, odist);
  return set_layout(request, rank, lengths.data(), in.data(), in.stride, in.distance, out.data(), out.stride, out.distance,
                    batch);
}

cufftResult dense(Request &request, int type, const std::vector<long long> &lengths, long long batch) {
  if (!set_type(request, type)) return CUFFT_INVALID_VALUE;
  return set_layout(request, static_cast<int>(lengths.size()), lengths.data(), nullptr, 0, 0, nullptr, 0, 0, batch);
}

template <class I>
cufftResult typed_many(Request &request, int type, int rank, const I *n, const I *inembed, I istride, I idist,
                       const I *onembed, I ostride, I odist, I batch) {
  return many(request, set_type(request, type), rank, n, inembed, istride, idist, onembed, ostride, odist, batch);
}

cufftResult make(Plan &plan, cufftResult checked, const Request &request, size_t *work_size) {
  if (plan.backend) return CUFFT_INVALID_PLAN;  // it was made before
  if (!work_size) return CUFFT_INVALID_VALUE;
  if (checked != CUFFT_SUCCESS) return checked;
  const cufftResult result = make_backend(request, plan.allocate, plan.backend, plan.work_size);
  if (result != CUFFT_SUCCESS) return result;
  plan.request = request;
  *work_size = plan.work_size;
  return CUFFT_SUCCESS;
}

cufftResult make_new(cufftHandle *handle, cufftResult checked, const Request &request) {
  if (!handle) return CUFFT_INVALID_VALUE;
  auto plan = std::make_shared<Plan>();
  size_t work_size = 0;
  const cufftResult result = make(*plan, checked, request, &work_size);
  return result == CUFFT_SUCCESS ? add_plan(std::move(plan), *handle) : result;
}

cufftResult size(cufftResult checked, const Request &request, size_t *work_size) {
  if (!work_size) return CUFFT_INVALID_VALUE;
  return checked == CUFFT_SUCCESS ? size_of(request, *work_size) : checked;
}

cufftResult execute(cufftHandle handle, const int *type, const void *in, void *out, int direction) {
  return with_plan(handle, [&](Plan &plan) -> cufftResult {
    if (!plan.backend) return CUFFT_INVALID_PLAN;
    Request wanted;
    if (type && (!set_type(wanted, *type) || wanted.kind != plan.request.kind || wanted.element != plan.request.element))
      return CUFFT_INVALID_VALUE;
    if (!in || !out) return CUFFT_INVALID_VALUE;
    if (plan.request.kind == sx::fft::Kind::Complex && direction != CUFFT_FORWARD && direction != CUFFT_INVERSE)
      return CUFFT_INVALID_VALUE;
    return plan.backend->execute(plan.stream, in, out, direction);
  });
}

cufftResult execute(cufftHandle handle, int type, const void *in, void *out, int direction) {
  return execute(handle, &type, in, out, direction);
}

// The value of a property; null for one that is unknown.
long long *property(Plan &plan, int number) {
  return number < 1 || number > kProperties ? nullptr : &plan.properties[number - 1];
}

}  // namespace

SX_API cufftResult cufftCreate(cufftHandle *handle) {
  return guarded([&] { return handle ? add_plan(std::make_shared<Plan>(), *handle) : CUFFT_INVALID_VALUE; });
}

SX_API cufftResult cufftDestroy(cufftHandle handle) {
  return guarded([&] { return remove_plan(handle) ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN; });
}

// The four ways to one kind of plan: a new handle, a handle that is there, its size, and an estimate of it.
#define SX_PLANS(suffix, parameters, check)                                                                        \
  SX_API cufftResult cufftPlan##suffix(cufftHandle *handle, SX_UNPACK parameters) {                                \
    return guarded([&] {                                                                                           \
      Request r;                                                                                                   \
      const cufftResult checked = check;                                                                           \
      return make_new(handle, checked, r);                                                                         \
    });                                                                                                            \
  }                                                                                                                \
  SX_API cufftResult cufftEstimate##suffix(SX_UNPACK parameters, size_t *work_size) {                              \
    return guarded([&] {                                                                                           \
      Request r;                                                                                                   \
      const cufftResult checked = check;                                                                           \
      return size(checked, r, work_size);                                                                          \
    });                                                                                                            \
  }                                                                                                                \
  SX_MADE(suffix, parameters, check)

// The two that take a handle.
#define SX_MADE(suffix, parameters, check)                                                                         \
  SX_API cufftResult cufftMakePlan##suffix(cufftHandle handle, SX_UNPACK parameters, size_t *work_size) {          \
    return with_plan(handle, [&](Plan &plan) {                                                                     \
      Request r;                                                                                                   \
      const cufftResult checked = check;                                                                           \
      return make(plan, checked, r, work_size);                                                                    \
    });                                                                                                            \
  }                                                                                                                \
  SX_API cufftResult cufftGetSize##suffix(cufftHandle handle, SX_UNPACK parameters, size_t *work_size) {           \
    return with_plan(handle, [&](Plan &) {                                                                         \
      Request r;                                                                                                   \
      const cufftResult checked = check;                                                                           \
      return size(checked, r, work_size);                                                                          \
    });                                                                                                            \
  }
#define SX_UNPACK(...) __VA_ARGS__

SX_PLANS(1d, (int nx, int type, int batch), dense(r, type, {nx}, batch))
SX_PLANS(2d, (int nx, int ny, int type), dense(r, type, {nx, ny}, 1))
SX_PLANS(3d, (int nx, int ny, int nz, int type), dense(r, type, {nx, ny, nz}, 1))
SX_PLANS(Many, (int rank, int *n, int *inembed, int istride, int idist, int *onembed, int ostride, int odist, int type, int batch),
         typed_many(r, type, rank, n, inembed, istride, idist, onembed, ostride, odist, batch))
SX_MADE(Many64,
        (int rank, long long *n, long long *inembed, long long istride, long long idist, long long *onembed, long long ostride,
         long long odist, int type, long long batch),
        typed_many(r, type, rank, n, inembed, istride, idist, onembed, ostride, odist, batch))

SX_API cufftResult cufftXtMakePlanMany(cufftHandle handle, int rank, long long *n, long long *inembed, long long istride,
                                       long long idist, int in_type, long long *onembed, long long ostride, long long odist,
                                       int out_type, long long batch, size_t *work_size, int type) {
  return with_plan(handle, [&](Plan &plan) {
    Request r;
    const cufftResult checked = many(r, set_types(r, in_type, out_type, type), rank, n, inembed, istride, idist, onembed,
                                     ostride, odist, batch);
    return make(plan, checked, r, work_size);
  });
}

SX_API cufftResult cufftXtGetSizeMany(cufftHandle handle, int rank, long long *n, long long *inembed, long long istride,
                                      long long idist, int in_type, long long *onembed, long long ostride, long long odist,
                                      int out_type, long long batch, size_t *work_size, int type) {
  return with_plan(handle, [&](Plan &) {
    Request r;
    const cufftResult checked = many(r, set_types(r, in_type, out_type, type), rank, n, inembed, istride, idist, onembed,
                                     ostride, odist, batch);
    return size(checked, r, work_size);
  });
}

SX_API cufftResult cufftGetSize(cufftHandle handle, size_t *work_size) {
  return with_plan(handle, [&](Plan &plan) -> cufftResult {
    if (!work_size) return CUFFT_INVALID_VALUE;
    *work_size = plan.work_size;
    return CUFFT_SUCCESS;
  });
}

SX_API cufftResult cufftSetStream(cufftHandle handle, CUstream stream) {
  return with_plan(handle, [&](Plan &plan) {
    plan.stream = stream;
    return CUFFT_SUCCESS;
  });
}

SX_API cufftResult cufftSetAutoAllocation(cufftHandle handle, int allocate) {
  return with_plan(handle, [&](Plan &plan) -> cufftResult {
    if (plan.backend) return CUFFT_INVALID_PLAN;  // its work area is there
    plan.allocate = allocate != 0;
    return CUFFT_SUCCESS;
  });
}

SX_API cufftResult cufftSetWorkArea(cufftHandle handle, void *area) {
  return with_plan(handle, [&](Plan &plan) { return plan.backend ? plan.backend->set_work_area(area) : CUFFT_INVALID_PLAN; });
}

SX_API cufftResult cufftXtSetWorkArea(cufftHandle handle, void **areas) {
  return areas ? cufftSetWorkArea(handle, areas[0]) : CUFFT_INVALID_VALUE;
}

// A policy is about speed and memory: the work area stays as it is.
SX_API cufftResult cufftXtSetWorkAreaPolicy(cufftHandle handle, int policy, size_t *) {
  return with_plan(handle, [&](Plan &) { return policy < 0 || policy > 2 ? CUFFT_INVALID_VALUE : CUFFT_SUCCESS; });
}

SX_API cufftResult cufftExecC2C(cufftHandle handle, const void *in, void *out, int direction) {
  return execute(handle, CUFFT_C2C, in, out, direction);
}
SX_API cufftResult cufftExecZ2Z(cufftHandle handle, const void *in, void *out, int direction) {
  return execute(handle, CUFFT_Z2Z, in, out, direction);
}
SX_API cufftResult cufftExecR2C(cufftHandle handle, const void *in, void *out) {
  return execute(handle, CUFFT_R2C, in, out, CUFFT_FORWARD);
}
SX_API cufftResult cufftExecD2Z(cufftHandle handle, const void *in, void *out) {
  return execute(handle, CUFFT_D2Z, in, out, CUFFT_FORWARD);
}
SX_API cufftResult cufftExecC2R(cufftHandle handle, const void *in, void *out) {
  return execute(handle, CUFFT_C2R, in, out, CUFFT_INVERSE);
}
SX_API cufftResult cufftExecZ2D(cufftHandle handle, const void *in, void *out) {
  return execute(handle, CUFFT_Z2D, in, out, CUFFT_INVERSE);
}
SX_API cufftResult cufftXtExec(cufftHandle handle, const void *in, void *out, int direction) {
  return execute(handle, nullptr, in, out, direction);
}

SX_API cufftResult cufftGetVersion(int *version) {
  if (!version) return CUFFT_INVALID_VALUE;
  *version = kVersion[0] * 1000 + kVersion[1] * 100 + kVersion[2];
  return CUFFT_SUCCESS;
}

SX_API cufftResult cufftGetProperty(int which, int *value) {
  if (!value || which < 0 || which > 2) return CUFFT_INVALID_VALUE;
  *value = kVersion[which];
  return CUFFT_SUCCESS;
}

// Properties choose among NVIDIA's kernels; they are kept, and change no result beyond rounding.
SX_API cufftResult cufftSetPlanPropertyInt64(cufftHandle handle, int number, long long value) {
  return with_plan(handle, [&](Plan &plan) -> cufftResult {
    if (plan.backend) return CUFFT_INVALID_PLAN;
    long long *place = property(plan, number);
    if (!place) return CUFFT_NOT_SUPPORTED;
    *place = value;
    return CUFFT_SUCCESS;
  });
}

SX_API cufftResult cufftGetPlanPropertyInt64(cufftHandle handle, int number, long long *value) {
  return with_plan(handle, [&](Plan &plan) -> cufftResult {
    const long long *place = property(plan, number);
    if (!place) return CUFFT_NOT_SUPPORTED;
    if (!value) return CUFFT_INVALID_VALUE;
    *value = *place;
    return CUFFT_SUCCESS;
  });
}

SX_API cufftResult cufftResetPlanProperty(cufftHandle handle, int number) {
  return with_plan(handle, [&](Plan &plan) -> cufftResult {
    if (plan.backend) return CUFFT_INVALID_PLAN;
    long long *place = property(plan, number);
    if (!place) return CUFFT_NOT_SUPPORTED;
    Plan fresh;
    *place = *property(fresh, number);
    return CUFFT_SUCCESS;
  });
}
