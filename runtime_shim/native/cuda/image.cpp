#include "image.h"

#include "mappings.h"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <string>
#include <unistd.h>

namespace sx {
namespace {

constexpr uint32_t kWrapperMagic = 0x466243b1;
constexpr uint32_t kFatbinMagic = 0xba55ed50;

// The number of readable bytes at `address`, by the list of mappings.  A damaged header may name any
// size, and reading past a mapping would end the application.
size_t readable_at(const void *address) {
  struct Span {
    uintptr_t at, end;
  } span = {reinterpret_cast<uintptr_t>(address), reinterpret_cast<uintptr_t>(address)};
  bool listed = each_mapping(
      [](const Mapping &mapping, void *user) {
        Span &s = *static_cast<Span *>(user);
        if (mapping.end <= s.end) return true;
        if (mapping.begin > s.end || !mapping.read) return false;
        s.end = mapping.end;
        return true;
      },
      &span);
  return listed ? span.end - span.at : SIZE_MAX - span.at;
}

size_t fatbin_size(const uint8_t *data, size_t readable) {
  uint16_t header;
  uint64_t body;
  if (readable < 16) return 0;
  memcpy(&header, data + 6, sizeof header);
  memcpy(&body, data + 8, sizeof body);
  return body > readable || header > readable - body ? 0 : header + static_cast<size_t>(body);
}

size_t elf_size(const uint8_t *data, size_t readable) {
  Elf64_Ehdr header;
  if (readable < sizeof header) return 0;
  memcpy(&header, data, sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return 0;
  uint64_t size = sizeof header;
  bool good = true;
  auto cover = [&](uint64_t offset, uint64_t length) {
    if (offset > readable || length > readable - offset) good = false;
    else size = std::max(size, offset + length);
  };
  cover(header.e_phoff, static_cast<uint64_t>(header.e_phnum) * header.e_phentsize);
  cover(header.e_shoff, static_cast<uint64_t>(header.e_shnum) * header.e_shentsize);
  if (!good || (header.e_shnum && header.e_shentsize < sizeof(Elf64_Shdr))) return 0;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    memcpy(&section, data + header.e_shoff + static_cast<uint64_t>(i) * header.e_shentsize, sizeof section);
    if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL) cover(section.sh_offset, section.sh_size);
  }
  return good ? size : 0;
}

}  // namespace

ImageView view_image(const void *image) {
  ImageView view;
  size_t readable = readable_at(image);
  view.data = static_cast<const uint8_t *>(image);
  uint32_t magic = 0;
  view.kind = ImageKind::Unreadable;
  if (readable < sizeof magic) return view;
  memcpy(&magic, view.data, sizeof magic);
  if (magic == kWrapperMagic) {
    if (readable < 24) return view;
    view.registered = true;
    memcpy(&view.data, view.data + 8, sizeof view.data);
    readable = readable_at(view.data);
    if (readable < sizeof magic) return view;
    memcpy(&magic, view.data, sizeof magic);
  }
  if (magic == kFatbinMagic) {
    view.size = fatbin_size(view.data, readable);
    view.kind = view.size ? ImageKind::Fatbin : ImageKind::Unreadable;
  } else if (memcmp(&magic, ELFMAG, SELFMAG) == 0) {
    view.size = elf_size(view.data, readable);
    view.kind = view.size ? ImageKind::Elf : ImageKind::Unreadable;
  } else {
    // PTX is text that ends in NUL.
    view.size = strnlen(reinterpret_cast<const char *>(view.data), readable);
    static const char word[] = ".version";
    const uint8_t *found = std::search(view.data, view.data + view.size, word, word + sizeof word - 1);
    view.kind = found != view.data + view.size ? ImageKind::Text : ImageKind::Unknown;
  }
  return view;
}

}  // namespace sx
