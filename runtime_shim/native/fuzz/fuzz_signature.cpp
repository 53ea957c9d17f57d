// preload/signature.cpp: the machine code of any program, looked through for a runtime.
#include "fuzz.h"

#include "preload/signature.h"

using namespace sx::preload;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Match match;
  bool near = false;
  if (find_by_signature(data, size, match, near)) {
    SX_HOLDS(near && (match.major == 12 || match.major == 13) && !match.entries.empty());
    for (const Entry &entry : match.entries) SX_HOLDS(entry.address >= data && entry.address < data + size);
  }
  majors_of(std::string_view(reinterpret_cast<const char *>(data), size < 64 ? size : 64));
  return 0;
}
