// Included by standin.cpp, within its extern "C".
// Virtual memory is not this device's (see its attribute): its rules for host accesses do not cover it.  The functions
// are here because AMD's library has them, with the types that AMD's header gives.
#define NO_VIRTUAL_MEMORY(name, ...) \
  hipError_t name(__VA_ARGS__) { return done(wrong(__func__, "the device has no virtual memory")); }
NO_VIRTUAL_MEMORY(hipMemGetAllocationGranularity, size_t *, const hipMemAllocationProp *, hipMemAllocationGranularity_flags)
NO_VIRTUAL_MEMORY(hipMemAddressReserve, void **, size_t, size_t, void *, unsigned long long)
NO_VIRTUAL_MEMORY(hipMemAddressFree, void *, size_t)
NO_VIRTUAL_MEMORY(hipMemCreate, hipMemGenericAllocationHandle_t *, size_t, const hipMemAllocationProp *, unsigned long long)
NO_VIRTUAL_MEMORY(hipMemRelease, hipMemGenericAllocationHandle_t)
NO_VIRTUAL_MEMORY(hipMemMap, void *, size_t, size_t, hipMemGenericAllocationHandle_t, unsigned long long)
NO_VIRTUAL_MEMORY(hipMemUnmap, void *, size_t)
NO_VIRTUAL_MEMORY(hipMemSetAccess, void *, size_t, const hipMemAccessDesc *, size_t)
NO_VIRTUAL_MEMORY(hipMemGetAccess, unsigned long long *, const hipMemLocation *, void *)
NO_VIRTUAL_MEMORY(hipMemRetainAllocationHandle, hipMemGenericAllocationHandle_t *, void *)
NO_VIRTUAL_MEMORY(hipMemGetAllocationPropertiesFromHandle, hipMemAllocationProp *, hipMemGenericAllocationHandle_t)
NO_VIRTUAL_MEMORY(hipMemExportToShareableHandle, void *, hipMemGenericAllocationHandle_t, hipMemAllocationHandleType, unsigned long long)
NO_VIRTUAL_MEMORY(hipMemImportFromShareableHandle, hipMemGenericAllocationHandle_t *, void *, hipMemAllocationHandleType)
static_assert(sizeof(hipMemAllocationProp) == 32 && sizeof(hipMemAccessDesc) == 12 && sizeof(hipMemLocation) == 8);
static_assert(offsetof(hipMemAllocationProp, location) == 8 && offsetof(hipMemAllocationProp, allocFlags) == 24);
static_assert(hipMemAllocationTypePinned == 1 && hipMemLocationTypeDevice == 1 && hipMemAccessFlagsProtReadWrite == 3);
