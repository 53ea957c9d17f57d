// Tells the user what a process waits for: "translating NAME, N s of waiting so far".
#pragma once
#include <string>

namespace sx {

// A wait for the service's answer to one request, from construction to destruction.  A line comes when the process has
// waited for two seconds in all: once for each kernel that takes that long, then at most every 30 s.  On a terminal it
// is one line that is rewritten and disappears; elsewhere there is none unless SASSXLATE_PROGRESS is 1.
class Waiting {
 public:
  explicit Waiting(const std::string &request);
  Waiting(const Waiting &) = delete;
  Waiting &operator=(const Waiting &) = delete;
  ~Waiting();

  // Returns when there is something to read.
  void wait(int fd);

 private:
  void say(double now);

  double start_;
  double shown_ = 0;  // when this one's line was last written; 0: never
  std::string kernel_;  // empty: nothing is said
  bool terminal_ = false;
};

// A kernel's name for people: demangled, without its result, parameters and template arguments, at most `most` bytes.
std::string short_name(const std::string &mangled, size_t most);

// What the libraries of a process have waited for is one sum: the state of this library, and the use of another's
// (which must be of the same build).
void *waiting_state();
void share_waiting_state(void *state);

}  // namespace sx
