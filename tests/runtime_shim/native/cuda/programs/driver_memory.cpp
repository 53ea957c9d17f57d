// Checks of memory, streams and events.
#include "driver.h"

#include <cstdint>

// Textures of memory that is larger than what their coordinates count.
void textures() {
  start();
  CUdeviceptr d;
  OK(cuMemAlloc(&d, 1 << 20));
  CUDA_TEXTURE_DESC how = {};
  CUtexObject object = 0;
  auto linear = [&](size_t bytes, unsigned channels) {
    CUDA_RESOURCE_DESC what = {};
    what.resType = CU_RESOURCE_TYPE_LINEAR;
    what.res.linear.devPtr = d;
    what.res.linear.format = CU_AD_FORMAT_FLOAT;
    what.res.linear.numChannels = channels;
    what.res.linear.sizeInBytes = bytes;
    return cuTexObjectCreate(&object, &what, &how, nullptr);
  };
  for (unsigned channels : {1u, 2u, 4u}) {
    const size_t most = (size_t{1} << 30) / channels;  // an H200's limit
    OK(linear(1 << 20, channels));
    OK(cuTexObjectDestroy(object));
    OK(linear(most * 4 * channels, channels));
    OK(cuTexObjectDestroy(object));
    for (size_t texels : {most + 1, size_t{1} << 31, size_t{1} << 32, (size_t{1} << 32) + 64})
      RESULT(linear(texels * 4 * channels, channels), CUDA_ERROR_INVALID_VALUE);
  }
  auto rows = [&](size_t width, size_t height, size_t pitch) {
    CUDA_RESOURCE_DESC what = {};
    what.resType = CU_RESOURCE_TYPE_PITCH2D;
    what.res.pitch2D.devPtr = d;
    what.res.pitch2D.format = CU_AD_FORMAT_FLOAT;
    what.res.pitch2D.numChannels = 1;
    what.res.pitch2D.width = width;
    what.res.pitch2D.height = height;
    what.res.pitch2D.pitchInBytes = pitch;
    return cuTexObjectCreate(&object, &what, &how, nullptr);
  };
  OK(rows(16, 16, 512));
  OK(cuTexObjectDestroy(object));
  RESULT(rows((size_t{1} << 32) + 16, 16, 512), CUDA_ERROR_INVALID_VALUE);
  RESULT(rows(16, (size_t{1} << 32) + 1, size_t{1} << 32), CUDA_ERROR_INVALID_VALUE);
  RESULT(rows(16, 65001, 512), CUDA_ERROR_INVALID_VALUE);
  RESULT(rows(16, 65000, 131072), CUDA_ERROR_NOT_SUPPORTED);  // 8 GiB: read wrongly if it were accepted
  OK(cuMemFree(d));
}

// What is supported but for some parameters: each is 801, twice.
void parameters() {
  start();
  CUdeviceptr d;
  OK(cuMemAlloc(&d, 4096));
  CUDA_RESOURCE_DESC what = {};
  what.resType = CU_RESOURCE_TYPE_PITCH2D;
  what.res.pitch2D = {d, CU_AD_FORMAT_UNSIGNED_INT8, 4, 16, 4, 512};
  CUtexObject object = 0;
  auto texture = [&](unsigned flags, CUfilter_mode filter, CUaddress_mode mode, bool view) {
    CUDA_TEXTURE_DESC how = {};
    how.flags = flags;
    how.filterMode = filter;
    how.addressMode[0] = how.addressMode[1] = mode;
    CUDA_RESOURCE_VIEW_DESC seen = {};
    return cuTexObjectCreate(&object, &what, &how, view ? &seen : nullptr);
  };
  CUmemPoolProps pool = {};
  pool.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  pool.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
  pool.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemoryPool memory;
  CUevent event;
  for (int i = 0; i < 2; ++i) {
    OK(texture(CU_TRSF_SRGB, CU_TR_FILTER_MODE_POINT, CU_TR_ADDRESS_MODE_CLAMP, false));
    OK(cuTexObjectDestroy(object));
    RESULT(texture(CU_TRSF_SRGB, CU_TR_FILTER_MODE_LINEAR, CU_TR_ADDRESS_MODE_CLAMP, false), CUDA_ERROR_NOT_SUPPORTED);
    RESULT(texture(CU_TRSF_SRGB, CU_TR_FILTER_MODE_POINT, CU_TR_ADDRESS_MODE_BORDER, false), CUDA_ERROR_NOT_SUPPORTED);
    RESULT(texture(0, CU_TR_FILTER_MODE_POINT, CU_TR_ADDRESS_MODE_CLAMP, true), CUDA_ERROR_NOT_SUPPORTED);
    RESULT(texture(CU_TRSF_SEAMLESS_CUBEMAP, CU_TR_FILTER_MODE_POINT, CU_TR_ADDRESS_MODE_CLAMP, false),
           CUDA_ERROR_NOT_SUPPORTED);
    RESULT(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING), CUDA_ERROR_NOT_SUPPORTED);
    RESULT(cuMemPoolCreate(&memory, &pool), CUDA_ERROR_NOT_SUPPORTED);
  }
  OK(cuMemFree(d));
}

