#include "elf_file.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <elf.h>

namespace sx {
namespace {

// A copy of a structure at `offset`: nothing in a file need be aligned.
template <class T>
T load(const uint8_t *data, uint64_t offset) {
  T value;
  memcpy(&value, data + offset, sizeof value);
  return value;
}

bool header_ok(const uint8_t *data, size_t size) {
  return size >= sizeof(Elf64_Ehdr) && memcmp(data, ELFMAG, SELFMAG) == 0 && data[EI_CLASS] == ELFCLASS64 &&
         data[EI_DATA] == ELFDATA2LSB;
}

uint64_t end_of(uint64_t offset, uint64_t size) { return size > UINT64_MAX - offset ? UINT64_MAX : offset + size; }

}  // namespace

uint64_t ElfFile::header_extent(const uint8_t *data, size_t available) {
  if (!header_ok(data, available)) return 0;
  auto header = load<Elf64_Ehdr>(data, 0);
  uint64_t extent = sizeof header;
  extent = std::max(extent, end_of(header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr)));
  extent = std::max(extent, end_of(header.e_phoff, uint64_t{header.e_phnum} * sizeof(Elf64_Phdr)));
  if (extent > available) return extent;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    auto section = load<Elf64_Shdr>(data, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (section.sh_type != SHT_NOBITS) extent = std::max(extent, end_of(section.sh_offset, section.sh_size));
  }
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    auto segment = load<Elf64_Phdr>(data, header.e_phoff + i * sizeof(Elf64_Phdr));
    extent = std::max(extent, end_of(segment.p_offset, segment.p_filesz));
  }
  return extent;
}

bool ElfFile::parse(const uint8_t *data, size_t size, std::string &why) {
  data_ = data;
  size_ = size;
  if (!header_ok(data, size)) {
    why = "not a 64-bit little-endian ELF file";
    return false;
  }
  auto header = load<Elf64_Ehdr>(data, 0);
  type = header.e_type;
  machine = header.e_machine;
  flags = header.e_flags;
  os_abi = data[EI_OSABI];
  abi_version = data[EI_ABIVERSION];
  names_ = header.e_shstrndx;
  if (header.e_phnum && header.e_phentsize != sizeof(Elf64_Phdr)) why = "odd size of a program header";
  else if (header.e_shnum && header.e_shentsize != sizeof(Elf64_Shdr)) why = "odd size of a section header";
  else if (!read_segments(header.e_phoff, header.e_phnum)) why = "a segment lies outside the file";
  else if (!read_sections(header.e_shoff, header.e_shnum)) why = "a section lies outside the file";
  else return true;
  return false;
}

bool ElfFile::read_segments(uint64_t offset, unsigned count) {
  if (!inside(offset, uint64_t{count} * sizeof(Elf64_Phdr))) return false;
  for (unsigned i = 0; i < count; ++i) {
    auto p = load<Elf64_Phdr>(data_, offset + i * sizeof(Elf64_Phdr));
    if (!inside(p.p_offset, p.p_filesz)) return false;
    if (p.p_type == PT_LOAD && (p.p_filesz > p.p_memsz || p.p_memsz > UINT64_MAX - p.p_vaddr)) return false;
    segments.push_back({p.p_type, p.p_flags, p.p_offset, p.p_vaddr, p.p_filesz, p.p_memsz});
  }
  return true;
}

bool ElfFile::read_sections(uint64_t offset, unsigned count) {
  if (!inside(offset, uint64_t{count} * sizeof(Elf64_Shdr))) return false;
  for (unsigned i = 0; i < count; ++i) {
    auto s = load<Elf64_Shdr>(data_, offset + i * sizeof(Elf64_Shdr));
    if (s.sh_type != SHT_NOBITS && !inside(s.sh_offset, s.sh_size)) return false;
    sections_.push_back({s.sh_type, s.sh_link, s.sh_addr, s.sh_offset, s.sh_size, s.sh_name});
  }
  for (const Section &section : sections_)
    if (section.type == SHT_DYNSYM && !read_symbols(section)) return false;
  for (const Section &section : sections_)
    if (section.type == SHT_RELA && !read_relocations(section)) return false;
  return true;
}

