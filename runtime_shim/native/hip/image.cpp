#include "image.h"

#include "blake2b.h"
#include "carried.h"
#include "counts.h"
#include "files.h"
#include "host_cpu.h"
#include "log.h"
#include "service.h"
#include "state.h"
#include "stencils.h"
#include "trusted.h"
#include "waiting.h"

#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sx {
namespace {

static_assert(sizeof(SxWave) == 0x300 && offsetof(SxWave, follows) == 0x1c0 && offsetof(SxWave, step) == 0x1c8);
static_assert(offsetof(SxWave, rows) == 0x1d0 && offsetof(SxWave, most) == 0x1d4 && offsetof(SxWave, exec) == 0x280 && offsetof(SxWave, code_base) == 0x2d0);
static_assert(sizeof(SxImageHeader) <= 4096);

constexpr uint64_t kHeaderPage = 4096;
constexpr size_t kMostHot = 1u << 20;  // of a file that names the blocks of a part

bool header_fits(const SxImageHeader &h, size_t file_size, const std::string &kernel, bool strict, bool part,
                 std::string &why) {
  if (h.magic != SX_IMAGE_MAGIC || h.version != SX_IMAGE_VERSION) why = "not an image of this version";
  else if (h.code_offset != kHeaderPage || h.code_size == 0 || file_size < kHeaderPage ||
           h.code_size > file_size - kHeaderPage || h.entry_offset >= h.code_size)
    why = "its header does not fit its size";
  else if ((h.flags & 1) != (strict ? 1u : 0u)) why = "made for the other setting of --strict";
  else if (((h.flags & 4) != 0) != config().interleave) why = "made for the other setting of --interleave";
  else if (((h.flags & 2) != 0) != counting() || (counting() && h.counts == 0)) why = "made for the other setting of execution counts";
  else if (h.flags & 32 && !part) why = "made of a part of the kernel";
  else if (!host_runs(h.isa)) why = "made for another processor";
  // A long name is cut to the field's length.
  else if (strncmp(h.kernel, kernel.c_str(), sizeof h.kernel - 1) != 0) why = "made for another kernel";
  else return true;
  return false;
}

void *copy_code(const uint8_t *image, const SxImageHeader &header) {
  size_t size = header.code_size;
  void *at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  memcpy(at, image + header.code_offset, size);
  if (mprotect(at, size, PROT_READ | PROT_EXEC) == 0) return at;
  munmap(at, size);
  return nullptr;
}

// Maps the code for execution; copies it where the file system forbids that (noexec).
void *map_code(const MappedFile &file, const SxImageHeader &header) {
  void *at = mmap(nullptr, header.code_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, file.fd(),
                  static_cast<off_t>(header.code_offset));
  return at != MAP_FAILED ? at : copy_code(file.data(), header);
}

void take_code_of(const SxImageHeader &header, void *code, const std::string &key, const std::string &kernel, HostImage &image) {
  if (counting() && !image.counts.words) image.counts = open_counts(key, kernel, header.counts);
  image.code = code;
  image.code_size = header.code_size;
  image.quick = (header.flags & 8) != 0;
  image.runs = (header.flags & 16) != 0;
  image.partial = (header.flags & 32) != 0;
  image.entry = reinterpret_cast<SxEntry>(static_cast<uint8_t *>(code) + header.entry_offset);
}

// The image that the program or a library carries: the best that this processor runs.
bool open_carried(const std::string &key, const std::string &kernel, HostImage &image, std::string &why) {
  for (const char *area : {"host-avx512", "host-avx2"}) {
    CarriedBytes bytes;
    SxImageHeader header;
    if (!find_carried(carried_target(), area, key + ".sxh", bytes) || bytes.size < sizeof header) continue;
    memcpy(&header, bytes.data, sizeof header);
    if (!header_fits(header, bytes.size, kernel, config().strict, false, why)) continue;
    void *code = copy_code(bytes.data, header);
    if (!code) continue;
    take_code_of(header, code, key, kernel, image);
    return true;
  }
  return false;
}

bool open_image(const std::string &path, const std::string &key, const std::string &kernel, bool strict,
                HostImage &image, std::string &why, bool part = false) {
  MappedFile file;
  if (!file.open(path, why)) return false;
  SxImageHeader header;
  if (file.size() < sizeof header) {
    why = path + ": too short for an image";
    return false;
  }
  memcpy(&header, file.data(), sizeof header);
  if (!header_fits(header, file.size(), kernel, strict, part, why)) {
    why = path + ": " + why;
    unlink(path.c_str());  // made again
    return false;
  }
  void *code = map_code(file, header);
  if (!code) {
    why = path + ": cannot be mapped for execution";
    return false;
  }
  take_code_of(header, code, key, kernel, image);
  return true;
}

enum class Ask { Waited, Background, Quick };

// Has the service compile the kernel; gives the path of the image, or an empty one with the error set, which is
// reported if the application waited for it, or with `stopped`.
std::string compile(const CodeObject &code, const std::string &kernel, bool strict, Ask how, HostImage &image,
                    Stopped &stopped, const std::string &part = "") {
  bool waited = how != Ask::Background;
  std::string file = write_temporary("object", code.bytes.data(), code.bytes.size());
  if (file.empty()) {
    if (waited) log_line("SX0653: kernel %s: no temporary file can be written", kernel.c_str());
    image.error = hipErrorOperatingSystem;
    return "";
  }
  ServiceReply reply = service_call("{\"op\":\"compile\",\"code_object\":" + json::quote(file) +
                                    ",\"kernel\":" + json::quote(kernel) +
                                    ",\"strict\":" + (strict ? "true" : "false") +
                                    (counting() ? ",\"counts\":true" : "") +
                                    (config().interleave ? ",\"turns\":true" : "") +
                                    (how == Ask::Quick ? ",\"quick\":true" : "") +
                                    (part.empty() ? "" : ",\"entered\":" + json::quote(part)) +
                                    (waited ? "" : ",\"background\":true") + "}");
  unlink(file.c_str());
  if (!reply.answered) {
    if (waited) log_line("SX0651: kernel %s: no service to compile it: %s", kernel.c_str(), reply.error.c_str());
    image.error = hipErrorOperatingSystem;
    return "";
  }
  if (!reply.body["ok"].truthy()) {
    std::string line = reply.body["line"].text();
    if (line.empty()) line = "SX0652: " + kernel + ": the service could not compile it";
    if (reply.body["slow"].truthy()) {
      stopped.line = line;
      return "";
    }
    if (waited) log_line("%s", line.c_str());
    int64_t error = reply.body["cuda_error"].whole(hipErrorNotSupported);
    image.error = error > 0 && error < 10000 ? static_cast<int>(error) : hipErrorNotSupported;
    return "";
  }
  return reply.body["image"].text();
}

}  // namespace

