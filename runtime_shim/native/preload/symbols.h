// The data of an image's file that is not in memory: the symbol table and the section names.
#pragma once
#include "image.h"
#include "signature.h"

namespace sx::preload {

enum class Named {
  Nothing,  // no function of the runtime's names, or no symbol table
  Stubs,    // such functions, but not NVIDIA's: they load a shared runtime when they are called (XLA has them)
  Runtime,
};

// Looks for the runtime's functions by name: in .symtab where the file has one (a static runtime), or in
// .dynsym where `dynamic` (NVIDIA's shared library).  `out` is set for a runtime alone; `out.major` is 0 if
// its major version is unsupported, and `out.entries` is then meaningless.
Named find_by_symbol(const Image &image, bool dynamic, Match &out);

// All functions that the image exports whose names begin with one of `prefixes`; false if there is none, its file cannot
// be read, or one has less than the `room` bytes of a jump.
bool find_exported(const Image &image, const std::vector<std::string_view> &prefixes, size_t room, Match &out);

// Whether the image registers device code of its own: it holds a fatbin wrapper.
bool has_device_code(const Image &image);

}  // namespace sx::preload
