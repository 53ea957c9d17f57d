// What running a kernel needs to know about memory: each library that runs kernels has its own (memory.cpp; that of
// the emulated card is ../kfd/memory.cpp).
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
  bool ending = false;             // a stream will give it back

  bool holds(uint64_t address, uint64_t bytes) const {
    return address >= base && bytes <= size && address - base <= size - bytes;
  }
};

// All live allocations and registered host ranges.
std::vector<Allocation> memory_list();

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
  uint64_t shift = 0;     // what the host's address is further than the kernel's, modulo 2^64
  bool internal = false;  // it holds the arguments of launches
  bool guarded = false;   // mapped to be read only
  std::shared_ptr<Probes> probes;  // of registered memory

  bool holds(uint64_t address) const { return address - begin < end - begin; }
};
// That around `address`; false if there is none.
bool memory_range(uint64_t address, Range &out);

}  // namespace sx
