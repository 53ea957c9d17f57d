// What an image's file tells that its memory does not: the symbol table and the section names.
#pragma once
#include "image.h"
#include "signature.h"

namespace sx::preload {

// Looks for the runtime's functions by name: in .symtab where the file has one (a static runtime), or in
// .dynsym where `dynamic` (NVIDIA's shared library).  True where a runtime is there; `out.major` is 0 where
// it is of no major that we have, and `out.entries` has then no meaning.
bool find_by_symbol(const Image &image, bool dynamic, Match &out);

// Whether the image registers device code of its own: it holds a fatbin wrapper.
bool has_device_code(const Image &image);

}  // namespace sx::preload