// Boxes of arrays whose rows of 40 bytes are padded in memory: a copy has to lie inside.
void boxes() {
  start();
  constexpr size_t kRow = 40, kRows = 3, kPlanes = 2;
  CUDA_ARRAY3D_DESCRIPTOR wanted = {};
  wanted.Width = kRow / 4, wanted.Height = kRows, wanted.Depth = kPlanes;
  wanted.Format = CU_AD_FORMAT_FLOAT, wanted.NumChannels = 1;
  CUarray array, other;
  OK(cuArray3DCreate(&array, &wanted));
  OK(cuArray3DCreate(&other, &wanted));
  std::vector<char> host(4096, 7);
  struct Box {
    size_t x, y, z, width, height, depth;
  };
  constexpr size_t most = ~size_t{0};
  const Box good[] = {{0, 0, 0, 40, 3, 2}, {4, 0, 0, 36, 3, 2}, {36, 2, 1, 4, 1, 1}, {0, 0, 0, 4, 1, 1}};
  const Box bad[] = {{0, 0, 0, 44, 1, 1}, {0, 0, 0, 64, 3, 2}, {4, 0, 0, 40, 1, 1}, {40, 0, 0, 4, 1, 1},
                     {60, 0, 0, 4, 1, 1}, {0, 1, 0, 4, 3, 1}, {0, 3, 0, 4, 1, 1}, {0, 0, 1, 4, 1, 2},
                     {0, 0, 2, 4, 1, 1}, {most - 3, 0, 0, 8, 1, 1}, {0, most, 0, 4, 2, 1}, {0, 0, most, 4, 1, 2}};
  auto copy = [&](const Box &b, int way) {
    CUDA_MEMCPY3D p = {};
    bool from = way != 0, to = way != 1;  // host to array, array to host, array to array
    p.srcMemoryType = from ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST;
    p.dstMemoryType = to ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST;
    p.srcArray = array, p.dstArray = way == 2 ? other : array;
    p.srcHost = p.dstHost = host.data();
    p.srcPitch = p.dstPitch = 128, p.srcHeight = p.dstHeight = 4;
    if (from) p.srcXInBytes = b.x, p.srcY = b.y, p.srcZ = b.z;
    if (to && way != 2) p.dstXInBytes = b.x, p.dstY = b.y, p.dstZ = b.z;
    p.WidthInBytes = b.width, p.Height = b.height, p.Depth = b.depth;
    return cuMemcpy3D(&p);
  };
  for (int way = 0; way < 3; ++way) {
    for (const Box &box : good) OK(copy(box, way));
    for (const Box &box : bad) RESULT(copy(box, way), CUDA_ERROR_INVALID_VALUE);
  }
  OK(cuArrayDestroy(array));
  OK(cuArrayDestroy(other));
}

