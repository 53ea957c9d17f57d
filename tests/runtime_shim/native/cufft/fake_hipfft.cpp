// Stands in for AMD's hipFFT: says what it is called with, one line a call, and answers what FAKE_RESULT says.
#include <cstdio>
#include <cstdlib>
#include <string>

struct hipfftHandle_t {
  int number;
};
struct ihipStream_t;

namespace {

int answer(const char *name) {
  const char *failing = std::getenv("FAKE_FAILS");
  return failing && std::string(failing) == name ? std::atoi(std::getenv("FAKE_RESULT")) : 0;
}

std::string list(const long long *numbers, int count) {
  if (!numbers) return "null";
  std::string text;
  for (int i = 0; i < count; ++i) text += (i ? "," : "") + std::to_string(numbers[i]);
  return text;
}

void describe(const char *name, const hipfftHandle_t *plan, int rank, const long long *n, const long long *inembed,
              long long istride, long long idist, int in, const long long *onembed, long long ostride, long long odist,
              int out, long long batch, int type) {
  printf("%s %d n %s in %s %lld %lld type %d out %s %lld %lld type %d batch %lld execution %d\n", name, plan->number,
         list(n, rank).c_str(), list(inembed, rank).c_str(), istride, idist, in, list(onembed, rank).c_str(), ostride, odist,
         out, batch, type);
}

}  // namespace

#define API extern "C" __attribute__((visibility("default")))

API int hipfftCreate(hipfftHandle_t **plan) {
  static int made = 0;
  *plan = new hipfftHandle_t{++made};
  printf("hipfftCreate %d\n", made);
  return answer("hipfftCreate");
}
API int hipfftDestroy(hipfftHandle_t *plan) {
  printf("hipfftDestroy %d\n", plan->number);
  delete plan;
  return 0;
}
API int hipfftSetStream(hipfftHandle_t *plan, ihipStream_t *stream) {
  printf("hipfftSetStream %d %p\n", plan->number, static_cast<void *>(stream));
  return 0;
}
API int hipfftSetAutoAllocation(hipfftHandle_t *plan, int allocate) {
  printf("hipfftSetAutoAllocation %d %d\n", plan->number, allocate);
  return 0;
}
API int hipfftSetWorkArea(hipfftHandle_t *plan, void *area) {
  printf("hipfftSetWorkArea %d %p\n", plan->number, area);
  return 0;
}
API int hipfftXtExec(hipfftHandle_t *plan, void *in, void *out, int direction) {
  printf("hipfftXtExec %d %p %p %d\n", plan->number, in, out, direction);
  return answer("hipfftXtExec");
}
API int hipfftXtMakePlanMany(hipfftHandle_t *plan, int rank, long long *n, long long *inembed, long long istride,
                             long long idist, int in, long long *onembed, long long ostride, long long odist, int out,
                             long long batch, size_t *work_size, int type) {
  describe("hipfftXtMakePlanMany", plan, rank, n, inembed, istride, idist, in, onembed, ostride, odist, out, batch, type);
  *work_size = 4096;
  return answer("hipfftXtMakePlanMany");
}
#ifndef OLD
API int hipfftXtGetSizeMany(hipfftHandle_t *plan, int rank, long long *n, long long *inembed, long long istride,
                            long long idist, int in, long long *onembed, long long ostride, long long odist, int out,
                            long long batch, size_t *work_size, int type) {
  describe("hipfftXtGetSizeMany", plan, rank, n, inembed, istride, idist, in, onembed, ostride, odist, out, batch, type);
  *work_size = 8192;
  return answer("hipfftXtGetSizeMany");
}
#endif
