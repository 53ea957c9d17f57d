#include "stencils.h"

#include "host_cpu.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <sys/mman.h>

namespace sx {
namespace {

constexpr uint32_t kMagic = 0x54535853u, kVersion = 2;
constexpr size_t kPage = 4096;
constexpr size_t kRegion = size_t{1} << 30;  // relative addresses reach all of it

struct Part {
  uint64_t at, size;
};

struct Header {
  uint32_t magic, version, isa, zero;
  uint8_t digest[16];
  Part pool, classes, fields, encodings, opcodes, formats, dispatch, rows, relocs, code;
};

static_assert(sizeof(StencilRow) == 32 && sizeof(StencilReloc) == 12 && sizeof(OperandClass) == 8 + 512 * 9);
static_assert(sizeof(EncodingField) == 12 && sizeof(EncodingRow) == 40 && sizeof(EncodingFormat) == 8);

size_t pages(size_t size) { return (size + kPage - 1) / kPage * kPage; }

// Address space for helpers and kernels, so that all of them reach one another.
class Region {
 public:
  // Readable and writable memory; null if there is none.
  uint8_t *take(size_t size) {
    size = pages(size);
    std::lock_guard<std::mutex> guard(mutex_);
    if (!base_) {
      void *at = mmap(nullptr, kRegion, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (at == MAP_FAILED) return nullptr;
      base_ = static_cast<uint8_t *>(at);
      free_.push_back({0, kRegion});
    }
    for (size_t i = 0; i < free_.size(); ++i) {
      Part &part = free_[i];
      if (part.size < size) continue;
      uint8_t *at = base_ + part.at;
      if (mprotect(at, size, PROT_READ | PROT_WRITE) != 0) return nullptr;
      part.at += size;
      part.size -= size;
      if (!part.size) free_.erase(free_.begin() + static_cast<ptrdiff_t>(i));
      return at;
    }
    return nullptr;
  }

  void give(uint8_t *at, size_t size) {
    size = pages(size);
    std::lock_guard<std::mutex> guard(mutex_);
    // Fresh pages, which are zero, and cannot be executed.  Where there are none, the old ones are not used again.
    if (mmap(at, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) return;
    Part part = {static_cast<uint64_t>(at - base_), size};
    auto next = std::lower_bound(free_.begin(), free_.end(), part, [](const Part &a, const Part &b) { return a.at < b.at; });
    next = free_.insert(next, part);
    if (next + 1 != free_.end() && next->at + next->size == (next + 1)->at) {
      next->size += (next + 1)->size;
      free_.erase(next + 1);
    }
    if (next != free_.begin() && (next - 1)->at + (next - 1)->size == next->at) {
      (next - 1)->size += next->size;
      free_.erase(next);
    }
  }

 private:
  std::mutex mutex_;
  uint8_t *base_ = nullptr;
  std::vector<Part> free_;  // by address
};

Region &region() {
  static Region *const one = new Region;  // kernels of other threads may outlive static destructors
  return *one;
}

}  // namespace

Pack::~Pack() {
  if (pool_) region().give(const_cast<uint8_t *>(pool_), pool_size_);
}

bool Pack::open(const uint8_t *data, size_t size, std::string &why) {
  Header h;
  if (size < kPage) {
    why = "too short for a pack of stencils";
    return false;
  }
  memcpy(&h, data, sizeof h);
  if (h.magic != kMagic || h.version != kVersion) why = "not a pack of stencils of this version";
  else if (!host_runs(h.isa)) why = "made for another processor";
  else why.clear();
  if (!why.empty()) return false;
  for (const Part *part : {&h.pool, &h.classes, &h.fields, &h.encodings, &h.opcodes, &h.formats, &h.dispatch, &h.rows,
                           &h.relocs, &h.code}) {
    if (part->at < kPage || part->at % 64 || part->at > size || part->size > size - part->at) {
      why = "its header does not fit its size";
      return false;
    }
  }
  classes_ = reinterpret_cast<const OperandClass *>(data + h.classes.at);
  fields_ = reinterpret_cast<const EncodingField *>(data + h.fields.at);
  encodings_ = reinterpret_cast<const EncodingRow *>(data + h.encodings.at);
  opcodes_ = reinterpret_cast<const uint16_t *>(data + h.opcodes.at);
  formats_ = reinterpret_cast<const EncodingFormat *>(data + h.formats.at);
  dispatch_ = data + h.dispatch.at;
  rows_ = reinterpret_cast<const StencilRow *>(data + h.rows.at);
  rows_size_ = h.rows.size / sizeof(StencilRow);
  relocs_ = reinterpret_cast<const StencilReloc *>(data + h.relocs.at);
  code_ = data + h.code.at;
  pool_size_ = std::max<size_t>(h.pool.size, 1);
  uint8_t *pool = region().take(pool_size_);
  if (!pool) {
    why = "no memory for its helpers";
    return false;
  }
  memcpy(pool, data + h.pool.at, h.pool.size);
  pool_ = pool;
  if (mprotect(pool, pages(pool_size_), PROT_READ | PROT_EXEC) != 0) {
    why = "its helpers cannot be mapped for execution";
    return false;
  }
  return true;
}

const StencilRow *Pack::find(const Shape &shape) const {
  const StencilRow *end = rows_ + rows_size_;
  const StencilRow *at = std::lower_bound(rows_, end, shape, [](const StencilRow &r, const Shape &s) { return r.shape < s; });
  return at != end && at->shape == shape ? at : nullptr;
}

const EncodingRow *Pack::row(uint32_t word) const {
  uint8_t number = dispatch_[word >> 23];
  if (number == 0xff) return nullptr;
  const EncodingFormat &f = formats_[number];
  uint16_t row = opcodes_[f.first + (word >> f.lo & ((1u << f.width) - 1))];
  return row == 0xffff ? nullptr : encodings_ + row;
}

void release_kernel(void *code, size_t size) {
  if (code) region().give(static_cast<uint8_t *>(code), size);
}

uint8_t *take_code(size_t size) { return region().take(size); }

}  // namespace sx
