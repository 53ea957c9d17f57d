// Checks of modules, libraries and launches.
#include "driver.h"

#include <cstdint>
#include <cstring>

void launch() {
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

void library() {
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
  EXPECT(count == 7);
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

void mixed() {
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

void variables() {
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

void shared() {
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
  OK(cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, f));
  EXPECT(bytes == 16);  // the module's __constant__ variables
  RESULT(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 228 << 10), CUDA_ERROR_INVALID_VALUE);
}

void limits() {
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
  int all = 0;
  OK(cuDeviceGetAttribute(&all, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 0));
  EXPECT(blocks == all / (33 << 10));
  // The kernel's own bound of 64 threads is not asked (measured), a block's is.
  OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 256, 0));
  EXPECT(blocks == 8);
  OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 1025, 0));
  EXPECT(blocks == 0);
  OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, nullptr, 0, 0));
  EXPECT(block == 64 && grid > 0);
  CUlaunchAttribute cluster[1] = {};
  cluster[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  cluster[0].value.clusterDim = {2, 1, 1};
  CUlaunchConfig config = {};
  config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.blockDimX = 64;
  config.attrs = cluster;
  int clusters = 0, size = 0;
  OK(cuOccupancyMaxActiveClusters(&clusters, f, &config));
  EXPECT(clusters > 0);
  OK(cuOccupancyMaxPotentialClusterSize(&size, f, &config));
  EXPECT(size == 1);
  config.numAttrs = 1;
  OK(cuOccupancyMaxActiveClusters(&clusters, f, &config));
  EXPECT(clusters == 0);
  CUgreenCtx green = reinterpret_cast<CUgreenCtx>(&clusters);
  OK(cuStreamGetGreenCtx(nullptr, &green));
  EXPECT(green == nullptr);
  size_t stack = 0;
  OK(cuCtxGetLimit(&stack, CU_LIMIT_STACK_SIZE));
  EXPECT(stack == 1024);
  OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
  OK(cuCtxGetLimit(&stack, CU_LIMIT_STACK_SIZE));
  EXPECT(stack == 4096);
  // As on an H200, whose CU_LIMIT_SHMEM_SIZE is its greatest block's shared memory.
  size_t shared = 0, graphics = 1;
  int largest = 0;
  OK(cuCtxGetLimit(&shared, CU_LIMIT_SHMEM_SIZE));
  OK(cuDeviceGetAttribute(&largest, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device));
  EXPECT(largest > 0 && shared == static_cast<size_t>(largest));
  OK(cuCtxGetLimit(&graphics, CU_LIMIT_CIG_ENABLED));
  EXPECT(graphics == 0);
  RESULT(cuCtxGetLimit(&stack, CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED), CUDA_ERROR_UNSUPPORTED_LIMIT);
  RESULT(cuCtxSetLimit(CU_LIMIT_SHMEM_SIZE, 1024), CUDA_ERROR_NOT_PERMITTED);
  RESULT(cuCtxSetLimit(CU_LIMIT_CIG_ENABLED, 0), CUDA_ERROR_NOT_PERMITTED);
  RESULT(cuCtxGetLimit(&stack, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH), CUDA_ERROR_UNSUPPORTED_LIMIT);
  OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1025));
  RESULT(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 523264), CUDA_ERROR_INVALID_VALUE);
  OK(cuCtxGetLimit(&stack, CU_LIMIT_STACK_SIZE));
  EXPECT(stack == 1040);
  OK(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 1000000));
  OK(cuCtxGetLimit(&stack, CU_LIMIT_PRINTF_FIFO_SIZE));
  EXPECT(stack == 1000192);
  OK(cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 1048576));
  OK(cuCtxGetLimit(&stack, CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT));
  EXPECT(stack == 599186);
  RESULT(cuCtxSetLimit(CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 129), CUDA_ERROR_INVALID_VALUE);
  // Numbers that are none: 1, not 215 (fixtures/silicon/sm_90/driver/attributes.txt).
  for (int none : {-1, 10, 15, 99}) {
    RESULT(cuCtxGetLimit(&stack, static_cast<CUlimit>(none)), CUDA_ERROR_INVALID_VALUE);
    RESULT(cuCtxSetLimit(static_cast<CUlimit>(none), 0), CUDA_ERROR_INVALID_VALUE);
  }
  RESULT(cuCtxSetLimit(CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED, 0), CUDA_ERROR_UNSUPPORTED_LIMIT);
  // Sixteenths of the second-level cache: three at first.
  int cache = 0, most = 0;
  OK(cuDeviceGetAttribute(&cache, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device));
  OK(cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, device));
  OK(cuCtxGetLimit(&stack, CU_LIMIT_PERSISTING_L2_CACHE_SIZE));
  EXPECT(stack == static_cast<size_t>(cache) / 16 * 3);
  OK(cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, most));
  OK(cuCtxGetLimit(&stack, CU_LIMIT_PERSISTING_L2_CACHE_SIZE));
  EXPECT(stack == static_cast<size_t>(most));
}

