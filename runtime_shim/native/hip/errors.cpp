// Names and texts of errors.
#include "state.h"

namespace sx {
namespace {

struct ErrorRow {
  int error;
  const char *name, *text;
};

constexpr ErrorRow kErrors[] = {
    {0, "hipSuccess", "no error"},
    {1, "hipErrorInvalidValue", "invalid argument"},
    {2, "hipErrorOutOfMemory", "out of memory"},
    {3, "hipErrorNotInitialized", "initialization error"},
    {4, "hipErrorDeinitialized", "driver shutting down"},
    {9, "hipErrorInvalidConfiguration", "invalid configuration argument"},
    {98, "hipErrorInvalidDeviceFunction", "invalid device function"},
    {100, "hipErrorNoDevice", "no ROCm-capable device is detected"},
    {101, "hipErrorInvalidDevice", "invalid device ordinal"},
    {200, "hipErrorInvalidImage", "device kernel image is invalid"},
    {201, "hipErrorInvalidContext", "invalid device context"},
    {209, "hipErrorNoBinaryForGpu", "no kernel image is available for execution on the device"},
    {215, "hipErrorUnsupportedLimit", "limit is not supported on this architecture"},
    {304, "hipErrorOperatingSystem", "OS call failed or operation not supported on this OS"},
    {400, "hipErrorInvalidHandle", "invalid resource handle"},
    {500, "hipErrorNotFound", "named symbol not found"},
    {600, "hipErrorNotReady", "device not ready"},
    {700, "hipErrorIllegalAddress", "an illegal memory access was encountered"},
    {701, "hipErrorLaunchOutOfResources", "too many resources requested for launch"},
    {702, "hipErrorLaunchTimeOut", "the launch timed out and was terminated"},
    {710, "hipErrorAssert", "device-side assert triggered"},
    {712, "hipErrorHostMemoryAlreadyRegistered", "part or all of the requested memory range is already mapped"},
    {713, "hipErrorHostMemoryNotRegistered", "pointer does not correspond to a registered memory region"},
    {716, "hipErrorMisalignedAddress", "misaligned address"},
    {719, "hipErrorLaunchFailure", "unspecified launch failure"},
    {720, "hipErrorCooperativeLaunchTooLarge", "too many blocks in cooperative launch"},
    {800, "hipErrorNotPermitted", "operation not permitted"},
    {801, "hipErrorNotSupported", "operation not supported"},
    {999, "hipErrorUnknown", "unknown error"},
};

const ErrorRow *find(int error) {
  for (const ErrorRow &row : kErrors)
    if (row.error == error) return &row;
  return nullptr;
}

}  // namespace
}  // namespace sx

SX_API const char *hipGetErrorName(hipError_t error) {
  const sx::ErrorRow *row = sx::find(error);
  return row ? row->name : "hipErrorUnknown";
}

SX_API const char *hipGetErrorString(hipError_t error) {
  const sx::ErrorRow *row = sx::find(error);
  return row ? row->text : "unknown error";
}

SX_API hipError_t hipDrvGetErrorName(hipError_t error, const char **text) {
  const sx::ErrorRow *row = sx::find(error);
  if (!row || !text) return hipErrorInvalidValue;
  *text = row->name;
  return 0;
}

SX_API hipError_t hipDrvGetErrorString(hipError_t error, const char **text) {
  const sx::ErrorRow *row = sx::find(error);
  if (!row || !text) return hipErrorInvalidValue;
  *text = row->text;
  return 0;
}