// As cuDeviceGetMemPool and the like; in host and managed memory there are none here.
static void pools_by_location(CUdevice device, CUmemoryPool standard) {
  const CUmemAllocationType pinned = CU_MEM_ALLOCATION_TYPE_PINNED;
  CUmemLocation at = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
  CUmemoryPool pool = nullptr, own = nullptr;
  OK(cuMemGetDefaultMemPool(&pool, &at, pinned));
  EXPECT(pool == standard);
  CUmemPoolProps properties = {};
  properties.allocType = pinned;
  properties.location = at;
  OK(cuMemPoolCreate(&own, &properties));
  OK(cuMemSetMemPool(&at, pinned, own));
  OK(cuMemGetMemPool(&pool, &at, pinned));
  EXPECT(pool == own);
  OK(cuDeviceGetMemPool(&pool, device));
  EXPECT(pool == own);
  OK(cuMemSetMemPool(&at, pinned, standard));
  OK(cuMemPoolDestroy(own));
  RESULT(cuMemGetMemPool(nullptr, &at, pinned), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemGetMemPool(&pool, nullptr, pinned), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemGetMemPool(&pool, &at, CU_MEM_ALLOCATION_TYPE_INVALID), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemGetMemPool(&pool, &at, CU_MEM_ALLOCATION_TYPE_MANAGED), CUDA_ERROR_NOT_SUPPORTED);
  at.type = CU_MEM_LOCATION_TYPE_HOST;
  RESULT(cuMemGetMemPool(&pool, &at, pinned), CUDA_ERROR_NOT_SUPPORTED);
  at.type = CU_MEM_LOCATION_TYPE_NONE;
  RESULT(cuMemSetMemPool(&at, pinned, standard), CUDA_ERROR_INVALID_VALUE);
}

// What a program that was built with a newer release's headers may call.
extern "C" CUresult cuGraphGetId(CUgraph, unsigned *);
void newer() {
  start();
  unsigned id = 0;
  void *function = nullptr;
  RESULT(cuGraphGetId(nullptr, &id), CUDA_ERROR_NOT_SUPPORTED);
  RESULT(cuGetProcAddress("cuGraphGetId", &function, 13000, 0, nullptr), CUDA_ERROR_NOT_FOUND);
  EXPECT(!function);
}

