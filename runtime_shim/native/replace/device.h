// The device that a replaced library works on, through the driver API alone: its memory, its streams.
#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "../common/driver_structs.h"

namespace sx::replace {

// The folder of the driver library: the parent of the one that this library is in.
const std::string &home();

// SASSXLATE_HIP: the file of the HIP library that the driver uses.
const std::string &hip_library();

// Whether kernels run on the emulated device, whose memory is the process's own.
bool emulated();

// Loads the driver, and makes the primary context of the first device current where the thread has none.  0 or a CUresult.
int enter();

// Bytes of memory that the device has; 0 if it is not known.
size_t total_memory();

// Whether all of [address, address + bytes) is in one allocation that the device can reach, or in one registered range.
// `write`: and that the device may write there.
bool reachable(const void *address, size_t bytes, bool write = false);

// The same for work that runs, which does not call the driver: the emulated device is asked itself.
bool reachable_from_work(const void *address, size_t bytes, bool write = false);

// The fault that a kernel would have had: every later call to the driver answers 700.
void fault_from_work();

// Whether the stream is being captured.  0 or a CUresult.
int capturing(CUstream stream, bool &yes);

// Something to be computed by the host in the order of a stream.  It does not call the driver.
class Work {
 public:
  virtual ~Work() = default;
  virtual void run() noexcept = 0;
};

// Appends to a stream; to the graph if it is being captured, which then owns the work.  0 or a CUresult.
int enqueue(CUstream stream, std::unique_ptr<Work> work);

// Waits for a stream.  0 or a CUresult.
int synchronize(CUstream stream);

// A row of the run's report, once: `word` is what --replace calls the library, `by` what carries it out.
void note_replaced(const char *word, const char *by);

// One line on standard error, once for each `key`, and a row of the run's report.
void refuse(const std::string &key, const std::string &line);

}  // namespace sx::replace
