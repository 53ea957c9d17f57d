// Uses the driver API as its header declares it.  `driver CHECK IMAGE`: prints PASS, or what went wrong.
#include <cuda.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#define EXPECT(what)                                                \
  do {                                                              \
    if (!(what)) {                                                  \
      printf("FAIL line %d: %s\n", __LINE__, #what);                \
      exit(1);                                                      \
    }                                                               \
  } while (0)
#define RESULT(call, expected)                                                              \
  do {                                                                                      \
    CUresult result_ = (call);                                                              \
    if (result_ != (expected)) {                                                            \
      printf("FAIL line %d: %s = %d, not %d\n", __LINE__, #call, result_, int(expected));   \
      exit(1);                                                                              \
    }                                                                                       \
  } while (0)
#define OK(call) RESULT(call, CUDA_SUCCESS)

static std::vector<char> image;
static CUdevice device;
static CUcontext context;

static void start() {
  OK(cuInit(0));
  OK(cuDeviceGet(&device, 0));
  OK(cuDevicePrimaryCtxRetain(&context, device));
  OK(cuCtxSetCurrent(context));
}

static CUfunction function(const char *name) {
  static CUmodule module = nullptr;
  CUfunction f;
  if (!module) OK(cuModuleLoadData(&module, image.data()));
  OK(cuModuleGetFunction(&f, module, name));
  return f;
}

static void saxpy_with(CUfunction f, bool packed, CUstream stream) {
  const int n = 1000;
  float a = 2.5f;
  std::vector<float> x(n), y(n);
  for (int i = 0; i < n; ++i) x[i] = float(i), y[i] = float(3 * i + 1);
  CUdeviceptr dx, dy;
  OK(cuMemAlloc(&dx, n * 4));
  OK(cuMemAlloc(&dy, n * 4));
  OK(cuMemcpyHtoD(dx, x.data(), n * 4));
  OK(cuMemcpyHtoD(dy, y.data(), n * 4));
  struct { int n; float a; CUdeviceptr x, y; } buffer = {n, a, dx, dy};
  size_t size = sizeof buffer;
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  void *params[] = {&buffer.n, &a, &dx, &dy};
  OK(cuLaunchKernel(f, 8, 1, 1, 128, 1, 1, 0, stream, packed ? nullptr : params, packed ? extra : nullptr));
  OK(cuStreamSynchronize(stream));
  std::vector<float> got(n);
  OK(cuMemcpyDtoH(got.data(), dy, n * 4));
  for (int i = 0; i < n; ++i) EXPECT(got[i] == std::fma(a, x[i], y[i]));
  OK(cuMemFree(dx));
  OK(cuMemFree(dy));
}

static void launch() {
  start();
  saxpy_with(function("saxpy"), false, nullptr);
  saxpy_with(function("saxpy"), true, nullptr);
  saxpy_with(function("saxpy"), false, CU_STREAM_PER_THREAD);
  saxpy_with(function("saxpy"), false, CU_STREAM_LEGACY);
  CUfunction missing;
  CUmodule module;
  OK(cuModuleLoadData(&module, image.data()));
  RESULT(cuModuleGetFunction(&missing, module, "absent"), CUDA_ERROR_NOT_FOUND);
  OK(cuModuleUnload(module));
  RESULT(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
}

static void library() {
  OK(cuInit(0));
  CUlibrary lib;
  CUkernel k;
  CUfunction f;
  CUmodule m;
  unsigned count = 0;
  OK(cuLibraryLoadData(&lib, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));  // before any context
  OK(cuLibraryGetKernel(&k, lib, "saxpy"));
  start();
  saxpy_with(reinterpret_cast<CUfunction>(k), false, nullptr);
  OK(cuKernelGetFunction(&f, k));
  saxpy_with(f, false, nullptr);
  OK(cuLibraryGetModule(&m, lib));
  OK(cuLibraryGetKernelCount(&count, lib));
  EXPECT(count == 6);
  std::vector<CUkernel> all(count);
  OK(cuLibraryEnumerateKernels(all.data(), count, lib));
  const char *name = nullptr;
  OK(cuKernelGetName(&name, k));
  EXPECT(!strcmp(name, "saxpy"));
  size_t offset, size;
  OK(cuKernelGetParamInfo(k, 2, &offset, &size));
  EXPECT(offset == 8 && size == 8);
  RESULT(cuKernelGetParamInfo(k, 4, &offset, &size), CUDA_ERROR_INVALID_VALUE);
  int value = 0;
  OK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, k, device));
  EXPECT(value == 1024);
  OK(cuLibraryUnload(lib));
}

static void mixed() {
  start();
  struct Triple { double a; short b; char c; } triple = {2.25, -7, 'z'};
  char first = 'q';
  CUdeviceptr out;
  OK(cuMemAlloc(&out, 64));
  void *params[] = {&first, &triple, &out};
  OK(cuLaunchKernel(function("mixed"), 2, 3, 4, 5, 6, 7, 0, nullptr, params, nullptr));
  int64_t got[6];
  OK(cuMemcpyDtoH(got, out, sizeof got));
  EXPECT(got[0] == 'q' && got[1] == 9 && got[2] == -7 && got[3] == 'z');
  EXPECT(got[4] == 2003004 && got[5] == 5006007);
}

static void variables() {
  start();
  CUmodule module;
  CUfunction f;
  CUdeviceptr out, at;
  size_t size;
  OK(cuModuleLoadData(&module, image.data()));
  OK(cuModuleGetFunction(&f, module, "variables"));
  OK(cuMemAlloc(&out, 8));
  int which = 2, got[2];
  void *params[] = {&which, &out};
  OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  OK(cuMemcpyDtoH(got, out, 8));
  EXPECT(got[0] == 47 && got[1] == 7);
  OK(cuModuleGetGlobal(&at, &size, module, "counter"));
  EXPECT(size == 4);
  int value = 0;
  OK(cuMemcpyDtoH(&value, at, 4));
  EXPECT(value == 47);
  OK(cuModuleGetGlobal(&at, &size, module, "factors"));
  EXPECT(size == 16);
  int nine[4] = {9, 9, 9, 9};
  OK(cuMemcpyHtoD(at, nine, 16));
  OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  OK(cuMemcpyDtoH(got, out, 8));
  EXPECT(got[0] == 56 && got[1] == 9);
  CUdeviceptr pointer_at;
  OK(cuModuleGetGlobal(&pointer_at, &size, module, "counter_pointer"));
  CUdeviceptr pointee = 0, counter;
  OK(cuMemcpyDtoH(&pointee, pointer_at, 8));
  OK(cuModuleGetGlobal(&counter, nullptr, module, "counter"));
  EXPECT(pointee == counter);
  RESULT(cuModuleGetGlobal(&at, &size, module, "absent"), CUDA_ERROR_NOT_FOUND);
  // Another instance of the module has variables of its own.
  CUmodule second;
  OK(cuModuleLoadData(&second, image.data()));
  OK(cuModuleGetGlobal(&at, &size, second, "counter"));
  OK(cuMemcpyDtoH(&value, at, 4));
  EXPECT(value == 40 && at != counter);
}

static void shared() {
  start();
  CUfunction f = function("reversed");
  CUdeviceptr data;
  OK(cuMemAlloc(&data, 1024 * 4));
  std::vector<int> values(1024);
  for (int i = 0; i < 1024; ++i) values[i] = i;
  OK(cuMemcpyHtoD(data, values.data(), 4096));
  void *params[] = {&data};
  OK(cuLaunchKernel(f, 1, 1, 1, 1024, 1, 1, 4096, nullptr, params, nullptr));
  OK(cuMemcpyDtoH(values.data(), data, 4096));
  for (int i = 0; i < 1024; ++i) EXPECT(values[i] == 1023 - i + 100);
  RESULT(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 50 << 10, nullptr, params, nullptr), CUDA_ERROR_INVALID_VALUE);
  OK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60 << 10));
  OK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 60 << 10, nullptr, params, nullptr));
  OK(cuCtxSynchronize());
  int bytes = 0;
  OK(cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f));
  EXPECT(bytes == 4 || bytes == 16);
  RESULT(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 << 10), CUDA_ERROR_INVALID_VALUE);
}

