#include "symbols.h"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sx::preload {
namespace {

// A file mapped for reading, with bounds-checked access.
class File {
 public:
  explicit File(const std::string &path) {
    int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    struct stat status;
    if (!fstat(fd, &status) && status.st_size > 0) {
      void *p = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
      if (p != MAP_FAILED) {
        data_ = static_cast<const char *>(p);
        size_ = static_cast<size_t>(status.st_size);
      }
    }
    close(fd);
  }
  ~File() {
    if (data_) munmap(const_cast<char *>(data_), size_);
  }
  File(const File &) = delete;
  File &operator=(const File &) = delete;

  // `count` objects at `offset`, or nullptr if the file ends before.
  template <class T>
  const T *at(uint64_t offset, uint64_t count) const {
    if (!data_ || offset > size_ || count > (size_ - offset) / sizeof(T) || offset % alignof(T)) return nullptr;
    return reinterpret_cast<const T *>(data_ + offset);
  }

 private:
  const char *data_ = nullptr;
  size_t size_ = 0;
};

// The sections of a 64-bit ELF file; empty if it has no section table.
struct Sections {
  const Elf64_Shdr *first = nullptr;
  unsigned count = 0;

  explicit Sections(const File &file) {
    const Elf64_Ehdr *header = file.at<Elf64_Ehdr>(0, 1);
    if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64) return;
    first = file.at<Elf64_Shdr>(header->e_shoff, header->e_shnum);
    count = first ? header->e_shnum : 0;
  }

  const Elf64_Shdr *of_type(uint32_t type) const {
    for (unsigned i = 0; i < count; ++i)
      if (first[i].sh_type == type) return &first[i];
    return nullptr;
  }
};

struct Symbol {
  std::string_view name;
  uint64_t value, size;
};

std::vector<Symbol> functions(const File &file, uint32_t type) {
  std::vector<Symbol> out;
  Sections sections(file);
  const Elf64_Shdr *table = sections.of_type(type);
  if (!table || table->sh_link >= sections.count) return out;
  const Elf64_Shdr &names = sections.first[table->sh_link];
  uint64_t count = table->sh_size / sizeof(Elf64_Sym);
  const Elf64_Sym *symbols = file.at<Elf64_Sym>(table->sh_offset, count);
  const char *text = file.at<char>(names.sh_offset, names.sh_size);
  if (!symbols || !text || !names.sh_size || text[names.sh_size - 1]) return out;
  for (uint64_t i = 0; i < count; ++i) {
    const Elf64_Sym &s = symbols[i];
    if (ELF64_ST_TYPE(s.st_info) != STT_FUNC || s.st_shndx == SHN_UNDEF || s.st_name >= names.sh_size) continue;
    out.push_back({text + s.st_name, s.st_value, s.st_size});
  }
  return out;
}

bool starts_with(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

// 11's internal functions are named __cudart and a number, later ones' libcudart_static_ and a hash.
bool internal(std::string_view name) {
  constexpr std::string_view kOld = "__cudart";
  return starts_with(name, "libcudart_static_") ||
         (starts_with(name, kOld) && name.size() > kOld.size() && name[kOld.size()] >= '0' && name[kOld.size()] <= '9');
}

bool runtime_like(std::string_view name) {
  return (starts_with(name, "cuda") || starts_with(name, "__cuda")) && !internal(name);
}

// A function that every release of one major has and no other major does; 10 has the first, too.
struct Marker {
  const char *name;
  int major;
};
constexpr Marker kMarkers[] = {{"cudaBindTexture", 11}, {"cudaGetDeviceProperties_v2", 12}, {"cudaLogsCurrent", 13}};
constexpr const char kNewIn11[] = "cudaStreamCopyAttributes";

}  // namespace

Named find_by_symbol(const Image &image, bool dynamic, Match &out) {
  File file(image.path);
  std::vector<Symbol> all = functions(file, dynamic ? SHT_DYNSYM : SHT_SYMTAB);
  bool runtime = dynamic;
  bool new_in_11 = false;
  int major = 0;
  uint64_t low = UINT64_MAX, high = 0;  // where the known functions lie
  for (const Symbol &s : all) {
    if (internal(s.name)) runtime = true;
    if (!runtime_like(s.name) || !majors_of(s.name)) continue;
    low = std::min(low, s.value);
    high = std::max(high, s.value);
    for (const Marker &marker : kMarkers)
      if (s.name == marker.name) major = marker.major;
    new_in_11 = new_in_11 || s.name == kNewIn11;
  }
  if (major == 11 && !new_in_11) major = 0;
  if (low > high) return Named::Nothing;
  if (!runtime) return Named::Stubs;
  out.major = major;
  for (const Symbol &s : all) {
    // Between the runtime's functions all such names are the runtime's own, also those of a release newer than
    // our lists; elsewhere a program may call its own functions cudaSomething.
    if (!runtime_like(s.name) || s.value < low || s.value > high) continue;
    out.names.emplace_back(s.name);  // the file is closed soon
    out.entries.push_back({out.names.back(), reinterpret_cast<unsigned char *>(image.bias + s.value)});
  }
  std::sort(out.entries.begin(), out.entries.end(),
            [](const Entry &a, const Entry &b) { return a.address < b.address; });
  out.release = out.major ? std::to_string(out.major) + ".x" : "unknown";
  return Named::Runtime;
}

namespace {

// Whether what follows a shorter function is padding: a compiler's, which aligns functions to 16.
bool has_room(const unsigned char *address, uint64_t size, size_t room) {
  if (size >= room) return true;
  if (reinterpret_cast<uintptr_t>(address) % 16 || size == 0) return false;
  constexpr unsigned char kPadding[] = {0x00, 0x0f, 0x2e, 0x66, 0x90, 0xcc};  // zeros, forms of nop, int3
  return std::find(std::begin(kPadding), std::end(kPadding), address[size]) != std::end(kPadding);
}

}  // namespace

bool find_exported(const Image &image, const std::vector<std::string_view> &prefixes, size_t room, Match &out) {
  File file(image.path);
  for (const Symbol &s : functions(file, SHT_DYNSYM)) {
    if (std::none_of(prefixes.begin(), prefixes.end(), [&](std::string_view p) { return starts_with(s.name, p); })) continue;
    auto *address = reinterpret_cast<unsigned char *>(image.bias + s.value);
    if (!has_room(address, s.size, room)) return false;
    out.names.emplace_back(s.name);
    out.entries.push_back({out.names.back(), address});
  }
  std::sort(out.entries.begin(), out.entries.end(),
            [](const Entry &a, const Entry &b) { return a.address < b.address; });
  return !out.entries.empty();
}

bool has_device_code(const Image &image) {
  File file(image.path);
  Sections sections(file);
  const Elf64_Ehdr *header = file.at<Elf64_Ehdr>(0, 1);
  if (!sections.count || !header || header->e_shstrndx >= sections.count) return false;
  const Elf64_Shdr &names = sections.first[header->e_shstrndx];
  const char *text = file.at<char>(names.sh_offset, names.sh_size);
  if (!text || !names.sh_size || text[names.sh_size - 1]) return false;
  for (unsigned i = 0; i < sections.count; ++i)
    if (sections.first[i].sh_name < names.sh_size && !strcmp(text + sections.first[i].sh_name, ".nvFatBinSegment"))
      return true;
  return false;
}

}  // namespace sx::preload
