// One-line messages for the user, and settings read from the environment.
#pragma once
#include <cstdint>
#include <string>

namespace sx {

// Writes "sassxlate: <text>\n" to standard error in one write, so that lines of threads never mix.
void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Rewrites the terminal's last line; an empty text clears it.  A log_line takes its place.
void status_line(const std::string &text);

// Writes all of it; false if that fails, without the signal that a closed pipe or a limit on the size of files would
// send to the application.
bool write_quietly(int fd, const void *data, size_t size);

// Appends a row, with its end of line, to the report of a run; nothing if there is no file at `path`: `run` makes it
// before the program starts, and removes it in the end, which processes that the program left may outlive.  Without
// `path` it goes to the preloaded library, which keeps it for a program that carries its translation.  One write
// to a file opened for appending: rows of several processes never mix.  False if it cannot be written.
bool append_row(const std::string &path, const std::string &row);

// Value of an environment variable, or `fallback` where it is unset or empty.  Ours (SASSXLATE_...) have the value that
// the process started with where the application has removed them since.
std::string env_string(const char *name, const std::string &fallback = "");

// A number with an optional suffix K, M, G or T (powers of 1024); `fallback` where unset or not a number.
uint64_t env_size(const char *name, uint64_t fallback);

// True if the variable is set to anything but "", "0", "no", "off" or "false".
bool env_flag(const char *name);

}  // namespace sx
