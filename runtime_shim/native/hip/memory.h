// Device memory: one reserved range of addresses, which are the host's own, and the host memory that
// the application registered.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sx {

enum class MemoryKind : uint8_t {
  Device,
  Host,      // hipHostMalloc
  Managed,
  Module,    // loaded segments of a code object
  Internal,  // kernel arguments
  Virtual,   // mapped and accessible (virtual_memory.cpp)
};

// Which parts of a registered range a launch has found readable or writable: what the application registered it can
// unmap or protect at any time.
class Probes {
 public:
  Probes(uint64_t base, uint64_t size, bool read_only);
  // Whether the launch with this number, which begins at 1, may access these bytes of the range.  Each part is asked
  // for once per launch: memory that goes while a launch runs is beyond what can be promised.
  bool allow(uint64_t address, uint64_t size, bool write, uint32_t launch);

 private:
  bool probe(uint64_t part, bool write) const;

  uint64_t base_, end_;
  bool read_only_;  // as it was registered: the device may not write, whatever the processor may
  std::vector<std::atomic<uint32_t>> seen_;  // the number of the last launch: of each part to read, then to write
};

struct Allocation {
  uint64_t base = 0;
  uint64_t size = 0;  // as asked for, bytes
  uint64_t span = 0;  // taken from the arena, with its gap
  MemoryKind kind = MemoryKind::Device;
  unsigned flags = 0;
  std::shared_ptr<Probes> probes;  // of a registered range alone
  bool read_only = false;          // registered for the device to read

  bool holds(uint64_t address, uint64_t bytes) const {
    return address >= base && bytes <= size && address - base <= size - bytes;
  }
};

// The kind of an address range, for a copy.
enum class Place {
  Pageable,    // host memory that the device does not know
  Registered,  // inside one registered host range
  ReadOnly,    // as Registered, for the device to read
  Guarded,     // as Arena, but a part of it is mapped for the device to read only
  Arena,       // inside one live allocation
  Invalid,     // in the arena, but not inside one live allocation
};

// Reserves the arena; false if not even the smallest fits into the address space.
bool memory_start();

// Takes `size` bytes (not 0) aligned to 512 or more from the arena: 0, or hipErrorOutOfMemory.
int memory_allocate(uint64_t size, MemoryKind kind, unsigned flags, uint64_t &address);
// Gives back the allocation that begins at `address`; false if there is none, or it is of a kind that is
// not in `kinds` (bits 1 << kind).
bool memory_release(uint64_t address, unsigned kinds);
// The live allocation that holds `address`.
bool memory_find(uint64_t address, Allocation &out);
Place memory_place(const void *address, uint64_t size);

// All live allocations and registered host ranges.
std::vector<Allocation> memory_list();

// Frees everything that the application allocated (hipDeviceReset).
void memory_reset();

// Registered host ranges: HIP error codes.
int memory_register(uint64_t address, uint64_t size, unsigned flags);
int memory_unregister(uint64_t address);
bool memory_find_registered(uint64_t address, Allocation &out);

uint64_t memory_free_bytes();

// For virtual memory management.  Addresses of the arena without memory: false where there are none.
bool memory_reserve(uint64_t size, uint64_t align, uint64_t &base);
void memory_unreserve(uint64_t base, uint64_t size);
// Makes the arena up to an address usable.
bool memory_commit(uint64_t end);
// Device memory that is taken elsewhere: false if there is not so much.
bool memory_count(uint64_t size);
void memory_uncount(uint64_t size);
// Allocations of the kind Virtual: removes those within a range; adds one.
void memory_hide_virtual(uint64_t base, uint64_t size);
void memory_show_virtual(uint64_t base, uint64_t size);
// A part of the arena that kernels may only read, within an allocation, or may not access at all; forgotten by
// `memory_hide_virtual`.
void memory_guard_virtual(uint64_t base, uint64_t size);

// The window that compiled code may access without a check: the arena up to its last live allocation's page of 2 MiB,
// or up to its first guarded part.  Empty in strict mode, where every access is checked.
struct Window {
  uint64_t base, size;
};
Window memory_window();

// In strict mode, a description of an address: " (24 bytes past the end of ...)"; "" if there is none.
std::string memory_describe(uint64_t address);

// Changes whenever a range comes or goes.
uint64_t memory_generation();
// A mapped range (allocation or registered memory), for the slow path of kernels.
struct Range {
  uint64_t begin = 0, end = 0;
  bool internal = false;           // it holds the arguments of launches
  bool guarded = false;            // mapped to be read only
  std::shared_ptr<Probes> probes;  // of registered memory
};
// The one around `address`; false if there is none.
bool memory_range(uint64_t address, Range &out);

}  // namespace sx
