// Allocations by graphs, and objects of the application that they keep alive.
#include "graph.h"
#include "handles.h"

#include <unordered_map>

namespace sx {

struct UserObject {
  CUhostFn destroy = nullptr;
  void *data = nullptr;
  unsigned long long count = 0;
};

namespace {

// Memory in use, by address: it outlives its graph until it is freed.
std::unordered_map<CUdeviceptr, std::shared_ptr<GraphMemory>> &in_use() {
  static auto *all = new std::unordered_map<CUdeviceptr, std::shared_ptr<GraphMemory>>;
  return *all;
}

// CU_GRAPH_MEM_ATTR_*: bytes in use and allocated, now and at most; by device.
struct Amounts {
  uint64_t used = 0, used_high = 0, reserved = 0, reserved_high = 0;
};
Amounts &amounts(const Device *device) {
  static auto *all = new std::unordered_map<const Device *, Amounts>;
  return (*all)[device];
}

CUresult memory_attribute(CUdevice ordinal, int id, void *value, bool set) {
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  Device *device = find_device(ordinal);
  if (!device) return CUDA_ERROR_INVALID_DEVICE;
  if (!value || id < 0 || id > 3) return CUDA_ERROR_INVALID_VALUE;
  Amounts &a = amounts(device);
  auto *out = static_cast<uint64_t *>(value);
  if (!set) return *out = id == 0 ? a.used : id == 1 ? a.used_high : id == 2 ? a.reserved : a.reserved_high, CUDA_SUCCESS;
  // Only the marks can be set, and only to 0, which means: to what is now.
  if ((id != 1 && id != 3) || *out) return CUDA_ERROR_INVALID_VALUE;
  (id == 1 ? a.used_high : a.reserved_high) = id == 1 ? a.used : a.reserved;
  return CUDA_SUCCESS;
}

UserObject *find_object(CUuserObject handle) { return Handles<UserObject>::all().find(handle); }

void release(UserObject *object, unsigned count) {
  object->count -= count;
  if (object->count) return;
  Handles<UserObject>::all().remove(object);
  object->destroy(object->data);
  delete object;
}

CUresult create_object(CUuserObject *out, void *data, CUhostFn destroy, unsigned count, unsigned flags) {
  // CU_USER_OBJECT_NO_DESTRUCTOR_SYNC, which must be given.
  if (!out || !destroy || !count || flags != 1) return CUDA_ERROR_INVALID_VALUE;
  auto *object = new UserObject{destroy, data, count};
  Handles<UserObject>::all().add(object);
  *out = reinterpret_cast<CUuserObject>(object);
  return CUDA_SUCCESS;
}

CUresult change_count(CUuserObject handle, unsigned count, bool more) {
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  UserObject *object = find_object(handle);
  if (!object || !count || (!more && count > object->count)) return CUDA_ERROR_INVALID_VALUE;
  if (more) object->count += count;
  else release(object, count);
  return CUDA_SUCCESS;
}

CUresult graph_retains(CUgraph handle, CUuserObject object_handle, unsigned count, unsigned flags) {
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  Graph *graph = find_graph(handle);
  UserObject *object = find_object(object_handle);
  if (!graph || !object || !count || flags > 1) return CUDA_ERROR_INVALID_VALUE;
  if (!flags) object->count += count;  // 1 (MOVE): the caller's own references are the graph's now
  graph->objects[object] += count;
  return CUDA_SUCCESS;
}

CUresult graph_releases(CUgraph handle, CUuserObject object_handle, unsigned count) {
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  Graph *graph = find_graph(handle);
  UserObject *object = find_object(object_handle);
  auto found = graph && object ? graph->objects.find(object) : decltype(graph->objects.begin()){};
  if (!graph || !object || !count || found == graph->objects.end() || found->second < count) return CUDA_ERROR_INVALID_VALUE;
  if (!(found->second -= count)) graph->objects.erase(found);
  release(object, count);
  return CUDA_SUCCESS;
}

}  // namespace

std::shared_ptr<GraphMemory> GraphMemory::make(Device &device, size_t size) {
  void *pointer = nullptr;
  if (hip().hipMalloc(&pointer, size) != hipSuccess) return nullptr;
  auto memory = std::make_shared<GraphMemory>();
  memory->device = &device;
  memory->generation = device.generation;
  memory->address = reinterpret_cast<CUdeviceptr>(pointer);
  memory->size = size;
  Amounts &a = amounts(&device);
  a.reserved += size;
  a.reserved_high = std::max(a.reserved_high, a.reserved);
  return memory;
}

GraphMemory::~GraphMemory() {
  amounts(device).reserved -= size;
  if (generation == device->generation) hip().hipFree(to_pointer(address));
}

bool use_graph_memory(const std::shared_ptr<GraphMemory> &memory) {
  if (!in_use().emplace(memory->address, memory).second) return false;
  Amounts &a = amounts(memory->device);
  a.used += memory->size;
  a.used_high = std::max(a.used_high, a.used);
  return true;
}

bool free_graph_memory(CUdeviceptr address) {
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  auto found = in_use().find(address);
  if (found == in_use().end()) return false;
  amounts(found->second->device).used -= found->second->size;
  in_use().erase(found);
  return true;
}

bool captured_allocate(CUdeviceptr *out, size_t size, CUstream stream, CUresult &result) {
  if (!is_capturing(stream)) return false;
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  GraphWork work(NodeType::Allocate);
  work.memory = GraphMemory::make(current_device(), size);
  if (!work.memory) return result = CUDA_ERROR_OUT_OF_MEMORY, true;
  *out = work.memory->address;
  result = capture(stream, std::move(work));
  return true;
}

bool captured_free(CUdeviceptr address, CUstream stream, CUresult &result) {
  if (!is_capturing(stream)) return false;
  GraphWork work(NodeType::Free);
  work.address = address;
  result = capture(stream, std::move(work));
  return true;
}

void retain_objects(const std::map<UserObject *, unsigned> &objects) {
  for (const auto &[object, count] : objects) object->count += count;
}

void release_objects(const std::map<UserObject *, unsigned> &objects) {
  for (const auto &[object, count] : objects) release(object, count);
}

}  // namespace sx

using namespace sx;

#define SX_GRAPH(name, params, call)                                              \
  SX_API name params {                                                            \
    return enter<Need::Init>(__func__, [&]() -> CUresult { return call; });       \
  }

SX_GRAPH(cuDeviceGetGraphMemAttribute, (CUdevice device, int id, void *value), memory_attribute(device, id, value, false))
SX_GRAPH(cuDeviceSetGraphMemAttribute, (CUdevice device, int id, void *value), memory_attribute(device, id, value, true))
// No memory is kept for later: memory that no graph owns or uses is freed at once.
SX_GRAPH(cuDeviceGraphMemTrim, (CUdevice device), find_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE)
SX_GRAPH(cuUserObjectCreate, (CUuserObject *out, void *data, CUhostFn destroy, unsigned count, unsigned flags),
         create_object(out, data, destroy, count, flags))
SX_GRAPH(cuUserObjectRetain, (CUuserObject object, unsigned count), change_count(object, count, true))
SX_GRAPH(cuUserObjectRelease, (CUuserObject object, unsigned count), change_count(object, count, false))
SX_GRAPH(cuGraphRetainUserObject, (CUgraph graph, CUuserObject object, unsigned count, unsigned flags),
         graph_retains(graph, object, count, flags))
SX_GRAPH(cuGraphReleaseUserObject, (CUgraph graph, CUuserObject object, unsigned count),
         graph_releases(graph, object, count))
