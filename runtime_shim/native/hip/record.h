// A record of launches for `sassxlate verify launches`: memory before and after each of them.
#pragma once
#include "launch.h"

#include <memory>
#include <mutex>

namespace sx {

struct Recorder;

// One launch's part of the record; it does nothing unless SASSXLATE_RECORD names a directory.  While it
// lives, no other launch runs.
//
// The record is a file `launches-PID`: lines of text, some followed by bytes.
//   sassxlate-launches 1
//   piece BASE SIZE             memory that exists; new pieces are zeros
//   gone BASE                   and that does not exist any more
//   page ADDRESS SIZE           then its bytes: what the host changed since the last launch
//   launch KEY GX GY GZ BX BY BZ SHARED COOPERATIVE ADDRESS SIZE NAME   then the kernarg segment's bytes
//   page ADDRESS SIZE           then its bytes: what the launch changed
//   end FAULT                   0, or the kind of fault that stopped it
class Recording {
 public:
  Recording(const Launch &launch, uint32_t shared);
  ~Recording();
  Recording(const Recording &) = delete;
  Recording &operator=(const Recording &) = delete;

 private:
  const Launch &launch_;
  Recorder *recorder_ = nullptr;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace sx
