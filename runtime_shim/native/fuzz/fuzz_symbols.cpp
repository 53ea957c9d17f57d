// preload/symbols.cpp: the file of a program or library, which need not be what is mapped.
#include "fuzz.h"

#include "preload/symbols.h"

#include <unistd.h>

using namespace sx::preload;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const int file = memfd_create("fuzz", MFD_CLOEXEC);
  if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) return 0;
  Image image;
  image.path = "/proc/self/fd/" + std::to_string(file);
  for (bool dynamic : {false, true}) {
    Match match;
    if (find_by_symbol(image, dynamic, match) == Named::Runtime)
      for (const Entry &entry : match.entries) sx::fuzz::touch(entry.name.data(), entry.name.size());
  }
  has_device_code(image);
  return 0;
}
