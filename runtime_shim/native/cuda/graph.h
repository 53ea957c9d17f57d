// Graphs by capture: what a capturing stream is given is kept as a list, and done in that order at each launch.
// The order of capture is one that the dependencies allow; what could overlap, does not.
#pragma once
#include "driver.h"

#include <functional>

namespace sx {

using GraphNode = std::function<CUresult(CUstream)>;

// The graph that `stream` is captured into takes `node` in place of its execution; false where it is not captured.
bool captured(CUstream stream, GraphNode node);

bool is_capturing(CUstream stream);

// An event that is recorded in a capturing stream, or waited for by one.  False: nothing is captured here, go on.
bool captured_record(CUevent event, CUstream stream, CUresult &result);
bool captured_wait(CUstream stream, CUevent event, CUresult &result);

}  // namespace sx