HostImage::~HostImage() {
  if (stencils) release_kernel(code, code_size);
  else if (code) munmap(code, code_size);
  close_counts(counts);
}

std::string image_key(const CodeObject &code, const std::string &kernel, bool strict, bool counts, const std::string &part) {
  Blake2b hash(16);
  hash.update(code.bytes.data(), code.bytes.size());
  hash.update("\0", 1);
  hash.update(kernel);
  hash.update("\0", 1);
  hash.update(std::string(strict ? "strict" : "plain") + (counts ? " counts" : "") + (config().interleave ? " turns" : "") +
              (part.empty() ? "" : " entered " + part));
  return hash.hex();
}

namespace {

struct Place {
  std::string key, path;
  // The compiler was stopped at this kernel before.
  bool slow() const { return can_read(beside("slow")); }
  std::string beside(const char *ending) const { return path.substr(0, path.size() - 3) + ending; }
};

// Where the cache has the image; false where there is no service to say it.
bool place_of(const CodeObject &code, const KernelInfo &kernel, Place &place, std::string &why, const std::string &part = "") {
  std::string tag = cache_tag(why);
  if (tag.empty()) return false;
  place.key = image_key(code, kernel.name, config().strict, counting(), part);
  place.path = cache_dir() + "/host/" + tag + "/" + place.key + ".sxh";
  return true;
}

}  // namespace