// An event that a launch records is captured with it: what waits for it is of the graph, too, and does not run at once.
void captured_events(CUlaunchConfig config, CUfunction f, void **params, CUdeviceptr y) {
  CUstream a, b;
  CUevent launched, joined;
  OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
  OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
  OK(cuEventCreate(&launched, CU_EVENT_DISABLE_TIMING));
  OK(cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING));
  for (CUlaunchAttributeID id : {CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT}) {
    CUlaunchAttribute attribute = {};
    attribute.id = id;
    if (id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT) attribute.value.programmaticEvent.event = launched;
    else attribute.value.launchCompletionEvent.event = launched;
    config.attrs = &attribute, config.numAttrs = 1, config.hStream = a;
    float before, after;
    OK(cuMemcpyDtoH(&before, y, 4));
    OK(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuLaunchKernelEx(&config, f, params, nullptr));
    OK(cuStreamWaitEvent(b, launched, 0));
    OK(cuLaunchKernel(f, 2, 1, 1, 64, 1, 1, 0, b, params, nullptr));
    OK(cuEventRecord(joined, b));
    OK(cuStreamWaitEvent(a, joined, 0));
    CUgraph graph;
    OK(cuStreamEndCapture(a, &graph));
    size_t nodes = 0;
    OK(cuGraphGetNodes(graph, nullptr, &nodes));
    EXPECT(nodes == 2);
    OK(cuMemcpyDtoH(&after, y, 4));
    EXPECT(after == before);
    CUgraphExec executable;
    OK(cuGraphInstantiate(&executable, graph, 0));
    OK(cuGraphLaunch(executable, a));
    OK(cuStreamSynchronize(a));
    OK(cuMemcpyDtoH(&after, y, 4));
    EXPECT(after == before + 2.0f);
  }
}

void extended() {
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
  // What an unknown attribute asks for is not passed over.
  attributes[1].id = static_cast<CUlaunchAttributeID>(77);
  RESULT(cuLaunchKernelEx(&config, f, params, nullptr), CUDA_ERROR_NOT_SUPPORTED);
  captured_events(config, f, params, y);
}

void bad_image() {
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

void no_code() {
  start();
  CUlibrary library;
  CUkernel kernel;
  OK(cuLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  RESULT(cuLibraryGetKernel(&kernel, library, "saxpy"), CUDA_ERROR_NO_BINARY_FOR_GPU);
}

// Calls whose way through HIP is recorded elsewhere; nothing is computed.
void seam() {
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

// A device that takes no gfx1100 code says so at the first launch.
void refused() {
  start();
  int value;
  CUfunction f = function("mixed");
  OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
  RESULT(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_ERROR_NO_BINARY_FOR_GPU);
}