void memory() {
  start();
  CUdeviceptr d, pitched, async;
  size_t pitch = 0, size = 0, available = 0, total = 0;
  RESULT(cuMemAlloc(&d, 0), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemAlloc(&d, size_t(1) << 50), CUDA_ERROR_OUT_OF_MEMORY);
  OK(cuMemAlloc(&d, 1000));
  EXPECT(d % 256 == 0);
  OK(cuMemGetInfo(&available, &total));
  EXPECT(available <= total && total > 0);
  OK(cuMemAllocPitch(&pitched, &pitch, 100, 10, 4));
  EXPECT(pitch == 512);
  OK(cuMemsetD32(d, 0x01020304, 250));
  OK(cuMemsetD16(d, 0xabcd, 10));
  OK(cuMemsetD8(d + 999, 0x77, 1));
  std::vector<unsigned char> got(1000);
  OK(cuMemcpyDtoH(got.data(), d, 1000));
  EXPECT(got[0] == 0xcd && got[19] == 0xab && got[20] == 4 && got[23] == 1 && got[999] == 0x77);
  OK(cuMemsetD2D8(pitched, pitch, 0x11, 100, 10));
  std::vector<char> square(100 * 10);
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = pitched;
  copy.srcPitch = pitch;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = square.data();
  copy.dstPitch = 100;
  copy.WidthInBytes = 100;
  copy.Height = 10;
  OK(cuMemcpy2D(&copy));
  for (char c : square) EXPECT(c == 0x11);
  CUDA_MEMCPY3D block = {};
  std::vector<char> volume(4 * 5 * 6);
  for (size_t i = 0; i < volume.size(); ++i) volume[i] = char(i);
  block.srcMemoryType = CU_MEMORYTYPE_HOST;
  block.srcHost = volume.data();
  block.srcPitch = 4;
  block.srcHeight = 5;
  block.srcXInBytes = 1, block.srcY = 2, block.srcZ = 3;
  block.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  block.dstDevice = d;
  block.dstPitch = 2;
  block.dstHeight = 2;
  block.WidthInBytes = 2, block.Height = 2, block.Depth = 2;
  OK(cuMemcpy3D(&block));
  OK(cuMemcpyDtoH(got.data(), d, 8));
  EXPECT(got[0] == 3 * 20 + 2 * 4 + 1 && got[3] == 3 * 20 + 3 * 4 + 2 && got[7] == 4 * 20 + 3 * 4 + 2);
  CUdeviceptr base = 0;
  OK(cuMemGetAddressRange(&base, &size, d + 10));
  EXPECT(base == d && size == 1000);
  CUmemorytype type;
  int ordinal = -1, managed = -1;
  OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, d));
  EXPECT(type == CU_MEMORYTYPE_DEVICE);
  CUpointer_attribute ids[] = {CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_IS_MANAGED};
  void *values[] = {&ordinal, &managed};
  OK(cuPointerGetAttributes(2, ids, values, d));
  EXPECT(ordinal == 0 && managed == 0);
  int local = 0;
  RESULT(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(&local)),
         CUDA_ERROR_INVALID_VALUE);
  void *pinned;
  CUdeviceptr mapped;
  OK(cuMemHostAlloc(&pinned, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
  OK(cuMemHostGetDevicePointer(&mapped, pinned, 0));
  EXPECT(mapped == reinterpret_cast<CUdeviceptr>(pinned));
  OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, mapped));
  EXPECT(type == CU_MEMORYTYPE_HOST);
  OK(cuMemFreeHost(pinned));
  std::vector<char> heap(8192);
  OK(cuMemHostRegister(heap.data(), heap.size(), 0));
  RESULT(cuMemHostRegister(heap.data(), heap.size(), 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  OK(cuMemHostUnregister(heap.data()));
  RESULT(cuMemHostUnregister(heap.data()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  CUmemoryPool pool;
  OK(cuDeviceGetDefaultMemPool(&pool, device));
  pools_by_location(device, pool);
  cuuint64_t threshold = 1 << 20, read = 0;
  OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &read));
  EXPECT(read == threshold);
  OK(cuMemAllocFromPoolAsync(&async, 512, pool, nullptr));
  OK(cuMemFreeAsync(async, nullptr));
  OK(cuMemAllocAsync(&async, 512, nullptr));
  OK(cuMemFreeAsync(async, nullptr));
  CUdeviceptr both;
  OK(cuMemAllocManaged(&both, 64, CU_MEM_ATTACH_GLOBAL));
  *reinterpret_cast<int *>(both) = 5;
  OK(cuMemFree(both));
  OK(cuMemFree(d));
  RESULT(cuMemFree(d), CUDA_ERROR_INVALID_VALUE);
}

static void CUDA_CB note(CUstream, CUresult status, void *user) { *static_cast<int *>(user) = status == CUDA_SUCCESS ? 1 : -1; }
static void CUDA_CB host(void *user) { *static_cast<int *>(user) += 10; }

void streams() {
  start();
  CUstream s, t;
  CUevent before, after;
  OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  OK(cuStreamCreateWithPriority(&t, CU_STREAM_DEFAULT, 0));
  OK(cuEventCreate(&before, CU_EVENT_DEFAULT));
  OK(cuEventCreate(&after, CU_EVENT_DEFAULT));
  OK(cuEventRecord(before, s));
  saxpy_with(function("saxpy"), false, s);
  OK(cuEventRecord(after, s));
  OK(cuStreamWaitEvent(t, after, 0));
  OK(cuEventSynchronize(after));
  OK(cuEventQuery(after));
  float ms = -1;
  OK(cuEventElapsedTime(&ms, before, after));
  EXPECT(ms >= 0);
  int seen = 0;
  OK(cuStreamAddCallback(s, note, &seen, 0));
  OK(cuLaunchHostFunc(s, host, &seen));
  OK(cuStreamSynchronize(s));
  EXPECT(seen == 11);
  CUstreamCaptureStatus status;
  OK(cuStreamIsCapturing(s, &status));
  EXPECT(status == CU_STREAM_CAPTURE_STATUS_NONE);
  unsigned flags = 9;
  OK(cuStreamGetFlags(s, &flags));
  EXPECT(flags == CU_STREAM_NON_BLOCKING);
  unsigned long long first, second;
  OK(cuStreamGetId(s, &first));
  OK(cuStreamGetId(t, &second));
  EXPECT(first != second);
  CUresult query = cuStreamQuery(t);  // the event that it waits for is over, which it may not have seen yet
  while (query == CUDA_ERROR_NOT_READY) query = cuStreamQuery(t);
  EXPECT(query == CUDA_SUCCESS);
  OK(cuStreamDestroy(s));
  OK(cuStreamDestroy(t));
  OK(cuEventDestroy(before));
  OK(cuEventDestroy(after));
}
