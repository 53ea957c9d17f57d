// The part of the amdgpu kernel driver's interface that AMD's runtime uses: /dev/kfd (Linux, include/uapi/linux/kfd_ioctl.h,
// version 1.15), libdrm_amdgpu's device information, HSA's queue packets and signals, and SDMA's packets of gfx11.
//
// Numbers and layouts only.  Older kernels' headers lack what newer ones have, so none of them is included.
#pragma once
#include <cstdint>

namespace sx::kfd {

constexpr uint32_t kMajor = 1, kMinor = 15;

// The number of an ioctl: bits 7:0; bits 15:8 are 'K'.
enum Request : uint8_t {
  kGetVersion = 0x01,
  kCreateQueue = 0x02,
  kDestroyQueue = 0x03,
  kSetMemoryPolicy = 0x04,
  kGetClockCounters = 0x05,
  kUpdateQueue = 0x07,
  kCreateEvent = 0x08,
  kDestroyEvent = 0x09,
  kSetEvent = 0x0a,
  kResetEvent = 0x0b,
  kWaitEvents = 0x0c,
  kSetScratchBackingVa = 0x11,
  kGetTileConfig = 0x12,
  kSetTrapHandler = 0x13,
  kGetProcessAperturesNew = 0x14,
  kAcquireVm = 0x15,
  kAllocMemoryOfGpu = 0x16,
  kFreeMemoryOfGpu = 0x17,
  kMapMemoryToGpu = 0x18,
  kUnmapMemoryFromGpu = 0x19,
  kSetCuMask = 0x1a,
  kGetDmabufInfo = 0x1c,
  kImportDmabuf = 0x1d,
  kAllocQueueGws = 0x1e,
  kSvm = 0x20,
  kSetXnackMode = 0x21,
  kAvailableMemory = 0x23,
  kExportDmabuf = 0x24,
  kRuntimeEnable = 0x25,
};
constexpr unsigned kRequestBase = 'K';

struct VersionArgs {
  uint32_t major, minor;
};

enum QueueType : uint32_t { kQueueCompute = 0, kQueueSdma = 1, kQueueAql = 2, kQueueSdmaXgmi = 3, kQueueSdmaByEngine = 4 };

struct CreateQueueArgs {
  uint64_t ring, write_pointer, read_pointer, doorbell_offset;
  uint32_t ring_size, gpu_id, type, percentage, priority, queue_id;
  uint64_t eop_buffer, eop_buffer_size, context_save;
  uint32_t context_save_size, control_stack_size;
};

// At the beginning of a queue's context save area, where the driver finds what to tell of exceptions.
struct ContextSaveHeader {
  uint32_t offsets[6];
  uint64_t error_reason;  // address of a word of 64 bits: a mask of exceptions
  uint32_t error_event;
  uint32_t reserved;
};

// Exceptions: bit (code - 1) of the mask.
enum Exception : uint32_t {
  kWaveAbort = 1,
  kWaveTrap = 2,
  kWaveIllegalInstruction = 4,
  kWaveMemoryViolation = 5,
  kWaveApertureViolation = 6,
  kPacketDimensions = 16,
  kPacketGroupSegment = 17,
  kPacketCode = 18,
  kPacketUnsupported = 20,
  kPacketWorkgroup = 21,
  kPacketVendor = 23,
};

struct ClockArgs {
  uint64_t gpu, cpu, system, system_frequency;
  uint32_t gpu_id, pad;
};

struct Aperture {
  uint64_t lds_base, lds_limit, scratch_base, scratch_limit, gpuvm_base, gpuvm_limit;
  uint32_t gpu_id, pad;
};
struct AperturesArgs {
  uint64_t apertures;
  uint32_t count, pad;
};

enum MemoryFlags : uint32_t {
  kVram = 1u << 0,
  kGtt = 1u << 1,
  kUserptr = 1u << 2,
  kDoorbell = 1u << 3,
  kMmioRemap = 1u << 4,
  kAqlQueueMemory = 1u << 27,
  kWritable = 1u << 31,
};
struct AllocArgs {
  uint64_t va, size, handle, mmap_offset;
  uint32_t gpu_id, flags;
};
struct HandleArgs {
  uint64_t handle;
};
struct MapArgs {
  uint64_t handle, devices;
  uint32_t count, succeeded;
};

enum EventType : uint32_t { kEventSignal = 0, kEventHardware = 3, kEventMemory = 8 };
struct CreateEventArgs {
  uint64_t page_offset;
  uint32_t trigger_data, type, auto_reset, node, event_id, slot;
};
struct EventArgs {
  uint32_t event_id, pad;
};
struct MemoryException {
  uint32_t not_present, read_only, no_execute, imprecise;
  uint64_t va;
  uint32_t gpu_id, error_type;
};
struct HardwareException {
  uint32_t reset_type, reset_cause, memory_lost, gpu_id;
};
struct EventData {
  union {
    MemoryException memory;
    HardwareException hardware;
    uint64_t last_age;
  };
  uint64_t extension;
  uint32_t event_id, pad;
};
struct WaitArgs {
  uint64_t events;
  uint32_t count, all, timeout, result;  // timeout in milliseconds; result 0: complete, 1: time out
};

struct TileArgs {
  uint64_t tiles, macro_tiles;
  uint32_t tile_count, macro_tile_count, gpu_id, address_config, banks, ranks;
};
struct AvailableArgs {
  uint64_t bytes;
  uint32_t gpu_id, pad;
};
struct GwsArgs {
  uint32_t queue_id, count, first, pad;
};
struct XnackArgs {
  int32_t enabled;
};
struct RuntimeEnableArgs {
  uint64_t r_debug;
  uint32_t mode, capabilities;
};
struct ExportArgs {
  uint64_t handle;
  uint32_t flags, fd;
};
struct DmabufInfoArgs {
  uint64_t size, metadata;
  uint32_t metadata_size, gpu_id, flags, fd;
};
struct ImportArgs {
  uint64_t va, handle;
  uint32_t gpu_id, fd;
};

enum SvmAttribute : uint32_t {
  kSvmPreferred,
  kSvmPrefetch,
  kSvmAccess,
  kSvmAccessInPlace,
  kSvmNoAccess,
  kSvmSetFlags,
  kSvmClearFlags,
  kSvmGranularity,
};
constexpr uint32_t kSvmReadOnly = 1u << 3;  // KFD_IOCTL_SVM_FLAG_GPU_RO
struct SvmArgs {
  uint64_t start, size;
  uint32_t operation, count;  // operation 0: set, 1: get
  struct Entry {
    uint32_t type, value;
  } entries[];
};

// What an offset of mmap(2) on /dev/kfd names.
constexpr uint64_t kMapDoorbell = 3ull << 62, kMapEvents = 2ull << 62;

// HSA: amd_signal_t and the packets of a queue (HSA runtime specification 1.2, 2.8 and 2.9; amd_hsa_signal.h).
struct Signal {
  int64_t kind, value;
  uint64_t mailbox;
  uint32_t event_id, reserved;
  uint64_t start, end;
};
struct Packet {
  uint16_t header, setup;
  uint16_t workgroup[3], reserved;
  uint32_t grid[3];
  uint32_t private_size, group_size;
  uint64_t kernel_object, kernarg, reserved2, signal;
};
struct BarrierPacket {
  uint16_t header, reserved0;
  uint32_t reserved1;
  uint64_t dependencies[5];
  uint64_t reserved2, signal;
};
struct VendorPacket {
  uint16_t header;
  uint8_t format, reserved0;
  uint32_t indirect[4];
  uint32_t remaining, reserved[8];
  uint64_t signal;
};
struct BarrierValuePacket {
  uint16_t header;
  uint8_t format, reserved0;
  uint32_t reserved1;
  uint64_t awaited;
  int64_t value, mask;
  uint32_t condition, reserved2;
  uint64_t reserved3, reserved4;
  uint64_t signal;
};
static_assert(sizeof(Packet) == 64 && sizeof(BarrierPacket) == 64 && sizeof(VendorPacket) == 64 &&
              sizeof(BarrierValuePacket) == 64);

enum PacketType : uint8_t { kVendorPacket = 0, kInvalidPacket = 1, kDispatchPacket = 2, kBarrierAnd = 3, kAgentDispatch = 4, kBarrierOr = 5 };
enum VendorFormat : uint8_t { kFormatPm4 = 1, kFormatBarrierValue = 2 };
// Commands of PM4 that only concern caches or nothing at all, which the emulated card has none of.
constexpr uint32_t kPm4Nop = 0x10, kPm4AcquireMem = 0x58;

// SDMA of gfx11: the operation in bits 7:0 of a packet's first word, the suboperation in bits 15:8.
enum Sdma : uint8_t {
  kSdmaNop = 0,
  kSdmaCopy = 1,  // 0: linear, 4: of a rectangle
  kSdmaFence = 5,
  kSdmaTrap = 6,
  kSdmaPoll = 8,
  kSdmaAtomic = 10,
  kSdmaFill = 11,
  kSdmaTimestamp = 13,
  kSdmaCaches = 17,
};
constexpr uint32_t kSdmaAdd64 = 47;

}  // namespace sx::kfd
