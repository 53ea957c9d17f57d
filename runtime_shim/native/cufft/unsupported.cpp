// Functions of cuFFT that are there by name: callbacks, which are code for NVIDIA's processors in the middle of a transform,
// several devices, and code for other compilers.  Each says so once, and returns CUFFT_NOT_SUPPORTED.
#include <string>

#include "cufft_abi.h"
#include "device.h"

namespace {

cufftResult refused(const char *name) {
  sx::replace::refuse(name, std::string("SX0780: ") + name + " is not implemented; it returns 16 (CUFFT_NOT_SUPPORTED)");
  return CUFFT_NOT_SUPPORTED;
}

}  // namespace

// Callers pass arguments; none is looked at.
#define F(name) \
  SX_API cufftResult name() { return refused(#name); }
F(cufftXtSetCallback)
F(cufftXtClearCallback)
F(cufftXtSetCallbackSharedSize)
F(cufftXtSetJITCallback)
F(__cufftXtSetJITCallback_12_7)
F(cufftXtSetGPUs)
F(cufftXtMalloc)
F(cufftXtMemcpy)
F(cufftXtFree)
F(cufftXtQueryPlan)
F(cufftXtExecDescriptor)
F(cufftXtExecDescriptorC2C)
F(cufftXtExecDescriptorR2C)
F(cufftXtExecDescriptorC2R)
F(cufftXtExecDescriptorZ2Z)
F(cufftXtExecDescriptorD2Z)
F(cufftXtExecDescriptorZ2D)
F(cufftXtMakePlanGuru64)
F(cufftDebug)
#if SX_CUFFT_MAJOR >= 12
F(cufftDescriptionCreate)
F(cufftDescriptionDestroy)
F(cufftDescriptionGetTraitInt64)
F(cufftDescriptionSetTraitInt64)
F(cufftDeviceCreate)
F(cufftDeviceDestroy)
F(cufftDeviceGetDatabaseStr)
F(cufftDeviceGetDatabaseStrSize)
F(cufftDeviceGetDeviceFunctionTraitInt64)
F(cufftDeviceGetDeviceFunctions)
F(cufftDeviceGetLTOIRSizes)
F(cufftDeviceGetLTOIRs)
F(cufftDeviceGetNumDeviceFunctions)
F(cufftDeviceGetNumLTOIRs)
F(cufftDeviceGetSemanticVersion)
F(cufftDeviceGetVersion)
F(cufftDeviceIsSupported)
#endif
#undef F