namespace {

bool carried_image(const CodeObject &code, const KernelInfo &kernel, HostImage &image, std::string &why) {
  return something_carried() &&
         open_carried(image_key(code, kernel.name, config().strict, counting()), kernel.name, image, why);
}

void load(const CodeObject &code, const KernelInfo &kernel, Ask how, HostImage &image, Stopped &stopped) {
  bool strict = config().strict;
  std::string why;
  Place place;
  if (carried_image(code, kernel, image, why)) return;
  if (program_carries()) {
    log_line("SX0792: kernel %s: the program carries no host code for it%s%s", kernel.name.c_str(),
             why.empty() ? "" : ": ", why.c_str());
    image.error = hipErrorNotSupported;
    return;
  }
  if (!place_of(code, kernel, place, why)) {
    log_line("SX0651: kernel %s: no service to compile it: %s", kernel.name.c_str(), why.c_str());
    image.error = hipErrorOperatingSystem;
    return;
  }
  if (open_image(place.path, place.key, kernel.name, strict, image, why)) return;
  stopped.known = how != Ask::Quick && place.slow();
  if (stopped.known) return;
  std::string path = compile(code, kernel.name, strict, how, image, stopped);
  if (path.empty() && (image.error || stopped)) return;
  if (!open_image(path, place.key, kernel.name, strict, image, why)) {
    if (why.empty()) why = path + " is gone";
    log_line("SX0652: kernel %s: %s", kernel.name.c_str(), why.c_str());
    image.error = hipErrorNotSupported;
  }
}

}  // namespace

void load_image(const CodeObject &code, const KernelInfo &kernel, HostImage &image, Stopped &stopped) {
  load(code, kernel, Ask::Waited, image, stopped);
}

void load_quick_image(const CodeObject &code, const KernelInfo &kernel, HostImage &image) {
  Stopped stopped;
  load(code, kernel, Ask::Quick, image, stopped);
  if (!stopped) return;
  log_line("%s", stopped.line.c_str());
  image.error = hipErrorNotSupported;
}

bool cached_image(const CodeObject &code, const KernelInfo &kernel, HostImage &image) {
  std::string why;
  Place place;
  if (carried_image(code, kernel, image, why)) return true;
  return place_of(code, kernel, place, why) && open_image(place.path, place.key, kernel.name, config().strict, image, why);
}

bool cached_part(const CodeObject &code, const KernelInfo &kernel, std::string &part, HostImage &image) {
  std::string why;
  Place whole, place;
  return place_of(code, kernel, whole, why) && read_sealed(whole.beside("hot"), part, kMostHot) && !part.empty() &&
         place_of(code, kernel, place, why, part) &&
         open_image(place.path, place.key, kernel.name, config().strict, image, why, true);
}

std::string warmth_path(const CodeObject &code, const KernelInfo &kernel, const std::string &part) {
  std::string why;
  Place place;
  return place_of(code, kernel, place, why, part) ? place.beside("warm") : "";
}

bool better_image(const CodeObject &code, const KernelInfo &kernel, const std::string &part, HostImage &image) {
  std::string why;
  Place place;
  if (!place_of(code, kernel, place, why, part) || place.slow()) return false;
  Stopped stopped;
  std::string path = compile(code, kernel.name, config().strict, Ask::Background, image, stopped, part);
  image.error = 0;
  return !path.empty() && open_image(path, place.key, kernel.name, config().strict, image, why, !part.empty());
}

}  // namespace sx

// For the driver library, whose waits count together with those for host code.
extern "C" __attribute__((visibility("default"))) void *sassxlate_waiting_state(void) { return sx::waiting_state(); }
