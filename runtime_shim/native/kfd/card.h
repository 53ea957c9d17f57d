// The emulated card as the amdgpu kernel driver would show it: state that the parts share.
#pragma once
#include "kfd_abi.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sx::kfd {

constexpr uint32_t kGpuId = 0x5358;  // of the only card; also in the topology (runtime_shim/emulated_card.py)
constexpr int kRenderMinor = 128;

// What a descriptor of this process is to us.
enum class Node : uint8_t { None, Kfd, Render };
Node node_of(int fd);
void set_node(int fd, Node node);

// An ioctl on /dev/kfd: 0, or -1 with errno.
int request(unsigned long number, void *argument);

// mmap(2) of one of our descriptors.
void *map_node(Node node, void *at, size_t size, int protection, int flags, uint64_t offset);
// The system's own.
void *system_mmap(void *at, size_t size, int protection, int flags, int fd, int64_t offset);

// memory.cpp: buffers, and what of them the card has in its address space.  All return 0 or an error number.
int memory_alloc(AllocArgs &args);
int memory_free(uint64_t handle);
int memory_map(uint64_t handle);
int memory_unmap(uint64_t handle);
uint64_t memory_available();
// A buffer without an address of its own is a file, which others may map: its descriptor, or -1.
int memory_file(uint64_t handle, uint64_t &size);
uint64_t buffer_of_file(int fd, uint64_t &size);
// Puts [offset, offset + size) of such a buffer at an address of the card; takes it away.
int memory_show(uint64_t handle, uint64_t offset, uint64_t size, uint64_t va, bool read_only);
int memory_hide(uint64_t va, uint64_t size);
// Host memory that the card reaches at its own address.
int memory_svm(SvmArgs &args);
// All that the card may access.  `shift`: what the host's address is further, modulo 2^64; `file`: others map it, too.
struct CardRange {
  uint64_t begin = 0, end = 0, shift = 0;
  bool read_only = false, file = false, host_memory = false;
};
std::vector<CardRange> memory_ranges();
// The host's address of bytes of the card's; null if it has not all of them in one range.  `size` becomes what of them
// is in the first range.
void *memory_at(uint64_t va, uint64_t &size, bool write);

// events.cpp
int event_create(CreateEventArgs &args);
int event_destroy(uint32_t id);
int event_set(uint32_t id, bool set);
int event_wait(WaitArgs &args);
// A fault at an address: every event of that type is told.
void event_memory_fault(uint64_t address, bool write);
// The card has stopped and will not go on: the driver's word for it is a reset.
void event_hardware_exception();

// Nanoseconds, and ticks of the card's clock of 100 MHz.
uint64_t nanoseconds();
inline uint64_t ticks() { return nanoseconds() / 10; }

// queues.cpp
int queue_create(CreateQueueArgs &args);
int queue_destroy(uint32_t id);

struct Queue {
  uint32_t id = 0, type = 0;
  uint64_t ring = 0, size = 0;
  volatile uint64_t *read_pointer = nullptr, *write_pointer = nullptr;
  const ContextSaveHeader *save = nullptr;
  uint64_t read = 0;  // packets (AQL) or bytes (SDMA) so far
};

// What was done of what is in the queue; where it has to wait, the rest is for the next call.  Once it has failed, nothing
// more is run.
struct Progress {
  bool any = false, failed = false;
};
Progress run_aql(Queue &queue);
Progress run_sdma(Queue &queue);
// Tells of an exception of a queue (Exception), which then stands still.
void queue_exception(const Queue &queue, uint32_t code);

// Decrements a signal and tells who waits for it.
void signal_complete(uint64_t signal, uint64_t began);

// dispatch.cpp: runs the kernel of a packet, which is at `address`, to its end.  0, or an exception that the queue is to
// have; kWaveMemoryViolation has been told as an event.
uint32_t dispatch(const Packet &packet, uint64_t address);

}  // namespace sx::kfd
