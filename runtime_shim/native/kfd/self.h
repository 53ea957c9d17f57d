// The process's own program, however it was started.
#pragma once

namespace sx::kfd {

// The program's file, if `path` is the link to it (/proc/self/exe, /proc/PID/exe); null of any other path.
const char *own_program(const char *path);

}  // namespace sx::kfd
