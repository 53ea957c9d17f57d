// The card's memory is this process's: a buffer is where AMD's runtime wants its address, for both.  What kernels may
// access is what has been mapped to the card, page by page as the driver has it; they find it here.
#include "card.h"

#include "../hip/device_memory.h"
#include "../hip/state.h"
#include "log.h"
#include "svm.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sx::kfd {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kCanonicalEnd = 1ull << 47;

struct Buffer {
  uint64_t va = 0, size = 0;
  uint32_t flags = 0;
  uint64_t host = 0;    // the processor's address
  int file = -1;        // of a buffer without an address
  ino_t inode = 0;
  bool mapped = false;  // to the card
};

struct View {  // of a part of the card's address space
  uint64_t size = 0, host = 0;
  bool own = false;        // the mapping at `host` is this view's
  bool read_only = false;  // for the card
  bool host_memory = false;
};

struct Memory {
  std::shared_mutex mutex;
  std::map<uint64_t, Buffer> buffers;  // by handle
  std::map<uint64_t, View> views;      // by the card's address
  SvmRanges svm;
  uint64_t next = 1, used = 0;
  std::atomic<uint64_t> generation{1};
};

Memory &memory() {
  static Memory *const one = new Memory;
  return *one;
}

bool overlaps(const std::map<uint64_t, View> &views, uint64_t va, uint64_t size) {
  auto next = views.lower_bound(va + size);
  if (next == views.begin()) return false;
  --next;
  return next->first + next->second.size > va;
}

int make_file(Buffer &buffer) {
  buffer.file = memfd_create("sassxlate-card", MFD_CLOEXEC);
  struct stat status;
  if (buffer.file < 0 || ftruncate(buffer.file, static_cast<off_t>(buffer.size)) != 0 || fstat(buffer.file, &status) != 0) {
    if (buffer.file >= 0) close(buffer.file);
    return ENOMEM;
  }
  buffer.inode = status.st_ino;
  return 0;
}

int make_pages(const Buffer &buffer) {
  void *at = system_mmap(reinterpret_cast<void *>(buffer.va), buffer.size, PROT_READ | PROT_WRITE,
                         MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? ENOMEM : 0;
}

}  // namespace

int memory_alloc(AllocArgs &args) {
  if (args.gpu_id != kGpuId || !args.size || args.size & (kPage - 1) || args.va & (kPage - 1)) return EINVAL;
  if (args.flags & kAqlQueueMemory) {
    log_line("SX0870: the emulated card has no memory that is mapped twice");
    return EINVAL;
  }
  Memory &m = memory();
  std::unique_lock<std::shared_mutex> guard(m.mutex);
  Buffer buffer;
  buffer.va = buffer.host = args.va;
  buffer.size = args.size;
  buffer.flags = args.flags;
  if (args.flags & kVram && (buffer.size > config().device_memory || m.used > config().device_memory - buffer.size)) return ENOMEM;
  int error = 0;
  if (args.flags & kUserptr) buffer.host = args.mmap_offset;
  else if (!args.va || args.va >= kCanonicalEnd) error = make_file(buffer);
  else error = make_pages(buffer);
  if (error) return error;
  if (args.flags & kVram) m.used += buffer.size;
  args.handle = m.next++;
  if (!(args.flags & kUserptr)) args.mmap_offset = args.handle << 32;
  m.buffers[args.handle] = buffer;
  return 0;
}

int memory_map(uint64_t handle) {
  Memory &m = memory();
  std::unique_lock<std::shared_mutex> guard(m.mutex);
  auto found = m.buffers.find(handle);
  if (found == m.buffers.end()) return EINVAL;
  Buffer &buffer = found->second;
  if (buffer.mapped || buffer.file >= 0) return 0;
  if (overlaps(m.views, buffer.va, buffer.size)) return EINVAL;
  buffer.mapped = true;
  m.views[buffer.va] = {buffer.size, buffer.host, false, false, !(buffer.flags & kVram)};
  m.generation.fetch_add(1);
  return 0;
}

int memory_unmap(uint64_t handle) {
  Memory &m = memory();
  std::unique_lock<std::shared_mutex> guard(m.mutex);
  auto found = m.buffers.find(handle);
  if (found == m.buffers.end()) return EINVAL;
  if (!found->second.mapped) return 0;
  found->second.mapped = false;
  m.views.erase(found->second.va);
  m.generation.fetch_add(1);
  return 0;
}

int memory_free(uint64_t handle) {
  if (int error = memory_unmap(handle)) return error;
  Memory &m = memory();
  std::unique_lock<std::shared_mutex> guard(m.mutex);
  auto found = m.buffers.find(handle);
  if (found == m.buffers.end()) return EINVAL;
  const Buffer &buffer = found->second;
  if (buffer.flags & kVram) m.used -= buffer.size;
  if (buffer.file >= 0) close(buffer.file);
  // The pages go; the runtime unmaps the addresses itself.
  else if (!(buffer.flags & kUserptr)) madvise(reinterpret_cast<void *>(buffer.va), buffer.size, MADV_DONTNEED);
  m.buffers.erase(found);
  return 0;
}

uint64_t memory_available() {
  Memory &m = memory();
  std::shared_lock<std::shared_mutex> guard(m.mutex);
  return config().device_memory - m.used;
}

