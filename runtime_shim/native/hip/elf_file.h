// A reader of 64-bit little-endian ELF files that trusts nothing in them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <string_view>
#include <vector>

namespace sx {

struct ElfSegment {
  uint32_t type, flags;
  uint64_t offset, vaddr, filesz, memsz;
};

struct ElfSymbol {
  std::string_view name;  // in the file: many symbols may share a long one
  uint64_t value, size;
  uint8_t type;
  bool defined;
};

struct ElfRelocation {
  uint64_t offset;
  uint32_t type;
  int64_t addend;
  std::string_view symbol;  // "" where it has none
};

class ElfFile {
 public:
  // Size of the file that begins with the `available` bytes at `data` (its headers), or 0 if they
  // are not ELF headers.  The section and program header tables must be among the bytes to count them.
  static uint64_t header_extent(const uint8_t *data, size_t available);

  // Reads headers, dynamic symbols and relocations; false with a reason if the bytes are not a well-formed file.
  // The bytes must outlive the object.
  bool parse(const uint8_t *data, size_t size, std::string &why);

  uint16_t type = 0, machine = 0;
  uint8_t os_abi = 0, abi_version = 0;
  uint32_t flags = 0;
  std::vector<ElfSegment> segments;
  std::vector<ElfSymbol> symbols;
  std::vector<ElfRelocation> relocations;

  // The file's bytes at virtual addresses [vaddr, vaddr + size), or nullptr if no segment holds them.
  const uint8_t *at_vaddr(uint64_t vaddr, uint64_t size) const;
  const ElfSymbol *symbol(std::string_view name) const;
  // Address of the section with this name; false if there is none.
  bool section_address(const char *name, uint64_t &address) const;
  // Descriptor of the first note with this owner and type.
  bool note(const char *owner, uint32_t type, const uint8_t *&desc, size_t &size) const;
  // Descriptors of all notes with this owner and type: bytes of the file and how many.
  std::vector<std::pair<const uint8_t *, size_t>> notes(const char *owner, uint32_t type) const;

 private:
  struct Section {
    uint32_t type, link;
    uint64_t address, offset, size;
    uint32_t name;
  };
  bool inside(uint64_t offset, uint64_t size) const { return offset <= size_ && size <= size_ - offset; }
  bool read_segments(uint64_t offset, unsigned count);
  bool read_sections(uint64_t offset, unsigned count);
  bool read_symbols(const Section &table);
  bool read_relocations(const Section &table);
  std::string_view string_at(const Section &strings, uint32_t offset) const;

  const uint8_t *data_ = nullptr;
  size_t size_ = 0;
  std::vector<Section> sections_;
  uint32_t names_ = 0;  // index of the section with the sections' names
};

}  // namespace sx