static void limits() {
  start();
  CUfunction f = function("bounded");
  CUdeviceptr out;
  OK(cuMemAlloc(&out, 4096));
  void *params[] = {&out};
  const unsigned bad[][6] = {{0, 1, 1, 32, 1, 1}, {1, 65536, 1, 32, 1, 1}, {1, 1, 1, 2048, 1, 1}, {1, 1, 1, 0, 1, 1},
                             {1, 1, 1, 1, 1, 65}, {1, 1, 1, 65, 1, 1},     {1, 1, 1, 33, 32, 1}};
  for (const unsigned *b : bad)
    RESULT(cuLaunchKernel(f, b[0], b[1], b[2], b[3], b[4], b[5], 0, nullptr, params, nullptr), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuLaunchKernel(reinterpret_cast<CUfunction>(&out), 1, 1, 1, 32, 1, 1, 0, nullptr, params, nullptr),
         CUDA_ERROR_INVALID_HANDLE);
  OK(cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, nullptr, params, nullptr));  // not sticky
  OK(cuCtxSynchronize());
  int blocks = 0, grid = 0, block = 0;
  OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 64, 0));
  EXPECT(blocks == 32);
  OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 64, 32 << 10));
  EXPECT(blocks == 1);
  OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, nullptr, 0, 0));
  EXPECT(block == 64 && grid > 0);
  size_t stack = 0;
  OK(cuCtxGetLimit(&stack, CU_LIMIT_STACK_SIZE));
  EXPECT(stack == 1024);
  OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
  OK(cuCtxGetLimit(&stack, CU_LIMIT_STACK_SIZE));
  EXPECT(stack == 4096);
  RESULT(cuCtxGetLimit(&stack, static_cast<CUlimit>(99)), CUDA_ERROR_UNSUPPORTED_LIMIT);
}