std::string_view ElfFile::string_at(const Section &strings, uint32_t offset) const {
  if (strings.type != SHT_STRTAB || offset >= strings.size) return "";
  const char *text = reinterpret_cast<const char *>(data_ + strings.offset + offset);
  return std::string_view(text, strnlen(text, strings.size - offset));
}

bool ElfFile::read_symbols(const Section &table) {
  if (table.link >= sections_.size()) return false;
  const Section &strings = sections_[table.link];
  for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.size; at += sizeof(Elf64_Sym)) {
    auto s = load<Elf64_Sym>(data_, table.offset + at);
    symbols.push_back({string_at(strings, s.st_name), s.st_value, s.st_size,
                       static_cast<uint8_t>(ELF64_ST_TYPE(s.st_info)), s.st_shndx != SHN_UNDEF});
  }
  return true;
}

bool ElfFile::read_relocations(const Section &table) {
  // Only tables of dynamic symbols are for the loader.
  if (table.link >= sections_.size() || sections_[table.link].type != SHT_DYNSYM) return true;
  for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= table.size; at += sizeof(Elf64_Rela)) {
    auto r = load<Elf64_Rela>(data_, table.offset + at);
    uint64_t index = ELF64_R_SYM(r.r_info);
    if (index >= symbols.size() && index != 0) return false;
    relocations.push_back({r.r_offset, static_cast<uint32_t>(ELF64_R_TYPE(r.r_info)), r.r_addend,
                           index ? symbols[index].name : std::string_view()});
  }
  return true;
}

const uint8_t *ElfFile::at_vaddr(uint64_t vaddr, uint64_t size) const {
  for (const ElfSegment &s : segments)
    if (s.type == PT_LOAD && vaddr >= s.vaddr && size <= s.filesz && vaddr - s.vaddr <= s.filesz - size)
      return data_ + s.offset + (vaddr - s.vaddr);
  return nullptr;
}

const ElfSymbol *ElfFile::symbol(std::string_view name) const {
  for (const ElfSymbol &s : symbols)
    if (s.defined && s.name == name) return &s;
  return nullptr;
}

bool ElfFile::section_address(const char *name, uint64_t &address) const {
  if (names_ >= sections_.size()) return false;
  for (const Section &section : sections_) {
    if (string_at(sections_[names_], section.name) != name) continue;
    address = section.address;
    return true;
  }
  return false;
}

bool ElfFile::note(const char *owner, uint32_t type, const uint8_t *&desc, size_t &size) const {
  const auto all = notes(owner, type);
  if (all.empty()) return false;
  std::tie(desc, size) = all.front();
  return true;
}

std::vector<std::pair<const uint8_t *, size_t>> ElfFile::notes(const char *owner, uint32_t type) const {
  std::vector<std::pair<const uint8_t *, size_t>> found;
  size_t owner_size = strlen(owner) + 1;
  for (const ElfSegment &segment : segments) {
    if (segment.type != PT_NOTE) continue;
    uint64_t at = segment.offset, end = segment.offset + segment.filesz;
    while (end - at >= sizeof(Elf64_Nhdr)) {
      auto header = load<Elf64_Nhdr>(data_, at);
      uint64_t name = at + sizeof header;
      uint64_t name_size = (uint64_t{header.n_namesz} + 3) & ~3ull;
      uint64_t desc_size = (uint64_t{header.n_descsz} + 3) & ~3ull;
      if (name_size > end - name || header.n_descsz > end - name - name_size) break;
      if (header.n_type == type && header.n_namesz == owner_size && !memcmp(data_ + name, owner, owner_size))
        found.emplace_back(data_ + name + name_size, header.n_descsz);
      if (desc_size > end - name - name_size) break;
      at = name + name_size + desc_size;
    }
  }
  return found;
}

}  // namespace sx
