// The options of the driver's compiler and linker (CUjit_option): those that change code, as text for the service
// (runtime_shim/ptx/options.py); and the application's buffers, which are filled.
#pragma once
#include "cuda_abi.h"

#include <map>
#include <string>

namespace sx {

class JitOptions {
 public:
  // Adds an array of options.  An unknown option, or a value outside its range, is CUDA_ERROR_INVALID_VALUE; one
  // that is known and has no counterpart here is CUDA_ERROR_NOT_SUPPORTED, with a line.
  CUresult add(unsigned count, const int *options, void **values);
  // Takes those of another that change code.
  void add_code(const JitOptions &other);
  // "max_registers=32,debug": what changes code; "" without any.
  std::string text() const;
  // Whether the application has a buffer for messages.
  bool wants_log() const { return info_.buffer || error_.buffer; }
  // Fills the buffers, with a NUL at the end, and the values with the bytes filled and the time in milliseconds.
  void give(const std::string &info, const std::string &error, double milliseconds);

 private:
  struct Log {
    char *buffer = nullptr;
    size_t size = 0;
    void **used = nullptr;
    void fill(const std::string &text);
  };

  CUresult add_one(int option, void *&value);

  std::map<std::string, std::string> code_;
  Log info_, error_;
  void **wall_time_ = nullptr;
};

// What the service must know of the process to find its tools: `,"environment":"PATH=..."` for a request.
std::string tools_environment();

}  // namespace sx
