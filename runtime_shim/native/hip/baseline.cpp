#include "baseline.h"

#include "blake2b.h"
#include "files.h"
#include "image.h"
#include "log.h"
#include "service.h"
#include "state.h"
#include "stencils.h"
#include "trusted.h"

#include <cstdio>
#include <memory>
#include <mutex>

namespace sx {
namespace {

// A stencil takes LLVM about as long as three to four instructions of a whole kernel.
constexpr size_t kInstructionsPerStencil = 4, kFewStencils = 16;

struct OpenPack {
  MappedFile file;
  Pack pack;
};

struct Packs {
  std::mutex mutex;
  std::vector<std::unique_ptr<OpenPack>> open;  // the first has the glue and the tables
};

Packs &packs() {
  static Packs *const one = new Packs;
  return *one;
}

// Adds the pack in a file of the cache; false with a reason, which is empty if there is no file.
bool add_pack(Packs &all, const std::string &path, std::string &why) {
  auto fresh = std::make_unique<OpenPack>();
  if (!fresh->file.open(path, why)) return false;
  if (!fresh->pack.open(fresh->file.data(), fresh->file.size(), why)) {
    why = path + ": " + why;
    return false;
  }
  all.open.push_back(std::move(fresh));
  return true;
}

// The shapes as the service reads them: 32 hexadecimal digits each.
std::string text_of(const Shape &shape) {
  char text[33];
  snprintf(text, sizeof text, "%016llx%08x%08x", static_cast<unsigned long long>(shape.word), shape.dpp,
           static_cast<uint32_t>(shape.mode));
  return text;
}

// Has the service make a pack: of `shapes`, or the one that everything begins with if there are none.
bool ask(Packs &all, const std::vector<Shape> &shapes, const std::string &folder, std::string &why) {
  std::string list, name = "stencils";
  if (!shapes.empty()) {
    Blake2b hash(16);
    for (const Shape &shape : shapes) {
      std::string text = text_of(shape);
      hash.update(text);
      list += (list.empty() ? "" : ",") + json::quote(text);
    }
    name += "-" + hash.hex();
  }
  if (add_pack(all, folder + name + ".sxs", why)) return true;
  ServiceReply reply = service_call("{\"op\":\"stencils\"" + (list.empty() ? "" : ",\"shapes\":[" + list + "]") + "}");
  if (!reply.answered || !reply.body["ok"].truthy()) {
    why = reply.answered ? reply.body["line"].text() : reply.error;
    return false;
  }
  return add_pack(all, reply.body["pack"].text(), why);
}

bool text_section(const CodeObject &code, const KernelInfo &kernel, KernelCode &out) {
  uint64_t text = kernel.entry_vaddr;
  code.elf.section_address(".text", text);
  for (const ElfSegment &s : code.elf.segments) {
    if (kernel.entry_vaddr < s.vaddr || kernel.entry_vaddr - s.vaddr >= s.filesz || text < s.vaddr) continue;
    if (text > kernel.entry_vaddr) return false;
    out.size = s.vaddr + s.filesz - text;
    out.entry = static_cast<uint32_t>(kernel.entry_vaddr - text);
    out.text = code.elf.at_vaddr(text, out.size);
    return out.text && out.size < (1u << 30);
  }
  return false;
}

}  // namespace

bool load_baseline(const CodeObject &code, const KernelInfo &kernel, bool wait, HostImage &image, std::string &why) {
  KernelCode what = {};
  if (!text_section(code, kernel, what)) {
    why = "its code is not in one segment";
    return false;
  }
  what.mode = (kernel.rsrc1 >> 12 & 0xff) | (kernel.rsrc1 >> 21 & 1) << 8 | (kernel.rsrc1 >> 23 & 1) << 9;
  what.counts = counting();
  what.unaligned = kernel.unaligned;
  std::string tag = cache_tag(why);
  if (tag.empty()) return false;
  std::string folder = cache_dir() + "/host/" + tag + "/";
  Packs &all = packs();
  std::lock_guard<std::mutex> guard(all.mutex);
  if (all.open.empty() && !ask(all, {}, folder, why)) return false;
  BuiltKernel built;
  for (int attempt = 0; attempt < 2; ++attempt) {
    std::vector<const Pack *> use;
    use.reserve(all.open.size());
    for (const auto &pack : all.open) use.push_back(&pack->pack);
    if (build_kernel(use, what, built)) break;
    if (!built.why.empty() || built.missing.empty() || attempt) {
      why = built.why.empty() ? "the service cannot make all of its stencils" : built.why;
      return false;
    }
    if (!wait && built.missing.size() > kFewStencils &&
        built.missing.size() * kInstructionsPerStencil > built.instructions) {
      why = "most of its stencils are missing";
      return false;
    }
    if (!ask(all, built.missing, folder, why)) return false;
  }
  constexpr size_t kStackBeside = 48u << 10;  // of helpers and of the library's functions
  if (built.frame + kStackBeside > config().fiber_stack) {
    release_kernel(built.code, built.size);
    why = "its registers and constants do not fit the stack of a fiber";
    return false;
  }
  if (what.counts) image.counts = open_counts(image_key(code, kernel.name, false, true), kernel.name, built.blocks);
  image.resumable = {static_cast<uint8_t *>(built.code), std::move(built.blocks_at), built.resume, built.table, built.frame};
  image.stencils = true;
  image.instructions = built.instructions;
  image.code = built.code;
  image.code_size = built.size;
  image.entry = built.entry;
  return true;
}

}  // namespace sx
