#include "memory.h"

#include "log.h"
#include "mappings.h"
#include "overruns.h"
#include "state.h"
#include "strict.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <sys/mman.h>
#include <unistd.h>

namespace sx {
namespace {

constexpr uint64_t kGranule = 512;             // cudaMalloc's spacing
constexpr uint64_t kPage = 4096;
constexpr uint64_t kLarge = 2u << 20;          // an NVIDIA GPU's page; larger allocations are aligned to it
constexpr uint64_t kOwnPages = 1u << 20;       // allocations of so much have pages of their own (an H100's)
constexpr uint64_t kCommitStep = 16u << 20;
constexpr uint64_t kReturnToSystem = 1u << 20; // smaller freed ranges keep their pages
constexpr uint64_t kFreedSmall = 64u << 20;
constexpr size_t kFreedCount = 100000;
constexpr uint64_t kFillMax = 256u << 20;      // strict mode: the part of an allocation that is filled

uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

// Lives as long as the process: worker threads may still run while static objects are destroyed.
struct Arena {
  std::shared_mutex mutex;
  uint64_t base = 0, size = 0;
  uint64_t committed = 0;  // bytes from base that are mapped readable and writable
  uint64_t used = 0;       // bytes of device memory handed out
  std::map<uint64_t, Allocation> live;
  std::map<uint64_t, uint64_t> free_at;                  // base -> size
  std::set<std::pair<uint64_t, uint64_t>> free_by_size;  // (size, base)
  std::map<uint64_t, Allocation> registered;
  std::map<uint64_t, uint64_t> guarded;  // base -> end
  std::deque<Allocation> freed;  // strict mode: not used again soon, so that late accesses are found
  uint64_t freed_span = 0, freed_small = 0;
  std::atomic<uint64_t> generation{1};
  uint64_t made = 0;  // allocations so far
};

Arena &arena() {
  static Arena *const instance = new Arena;
  return *instance;
}

void insert_free(Arena &a, uint64_t base, uint64_t size) {
  if (!size) return;
  a.free_at[base] = size;
  a.free_by_size.insert({size, base});
}

void erase_free(Arena &a, std::map<uint64_t, uint64_t>::iterator at) {
  a.free_by_size.erase({at->second, at->first});
  a.free_at.erase(at);
}

// Puts a range back, joined with its free neighbours.
void give_back(Arena &a, uint64_t base, uint64_t size) {
  auto next = a.free_at.lower_bound(base);
  if (next != a.free_at.end() && next->first == base + size) {
    size += next->second;
    erase_free(a, next++);
  }
  if (next != a.free_at.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == base) {
      base = before->first;
      size += before->second;
      erase_free(a, before);
    }
  }
  insert_free(a, base, size);
}

// Best fit; ties go to the lowest address, which keeps the window of kernels small.
bool take(Arena &a, uint64_t span, uint64_t align, uint64_t &address) {
  for (auto it = a.free_by_size.lower_bound({span, 0}); it != a.free_by_size.end(); ++it) {
    uint64_t base = it->second, size = it->first, start = round_up(base, align);
    if (start - base > size || size - (start - base) < span) continue;
    erase_free(a, a.free_at.find(base));
    insert_free(a, base, start - base);
    insert_free(a, start + span, base + size - start - span);
    address = start;
    return true;
  }
  return false;
}

bool commit(Arena &a, uint64_t end) {
  // One page more: an access that begins at the window's last byte may end past it.
  end = std::min(end + kPage, a.base + a.size);
  if (end <= a.base + a.committed) return true;
  uint64_t target = std::min(round_up(end - a.base, kCommitStep), a.size);
  void *start = reinterpret_cast<void *>(a.base + a.committed);
  if (mprotect(start, target - a.committed, PROT_READ | PROT_WRITE) != 0) return false;
  a.committed = target;
  return true;
}

// Strict mode gives freed ranges back in their order when there are too many of them; those that keep their
// pages count for more.
void give_back_oldest(Arena &a) {
  while (!a.freed.empty() && (a.freed_span > a.size / 4 || a.freed_small > kFreedSmall || a.freed.size() > kFreedCount)) {
    const Allocation &oldest = a.freed.front();
    a.freed_span -= oldest.span;
    if (oldest.span < kReturnToSystem) a.freed_small -= oldest.span;
    give_back(a, oldest.base, oldest.span);
    a.freed.pop_front();
  }
}

bool counted(MemoryKind kind) {
  return kind != MemoryKind::Host && kind != MemoryKind::Internal && kind != MemoryKind::Virtual;
}

const Allocation *find_in(const std::map<uint64_t, Allocation> &ranges, uint64_t address) {
  auto it = ranges.upper_bound(address);
  if (it == ranges.begin()) return nullptr;
  const Allocation &found = std::prev(it)->second;
  return address - found.base < found.size ? &found : nullptr;
}

void release(Arena &a, std::map<uint64_t, Allocation>::iterator it) {
  Allocation gone = it->second;
  if (counted(gone.kind)) overrun_check(gone.base, gone.size, gone.span);
  a.live.erase(it);
  if (counted(gone.kind)) a.used -= gone.span;
  if (gone.span >= kReturnToSystem) {
    uint64_t begin = round_up(gone.base, kPage), end = (gone.base + gone.span) & ~(kPage - 1);
    if (end > begin) madvise(reinterpret_cast<void *>(begin), end - begin, MADV_DONTNEED);
  }
  if (config().strict) {
    a.freed.push_back(gone);
    a.freed_span += gone.span;
    if (gone.span < kReturnToSystem) a.freed_small += gone.span;
    give_back_oldest(a);
  } else {
    give_back(a, gone.base, gone.span);
  }
  a.generation.fetch_add(1);
}

}  // namespace

