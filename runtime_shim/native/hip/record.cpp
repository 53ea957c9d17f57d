#include "record.h"

#include "device_memory.h"
#include "image.h"
#include "log.h"
#include "mappings.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

namespace sx {

struct Recorder {
  std::mutex mutex;
  FILE *file = nullptr;
  std::map<uint64_t, std::vector<uint8_t>> seen;  // the pieces, as the record has them
};

namespace {

constexpr size_t kPage = 4096;

Recorder *recorder() {
  static Recorder *const instance = []() -> Recorder * {
    std::string folder = env_string("SASSXLATE_RECORD");
    if (folder.empty()) return nullptr;
    std::string path = folder + "/launches-" + std::to_string(getpid());
    FILE *file = fopen(path.c_str(), "wb");
    if (!file) {
      log_line("SX0676: %s: launches cannot be recorded: %s", path.c_str(), strerror(errno));
      return nullptr;
    }
    Recorder *made = new Recorder;  // lives as long as the process
    made->file = file;
    fputs("sassxlate-launches 1\n", file);
    return made;
  }();
  return instance;
}

void write_changed(Recorder &r) {
  for (auto &[base, known] : r.seen) {
    const uint8_t *now = reinterpret_cast<const uint8_t *>(base);
    for (size_t at = 0; at < known.size(); at += kPage) {
      size_t size = std::min(kPage, known.size() - at);
      if (memcmp(known.data() + at, now + at, size) == 0) continue;
      memcpy(known.data() + at, now + at, size);
      fprintf(r.file, "page %" PRIu64 " %zu\n", base + at, size);
      fwrite(known.data() + at, 1, size, r.file);
    }
  }
}

void write_pieces(Recorder &r) {
  std::map<uint64_t, uint64_t> pieces;
  for (const Allocation &a : memory_list())
    if (a.kind != MemoryKind::Internal && a.kind != MemoryKind::Module &&
        (!a.probes || can_access(a.base, a.size, false)))  // else the application has taken it away
      pieces[a.base] = a.size;
  for (auto it = r.seen.begin(); it != r.seen.end();) {
    auto same = pieces.find(it->first);
    if (same != pieces.end() && same->second == it->second.size()) {
      ++it;
      continue;
    }
    fprintf(r.file, "gone %" PRIu64 "\n", it->first);
    it = r.seen.erase(it);
  }
  for (auto [base, size] : pieces) {
    if (r.seen.count(base)) continue;
    fprintf(r.file, "piece %" PRIu64 " %" PRIu64 "\n", base, size);
    r.seen[base].assign(size, 0);
  }
}

}  // namespace

Recording::Recording(const Launch &launch, uint32_t shared) : launch_(launch), recorder_(recorder()) {
  if (!recorder_) return;
  Recorder &r = *recorder_;
  lock_ = std::unique_lock<std::mutex>(r.mutex);
  write_pieces(r);
  write_changed(r);
  const KernelInfo &info = *launch.function->info;
  std::string key = image_key(*launch.module->code, info.name, false, false);
  const uint32_t *g = launch.grid, *b = launch.block;
  fprintf(r.file, "launch %s %u %u %u %u %u %u %u %d %" PRIu64 " %u %s\n", key.c_str(), g[0], g[1], g[2], b[0], b[1],
          b[2], shared, launch.cooperative ? 1 : 0, launch.kernarg, info.kernarg_size, info.name.c_str());
  fwrite(reinterpret_cast<const void *>(launch.kernarg), 1, info.kernarg_size, r.file);
}

Recording::~Recording() {
  if (!recorder_) return;
  write_changed(*recorder_);
  fprintf(recorder_->file, "end %u\n", launch_.fault.kind);
  fflush(recorder_->file);
}

}  // namespace sx
