// hip/elf_file.cpp: a reader of ELF files that trusts nothing in them.
#include "fuzz.h"

#include "hip/elf_file.h"

using namespace sx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ElfFile::header_extent(data, size);
  ElfFile elf;
  std::string why;
  if (!elf.parse(data, size, why)) {
    SX_HOLDS(!why.empty());
    return 0;
  }
  for (const ElfSegment &s : elf.segments) {
    SX_HOLDS(s.offset <= size && s.filesz <= size - s.offset);
    if (const uint8_t *bytes = elf.at_vaddr(s.vaddr, s.filesz)) fuzz::touch(bytes, s.filesz);
  }
  for (const ElfSymbol &s : elf.symbols) {
    elf.symbol(s.name);
    if (const uint8_t *bytes = elf.at_vaddr(s.value, s.size)) fuzz::touch(bytes, s.size);
    if (elf.symbols.size() > 1000) break;
  }
  uint64_t address;
  elf.section_address(".text", address);
  const uint8_t *desc;
  size_t length;
  for (uint32_t type : {0x5358u, 32u})
    for (const char *owner : {"SASSXLATE", "AMDGPU"})
      if (elf.note(owner, type, desc, length)) {
        SX_HOLDS(desc >= data && length <= static_cast<size_t>(data + size - desc));
        fuzz::touch(desc, length);
      }
  return 0;
}
