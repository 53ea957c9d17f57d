// Messages with a stable code, to the user and to the report that `sassxlate run` reads.
#pragma once
#include <string>

namespace sx::preload {

// Reports that the runtime inside `object` is not replaced: one line on standard error, and one in the file that
// the environment variable SASSXLATE_REPORT names.
void report(const char *code, const std::string &object, const std::string &text);

// report(), then the process ends with status 3 (unsupported): it must not continue with half a runtime.
[[noreturn]] void refuse(const char *code, const std::string &object, const std::string &text);

// A line for SASSXLATE_PRELOAD_TRACE=1.
bool tracing();

// Whether SASSXLATE_REPLACE, a list of words with commas, holds this one; where it is unset, those that are replaced
// by default are meant.
bool replaces(const std::string &word);
void trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace sx::preload