// What was never freed.
static void check_overruns() {
  if (forked()) return;  // the memory is the parent's
  for (const Allocation &one : memory_list())
    if (counted(one.kind) && !one.probes) overrun_check(one.base, one.size, one.span);
}

bool memory_start() {
  Arena &a = arena();
  // A limit on address space (ulimit -v) may leave room for less only.
  for (uint64_t size = config().arena_size; size >= (64u << 20); size /= 2) {
    // Far from where the system puts libraries: a library that is opened later needs free addresses near it.
    // The address is a hint; if it is not available, any other will do.
    void *wish = reinterpret_cast<void *>(uintptr_t{0x200000000000});
    void *at = mmap(wish, size + kLarge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) continue;
    a.base = round_up(reinterpret_cast<uint64_t>(at), kLarge);
    a.size = size & ~(kLarge - 1);
    insert_free(a, a.base, a.size);
    atexit(check_overruns);
    return true;
  }
  log_line("SX0650: no address space for device memory; raise the limit (ulimit -v)");
  return false;
}

int memory_allocate(uint64_t size, MemoryKind kind, unsigned flags, uint64_t &address) {
  Arena &a = arena();
  if (size > a.size) return hipErrorOutOfMemory;
  uint64_t span = round_up(size, kGranule);
  uint64_t align = size >= kLarge ? kLarge : kind == MemoryKind::Module ? kPage : kGranule;
  // A gap keeps a near overrun out of a large neighbour; strict mode needs one after every allocation.
  if (size >= (64u << 10) || config().strict) span = round_up(span + kPage, kGranule);
  if (kind == MemoryKind::Device && size >= kOwnPages && !config().strict) {
    // As on an H100: no other allocation is in its last page, so what writes past its end there harms none.
    align = kLarge;
    span = std::max(span, round_up(size, kLarge));
  }
  std::unique_lock<std::shared_mutex> guard(a.mutex);
  if (counted(kind) && (span > config().device_memory || a.used > config().device_memory - span))
    return hipErrorOutOfMemory;
  if (!take(a, span, align, address)) return hipErrorOutOfMemory;
  if (!commit(a, round_up(address + span, kLarge))) {
    give_back(a, address, span);
    return hipErrorOutOfMemory;
  }
  if (size >= 2 * kLarge && kind != MemoryKind::Internal)
    madvise(reinterpret_cast<void *>(address), size & ~(kLarge - 1), MADV_HUGEPAGE);
  if (counted(kind)) a.used += span;
  if (counted(kind)) overrun_watch(address, size, span);
  Allocation &made = a.live[address];
  made.base = address;
  made.size = size;
  made.span = span;
  made.kind = kind;
  made.flags = flags;
  a.generation.fetch_add(1);
  uint64_t number = ++a.made;
  guard.unlock();
  bool rubbish = kind == MemoryKind::Device || kind == MemoryKind::Host || kind == MemoryKind::Managed;
  if (config().strict && rubbish)
    strict_fill(reinterpret_cast<void *>(address), std::min(size, kFillMax), number);
  return 0;
}

bool memory_release(uint64_t address, unsigned kinds) {
  Arena &a = arena();
  std::unique_lock<std::shared_mutex> guard(a.mutex);
  auto it = a.live.find(address);
  if (it == a.live.end() || !(kinds >> static_cast<unsigned>(it->second.kind) & 1)) return false;
  release(a, it);
  return true;
}

bool memory_end_later(uint64_t address, unsigned kinds) {
  Arena &a = arena();
  std::unique_lock<std::shared_mutex> guard(a.mutex);
  auto it = a.live.find(address);
  if (it == a.live.end() || !(kinds >> static_cast<unsigned>(it->second.kind) & 1) || it->second.ending) return false;
  it->second.ending = true;
  return true;
}

