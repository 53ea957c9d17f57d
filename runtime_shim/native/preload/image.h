// A loaded executable or shared object, as it lies in memory.
#pragma once
#include <cstdint>
#include <elf.h>
#include <link.h>
#include <string>
#include <vector>

namespace sx::preload {

struct Segment {
  const unsigned char *start;
  size_t size;      // bytes in memory
  unsigned flags;   // PF_R, PF_W, PF_X
};

struct Image {
  std::string path;              // of its file; the executable's is /proc/self/exe
  bool executable = false;       // the program itself
  uintptr_t bias = 0;            // what is added to addresses of its file
  std::vector<Segment> segments; // PT_LOAD
  const char *strings = nullptr; // .dynstr
  size_t strings_size = 0;
  std::string soname;

  // Whether .dynstr holds `name` as a whole string: an imported or exported symbol, or a library's name.
  bool mentions(const char *name) const;
  // Lowest and highest address of the image.
  uintptr_t low() const;
  uintptr_t high() const;
};

// Fills `out` from dl_iterate_phdr; false if the object has no file or no dynamic section.
bool read_image(const dl_phdr_info &info, Image &out);

}  // namespace sx::preload
