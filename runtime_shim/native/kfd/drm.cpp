// What AMD's runtime calls of libdrm and libdrm_amdgpu, in whose place this library is: the card's properties, and the
// addresses of buffers that have none of their own (hipMemCreate).
#include "card.h"

#include "../hip/state.h"
#include "log.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define SX_DRM extern "C" __attribute__((visibility("default")))

namespace {

struct GpuInfo {  // amdgpu_gpu_info
  uint32_t asic_id, chip_rev, chip_external_rev, family_id;
  uint64_t ids_flags, max_engine_clk, max_memory_clk;  // kHz
  uint32_t shader_engines, arrays_per_engine, available_pipes, pipes, cache_entries, contexts, rb_pipes, rb_mask;
  uint32_t counter_frequency;  // kHz
  uint32_t backend_disable[4], mc_arb_ramcfg, gb_addr_cfg, tile_mode[32], macro_tile_mode[16], raster[4], raster1[4];
  uint32_t active_units, always_on, unit_bitmap[4][4], vram_type, vram_bits, ce_ram, vce_harvest, pci_revision;
};

struct Device {
  int fd;
};

struct BufferObject {
  uint64_t handle, size;
  void *host;
};

struct ImportResult {
  BufferObject *buffer;
  uint64_t size;
};

struct GemMmap {
  uint64_t handle_or_offset;
};

constexpr unsigned kHandleKms = 1, kHandleDmabuf = 2;
constexpr unsigned kVaMap = 1, kVaUnmap = 2;
constexpr uint64_t kVaWritable = 1u << 2;  // AMDGPU_VM_PAGE_WRITEABLE
constexpr unsigned long kGemMmap = 1;

int unknown(const char *what) {
  sx::log_line("SX0870: the emulated card's driver has no %s", what);
  return -EINVAL;
}

}  // namespace

using namespace sx::kfd;

SX_DRM int amdgpu_device_initialize(int fd, uint32_t *major, uint32_t *minor, Device **device) {
  if (node_of(fd) != Node::Render) return -EINVAL;
  int own = dup(fd);  // the caller closes its own
  if (own < 0) return -errno;
  set_node(own, Node::Render);
  *major = 3;
  *minor = 57;
  *device = new Device{own};
  return 0;
}

SX_DRM int amdgpu_device_deinitialize(Device *device) {
  close(device->fd);
  delete device;
  return 0;
}

SX_DRM int amdgpu_device_get_fd(const Device *device) { return device->fd; }

SX_DRM const char *amdgpu_get_marketing_name(const Device *) { return "Emulated card (sassxlate)"; }

SX_DRM int amdgpu_query_gpu_info(const Device *, GpuInfo *info) {
  memset(info, 0, sizeof *info);
  info->asic_id = 0x744c;
  info->chip_external_rev = 1;
  info->family_id = 145;  // AMDGPU_FAMILY_GC_11_0_0
  info->max_engine_clk = 2000000;
  info->max_memory_clk = 1249000;
  info->shader_engines = 6;
  info->arrays_per_engine = 2;
  info->counter_frequency = 100000;
  info->active_units = sx::config().multiprocessors * 2;
  info->vram_type = 9;  // GDDR6
  info->vram_bits = 384;
  return 0;
}

SX_DRM int amdgpu_bo_import(Device *, unsigned type, uint32_t shared, ImportResult *out) {
  if (type != kHandleDmabuf) return unknown("import of such a handle");
  uint64_t size = 0, handle = buffer_of_file(static_cast<int>(shared), size);
  if (!handle) return unknown("memory of another driver");
  out->buffer = new BufferObject{handle, size, nullptr};
  out->size = size;
  return 0;
}

SX_DRM int amdgpu_bo_export(const BufferObject *buffer, unsigned type, uint32_t *shared) {
  if (type == kHandleKms) {
    *shared = static_cast<uint32_t>(buffer->handle);
    return 0;
  }
  if (type != kHandleDmabuf) return unknown("export of such a handle");
  uint64_t size = 0;
  int fd = dup(memory_file(buffer->handle, size));
  *shared = static_cast<uint32_t>(fd);
  return fd < 0 ? -errno : 0;
}

SX_DRM int amdgpu_bo_free(BufferObject *buffer) {
  if (buffer->host) munmap(buffer->host, buffer->size);
  delete buffer;
  return 0;
}

SX_DRM int amdgpu_bo_cpu_map(BufferObject *buffer, void **host) {
  if (!buffer->host) {
    uint64_t size = 0;
    void *at = system_mmap(nullptr, buffer->size, PROT_READ | PROT_WRITE, MAP_SHARED, memory_file(buffer->handle, size), 0);
    if (at == MAP_FAILED) return -ENOMEM;
    buffer->host = at;
  }
  *host = buffer->host;
  return 0;
}

SX_DRM int amdgpu_bo_va_op(const BufferObject *buffer, uint64_t offset, uint64_t size, uint64_t va, uint64_t flags,
                           uint32_t operation) {
  if (operation == kVaMap) return -memory_show(buffer->handle, offset, size, va, !(flags & kVaWritable));
  if (operation == kVaUnmap) return -memory_hide(va, size);
  return unknown("such operation on addresses");
}

SX_DRM int amdgpu_bo_query_info(const BufferObject *, void *) { return unknown("description of shared memory"); }
SX_DRM int amdgpu_bo_set_metadata(const BufferObject *, const void *) { return unknown("description of shared memory"); }

SX_DRM int drmCommandWriteRead(int fd, unsigned long command, void *data, unsigned long size) {
  if (node_of(fd) != Node::Render || command != kGemMmap || size < sizeof(GemMmap)) return unknown("such command of its display side");
  auto *args = static_cast<GemMmap *>(data);
  args->handle_or_offset = (args->handle_or_offset & 0xffffffff) << 32;
  return 0;
}

SX_DRM int drmOpenRender(int minor) {
  if (minor != kRenderMinor) return -ENOENT;
  return open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
}

SX_DRM int drmClose(int fd) { return close(fd); }
