// Virtual memory management: addresses, memory and access, each by itself.
#include "driver.h"

#include <cstring>

namespace {

constexpr size_t kPage = 2u << 20;

CUmemAllocationProp device_memory() {
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = device;
  return prop;
}

CUmemAccessDesc access(CUmemAccess_flags flags) {
  CUmemAccessDesc desc = {};
  desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  desc.location.id = device;
  desc.flags = flags;
  return desc;
}

size_t free_bytes() {
  size_t available = 0, total = 0;
  OK(cuMemGetInfo(&available, &total));
  return available;
}

void mistakes(CUdeviceptr base, CUmemGenericAllocationHandle memory) {
  const CUmemAllocationProp prop = device_memory();
  const CUmemAccessDesc both = access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  CUmemAllocationProp other = prop;
  CUmemGenericAllocationHandle none;
  CUdeviceptr p;
  RESULT(cuMemAddressReserve(&p, kPage + 4096, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemAddressReserve(&p, 0, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemAddressReserve(&p, kPage, 3, 0, 0), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemAddressReserve(&p, size_t{1} << 60, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
  RESULT(cuMemCreate(&none, 4096, &prop, 0), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemCreate(&none, size_t{1} << 50, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
  other.location.id = 7;
  RESULT(cuMemCreate(&none, kPage, &other, 0), CUDA_ERROR_INVALID_VALUE);
  other = prop;
  other.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
  RESULT(cuMemCreate(&none, kPage, &other, 0), CUDA_ERROR_NOT_SUPPORTED);
  RESULT(cuMemMap(base + 4096, kPage, 0, memory, 0), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemMap(base + (size_t{1} << 40), kPage, 0, memory, 0), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemMap(base, kPage, 0, 12345, 0), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemMap(base, 2 * kPage, 0, memory, 0), CUDA_ERROR_NOT_SUPPORTED);  // more than there is
  OK(cuMemUnmap(base, kPage));                                                // not mapped yet
  RESULT(cuMemSetAccess(base, kPage, &both, 1), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemAddressFree(base, kPage), CUDA_ERROR_INVALID_VALUE);            // a part of what was reserved
  RESULT(cuMemRelease(12345), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace

void virtual_memory() {
  start();
  int can = 0;
  OK(cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device));
  EXPECT(can == 1);
  const CUmemAllocationProp prop = device_memory();
  const CUmemAccessDesc both = access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  size_t granule = 0;
  OK(cuMemGetAllocationGranularity(&granule, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
  EXPECT(granule == kPage);
  saxpy_with(function("saxpy"), false, nullptr);  // the module takes memory when it is used first
  const size_t before = free_bytes();

  CUdeviceptr base = 0;
  CUmemGenericAllocationHandle memory[2], same;
  OK(cuMemAddressReserve(&base, 8 * kPage, 4 * kPage, 0, 0));
  EXPECT(base % (4 * kPage) == 0 && free_bytes() == before);
  for (CUmemGenericAllocationHandle &one : memory) OK(cuMemCreate(&one, kPage, &prop, 0));
  EXPECT(before - free_bytes() == 2 * kPage);
  mistakes(base, memory[0]);
  OK(cuMemMap(base, kPage, 0, memory[0], 0));
  OK(cuMemMap(base + kPage, kPage, 0, memory[1], 0));
  RESULT(cuMemMap(base + kPage, kPage, 0, memory[0], 0), CUDA_ERROR_INVALID_VALUE);  // taken
  unsigned long long flags = 9;
  OK(cuMemGetAccess(&flags, &both.location, base));
  EXPECT(flags == 0);
  int word = 41;
  RESULT(cuMemcpyHtoD(base, &word, sizeof word), CUDA_ERROR_INVALID_VALUE);  // mapped, and not accessible
  OK(cuMemSetAccess(base, 2 * kPage, &both, 1));
  OK(cuMemGetAccess(&flags, &both.location, base + kPage + 5));
  EXPECT(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

  // One range for copies, fills and kernels, although it is two pieces of memory.
  std::vector<int> numbers(2 * kPage / sizeof(int), 7), got(numbers.size());
  OK(cuMemcpyHtoD(base, numbers.data(), 2 * kPage));
  OK(cuMemsetD32(base + kPage - 8, 5, 4));
  OK(cuMemcpyDtoH(got.data(), base, 2 * kPage));
  const size_t edge = kPage / sizeof(int);
  EXPECT(got[0] == 7 && got[edge - 3] == 7 && got[edge - 2] == 5 && got[edge + 1] == 5 && got[edge + 2] == 7);
  float *x = reinterpret_cast<float *>(base + kPage - 256);
  std::vector<float> ones(128, 1.0f), sums(128);
  OK(cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(x), ones.data(), 512));
  CUdeviceptr y;
  OK(cuMemAlloc(&y, 512));
  OK(cuMemcpyHtoD(y, ones.data(), 512));
  int n = 128;
  float a = 2.0f;
  void *params[] = {&n, &a, &x, &y};
  OK(cuLaunchKernel(function("saxpy"), 2, 1, 1, 64, 1, 1, 0, nullptr, params, nullptr));
  OK(cuMemcpyDtoH(sums.data(), y, 512));
  EXPECT(sums[0] == 3.0f && sums[127] == 3.0f);

  // The memory keeps its content where it goes, and can be in two places.
  OK(cuMemUnmap(base, kPage));
  RESULT(cuMemcpyDtoH(&word, base, sizeof word), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemMap(base + 6 * kPage, kPage, 0, memory[0], 0));
  OK(cuMemMap(base + 4 * kPage, kPage, 0, memory[0], 0));
  OK(cuMemSetAccess(base + 6 * kPage, kPage, &both, 1));
  OK(cuMemSetAccess(base + 4 * kPage, kPage, &both, 1));
  OK(cuMemcpyDtoH(&word, base + 6 * kPage, sizeof word));
  EXPECT(word == 7);
  OK(cuMemsetD32(base + 4 * kPage, 99, 1));
  OK(cuMemcpyDtoH(&word, base + 6 * kPage, sizeof word));
  EXPECT(word == 99);
  RESULT(cuMemFree(base + 6 * kPage), CUDA_ERROR_INVALID_VALUE);

  // It is free when it is released and mapped nowhere.
  OK(cuMemRetainAllocationHandle(&same, reinterpret_cast<void *>(base + 6 * kPage + 100)));
  EXPECT(same == memory[0]);
  CUmemAllocationProp told = {};
  OK(cuMemGetAllocationPropertiesFromHandle(&told, same));
  EXPECT(told.type == prop.type && told.location.type == prop.location.type);
  OK(cuMemRelease(memory[0]));
  OK(cuMemRelease(same));
  RESULT(cuMemRelease(memory[0]), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemcpyDtoH(&word, base + 6 * kPage, sizeof word));
  OK(cuMemUnmap(base + 6 * kPage, kPage));
  OK(cuMemUnmap(base + 4 * kPage, kPage));
  RESULT(cuMemMap(base, kPage, 0, memory[0], 0), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemAddressFree(base, 8 * kPage), CUDA_ERROR_INVALID_VALUE);  // something is mapped there
  OK(cuMemUnmap(base + kPage, kPage));
  OK(cuMemRelease(memory[1]));
  OK(cuMemAddressFree(base, 8 * kPage));
  OK(cuMemFree(y));
  EXPECT(free_bytes() == before);

  // New memory is zero, and many pieces need no file descriptors.
  OK(cuMemAddressReserve(&base, 2000 * kPage, 0, 0, 0));
  for (int i = 0; i < 2000; ++i) {
    CUmemGenericAllocationHandle one;
    OK(cuMemCreate(&one, kPage, &prop, 0));
    OK(cuMemMap(base + i * kPage, kPage, 0, one, 0));
    OK(cuMemRelease(one));
  }
  OK(cuMemSetAccess(base, 2000 * kPage, &both, 1));
  for (int i = 0; i < 2000; i += 499) {
    OK(cuMemcpyDtoH(&word, base + i * kPage, sizeof word));
    EXPECT(word == 0);
  }
  OK(cuMemUnmap(base, 2000 * kPage));
  OK(cuMemAddressFree(base, 2000 * kPage));
  EXPECT(free_bytes() == before);
}

namespace {

// Two pages at `base`: the first may be read and written, the second as `flags` says.
CUdeviceptr mapped_pages(CUmemAccess_flags flags) {
  const CUmemAllocationProp prop = device_memory();
  const CUmemAccessDesc both = access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE), second = access(flags);
  CUdeviceptr base = 0;
  OK(cuMemAddressReserve(&base, 2 * kPage, 0, 0, 0));
  for (int i = 0; i < 2; ++i) {
    CUmemGenericAllocationHandle one;
    OK(cuMemCreate(&one, kPage, &prop, 0));
    OK(cuMemMap(base + i * kPage, kPage, 0, one, 0));
  }
  OK(cuMemSetAccess(base, 2 * kPage, &both, 1));
  OK(cuMemsetD32(base, 0x3f800000, 2 * kPage / 4));  // 1.0f
  OK(cuMemSetAccess(base + kPage, kPage, &second, 1));
  return base;
}

CUresult saxpy_of(CUdeviceptr x, CUdeviceptr y) {
  int n = 64;
  float a = 2.0f;
  void *params[] = {&n, &a, &x, &y};
  OK(cuLaunchKernel(function("saxpy"), 1, 1, 1, 64, 1, 1, 0, nullptr, params, nullptr));
  return cuCtxSynchronize();
}

}  // namespace

// The device may read it; a kernel that writes ends the context.
void read_only_memory() {
  start();
  const CUdeviceptr base = mapped_pages(CU_MEM_ACCESS_FLAGS_PROT_READ), second = base + kPage;
  CUdeviceptr after = 0;  // memory above what is guarded
  OK(cuMemAlloc(&after, 8 * kPage));
  OK(cuMemsetD32(after, 0x40000000, 8 * kPage / 4));  // 2.0f
  float got[64];
  OK(saxpy_of(second, after));
  OK(cuMemcpyDtoH(got, after, sizeof got));
  EXPECT(got[0] == 4.0f && got[63] == 4.0f);
  OK(saxpy_of(second, second - 256));  // the last words that may be written
  OK(cuMemcpyDtoH(got, second - 128, sizeof got));  // a copy across both
  EXPECT(got[31] == 3.0f && got[32] == 1.0f);
  RESULT(cuMemcpyHtoD(second - 128, got, sizeof got), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemcpyHtoD(second + 64, got, 4), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemcpyDtoD(second, after, 4), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemsetD32(second, 5, 1), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemcpyHtoD(second - 4, got, 4));
  RESULT(saxpy_of(after, second), CUDA_ERROR_ILLEGAL_ADDRESS);
}

// Mapped, and not accessible.
void no_access_memory() {
  start();
  const CUdeviceptr base = mapped_pages(CU_MEM_ACCESS_FLAGS_PROT_NONE), second = base + kPage;
  OK(saxpy_of(base, second - 256));
  RESULT(saxpy_of(second, base), CUDA_ERROR_ILLEGAL_ADDRESS);
}

// Copies and fills keep to what cuMemSetAccess said, on every HIP library: no kernel takes part.
void access_rights() {
  start();
  const CUdeviceptr base = mapped_pages(CU_MEM_ACCESS_FLAGS_PROT_READ), second = base + kPage;
  CUdeviceptr other = 0;
  OK(cuMemAlloc(&other, 4096));
  OK(cuMemsetD32(other, 5, 1024));
  int words[32] = {};
  OK(cuMemcpyDtoH(words, second - 64, sizeof words));  // a copy across both
  EXPECT(words[0] == 0x3f800000 && words[31] == 0x3f800000);
  RESULT(cuMemcpyHtoD(second - 64, words, sizeof words), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemcpyHtoDAsync(second, words, 4, nullptr), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemcpyDtoD(second, other, 4), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemsetD8(second - 2, 5, 4), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemsetD32(second, 5, 1), CUDA_ERROR_INVALID_VALUE);
  CUDA_MEMCPY2D box = {};
  box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  box.srcDevice = other;
  box.srcPitch = 128;
  box.dstDevice = second - 64;  // its second row is in the second page
  box.dstPitch = 128;
  box.WidthInBytes = 64;
  box.Height = 2;
  RESULT(cuMemcpy2D(&box), CUDA_ERROR_INVALID_VALUE);
  box.dstDevice = second - 192;
  OK(cuMemcpy2D(&box));

  const CUmemAccessDesc none = access(CU_MEM_ACCESS_FLAGS_PROT_NONE), both = access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  OK(cuMemSetAccess(second, kPage, &none, 1));
  RESULT(cuMemcpyDtoH(words, second, 4), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemcpyDtoD(other, second - 4, 8), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemsetD32(second, 5, 1), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemSetAccess(second, kPage, &both, 1));
  OK(cuMemsetD32(second, 9, 1));
  OK(cuMemcpyDtoH(words, second, 8));
  EXPECT(words[0] == 9 && words[1] == 0x3f800000);
  OK(cuMemUnmap(second, kPage));
  RESULT(cuMemcpyDtoH(words, second, 4), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemcpyHtoD(second, words, 4), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemcpyDtoH(words, second - 4, 4));
  OK(cuMemUnmap(base, kPage));
  OK(cuMemFree(other));
}

// Ranges that are not whole mappings, with an H100's answers (driver 580.159); nothing changes by them.
void mapped_ranges() {
  start();
  const CUmemAllocationProp prop = device_memory();
  const CUmemAccessDesc none = access(CU_MEM_ACCESS_FLAGS_PROT_NONE), read = access(CU_MEM_ACCESS_FLAGS_PROT_READ),
                        both = access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  CUmemGenericAllocationHandle memory[2];
  CUdeviceptr base = 0;
  OK(cuMemAddressReserve(&base, 8 * kPage, 0, 0, 0));
  for (int i = 0; i < 2; ++i) {
    OK(cuMemCreate(&memory[i], 2 * kPage, &prop, 0));
    OK(cuMemMap(base + 2 * i * kPage, 2 * kPage, 0, memory[i], 0));
  }
  const CUdeviceptr second = base + 2 * kPage, end = base + 4 * kPage;
  auto rights = [&](CUdeviceptr place) {
    unsigned long long flags = 99;
    const CUresult result = cuMemGetAccess(&flags, &both.location, place);
    return result == CUDA_SUCCESS ? static_cast<int>(flags) : -static_cast<int>(result);
  };
  const struct { CUdeviceptr at; size_t pages; } parts[] = {
      {base, 1}, {base + kPage, 1}, {base, 3}, {base + kPage, 3}, {base + kPage, 2}, {base, 5}, {end, 1}};
  for (const auto &part : parts) RESULT(cuMemSetAccess(part.at, part.pages * kPage, &both, 1), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemSetAccess(base, 4096, &both, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT(rights(base) == 0 && rights(second) == 0);
  OK(cuMemSetAccess(base, 4 * kPage, &both, 1));
  OK(cuMemsetD32(base, 5, 4 * kPage / 4));
  for (const auto &part : parts) RESULT(cuMemSetAccess(part.at, part.pages * kPage, &none, 1), CUDA_ERROR_INVALID_VALUE);
  for (int i = 0; i < 4; ++i) EXPECT(rights(base + i * kPage) == 3);
  OK(cuMemsetD32(base, 6, 4 * kPage / 4));
  OK(cuMemSetAccess(base, 2 * kPage, &read, 1));
  EXPECT(rights(base + kPage) == 1 && rights(second) == 3 && rights(end) == -CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemsetD32(base + kPage, 7, 1), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemsetD32(second, 7, 1));

  RESULT(cuMemSetAccess(second, 0, &both, 1), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemSetAccess(second, 2 * kPage, &both, 0), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemSetAccess(second, 2 * kPage, nullptr, 1), CUDA_ERROR_INVALID_VALUE);
  CUmemAccessDesc other = both;
  other.flags = static_cast<CUmemAccess_flags>(2);
  RESULT(cuMemSetAccess(second, 2 * kPage, &other, 1), CUDA_ERROR_INVALID_VALUE);
  other = both;
  other.location.id = 99;
  RESULT(cuMemSetAccess(second, 2 * kPage, &other, 1), CUDA_ERROR_INVALID_VALUE);
  other = both;
  other.location.type = CU_MEM_LOCATION_TYPE_HOST;
  RESULT(cuMemSetAccess(second, 2 * kPage, &other, 1), CUDA_ERROR_NOT_SUPPORTED);

  RESULT(cuMemUnmap(base, kPage), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemUnmap(base + kPage, 2 * kPage), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemMap(base + kPage, 2 * kPage, 0, memory[0], 0), CUDA_ERROR_INVALID_VALUE);      // over mappings
  RESULT(cuMemMap(base + 7 * kPage, 2 * kPage, 0, memory[0], 0), CUDA_ERROR_INVALID_VALUE);  // beyond what is reserved
  RESULT(cuMemMap(end, 2 * kPage, 0, 12345, 0), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemMap(end, kPage, 0, memory[0], 0), CUDA_ERROR_NOT_SUPPORTED);  // a part of the memory
  RESULT(cuMemMap(end, kPage, kPage, memory[0], 0), CUDA_ERROR_NOT_SUPPORTED);
  RESULT(cuMemMap(end, 3 * kPage, 0, memory[0], 0), CUDA_ERROR_NOT_SUPPORTED);  // more than there is
  RESULT(cuMemMap(end + 4096, 2 * kPage, 0, memory[0], 0), CUDA_ERROR_INVALID_VALUE);
  unsigned long long flags = 99;
  RESULT(cuMemGetAccess(&flags, &both.location, end), CUDA_ERROR_INVALID_VALUE);
  EXPECT(flags == 0);
  other = both;
  other.location.id = 9;
  RESULT(cuMemGetAccess(&flags, &other.location, base), CUDA_ERROR_INVALID_DEVICE);

  // A hole in a range is none of its mappings' matter.
  OK(cuMemMap(base + 6 * kPage, 2 * kPage, 0, memory[0], 0));
  OK(cuMemSetAccess(base, 8 * kPage, &both, 1));
  EXPECT(rights(base) == 3 && rights(base + 7 * kPage) == 3);
  OK(cuMemUnmap(base, 8 * kPage));
  OK(cuMemUnmap(base, kPage));  // nothing is mapped there
  RESULT(cuMemAddressFree(base, kPage), CUDA_ERROR_INVALID_VALUE);
  for (const auto held : memory) OK(cuMemRelease(held));
  RESULT(cuMemRelease(memory[0]), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemAddressFree(base, 8 * kPage));
  RESULT(cuMemAddressFree(base, 8 * kPage), CUDA_ERROR_INVALID_VALUE);
}