int memory_file(uint64_t handle, uint64_t &size) {
  Memory &m = memory();
  std::shared_lock<std::shared_mutex> guard(m.mutex);
  auto found = m.buffers.find(handle);
  if (found == m.buffers.end()) return -1;
  size = found->second.size;
  return found->second.file;
}

uint64_t buffer_of_file(int fd, uint64_t &size) {
  struct stat status;
  if (fstat(fd, &status) != 0) return 0;
  Memory &m = memory();
  std::shared_lock<std::shared_mutex> guard(m.mutex);
  for (const auto &[handle, buffer] : m.buffers) {
    if (buffer.file < 0 || buffer.inode != status.st_ino) continue;
    size = buffer.size;
    return handle;
  }
  return 0;
}

int memory_show(uint64_t handle, uint64_t offset, uint64_t size, uint64_t va, bool read_only) {
  Memory &m = memory();
  std::unique_lock<std::shared_mutex> guard(m.mutex);
  auto found = m.buffers.find(handle);
  if (found == m.buffers.end() || found->second.file < 0 || offset > found->second.size || size > found->second.size - offset ||
      overlaps(m.views, va, size))
    return EINVAL;
  // At the same address for the processor, which the runtime has reserved: HIP's own copies may go there.
  void *at = system_mmap(reinterpret_cast<void *>(va), size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, found->second.file,
                         static_cast<int64_t>(offset));
  if (at == MAP_FAILED) return ENOMEM;
  m.views[va] = {size, va, true, read_only, !(found->second.flags & kVram)};
  m.generation.fetch_add(1);
  return 0;
}

int memory_hide(uint64_t va, uint64_t size) {
  Memory &m = memory();
  std::unique_lock<std::shared_mutex> guard(m.mutex);
  auto found = m.views.find(va);
  if (found == m.views.end() || !found->second.own || found->second.size != size) return EINVAL;
  system_mmap(reinterpret_cast<void *>(va), size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  m.views.erase(found);
  m.generation.fetch_add(1);
  return 0;
}

int memory_svm(SvmArgs &args) {
  Memory &m = memory();
  std::unique_lock<std::shared_mutex> guard(m.mutex);
  if (args.operation > 1 || args.start & (kPage - 1) || args.size & (kPage - 1) || !args.size) return EINVAL;
  if (args.operation == 1) {
    m.svm.get(args);
    return 0;
  }
  m.svm.set(args);
  m.generation.fetch_add(1);
  return 0;
}

void *memory_at(uint64_t va, uint64_t &size, bool write) {
  Range range;
  if (!memory_range(va, range)) return nullptr;
  size = std::min(size, range.end - va);
  static std::atomic<uint32_t> access{0x80000000};  // numbers that no launch has
  if (write && range.guarded) return nullptr;
  if (range.probes && !range.probes->allow(va, size, write, ++access)) return nullptr;
  return reinterpret_cast<void *>(va + range.shift);
}

std::vector<CardRange> memory_ranges() {
  Memory &m = memory();
  std::shared_lock<std::shared_mutex> guard(m.mutex);
  std::vector<CardRange> all;
  all.reserve(m.views.size());
  for (const auto &[va, view] : m.views) all.push_back({va, va + view.size, view.host - va, view.read_only, view.own, view.host_memory});
  m.svm.list(all);
  return all;
}

void *map_node(Node node, void *at, size_t size, int protection, int flags, uint64_t offset) {
  if (node == Node::Kfd)  // doorbells, which are polled past; the page of events; registers that flush caches
    return system_mmap(at, size, protection, (flags & MAP_FIXED) | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Memory &m = memory();
  std::shared_lock<std::shared_mutex> guard(m.mutex);
  auto found = m.buffers.find(offset >> 32);
  if (found != m.buffers.end() && found->second.file >= 0)
    return system_mmap(at, size, protection, flags, found->second.file, static_cast<int64_t>(offset & 0xffffffff));
  // A buffer's pages are where they are: any other place would have to be the same memory.
  if (found != m.buffers.end() && reinterpret_cast<uint64_t>(at) == found->second.va && size <= found->second.size) return at;
  errno = EINVAL;
  return MAP_FAILED;
}

}  // namespace sx::kfd

namespace sx {

using kfd::memory;

uint64_t memory_generation() { return memory().generation.load(std::memory_order_acquire); }

bool memory_range(uint64_t address, Range &out) {
  kfd::Memory &m = memory();
  std::shared_lock<std::shared_mutex> guard(m.mutex);
  auto next = m.views.upper_bound(address);
  if (next != m.views.begin()) {
    const auto &[va, view] = *std::prev(next);
    if (address - va < view.size) {
      out = Range();
      out.begin = va;
      out.end = va + view.size;
      out.shift = view.host - va;
      out.guarded = view.read_only;
      return true;
    }
  }
  return m.svm.find(address, out);
}

// Each access is checked: the buffers lie anywhere.
Window memory_window() { return {0, 0}; }

std::string memory_describe(uint64_t) { return ""; }

std::vector<Allocation> memory_list() {
  kfd::Memory &m = memory();
  std::shared_lock<std::shared_mutex> guard(m.mutex);
  std::vector<Allocation> all;
  for (const auto &[va, view] : m.views) {
    if (view.host != va) continue;
    Allocation one;
    one.base = va;
    one.size = one.span = view.size;
    all.push_back(one);
  }
  return all;
}

}  // namespace sx
