// The compute capability that the device advertises: SASSXLATE_CC, or the newest for which the program and its
// libraries have machine code (with cuDNN up to 8.0), or that of their PTX if it is above 8.0, or 8.0.
#include "capability.h"

#include "carried.h"
#include "driver.h"
#include "files.h"
#include "log.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

namespace sx {
namespace {

constexpr int kUnknownPrograms = 80;
constexpr int kOldest = 75, kNewest = 90;  // what rules and proofs cover; newer ones must be asked for
// For 9.0 cuDNN takes kernels whose tensor maps it writes itself, in NVIDIA's layout, with convolutions of float32 as
// with attention of halves: they trap.
constexpr int kNewestWithCudnn = 80;
constexpr const char *kCudnn[] = {"libcudnn.so", "libcudnn_"};
constexpr uint32_t kFatbinMagic = 0xba55ed50;
constexpr uint16_t kPtx = 1, kCubin = 2;
constexpr uint64_t kLongestGap = 4096;

// The architectures that there is code for.
struct Archs {
  std::vector<int> cubins, ptx;
  bool cudnn = false;  // whether it is loaded
};

// Reads `size` bytes at an offset of a file or of an image.
using Read = bool (*)(const void *from, uint64_t offset, void *to, size_t size);

bool read_image(const void *from, uint64_t offset, void *to, size_t size) {
  const auto &image = *static_cast<const ImageView *>(from);
  if (offset > image.size || size > image.size - offset) return false;
  memcpy(to, image.data + offset, size);
  return true;
}

bool read_open_file(const void *from, uint64_t offset, void *to, size_t size) {
  return pread(*static_cast<const int *>(from), to, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

// The architectures in the containers between two offsets.
void in_fatbins(Read read, const void *from, uint64_t at, uint64_t end, Archs &found) {
  uint64_t gap = 0;
  while (at + 16 <= end) {
    uint32_t magic;
    if (!read(from, at, &magic, sizeof magic)) return;
    if (magic != kFatbinMagic) {
      at += 8;  // containers are aligned
      if ((gap += 8) > kLongestGap) return;
      continue;
    }
    gap = 0;
    uint16_t header;
    uint64_t size;
    if (!read(from, at + 6, &header, sizeof header) || !read(from, at + 8, &size, sizeof size)) return;
    uint64_t entry = at + header;
    if (header < 16 || size > end - at) return;
    at = entry + size;
    while (entry + 64 <= at) {
      unsigned char bytes[64];
      uint16_t kind;
      uint32_t length, arch;
      uint64_t payload;
      if (!read(from, entry, bytes, sizeof bytes)) return;
      memcpy(&kind, bytes, sizeof kind);
      memcpy(&length, bytes + 4, sizeof length);
      memcpy(&payload, bytes + 8, sizeof payload);
      memcpy(&arch, bytes + 28, sizeof arch);
      if (kind == kCubin) found.cubins.push_back(static_cast<int>(arch));
      if (kind == kPtx) found.ptx.push_back(static_cast<int>(arch));
      if (length < 64 || payload > at - entry) break;
      entry += length + payload;
    }
  }
}

// Those of a program or library on disk, in the sections that compilers put containers into.
void in_program(const char *path, Archs &found) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  Elf64_Ehdr header;
  std::vector<Elf64_Shdr> sections;
  if (read_open_file(&fd, 0, &header, sizeof header) && !memcmp(header.e_ident, ELFMAG, SELFMAG) &&
      header.e_shentsize == sizeof(Elf64_Shdr) && header.e_shnum) {
    sections.resize(header.e_shnum);
    if (!read_open_file(&fd, header.e_shoff, sections.data(), sections.size() * sizeof(Elf64_Shdr))) sections.clear();
  }
  if (!sections.empty() && header.e_shstrndx < sections.size()) {
    uint64_t names = sections[header.e_shstrndx].sh_offset;
    for (const Elf64_Shdr &section : sections) {
      char name[16] = "";
      if (section.sh_type != SHT_PROGBITS || !read_open_file(&fd, names + section.sh_name, name, sizeof name)) continue;
      if (!memcmp(name, ".nv_fatbin", 11) || !memcmp(name, "__nv_relfatbin", 15))
        in_fatbins(read_open_file, &fd, section.sh_offset, section.sh_offset + section.sh_size, found);
    }
  }
  close(fd);
}

Archs in_image(const ImageView &image) {
  Archs found;
  if (image.kind == ImageKind::Fatbin) in_fatbins(read_image, &image, 0, image.size, found);
  Elf64_Ehdr header;
  if (image.kind == ImageKind::Elf && read_image(&image, 0, &header, sizeof header))
    // From the eighth version of the ABI on, the low byte has another meaning.
    found.cubins.push_back(static_cast<int>(header.e_ident[EI_ABIVERSION] >= 8 ? header.e_flags >> 8 & 0xff : header.e_flags & 0xff));
  return found;
}

// The newest of them that is covered, up to `most`; 0 if none is.
int newest(const std::vector<int> &found, int most = kNewest) {
  int best = 0;
  for (int arch : found)
    if (arch >= kOldest && arch <= most) best = std::max(best, arch);
  return best;
}

// "9.0", "90" or "12.0"; 0 if it is unset or not a capability.
int parse(const std::string &text) {
  int major = 0, minor = 0;
  char rest = 0;
  if (sscanf(text.c_str(), "%d.%d%c", &major, &minor, &rest) == 2 && major > 0 && major < 100 && minor >= 0 && minor < 10)
    return major * 10 + minor;
  if (sscanf(text.c_str(), "%d%c", &major, &rest) == 1 && major >= 50 && major < 1000) return major;
  if (!text.empty()) log_line("SX0713: SASSXLATE_CC=%s is not a compute capability; ignored", text.c_str());
  return 0;
}

int asked_for() {
  static const int value = parse(env_string("SASSXLATE_CC"));
  return value;
}

std::atomic<int> g_decided{0};

int in_loaded_objects() {
  Archs found;
  in_program("/proc/self/exe", found);
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *list) {
        Archs &archs = *static_cast<Archs *>(list);
        if (!info->dlpi_name || *info->dlpi_name != '/') return 0;
        in_program(info->dlpi_name, archs);
        const char *file = strrchr(info->dlpi_name, '/') + 1;
        for (const char *name : kCudnn) archs.cudnn |= !strncmp(file, name, strlen(name));
        return 0;
      },
      &found);
  if (int best = found.cudnn ? newest(found.cubins, kNewestWithCudnn) : 0) return best;
  if (int best = newest(found.cubins)) return best;
  // PTX is compiled for the device, whatever it is; one for a newer one needs that.
  return found.ptx.empty() ? 0 : std::max(kUnknownPrograms, newest(found.ptx));
}

}  // namespace

