// Virtual memory management: HIP's functions, whose structures and numbers are CUDA's.
#include <unistd.h>

#include <cstdint>
#include <vector>

#include "access.h"
#include "driver.h"
#include "unsupported.h"

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
constexpr int kDevice = 1, kHosts = 2, kHostsEnd = 5;  // CU_MEM_LOCATION_TYPE_*

constexpr int kDescriptor = 1;  // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
constexpr char kShared[] = "memory for other processes (cuMemCreate with a type of handle)";
constexpr char kUnmap[] = "cuMemUnmap of these mappings, by this HIP library";
constexpr char kAccess[] = "cuMemSetAccess of these mappings, by this HIP library";

bool is_device(const CUmemLocation &location) {
  return location.type == kDevice && static_cast<size_t>(location.id) < driver().devices.size();
}

CUdeviceptr end_of(const Range &range) { return reinterpret_cast<CUdeviceptr>(range.base) + range.size; }

// Ranges without a hole between them as one.
std::vector<Range> neighbours(const std::vector<Range> &ranges) {
  std::vector<Range> joined;
  for (const Range &one : ranges) {
    if (!joined.empty() && end_of(joined.back()) == reinterpret_cast<CUdeviceptr>(one.base))
      joined.back().size += one.size;
    else
      joined.push_back(one);
  }
  return joined;
}

// The answer to a wish for access that AMD's library is not asked about.
CUresult wrong(const CUmemAccessDesc &desc) {
  const int type = desc.location.type;
  if (type >= kHosts && type < kHostsEnd) return refuse("cuMemSetAccess for the host");
  const bool known = desc.flags == 0 || desc.flags == 1 || desc.flags == 3;  // CU_MEM_ACCESS_FLAGS_PROT_*
  return is_device(desc.location) && known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// AMD's answer to a call that nothing is wrong with.  HIP 7.2.4 refuses a mapping that a smaller one follows.
CUresult of_right_call(CUresult result, const char *what) {
  return result == CUDA_ERROR_INVALID_VALUE ? refuse(what) : result;
}

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
    CUresult result = may_free(to_pointer(pointer), size);
    if (result == CUDA_SUCCESS) result = SX_HIP(hipMemAddressFree, to_pointer(pointer), size);
    if (result == CUDA_SUCCESS) access_freed(to_pointer(pointer));
    return result;
  });
}

SX_API cuMemCreate(CUmemGenericAllocationHandle *out, size_t size, const CUmemAllocationProp *prop,
                   unsigned long long flags) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    if (prop && prop->requestedHandleTypes && (prop->requestedHandleTypes != kDescriptor || !shares_memory())) return refuse(kShared);
    hipMemGenericAllocationHandle_t handle = nullptr;
    CUresult result = SX_HIP(hipMemCreate, &handle, size, ::to_hip(prop), flags);
    if (result != CUDA_SUCCESS) return result;
    *out = reinterpret_cast<CUmemGenericAllocationHandle>(handle);
    memory_made(*out, size);
    return result;
  });
}

SX_API cuMemRelease(CUmemGenericAllocationHandle handle) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    if (!memory_released(handle)) return CUDA_ERROR_INVALID_VALUE;
    return SX_HIP(hipMemRelease, to_hip_memory(handle));
  });
}

SX_API cuMemMap(CUdeviceptr pointer, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                unsigned long long flags) {
  return enter<Need::Init>(__func__, [&] {
    CUresult result = may_map(to_pointer(pointer), size, offset, handle);
    if (result == CUDA_SUCCESS)
      result = SX_HIP(hipMemMap, to_pointer(pointer), size, offset, to_hip_memory(handle), flags);
    if (result == CUDA_SUCCESS) access_mapped(to_pointer(pointer), size);
    return result;
  });
}

SX_API cuMemUnmap(CUdeviceptr pointer, size_t size) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    if (nothing_mapped(to_pointer(pointer), size)) return CUDA_SUCCESS;
    // One by one: HIP 6.4.3 mixes up several, and the process ends by a signal when it is over.
    const std::vector<Range> mappings = whole_mappings(to_pointer(pointer), size);
    if (mappings.empty()) return CUDA_ERROR_INVALID_VALUE;
    for (const Range &one : mappings) {
      CUresult result = of_right_call(SX_HIP(hipMemUnmap, one.base, one.size), kUnmap);
      if (result != CUDA_SUCCESS) return result;
      access_unmapped(one.base, one.size);
    }
    return CUDA_SUCCESS;
  });
}

SX_API cuMemSetAccess(CUdeviceptr pointer, size_t size, const CUmemAccessDesc *desc, size_t count) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    const std::vector<Range> parts = neighbours(whole_mappings(to_pointer(pointer), size));
    if (!desc || !count || parts.empty() || parts.front().base != to_pointer(pointer) || end_of(parts.back()) != pointer + size)
      return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; ++i)
      if (CUresult error = wrong(desc[i]); error != CUDA_SUCCESS) return error;
    for (const Range &part : parts) {
      auto *hip_desc = reinterpret_cast<const hipMemAccessDesc *>(desc);
      CUresult result = of_right_call(SX_HIP(hipMemSetAccess, part.base, part.size, hip_desc, count), kAccess);
      if (result != CUDA_SUCCESS) return result;
      for (size_t i = 0; i < count; ++i) access_set(part.base, part.size, static_cast<unsigned>(desc[i].flags));
    }
    return CUDA_SUCCESS;
  });
}

SX_API cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr pointer) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    if (location && location->type == kDevice) {
      if (!is_device(*location)) return CUDA_ERROR_INVALID_DEVICE;
      if (flags) *flags = 0;
    }
    return SX_HIP(hipMemGetAccess, flags, reinterpret_cast<const hipMemLocation *>(location), to_pointer(pointer));
  });
}

SX_API cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *pointer) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    hipMemGenericAllocationHandle_t handle = nullptr;
    CUresult result = SX_HIP(hipMemRetainAllocationHandle, &handle, pointer);
    if (result != CUDA_SUCCESS) return result;
    *out = reinterpret_cast<CUmemGenericAllocationHandle>(handle);
    memory_retained(*out, pointer);
    return result;
  });
}

SX_API cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle) {
  return enter<Need::Init>(__func__, [&] {
    return SX_HIP(hipMemGetAllocationPropertiesFromHandle, reinterpret_cast<hipMemAllocationProp *>(prop),
                  to_hip_memory(handle));
  });
}

SX_API cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle, int type, unsigned long long flags) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    if (type != kDescriptor) return refuse("cuMemExportToShareableHandle as anything but a file descriptor");
    return SX_HIP(hipMemExportToShareableHandle, out, to_hip_memory(handle), type, flags);
  });
}

SX_API cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *given, int type) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    if (type != kDescriptor) return refuse("cuMemImportFromShareableHandle of anything but a file descriptor");
    if (!shares_memory()) return refuse("cuMemImportFromShareableHandle, by this HIP library");
    hipMemGenericAllocationHandle_t handle = nullptr;
    CUresult result = SX_HIP(hipMemImportFromShareableHandle, &handle, given, type);
    if (result != CUDA_SUCCESS) return result;
    *out = reinterpret_cast<CUmemGenericAllocationHandle>(handle);
    const auto file = static_cast<int>(reinterpret_cast<intptr_t>(given));
    memory_made(*out, static_cast<size_t>(lseek(file, 0, SEEK_END)));
    return result;
  });
}