std::vector<Allocation> memory_list() {
  Arena &a = arena();
  std::shared_lock<std::shared_mutex> guard(a.mutex);
  std::vector<Allocation> all;
  for (const auto *ranges : {&a.live, &a.registered})
    for (const auto &range : *ranges) all.push_back(range.second);
  return all;
}

void memory_reset() {
  Arena &a = arena();
  std::unique_lock<std::shared_mutex> guard(a.mutex);
  for (auto it = a.live.begin(); it != a.live.end();) {
    auto current = it++;
    // A module's goes with the module, which a launch of another thread may still hold.
    // Virtual memory stays mapped until it is unmapped.
    if (current->second.kind != MemoryKind::Internal && current->second.kind != MemoryKind::Module &&
        current->second.kind != MemoryKind::Virtual)
      release(a, current);
  }
  a.registered.clear();
}

bool memory_find(uint64_t address, Allocation &out) {
  Arena &a = arena();
  std::shared_lock<std::shared_mutex> guard(a.mutex);
  const Allocation *found = find_in(a.live, address);
  if (found) out = *found;
  return found;
}

bool memory_find_registered(uint64_t address, Allocation &out) {
  Arena &a = arena();
  std::shared_lock<std::shared_mutex> guard(a.mutex);
  const Allocation *found = find_in(a.registered, address);
  if (found) out = *found;
  return found;
}

Place memory_place(const void *pointer, uint64_t size) {
  Arena &a = arena();
  uint64_t address = reinterpret_cast<uint64_t>(pointer);
  std::shared_lock<std::shared_mutex> guard(a.mutex);
  if (address - a.base < a.size) {
    const Allocation *found = find_in(a.live, address);
    if (!found || found->kind == MemoryKind::Internal || !found->holds(address, size)) return Place::Invalid;
    auto next = a.guarded.lower_bound(address + size);
    return next != a.guarded.begin() && std::prev(next)->second > address ? Place::Guarded : Place::Arena;
  }
  const Allocation *found = find_in(a.registered, address);
  if (!found || !found->holds(address, size)) return Place::Pageable;
  return found->read_only ? Place::ReadOnly : Place::Registered;
}

int memory_register(uint64_t address, uint64_t size, unsigned flags) {
  Arena &a = arena();
  constexpr unsigned known = hipHostRegisterPortable | hipHostRegisterMapped | hipHostRegisterReadOnly;
  // Measured on an H200 (tests/runtime_shim/native/hip/registration.toml): also that more than there is memory is 2, the system's own
  // addresses are 801, and what the driver allocated is 1.
  if (!address || !size || address + size < address || flags & ~known) return hipErrorInvalidValue;
  if (address >> 63) return hipErrorNotSupported;
  if (size / kPage > static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES))) return hipErrorOutOfMemory;
  std::unique_lock<std::shared_mutex> guard(a.mutex);
  if (address < a.base + a.size && address + size > a.base) return hipErrorInvalidValue;
  auto next = a.registered.lower_bound(address + size);
  if (next != a.registered.begin()) {
    const Allocation &before = std::prev(next)->second;
    if (before.base + before.size > address) return hipErrorHostMemoryAlreadyRegistered;
  }
  // A driver pins the pages: for writing, or for reading where the application says that it wants no more.
  bool read_only = flags & hipHostRegisterReadOnly;
  if (!mapped_for(address, size, read_only, !read_only)) return hipErrorInvalidValue;
  Allocation &made = a.registered[address];
  made.probes = std::make_shared<Probes>(address, size, read_only);
  made.read_only = read_only;
  made.base = address;
  made.size = made.span = size;
  made.kind = MemoryKind::Host;
  made.flags = flags & (hipHostRegisterPortable | hipHostRegisterMapped);
  a.generation.fetch_add(1);
  return 0;
}

int memory_unregister(uint64_t address) {
  Arena &a = arena();
  std::unique_lock<std::shared_mutex> guard(a.mutex);
  if (!a.registered.erase(address)) return hipErrorHostMemoryNotRegistered;
  a.generation.fetch_add(1);
  return 0;
}

uint64_t memory_free_bytes() {
  Arena &a = arena();
  std::shared_lock<std::shared_mutex> guard(a.mutex);
  return config().device_memory - a.used;
}

bool memory_reserve(uint64_t size, uint64_t align, uint64_t &base) {
  Arena &a = arena();
  std::unique_lock<std::shared_mutex> guard(a.mutex);
  return size <= a.size && take(a, size, align, base);
}

