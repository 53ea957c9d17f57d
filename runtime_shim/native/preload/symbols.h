// The data of an image's file that is not in memory: the symbol table and the section names.
#pragma once
#include "image.h"
#include "signature.h"

namespace sx::preload {

// Looks for the runtime's functions by name: in .symtab where the file has one (a static runtime), or in
// .dynsym where `dynamic` (NVIDIA's shared library).  True if there is a runtime; `out.major` is 0 if
// its major version is unsupported, and `out.entries` is then meaningless.
bool find_by_symbol(const Image &image, bool dynamic, Match &out);

// Whether the image registers device code of its own: it holds a fatbin wrapper.
bool has_device_code(const Image &image);

}  // namespace sx::preload
