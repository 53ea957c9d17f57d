// Virtual memory management: HIP's functions, whose structures and numbers are CUDA's.
#include "access.h"
#include "driver.h"

using namespace sx;

namespace {

hipMemGenericAllocationHandle_t to_hip_memory(CUmemGenericAllocationHandle handle) {
  return reinterpret_cast<hipMemGenericAllocationHandle_t>(handle);
}

// CUDA's structure ends with four reserved bytes where HIP's is padded.
static_assert(sizeof(hipMemAllocationProp) == sizeof(CUmemAllocationProp));
static_assert(sizeof(hipMemAccessDesc) == sizeof(CUmemAccessDesc) && sizeof(hipMemLocation) == sizeof(CUmemLocation));

const hipMemAllocationProp *to_hip(const CUmemAllocationProp *prop) {
  return reinterpret_cast<const hipMemAllocationProp *>(prop);
}

constexpr size_t kGranule = 2u << 20;
constexpr int kDevice = 1;  // CU_MEM_LOCATION_TYPE_DEVICE

}  // namespace

SX_API cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop, int option) {
  return enter<Need::Init>(__func__, [&] {
    CUresult result = SX_HIP(hipMemGetAllocationGranularity, granularity, ::to_hip(prop), option);
    // AMD's is a page of the host's; programs know NVIDIA's 2 MiB, which is a multiple of it.
    if (result == CUDA_SUCCESS && *granularity < kGranule && kGranule % *granularity == 0) *granularity = kGranule;
    return result;
  });
}

SX_API cuMemAddressReserve(CUdeviceptr *out, size_t size, size_t alignment, CUdeviceptr wish, unsigned long long flags) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    void *pointer = nullptr;
    CUresult result = SX_HIP(hipMemAddressReserve, &pointer, size, alignment, to_pointer(wish), flags);
    if (result != CUDA_SUCCESS) return result;
    access_reserved(pointer, size);
    *out = reinterpret_cast<CUdeviceptr>(pointer);
    return result;
  });
}

SX_API cuMemAddressFree(CUdeviceptr pointer, size_t size) {
  return enter<Need::Init>(__func__, [&] {
    CUresult result = SX_HIP(hipMemAddressFree, to_pointer(pointer), size);
    if (result == CUDA_SUCCESS) access_freed(to_pointer(pointer));
    return result;
  });
}

SX_API cuMemCreate(CUmemGenericAllocationHandle *out, size_t size, const CUmemAllocationProp *prop,
                   unsigned long long flags) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    hipMemGenericAllocationHandle_t handle = nullptr;
    CUresult result = SX_HIP(hipMemCreate, &handle, size, ::to_hip(prop), flags);
    if (result == CUDA_SUCCESS) *out = reinterpret_cast<CUmemGenericAllocationHandle>(handle);
    return result;
  });
}

SX_API cuMemRelease(CUmemGenericAllocationHandle handle) {
  return enter<Need::Init>(__func__, [&] { return SX_HIP(hipMemRelease, to_hip_memory(handle)); });
}

SX_API cuMemMap(CUdeviceptr pointer, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                unsigned long long flags) {
  return enter<Need::Init>(__func__, [&] {
    CUresult result = SX_HIP(hipMemMap, to_pointer(pointer), size, offset, to_hip_memory(handle), flags);
    if (result == CUDA_SUCCESS) access_mapped(to_pointer(pointer), size);
    return result;
  });
}

SX_API cuMemUnmap(CUdeviceptr pointer, size_t size) {
  return enter<Need::Init>(__func__, [&] {
    CUresult result = SX_HIP(hipMemUnmap, to_pointer(pointer), size);
    if (result == CUDA_SUCCESS) access_unmapped(to_pointer(pointer), size);
    return result;
  });
}

SX_API cuMemSetAccess(CUdeviceptr pointer, size_t size, const CUmemAccessDesc *desc, size_t count) {
  return enter<Need::Init>(__func__, [&] {
    auto *hip_desc = reinterpret_cast<const hipMemAccessDesc *>(desc);
    CUresult result = SX_HIP(hipMemSetAccess, to_pointer(pointer), size, hip_desc, count);
    for (size_t i = 0; result == CUDA_SUCCESS && i < count; ++i)
      if (desc[i].location.type == kDevice)
        access_set(to_pointer(pointer), size, static_cast<unsigned>(desc[i].flags));
    return result;
  });
}

SX_API cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr pointer) {
  return enter<Need::Init>(__func__, [&] {
    return SX_HIP(hipMemGetAccess, flags, reinterpret_cast<const hipMemLocation *>(location), to_pointer(pointer));
  });
}

SX_API cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *pointer) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    hipMemGenericAllocationHandle_t handle = nullptr;
    CUresult result = SX_HIP(hipMemRetainAllocationHandle, &handle, pointer);
    if (result == CUDA_SUCCESS) *out = reinterpret_cast<CUmemGenericAllocationHandle>(handle);
    return result;
  });
}

SX_API cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle) {
  return enter<Need::Init>(__func__, [&] {
    return SX_HIP(hipMemGetAllocationPropertiesFromHandle, reinterpret_cast<hipMemAllocationProp *>(prop),
                  to_hip_memory(handle));
  });
}