void memory_unreserve(uint64_t base, uint64_t size) {
  Arena &a = arena();
  std::unique_lock<std::shared_mutex> guard(a.mutex);
  give_back(a, base, size);
}

bool memory_commit(uint64_t end) {
  Arena &a = arena();
  std::unique_lock<std::shared_mutex> guard(a.mutex);
  return commit(a, end);
}

bool memory_count(uint64_t size) {
  Arena &a = arena();
  std::unique_lock<std::shared_mutex> guard(a.mutex);
  if (size > config().device_memory || a.used > config().device_memory - size) return false;
  a.used += size;
  return true;
}

void memory_uncount(uint64_t size) {
  Arena &a = arena();
  std::unique_lock<std::shared_mutex> guard(a.mutex);
  a.used -= size;
}

void memory_hide_virtual(uint64_t base, uint64_t size) {
  Arena &a = arena();
  std::unique_lock<std::shared_mutex> guard(a.mutex);
  for (auto it = a.live.lower_bound(base); it != a.live.end() && it->first < base + size;)
    it = it->second.kind == MemoryKind::Virtual ? a.live.erase(it) : std::next(it);
  a.guarded.erase(a.guarded.lower_bound(base), a.guarded.lower_bound(base + size));
  a.generation.fetch_add(1);
}

void memory_guard_virtual(uint64_t base, uint64_t size) {
  Arena &a = arena();
  std::unique_lock<std::shared_mutex> guard(a.mutex);
  a.guarded[base] = base + size;
  a.generation.fetch_add(1);
}

void memory_show_virtual(uint64_t base, uint64_t size) {
  Arena &a = arena();
  std::unique_lock<std::shared_mutex> guard(a.mutex);
  Allocation &made = a.live[base];
  made.base = base;
  made.size = made.span = size;
  made.kind = MemoryKind::Virtual;
  a.generation.fetch_add(1);
}

Window memory_window() {
  if (config().strict) return {0, 0};
  Arena &a = arena();
  std::shared_lock<std::shared_mutex> guard(a.mutex);
  if (a.live.empty()) return {a.base, 0};
  // To the end of the page, as on an NVIDIA GPU, which maps whole pages: measured on an H200.
  const Allocation &last = a.live.rbegin()->second;
  uint64_t size = std::min(round_up(last.base + last.size, kLarge) - a.base, a.size);
  if (!a.guarded.empty()) size = std::min(size, a.guarded.begin()->first - a.base);
  return {a.base, size};
}

uint64_t memory_generation() { return arena().generation.load(std::memory_order_acquire); }

bool memory_range(uint64_t address, Range &out) {
  Arena &a = arena();
  std::shared_lock<std::shared_mutex> guard(a.mutex);
  const Allocation *found = find_in(a.live, address);
  if (!found) found = find_in(a.registered, address);
  if (!found) return false;
  out = Range();
  out.begin = found->base;
  out.end = found->base + found->size;
  out.internal = found->kind == MemoryKind::Internal;
  out.probes = found->probes;
  auto next = a.guarded.upper_bound(address);
  if (next != a.guarded.end()) out.end = std::min(out.end, next->first);
  if (next == a.guarded.begin()) return true;
  auto before = std::prev(next);
  out.guarded = address < before->second;
  if (out.guarded) {
    out.begin = before->first;
    out.end = std::min(out.end, before->second);
  } else {
    out.begin = std::max(out.begin, before->second);
  }
  return true;
}

std::string memory_describe(uint64_t address) {
  if (!config().strict) return "";
  Arena &a = arena();
  std::shared_lock<std::shared_mutex> guard(a.mutex);
  if (address - a.base >= a.size) return "";
  auto say = [](const char *where, uint64_t distance, const Allocation &what) {
    char text[160];
    snprintf(text, sizeof text, " (%llu bytes %s %llu bytes at 0x%llx)", static_cast<unsigned long long>(distance),
             where, static_cast<unsigned long long>(what.size), static_cast<unsigned long long>(what.base));
    return std::string(text);
  };
  for (auto it = a.freed.rbegin(); it != a.freed.rend(); ++it)
    if (address - it->base < it->size) return say("into the freed", address - it->base, *it);
  auto next = a.live.upper_bound(address);
  const Allocation *before = next == a.live.begin() ? nullptr : &std::prev(next)->second;
  const Allocation *after = next == a.live.end() ? nullptr : &next->second;
  if (before && address - before->base < before->size) return say("into the", address - before->base, *before);
  if (before && (!after || address - before->base - before->size <= after->base - address))
    return say("past the end of the", address - before->base - before->size, *before);
  return after ? say("before the", after->base - address, *after) : "";
}

}  // namespace sx