static void extended() {
  start();
  CUfunction f = function("saxpy");
  CUlaunchAttribute attributes[2] = {};
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attributes[0].value.cooperative = 1;
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attributes[1].value.clusterDim.x = attributes[1].value.clusterDim.y = attributes[1].value.clusterDim.z = 1;
  CUlaunchConfig config = {};
  config.gridDimX = 2, config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 64, config.blockDimY = config.blockDimZ = 1;
  config.attrs = attributes;
  config.numAttrs = 2;
  int n = 128;
  float a = 1.0f;
  std::vector<float> ones(n, 1.0f), got(n);
  CUdeviceptr x, y;
  OK(cuMemAlloc(&x, n * 4));
  OK(cuMemAlloc(&y, n * 4));
  OK(cuMemcpyHtoD(x, ones.data(), n * 4));
  OK(cuMemcpyHtoD(y, ones.data(), n * 4));
  void *params[] = {&n, &a, &x, &y};
  OK(cuLaunchKernelEx(&config, f, params, nullptr));
  OK(cuLaunchCooperativeKernel(f, 2, 1, 1, 64, 1, 1, 0, nullptr, params));
  OK(cuMemcpyDtoH(got.data(), y, n * 4));
  for (float v : got) EXPECT(v == 3.0f);
  attributes[1].value.clusterDim.x = 2;
  RESULT(cuLaunchKernelEx(&config, f, params, nullptr), CUDA_ERROR_NOT_SUPPORTED);
}

