#include "jit.h"

#include "files.h"
#include "json.h"
#include "log.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace sx {
namespace {

// cuda.h, CUjit_option and CUjit_target (CUDA 13.0).
enum : int {
  CU_JIT_MAX_REGISTERS = 0,
  CU_JIT_THREADS_PER_BLOCK = 1,
  CU_JIT_WALL_TIME = 2,
  CU_JIT_INFO_LOG_BUFFER = 3,
  CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4,
  CU_JIT_ERROR_LOG_BUFFER = 5,
  CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
  CU_JIT_OPTIMIZATION_LEVEL = 7,
  CU_JIT_TARGET_FROM_CUCONTEXT = 8,
  CU_JIT_TARGET = 9,
  CU_JIT_GENERATE_DEBUG_INFO = 11,
  CU_JIT_LOG_VERBOSE = 12,
  CU_JIT_GENERATE_LINE_INFO = 13,
  CU_JIT_CACHE_MODE = 14,
  CU_JIT_GLOBAL_SYMBOL_NAMES = 17,
  CU_JIT_GLOBAL_SYMBOL_COUNT = 19,
  CU_JIT_LTO = 20,
  CU_JIT_NUM_OPTIONS = 36,
  CU_COMPUTE_ACCELERATED_TARGET_BASE = 0x10000,
  CU_COMPUTE_FAMILY_TARGET_BASE = 0x20000,
};

constexpr size_t kEnvironmentLimit = 64u << 10;

CUresult refuse(const char *what) {
  log_line("SX0740: the option %s of the driver's compiler is not supported (CUDA error %d)", what, CUDA_ERROR_NOT_SUPPORTED);
  return CUDA_ERROR_NOT_SUPPORTED;
}

// The folder that the program was started from, as it was named: of a Python in a virtual environment, that
// environment's.  "" for a bare name.
std::string program_folder() {
  char name[4096];
  int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  ssize_t size = fd < 0 ? -1 : read(fd, name, sizeof name - 1);
  if (fd >= 0) close(fd);
  if (size <= 0) return "";
  name[size] = 0;  // the arguments follow after a NUL
  const char *slash = strrchr(name, '/');
  return slash && slash != name ? absolute_path(std::string(name, static_cast<size_t>(slash - name))) : "";
}

// The low half of a value, where the driver has numbers.
unsigned number(void *value) { return static_cast<unsigned>(reinterpret_cast<uintptr_t>(value)); }

}  // namespace

CUresult JitOptions::add(unsigned count, const int *options, void **values) {
  if (count && (!options || !values)) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    CUresult result = add_one(options[i], values[i]);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult JitOptions::add_one(int option, void *&value) {
  switch (option) {
    case CU_JIT_MAX_REGISTERS:
      if (number(value)) code_["max_registers"] = std::to_string(number(value) & 0x7fffffff);
      return CUDA_SUCCESS;
    case CU_JIT_WALL_TIME: wall_time_ = &value; return CUDA_SUCCESS;
    case CU_JIT_INFO_LOG_BUFFER: info_.buffer = static_cast<char *>(value); return CUDA_SUCCESS;
    case CU_JIT_ERROR_LOG_BUFFER: error_.buffer = static_cast<char *>(value); return CUDA_SUCCESS;
    case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
      info_.size = number(value), info_.used = &value;
      return CUDA_SUCCESS;
    case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
      error_.size = number(value), error_.used = &value;
      return CUDA_SUCCESS;
    case CU_JIT_OPTIMIZATION_LEVEL:
      if (number(value) > 4) return CUDA_ERROR_INVALID_VALUE;
      code_["optimization"] = std::to_string(number(value));
      return CUDA_SUCCESS;
    case CU_JIT_TARGET: {
      unsigned target = number(value) & 0xffff, kind = number(value) & ~0xffffu;
      const char *letter = kind == CU_COMPUTE_ACCELERATED_TARGET_BASE ? "a" : kind == CU_COMPUTE_FAMILY_TARGET_BASE ? "f" : "";
      if (target < 10 || target > 999 || (kind && !*letter)) return CUDA_ERROR_INVALID_VALUE;
      code_["target"] = std::to_string(target) + letter;
      return CUDA_SUCCESS;
    }
    case CU_JIT_GENERATE_DEBUG_INFO:
    case CU_JIT_GENERATE_LINE_INFO:
    case CU_JIT_LOG_VERBOSE: {
      const char *name = option == CU_JIT_LOG_VERBOSE ? "verbose" : option == CU_JIT_GENERATE_DEBUG_INFO ? "debug" : "line_info";
      if (number(value)) code_[name] = "";
      else code_.erase(name);
      return CUDA_SUCCESS;
    }
    case CU_JIT_CACHE_MODE:
      if (number(value) > 2) return CUDA_ERROR_INVALID_VALUE;
      if (number(value)) code_["cache"] = number(value) == 1 ? "cg" : "ca";
      return CUDA_SUCCESS;
    case CU_JIT_GLOBAL_SYMBOL_COUNT:
      return number(value) ? refuse("CU_JIT_GLOBAL_SYMBOL_NAMES") : CUDA_SUCCESS;
    case CU_JIT_LTO: return number(value) ? refuse("CU_JIT_LTO") : CUDA_SUCCESS;
    // Hints, and options of link-time optimisation, which is refused.
    default: return option >= 0 && option < CU_JIT_NUM_OPTIONS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
}

void JitOptions::add_code(const JitOptions &other) {
  for (const auto &[name, value] : other.code_) code_[name] = value;
}

std::string JitOptions::text() const {
  std::string made;
  for (const auto &[name, value] : code_) {
    if (!made.empty()) made += ',';
    made += value.empty() ? name : name + "=" + value;
  }
  return made;
}

void JitOptions::Log::fill(const std::string &text) {
  size_t bytes = 0;
  if (buffer && size) {
    bytes = std::min(text.size(), size - 1);
    memcpy(buffer, text.data(), bytes);
    buffer[bytes] = 0;
  }
  if (used) *used = reinterpret_cast<void *>(bytes);
}

void JitOptions::give(const std::string &info, const std::string &error, double milliseconds) {
  info_.fill(info);
  error_.fill(error);
  if (!wall_time_) return;
  // A float in the first bytes of the value.
  float passed = static_cast<float>(milliseconds);
  *wall_time_ = nullptr;
  memcpy(wall_time_, &passed, sizeof passed);
}

std::string tools_environment() {
  std::string text;
  for (const char *name : {"PATH", "CUDA_HOME", "CUDA_PATH", "SASSXLATE_PTXAS", "SASSXLATE_NVLINK", "APPLICATION"}) {
    std::string value = strcmp(name, "APPLICATION") ? env_string(name) : program_folder();
    if (value.empty() || value.find('\n') != std::string::npos || text.size() + value.size() > kEnvironmentLimit) continue;
    if (!text.empty()) text += '\n';
    text += std::string(name) + "=" + value;
  }
  return text.empty() ? "" : ",\"environment\":" + json::quote(text);
}

}  // namespace sx
