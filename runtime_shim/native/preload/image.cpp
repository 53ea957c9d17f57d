#include "image.h"

#include <cstring>

namespace sx::preload {

bool Image::mentions(const char *name) const {
  size_t length = strlen(name) + 1;
  // A linker may share tails ("dlsym" inside "x_dlsym"), so the start is not checked, only the end.
  return strings && memmem(strings, strings_size, name, length) != nullptr;
}

uintptr_t Image::low() const {
  uintptr_t value = UINTPTR_MAX;
  for (const Segment &s : segments) value = std::min(value, reinterpret_cast<uintptr_t>(s.start));
  return value;
}

uintptr_t Image::high() const {
  uintptr_t value = 0;
  for (const Segment &s : segments) value = std::max(value, reinterpret_cast<uintptr_t>(s.start) + s.size);
  return value;
}

bool read_image(const dl_phdr_info &info, Image &out) {
  const ElfW(Dyn) *dynamic = nullptr;
  out.bias = info.dlpi_addr;
  out.executable = !info.dlpi_name || !*info.dlpi_name;
  out.path = out.executable ? "/proc/self/exe" : info.dlpi_name;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr) &header = info.dlpi_phdr[i];
    const char *start = reinterpret_cast<const char *>(info.dlpi_addr + header.p_vaddr);
    if (header.p_type == PT_LOAD)
      out.segments.push_back({reinterpret_cast<const unsigned char *>(start), header.p_memsz, header.p_flags});
    else if (header.p_type == PT_DYNAMIC)
      dynamic = reinterpret_cast<const ElfW(Dyn) *>(start);
  }
  if (out.segments.empty() || !dynamic) return false;
  uintptr_t table = 0, soname = 0;
  bool named = false;
  for (const ElfW(Dyn) *entry = dynamic; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB) table = entry->d_un.d_ptr;
    if (entry->d_tag == DT_STRSZ) out.strings_size = entry->d_un.d_val;
    if (entry->d_tag == DT_SONAME) soname = entry->d_un.d_val, named = true;
  }
  // The dynamic linker turns the address into a real one, except in the kernel's read-only object.
  if (table < out.low()) table += out.bias;
  if (!table || table < out.low() || table + out.strings_size > out.high()) return false;
  out.strings = reinterpret_cast<const char *>(table);
  if (named && soname < out.strings_size) out.soname = out.strings + soname;
  return true;
}

}  // namespace sx::preload
