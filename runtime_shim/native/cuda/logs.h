// The driver's log of errors, as cuLogs* shows it and CUDA_LOG_FILE writes it.
#pragma once
#include "cuda_abi.h"

namespace sx {

// What this thread's call has to say if it fails: messages that come before the call's own.
void log_reason(const char *text);

// A call is over: its messages, if it failed, go to the log and to the registered callbacks.
void log_result(const char *name, CUresult result);

// A code's name, or "unknown".
const char *error_name(CUresult code);

}  // namespace sx
