// Writes a jump over the entry of each of a runtime's functions.
#pragma once
#include "image.h"
#include "signature.h"

namespace sx::preload {

constexpr size_t kJump = 5;  // bytes that a redirected function has at least

// Directory of our libraries, with a final slash.
const std::string &own_directory();

// Whether a loaded library of this name is a copy of our runtime.
bool is_own_copy(const std::string &path);

// Redirects every entry of `match` to the function of the same name in our runtime of that major, or in our library, all
// or none.
// The library is loaded, and each function looked up, at the first call.  Ends the process (refuse) where the
// jumps cannot be written or our library is missing.
void redirect(const Image &image, const Match &match);

}  // namespace sx::preload
