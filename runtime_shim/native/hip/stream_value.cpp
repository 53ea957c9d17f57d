// Waiting for, and writing, values in memory in a stream's order.
#include "memory.h"
#include "reach.h"
#include "state.h"
#include "stream.h"

#include <atomic>
#include <ctime>

namespace sx {
namespace {

template <class T>
bool reached(T value, T wanted, unsigned mode) {
  using Signed = std::make_signed_t<T>;
  switch (mode) {
    case 0: return static_cast<Signed>(value - wanted) >= 0;  // cyclic comparison, as CUDA's
    case 1: return value == wanted;
    case 2: return value & wanted;
    default: return static_cast<T>(~(value | wanted)) != 0;
  }
}

template <class T>
bool usable(void *pointer, bool write) {
  Place place = memory_place(pointer, sizeof(T));
  bool writable = place == Place::Arena || place == Place::Registered;
  bool known = writable || (!write && (place == Place::ReadOnly || place == Place::Guarded));
  return known && reinterpret_cast<uintptr_t>(pointer) % sizeof(T) == 0;
}

template <class T>
int wait_value(hipStream_t handle, void *pointer, T wanted, unsigned mode, T mask) {
  StreamRef stream;
  if (int error = find_stream(handle, stream)) return error;
  if (!usable<T>(pointer, false) || mode > 3) return hipErrorInvalidValue;
  enqueue(stream, [=] {
    T *at = static_cast<T *>(pointer);
    if (!reach(at, sizeof(T), false)) return;
    for (unsigned turn = 0; !sticky_error(); ++turn) {
      if (reached<T>(__atomic_load_n(at, __ATOMIC_ACQUIRE) & mask, wanted, mode)) return;
      timespec pause = {0, turn < 100 ? 1000 : 50000};
      nanosleep(&pause, nullptr);
    }
  });
  return 0;
}

template <class T>
int write_value(hipStream_t handle, void *pointer, T value) {
  StreamRef stream;
  if (int error = find_stream(handle, stream)) return error;
  if (!usable<T>(pointer, true)) return hipErrorInvalidValue;
  enqueue(stream, [=] {
    if (!sticky_error() && reach(pointer, sizeof(T), true)) __atomic_store_n(static_cast<T *>(pointer), value, __ATOMIC_RELEASE);
  });
  return 0;
}

}  // namespace
}  // namespace sx

using namespace sx;

SX_API hipError_t hipStreamWaitValue32(hipStream_t stream, void *pointer, uint32_t value, unsigned flags,
                                       uint32_t mask) {
  return call([&] { return wait_value<uint32_t>(stream, pointer, value, flags, mask); });
}

SX_API hipError_t hipStreamWaitValue64(hipStream_t stream, void *pointer, uint64_t value, unsigned flags,
                                       uint64_t mask) {
  return call([&] { return wait_value<uint64_t>(stream, pointer, value, flags, mask); });
}

SX_API hipError_t hipStreamWriteValue32(hipStream_t stream, void *pointer, uint32_t value, unsigned) {
  return call([&] { return write_value<uint32_t>(stream, pointer, value); });
}

SX_API hipError_t hipStreamWriteValue64(hipStream_t stream, void *pointer, uint64_t value, unsigned) {
  return call([&] { return write_value<uint64_t>(stream, pointer, value); });
}
