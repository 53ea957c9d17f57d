// Makes a runtime of which not every public function is known refuse what is not redirected.
#pragma once
#include <string>

#include "signature.h"

namespace sx::preload {

// Overwrites the sealed code, which is writable, between the entries: whatever is called there comes to `stub`, which is
// within reach of a near jump, but for the quiet functions, which return.  The entries' jumps are not written.
void seal(const Match &match, const unsigned char *stub);

// Ends the process (SX0766): a function of the sealed code was called from before `back`.
[[noreturn]] void refuse_unknown(const std::string &object, const std::string &release, const Sealed &sealed,
                                 const unsigned char *back, uintptr_t bias);

}  // namespace sx::preload
