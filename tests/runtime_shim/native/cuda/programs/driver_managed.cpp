// Managed memory: of a module's variables and allocated.  What is expected is what CUDA's manual says.
#include "driver.h"

static bool is_managed(CUdeviceptr pointer) {
  bool managed = false;
  unsigned type = 0;
  OK(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer));
  OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer));
  EXPECT(type == CU_MEMORYTYPE_DEVICE);
  void *host = nullptr;
  CUdeviceptr there = 0;
  OK(cuPointerGetAttribute(&there, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, pointer));
  EXPECT(there == pointer);
  RESULT(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, pointer),
         managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
  EXPECT(!managed || host == reinterpret_cast<void *>(pointer));
  return managed;
}

// A module's variables, by both kinds of handles; __device__ ones beside them are not managed.
void managed() {
  start();
  CUlibrary library;
  CUmodule module;
  CUdeviceptr everywhere, same, counter;
  size_t size = 0;
  OK(cuLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  OK(cuLibraryGetModule(&module, library));
  OK(cuModuleGetGlobal(&everywhere, &size, module, "everywhere"));
  EXPECT(size == 8000 && is_managed(everywhere) && is_managed(everywhere + 7999));
  OK(cuLibraryGetManaged(&same, &size, library, "everywhere"));
  EXPECT(same == everywhere && size == 8000);
  OK(cuModuleGetGlobal(&counter, nullptr, module, "counter"));
  EXPECT(!is_managed(counter));
  OK(cuModuleGetGlobal(&counter, nullptr, module, "zeros"));
  EXPECT(!is_managed(counter));
  RESULT(cuLibraryGetManaged(&same, &size, library, "counter"), CUDA_ERROR_NOT_FOUND);
  // The host reads and writes it.
  CUfunction f;
  OK(cuModuleGetFunction(&f, module, "managed"));
  OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  OK(cuCtxSynchronize());
  int *values = reinterpret_cast<int *>(everywhere);
  EXPECT(values[0] == 6 && values[1] == 46);
  // It goes with the module alone.
  RESULT(cuMemFree(everywhere), CUDA_ERROR_INVALID_VALUE);
  for (const char *name : {"everywhere", "counter", "zeros", "factors"}) {
    OK(cuModuleGetGlobal(&same, nullptr, module, name));
    CUdeviceptr base = 0;
    OK(cuMemGetAddressRange(&base, nullptr, same));
    RESULT(cuMemFree(same), CUDA_ERROR_INVALID_VALUE);
    RESULT(cuMemFree(base), CUDA_ERROR_INVALID_VALUE);
    RESULT(cuMemFreeAsync(base, nullptr), CUDA_ERROR_INVALID_VALUE);
  }
  CUdeviceptr device_pointer;
  RESULT(cuMemHostGetDevicePointer(&device_pointer, values, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuLibraryUnload(library));
  // What comes to its place is not managed.
  CUdeviceptr next[4];
  for (CUdeviceptr &pointer : next) {
    OK(cuMemAlloc(&pointer, 8000));
    EXPECT(!is_managed(pointer));
  }
}

struct Attributes {
  int read_mostly = 7, preferred = 7, accessed[3] = {7, 7, 7}, last = 7, preferred_type = 7, last_type = 7, last_id = 7;

  Attributes(CUdeviceptr pointer, size_t size) {
    void *outs[] = {&read_mostly, &preferred, accessed, &last, &preferred_type, &last_type, &last_id};
    size_t sizes[] = {4, 4, 12, 4, 4, 4, 4};
    CUmem_range_attribute ids[] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION,
                                   CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION,
                                   CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE,
                                   CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE,
                                   CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID};
    OK(cuMemRangeGetAttributes(outs, sizes, ids, 7, pointer, size));
  }
  bool are(int mostly, int place, int first, int second, int prefetched) const {
    return read_mostly == mostly && preferred == place && accessed[0] == first && accessed[1] == second &&
           accessed[2] == CU_DEVICE_INVALID && last == prefetched;
  }
};

// The same for an allocation and a variable, of 8000 bytes or more.
static void advise(CUdeviceptr p) {
  const CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, {0}}, host = {CU_MEM_LOCATION_TYPE_HOST, {0}},
                      nowhere = {CU_MEM_LOCATION_TYPE_DEVICE, {9}};
  const size_t size = 8000;
  const int none = CU_DEVICE_INVALID, cpu = CU_DEVICE_CPU;
  EXPECT(Attributes(p, size).are(0, none, none, none, none));
  OK(cuMemPrefetchAsync(p, size, here, 0, nullptr));
  OK(cuMemAdvise(p, size, CU_MEM_ADVISE_SET_READ_MOSTLY, here));
  OK(cuMemAdvise(p, size, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host));
  OK(cuMemAdvise(p, size, CU_MEM_ADVISE_SET_ACCESSED_BY, here));
  EXPECT(Attributes(p, size).are(1, cpu, 0, none, 0));
  OK(cuMemAdvise(p, size, CU_MEM_ADVISE_SET_ACCESSED_BY, host));
  EXPECT(Attributes(p, size).are(1, cpu, 0, cpu, 0));
  OK(cuMemAdvise(p, size, CU_MEM_ADVISE_UNSET_ACCESSED_BY, here));
  EXPECT(Attributes(p, size).are(1, cpu, cpu, none, 0));
  // Pages: one of them is elsewhere, and all that is asked about has to agree.
  const CUdeviceptr second = (p + 4096) / 4096 * 4096;
  OK(cuMemPrefetchAsync(second + 10, 1, host, 0, nullptr));
  OK(cuMemAdvise(second, 1, CU_MEM_ADVISE_UNSET_READ_MOSTLY, here));
  OK(cuMemAdvise(second, 1, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, here));
  EXPECT(Attributes(p, size).are(0, none, cpu, none, none));
  EXPECT(Attributes(second + 20, 30).are(0, none, cpu, none, cpu));
  EXPECT(Attributes(second + 20, 30).last_type == CU_MEM_LOCATION_TYPE_HOST);
  EXPECT(Attributes(second + 20, 30).preferred_type == CU_MEM_LOCATION_TYPE_INVALID);
  if (second > p) EXPECT(Attributes(p, second - p).are(1, cpu, cpu, none, 0));
  // Refused: a device that there is not, more than there is, other advice, other flags.
  RESULT(cuMemPrefetchAsync(p, size, nowhere, 0, nullptr), CUDA_ERROR_INVALID_DEVICE);
  RESULT(cuMemPrefetchAsync(p, 3 << 20, here, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemPrefetchAsync(p, size, here, 1, nullptr), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemAdvise(p, size, CU_MEM_ADVISE_SET_ACCESSED_BY, nowhere), CUDA_ERROR_INVALID_DEVICE);
  RESULT(cuMemAdvise(p, size, static_cast<CUmem_advise>(9), here), CUDA_ERROR_INVALID_VALUE);
  OK(cuStreamAttachMemAsync(nullptr, p, 0, CU_MEM_ATTACH_GLOBAL));
  RESULT(cuStreamAttachMemAsync(nullptr, p, 0, CU_MEM_ATTACH_SINGLE), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuStreamAttachMemAsync(nullptr, p, 4, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuStreamAttachMemAsync(nullptr, p, 0, 0), CUDA_ERROR_INVALID_VALUE);
}

void managed_advice() {
  start();
  CUmodule module;
  CUdeviceptr variable, counter, allocated, ordinary, neighbour;
  OK(cuModuleLoadData(&module, image.data()));
  OK(cuModuleGetGlobal(&variable, nullptr, module, "everywhere"));
  OK(cuModuleGetGlobal(&counter, nullptr, module, "counter"));
  OK(cuMemAlloc(&ordinary, 1 << 20));
  OK(cuMemAllocManaged(&allocated, 8000, CU_MEM_ATTACH_GLOBAL));
  OK(cuMemAllocManaged(&neighbour, 100, CU_MEM_ATTACH_HOST));
  EXPECT(is_managed(allocated));
  advise(variable);
  advise(allocated);
  EXPECT(Attributes(neighbour, 100).are(0, CU_DEVICE_INVALID, CU_DEVICE_INVALID, CU_DEVICE_INVALID, CU_DEVICE_INVALID));
  // Memory that was freed is forgotten.
  OK(cuMemFree(allocated));
  OK(cuMemAllocManaged(&allocated, 8000, CU_MEM_ATTACH_GLOBAL));
  EXPECT(Attributes(allocated, 8000).last == CU_DEVICE_INVALID);
  // Other memory is not managed.
  const CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  static char heap[8192];
  int value;
  for (CUdeviceptr pointer : {ordinary, counter, reinterpret_cast<CUdeviceptr>(heap)}) {
    RESULT(cuMemPrefetchAsync(pointer, 4, here, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
    RESULT(cuMemAdvise(pointer, 4, CU_MEM_ADVISE_SET_READ_MOSTLY, here), CUDA_ERROR_INVALID_VALUE);
    RESULT(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, pointer, 4), CUDA_ERROR_INVALID_VALUE);
    RESULT(cuStreamAttachMemAsync(nullptr, pointer, 0, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
  }
  RESULT(cuMemRangeGetAttribute(&value, 2, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, allocated, 4), CUDA_ERROR_INVALID_VALUE);
}
