// Names and descriptions of the error codes.
#include "driver.h"
#include "logs.h"

using namespace sx;

namespace {

struct Text {
  CUresult code;
  const char *name, *text;
};

const Text kTexts[] = {
#define SX_ERROR(code, name, text) {code, #name, text},
#include "errors.def"
#undef SX_ERROR
};

const Text *find(CUresult code) {
  for (const Text &text : kTexts)
    if (text.code == code) return &text;
  return nullptr;
}

}  // namespace

const char *sx::error_name(CUresult code) {
  const Text *text = find(code);
  return text ? text->name : "unknown";
}

SX_API cuGetErrorName(CUresult code, const char **out) {
  return enter<Need::Nothing>(__func__, [&]() -> CUresult {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    const Text *text = find(code);
    *out = text ? text->name : nullptr;
    return text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

SX_API cuGetErrorString(CUresult code, const char **out) {
  return enter<Need::Nothing>(__func__, [&]() -> CUresult {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    const Text *text = find(code);
    *out = text ? text->text : nullptr;
    return text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}
