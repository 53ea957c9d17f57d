// What a device has for a stream to use: all of it, since there are no green contexts.
#include <cstring>

#include "../common/per_thread.h"
#include "state.h"

#if SX_CUDART_MAJOR == 13

using namespace sx;

namespace {

constexpr int kSmResource = 1, kMultiprocessors = 16;  // cudaDevResourceTypeSm; cudaDevAttrMultiProcessorCount
constexpr int kInvalidResourceType = 914;

// cudaDevResource.
struct Resource {
  int type;
  unsigned char padding[92];
  unsigned multiprocessors, smallest_part, alignment, flags, domain;
  unsigned char rest[20];
  void *next;
};
static_assert(sizeof(Resource) == 144);

int fill(Resource *out, int type, CUdevice device) {
  if (!out) return kInvalidValue;
  if (type != kSmResource) return kInvalidResourceType;
  int count = 0;
  if (int error = driver().cuDeviceGetAttribute(&count, kMultiprocessors, device)) return error;
  memset(out, 0, sizeof *out);
  out->type = type;
  out->multiprocessors = static_cast<unsigned>(count);
  out->smallest_part = out->alignment = 8;  // as on devices of capability 9.0
  return kSuccess;
}

}  // namespace

SX_API cudaDeviceGetDevResource(int device, Resource *out, int type) {
  return with_driver([&] {
    CUdevice handle = 0;
    if (int error = driver().cuDeviceGet(&handle, device)) return error == kInvalidValue ? static_cast<int>(kInvalidDevice) : error;
    return fill(out, type, handle);
  });
}
SX_API cudaStreamGetDevResource(CUstream stream, Resource *out, int type) {
  return with_context([&] {
    unsigned flags = 0;
    if (int error = driver().cuStreamGetFlags(stream, &flags)) return error;  // the stream is one
    CUdevice device = 0;
    if (int error = driver().cuCtxGetDevice(&device)) return error;
    return fill(out, type, device);
  });
}
SX_API cudaStreamGetDevResource_ptsz(CUstream stream, Resource *out, int type) { return cudaStreamGetDevResource(per_thread(stream), out, type); }

#endif