int capability() {
  if (asked_for()) return asked_for();
  // Once: what is loaded later finds a device that does not change.
  static const int decided = [] {
    // A program with a translation of its own: the one that it was made for.
    int best = program_carries() ? parse(carried_setting("cc")) : 0;
    if (!best) best = in_loaded_objects();
    g_decided = best ? best : kUnknownPrograms;
    return g_decided.load();
  }();
  return decided;
}

int capability_so_far() {
  if (asked_for()) return asked_for();
  if (int decided = g_decided) return decided;
  int best = program_carries() ? parse(carried_setting("cc")) : 0;
  if (!best) best = in_loaded_objects();
  return best ? best : kUnknownPrograms;
}

int capability_for(const ImageView &image) {
  int device = capability();
  if (asked_for()) return device;
  // The device was not chosen explicitly: code for only a newer one is run as such.
  Archs all = in_image(image);
  const std::vector<int> &found = all.cubins.empty() ? all.ptx : all.cubins;
  int oldest = all.cubins.empty() ? 0 : kOldest;  // of PTX, any that is not newer than the device
  bool fits = std::any_of(found.begin(), found.end(), [device, oldest](int arch) { return arch >= oldest && arch <= device; });
  return fits || !newest(found) ? device : newest(found);
}

bool has_ptx_alone(const ImageView &image) {
  if (image.kind == ImageKind::Text) return true;
  Archs found = in_image(image);
  return found.cubins.empty() && !found.ptx.empty();
}

}  // namespace sx
