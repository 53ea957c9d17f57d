// Device memory: one reserved range of addresses, which are the host's own, and the host memory that
// the application registered.
#pragma once
#include "device_memory.h"

#include <cstddef>
#include <cstdint>

namespace sx {

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
// Marks it as one that a stream will give back; false as above, or if it is one already: its address may be another
// allocation's when the second release is done.
bool memory_end_later(uint64_t address, unsigned kinds);
// The live allocation that holds `address`.
bool memory_find(uint64_t address, Allocation &out);
Place memory_place(const void *address, uint64_t size);

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

}  // namespace sx