static void memory() {
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
  EXPECT(base == d && size >= 1000);
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

static void streams() {
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
  OK(cuStreamQuery(t));
  OK(cuStreamDestroy(s));
  OK(cuStreamDestroy(t));
  OK(cuEventDestroy(before));
  OK(cuEventDestroy(after));
}

static void contexts() {
  CUcontext current = reinterpret_cast<CUcontext>(1), own, popped;
  CUdevice d = -1;
  CUdeviceptr p;
  int active = -1;
  unsigned flags = 9, version = 0;
  RESULT(cuCtxGetCurrent(&current), CUDA_ERROR_NOT_INITIALIZED);
  RESULT(cuMemAlloc(&p, 4), CUDA_ERROR_NOT_INITIALIZED);
  RESULT(cuInit(1), CUDA_ERROR_INVALID_VALUE);
  OK(cuInit(0));
  OK(cuCtxGetCurrent(&current));
  EXPECT(current == nullptr);
  RESULT(cuMemAlloc(&p, 4), CUDA_ERROR_INVALID_CONTEXT);
  RESULT(cuDeviceGet(&d, 99), CUDA_ERROR_INVALID_DEVICE);
  OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT(flags == 0 && active == 0);
  start();
  OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT(active == 1);
  OK(cuCtxGetDevice(&d));
  EXPECT(d == device);
  OK(cuCtxGetApiVersion(context, &version));
  OK(cuCtxCreate(&own, nullptr, 0, device));
  OK(cuCtxGetCurrent(&current));
  EXPECT(current == own && own != context);
  OK(cuCtxPopCurrent(&popped));
  EXPECT(popped == own);
  OK(cuCtxGetCurrent(&current));
  EXPECT(current == context);
  OK(cuCtxPushCurrent(own));
  OK(cuCtxDestroy(own));
  OK(cuCtxGetCurrent(&current));
  EXPECT(current == context);
  RESULT(cuCtxSetCurrent(own), CUDA_ERROR_INVALID_CONTEXT);
  std::thread([] {
    CUcontext c = reinterpret_cast<CUcontext>(1);
    CUdeviceptr q;
    OK(cuCtxGetCurrent(&c));
    EXPECT(c == nullptr);
    RESULT(cuMemAlloc(&q, 4), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxSetCurrent(context));
    OK(cuMemAlloc(&q, 4));
  }).join();
  OK(cuDevicePrimaryCtxRelease(device));
  RESULT(cuMemAlloc(&p, 4), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  RESULT(cuDevicePrimaryCtxRelease(device), CUDA_ERROR_INVALID_CONTEXT);
  start();
  OK(cuMemAlloc(&p, 4));
}

static void resolution() {
  start();
  void *f = reinterpret_cast<void *>(1);
  CUdriverProcAddressQueryResult status;
  auto find = [&](const char *name, int version, cuuint64_t flags) {
    return cuGetProcAddress(name, &f, version, flags, &status);
  };
  OK(find("", 0, 0));
  EXPECT(f == nullptr);
  OK(find("cuMemAlloc", 2000, 0));
  void *old = f;
  OK(find("cuMemAlloc", 3020, 0));
  EXPECT(f != old && f == reinterpret_cast<void *>(&cuMemAlloc));
  OK(find("cuCtxSynchronize", 12000, 0));
  old = f;
  OK(find("cuCtxSynchronize", 13000, 0));
  EXPECT(f != old);
  OK(reinterpret_cast<CUresult (*)(CUcontext)>(f)(context));
  OK(reinterpret_cast<CUresult (*)()>(old)());
  OK(find("cuLaunchKernel", 13000, CU_GET_PROC_ADDRESS_DEFAULT));
  old = f;
  OK(find("cuLaunchKernel", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM));
  EXPECT(f != old && status == CU_GET_PROC_ADDRESS_SUCCESS);
  RESULT(find("cuLibraryLoadData", 11000, 0), CUDA_ERROR_NOT_FOUND);
  EXPECT(f == nullptr && status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  RESULT(find("cuNoSuchThing", 13000, 0), CUDA_ERROR_NOT_FOUND);
  EXPECT(status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  RESULT(find("cuMemAlloc", 99000, 0), CUDA_ERROR_INVALID_VALUE);
  int version = 0;
  OK(cuDriverGetVersion(&version));
  EXPECT(version == 13000);
  const void *table;
  CUuuid id = {};
  EXPECT(cuGetExportTable(&table, &id) != CUDA_SUCCESS);
  const char *text;
  OK(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
  EXPECT(!strcmp(text, "CUDA_ERROR_ILLEGAL_ADDRESS"));
  OK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
  EXPECT(!strcmp(text, "out of memory"));
  RESULT(cuGetErrorName(static_cast<CUresult>(12345), &text), CUDA_ERROR_INVALID_VALUE);
  CUarray array;
  CUDA_ARRAY3D_DESCRIPTOR description = {};
  RESULT(cuArray3DCreate(&array, &description), CUDA_ERROR_NOT_SUPPORTED);  // exported, not implemented
}

static void facts() {
  start();
  char name[64] = "", bus[32] = "";
  CUuuid uuid;
  int value = 0, major = 0, minor = 0;
  size_t bytes = 0;
  OK(cuDeviceGetName(name, sizeof name, device));
  OK(cuDeviceGetUuid(&uuid, device));
  OK(cuDeviceTotalMem(&bytes, device));
  EXPECT(name[0] && bytes > (1u << 20));
  OK(cuDeviceGetPCIBusId(bus, sizeof bus, device));
  CUdevice again = -1;
  OK(cuDeviceGetByPCIBusId(&again, bus));
  EXPECT(again == device);
  OK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
  OK(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
  printf("capability %d.%d\n", major, minor);
  OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
  EXPECT(value == 32);
  OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device));
  EXPECT(value == 63 << 10);
  for (int id = 1; id < CU_DEVICE_ATTRIBUTE_MAX; ++id)
    OK(cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(id), device));
  RESULT(cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(9999), device), CUDA_ERROR_INVALID_VALUE);
}

static void fault() {
  start();
  CUdeviceptr nowhere = 0x10, p;
  void *params[] = {&nowhere};
  size_t a, b;
  OK(cuLaunchKernel(function("stray"), 1, 1, 1, 32, 1, 1, 0, nullptr, params, nullptr));
  RESULT(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  RESULT(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  RESULT(cuMemAlloc(&p, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
  RESULT(cuMemGetInfo(&a, &b), CUDA_ERROR_ILLEGAL_ADDRESS);
  int count = 0;
  OK(cuDeviceGetCount(&count));
  OK(cuDevicePrimaryCtxReset(device));
  RESULT(cuDevicePrimaryCtxRetain(&context, device), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void forked() {
  pid_t child = fork();  // before initialisation: the child is free
  if (!child) {
    start();
    _exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  EXPECT(status == 0);
  start();
  saxpy_with(function("saxpy"), false, nullptr);
  child = fork();
  if (!child) {
    CUdeviceptr p;
    int count;
    RESULT(cuMemAlloc(&p, 4), CUDA_ERROR_NOT_INITIALIZED);
    RESULT(cuInit(0), CUDA_ERROR_NOT_INITIALIZED);
    RESULT(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
    _exit(0);
  }
  waitpid(child, &status, 0);
  EXPECT(status == 0);
  saxpy_with(function("saxpy"), false, nullptr);
}

static void atexit_check() {
  CUdeviceptr p;
  if (cuMemAlloc(&p, 4) != CUDA_ERROR_DEINITIALIZED) _exit(9);
}

static void ending() {
  atexit(atexit_check);  // registered before the driver's own, so it runs after it
  start();
}

static void threads() {
  start();
  CUfunction f = function("saxpy");
  std::vector<std::thread> all;
  for (int i = 0; i < 8; ++i)
    all.emplace_back([f] {
      OK(cuCtxSetCurrent(context));
      for (int n = 0; n < 5; ++n) saxpy_with(f, n & 1, CU_STREAM_PER_THREAD);
    });
  for (std::thread &thread : all) thread.join();
}

static void bad_image() {
  start();
  CUmodule module;
  CUlibrary library;
  std::vector<char> rubbish(4096, 'x');
  rubbish.back() = 0;
  RESULT(cuModuleLoadData(&module, rubbish.data()), CUDA_ERROR_INVALID_IMAGE);
  RESULT(cuModuleLoadData(&module, nullptr), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuModuleLoad(&module, "/nowhere"), CUDA_ERROR_FILE_NOT_FOUND);
  for (size_t keep : {size_t(4), size_t(64), image.size() / 2}) {
    std::vector<char> cut(image.begin(), image.begin() + long(keep));
    cut.resize(image.size() + 64);
    CUkernel kernel;
    CUresult result = cuLibraryLoadData(&library, cut.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
    if (result == CUDA_SUCCESS) result = cuLibraryGetKernel(&kernel, library, "saxpy");
    EXPECT(result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_NOT_FOUND ||
           result == CUDA_ERROR_NO_BINARY_FOR_GPU);
  }
  // A header that promises more than there is.
  uint64_t header[3] = {0x00100001ba55ed50ull, uint64_t(1) << 60, 0};
  RESULT(cuModuleLoadData(&module, header), CUDA_ERROR_INVALID_IMAGE);
  saxpy_with(function("saxpy"), false, nullptr);
}

static void no_code() {
  start();
  CUlibrary library;
  CUkernel kernel;
  OK(cuLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  RESULT(cuLibraryGetKernel(&kernel, library, "saxpy"), CUDA_ERROR_NO_BINARY_FOR_GPU);
}

// A reset takes memory and code from the device; libraries and their kernels come back by themselves.
static void reset() {
  start();
  CUlibrary lib;
  CUkernel k;
  CUdeviceptr counter, out;
  int value = 7, which = 0;
  OK(cuLibraryLoadData(&lib, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  OK(cuLibraryGetKernel(&k, lib, "variables"));
  for (int round = 0; round < 3; ++round) {
    OK(cuMemAlloc(&out, 8));
    void *params[] = {&which, &out};
    OK(cuLaunchKernel(reinterpret_cast<CUfunction>(k), 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
    OK(cuCtxSynchronize());
    OK(cuLibraryGetGlobal(&counter, nullptr, lib, "counter"));
    OK(cuMemcpyDtoH(&value, counter, 4));
    EXPECT(value == 43);
    OK(cuDevicePrimaryCtxReset(device));
    start();
  }
  OK(cuLibraryUnload(lib));
}

// Calls whose way through HIP is recorded elsewhere; nothing is computed.
static void seam() {
  start();
  CUmodule module;
  CUfunction f, g;
  CUdeviceptr out;
  CUstream s;
  CUevent e;
  OK(cuModuleLoadData(&module, image.data()));
  OK(cuModuleGetFunction(&f, module, "mixed"));
  OK(cuModuleGetFunction(&g, module, "variables"));
  OK(cuMemAlloc(&out, 64));
  OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
  struct Triple { double a; short b; char c; } triple;
  memset(&triple, 0, sizeof triple);
  triple.a = 2.25, triple.b = -7, triple.c = 'z';
  char first = 'q';
  CUdeviceptr marker = 0x1122334455667788;
  void *params[] = {&first, &triple, &marker};
  OK(cuLaunchKernel(f, 2, 3, 4, 5, 6, 7, 0, nullptr, params, nullptr));
  OK(cuLaunchKernel(f, 8, 1, 1, 32, 1, 1, 128, s, params, nullptr));
  OK(cuLaunchKernel(f, 8, 1, 1, 32, 1, 1, 128, CU_STREAM_PER_THREAD, params, nullptr));
  OK(cuLaunchCooperativeKernel(f, 8, 1, 1, 32, 1, 1, 64, s, params));
  int which = 1;
  void *few[] = {&which, &out};
  OK(cuLaunchKernel(g, 1, 1, 1, 64, 1, 1, 0, CU_STREAM_LEGACY, few, nullptr));
  OK(cuMemsetD8Async(out, 7, 64, s));
  int64_t got[8];
  OK(cuMemcpyDtoHAsync(got, out, 64, s));
  OK(cuEventRecord(e, s));
  OK(cuStreamWaitEvent(nullptr, e, 0));
  OK(cuEventSynchronize(e));
  OK(cuStreamSynchronize(s));
  OK(cuCtxSynchronize());
  OK(cuModuleUnload(module));
  OK(cuStreamDestroy(s));
}

// A device that takes no gfx1100 code says so at the first use.
static void refused() {
  start();
  int value;
  CUfunction f = function("mixed");
  RESULT(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, f), CUDA_ERROR_NO_BINARY_FOR_GPU);
}

int main(int argc, char **argv) {
  struct Check {
    const char *name;
    void (*run)();
  } const checks[] = {
      {"launch", launch},       {"library", library},       {"mixed", mixed},     {"variables", variables},
      {"shared", shared},       {"limits", limits},         {"extended", extended}, {"memory", memory},
      {"streams", streams},     {"contexts", contexts},     {"resolution", resolution}, {"facts", facts},
      {"fault", fault},         {"forked", forked},         {"ending", ending},   {"threads", threads},
      {"bad_image", bad_image}, {"no_code", no_code},     {"seam", seam},         {"reset", reset},
      {"refused", refused},
  };
  if (argc < 3) return 2;
  std::ifstream file(argv[2], std::ios::binary);
  image.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  image.push_back(0);
  for (const Check &check : checks) {
    if (strcmp(check.name, argv[1])) continue;
    check.run();
    printf("PASS\n");
    return 0;
  }
  return 2;
}
