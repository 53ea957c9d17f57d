// The trace of a run, SASSXLATE_TRACE: a file per process in that directory.
// As text a line per call: name, result, note.  With SASSXLATE_TRACE_FORMAT=perfetto a line per call and request to
// the translation service: begin and duration in nanoseconds, thread, name, result, note; `sassxlate run` makes the
// document of them.
#pragma once
#include <cstdint>
#include <string>

#include "cuda_abi.h"

namespace sx {

// The beginning of an entry point on this thread, and its end.
void trace_enter();
void trace_leave(const char *name, CUresult result);

// A request to the translation service: the time from here to `end`.
class TracedRequest {
 public:
  explicit TracedRequest(const std::string &request);
  void end(CUresult result) const;

 private:
  uint64_t begun_ = 0;  // 0: not traced
  std::string what_;
};

}  // namespace sx
