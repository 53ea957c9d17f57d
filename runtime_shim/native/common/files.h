// Files and places: the library's own directory, the cache, temporary files.
#pragma once
#include <cstddef>
#include <string>

namespace sx {

// The directory that this library was loaded from, without a slash at its end.
std::string library_dir();

// The path with the working directory before it where it is relative.
std::string absolute_path(const std::string &path);

// SASSXLATE_CACHE_DIR, or $XDG_CACHE_HOME/sassxlate, or ~/.cache/sassxlate; it need not exist.  If others can
// write to it (trusted.h), it is a folder in runtime_dir() instead, reported once on standard error.
std::string cache_dir();

// A private folder of this user's for sockets: sassxlate-UID in $XDG_RUNTIME_DIR, or in /tmp.
std::string runtime_dir();

// The whole of a file, at most `limit` bytes; false if it cannot be read or is longer.
bool read_file(const std::string &path, std::string &out, size_t limit);

// Whether the file opens for reading.  Opened, not asked of access(2): that asks for the user without the process's
// capabilities, and calls a file unreadable that opens (a service with CAP_DAC_READ_SEARCH).
bool can_read(const std::string &path);

// Writes `data` to a new private file in the cache (else $TMPDIR, /tmp) and gives its path; "" on failure.  A folder
// in which others could exchange it is passed over.
std::string write_temporary(const char *stem, const void *data, size_t size);

// Makes a directory with mode 0700 where it is missing, and its parents as the umask says; true if it
// is a directory of this user's that no other user may enter.
bool private_directory(const std::string &path);

}  // namespace sx
