// Starts the service as a separate process, detached from the application.
#pragma once
#include <string>
#include <sys/types.h>
#include <vector>

namespace sx {

// The interpreter of the service: SASSXLATE_PYTHON, otherwise what a file `python` beside the library names
// (a link, or a text file with the path in its first line), otherwise python3 on PATH; "" if there is none.
std::string service_python();

// Starts `argv` detached: no child of the application (so that its wait() never sees it), in a session
// of its own, working directory /, only standard descriptors (output appended to `log`), a short list of
// environment variables.  Returns the process's id, or -1 with `error` set.
pid_t spawn_detached(const std::vector<std::string> &argv, const std::string &log, std::string &error);

// False once the process has ended.
bool process_alive(pid_t pid);

}  // namespace sx
