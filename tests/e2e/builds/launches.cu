// SPDX-License-Identifier: Apache-2.0
//
// Shapes of launches, shared memory by request, kernels that wait for one another and for the host, order of streams,
// memory of every kind, pools, copies of boxes, peers, properties; checks itself.  Arguments: the capability expected.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

static int bad = 0;
#define CHECK(x)                                                                       \
  do {                                                                                 \
    cudaError_t e = (x);                                                               \
    if (e) printf("line %d: %s: %s\n", __LINE__, #x, cudaGetErrorName(e)), exit(1);    \
  } while (0)
#define EXPECT(x)                                           \
  do {                                                      \
    if (!(x)) ++bad, printf("line %d: %s\n", __LINE__, #x); \
  } while (0)
#define REFUSED(x, error)             \
  do {                                \
    EXPECT((x) == (error));           \
    cudaGetLastError();               \
  } while (0)

__global__ void where(unsigned *out) {
  unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] =
      blockIdx.x + 10 * blockIdx.y + 100 * blockIdx.z + 1000 * threadIdx.x + 10000 * threadIdx.y + 100000 * threadIdx.z;
}

static void grids() {
  const dim3 grid(3, 4, 5), block(4, 3, 2);
  static unsigned host[3 * 4 * 5 * 24];
  unsigned *p;
  CHECK(cudaMalloc(&p, sizeof host));
  where<<<grid, block>>>(p);
  CHECK(cudaMemcpy(host, p, sizeof host, cudaMemcpyDeviceToHost));
  int wrong = 0, i = 0;
  for (unsigned z = 0; z < 5; ++z)
    for (unsigned y = 0; y < 4; ++y)
      for (unsigned x = 0; x < 3; ++x)
        for (unsigned c = 0; c < 2; ++c)
          for (unsigned b = 0; b < 3; ++b)
            for (unsigned a = 0; a < 4; ++a) wrong += host[i++] != x + 10 * y + 100 * z + 1000 * a + 10000 * b + 100000 * c;
  EXPECT(wrong == 0);
  where<<<dim3(1, 65536, 1), 1>>>(p);
  REFUSED(cudaGetLastError(), cudaErrorInvalidValue);
  where<<<1, dim3(1, 1, 65)>>>(p);
  REFUSED(cudaGetLastError(), cudaErrorInvalidValue);
  CHECK(cudaFree(p));
}

__global__ void reverse(unsigned *p, int n) {
  extern __shared__ unsigned s[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = p[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) p[i] = s[n - 1 - i];
}

static cudaError_t reversed(size_t bytes) {
  const int n = static_cast<int>(bytes / 4);
  static unsigned host[65536];
  for (int i = 0; i < n; ++i) host[i] = i * 3;
  unsigned *p;
  CHECK(cudaMalloc(&p, bytes));
  CHECK(cudaMemcpy(p, host, bytes, cudaMemcpyHostToDevice));
  reverse<<<1, 256, bytes>>>(p, n);
  cudaError_t error = cudaGetLastError();
  CHECK(cudaMemcpy(host, p, bytes, cudaMemcpyDeviceToHost));
  for (int i = 0; !error && i < n; ++i) bad += host[i] != (n - 1u - i) * 3;
  CHECK(cudaFree(p));
  return error;
}

static void shared_memory() {
  int most = 0;
  CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  EXPECT(reversed(48 << 10) == cudaSuccess);
  REFUSED(reversed((48 << 10) + 4), cudaErrorInvalidValue);
  CHECK(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, most));
  EXPECT(reversed(most) == cudaSuccess);
  REFUSED(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, most + 4), cudaErrorInvalidValue);
  REFUSED(reversed(most + 4), cudaErrorInvalidValue);
}

// Each block waits for the one before it: only a device that goes on with all of them gets to the end.
__global__ void chain(volatile unsigned *turn, unsigned *out) {
  unsigned mine = gridDim.x - 1 - blockIdx.x;
  if (threadIdx.x == 0) {
    while (*turn != mine) {
    }
    out[mine] = blockIdx.x;
    __threadfence();
    *turn = mine + 1;
  }
}

__global__ void answer(volatile unsigned *mail) {
  while (mail[0] == 0) {
  }
  mail[1] = mail[0] + 1;
}

static void waiting() {
  unsigned *p, host[33], blocks = 32;
  CHECK(cudaMalloc(&p, sizeof host));
  CHECK(cudaMemset(p, 0, sizeof host));
  chain<<<blocks, 32>>>(p, p + 1);
  CHECK(cudaMemcpy(host, p, sizeof host, cudaMemcpyDeviceToHost));
  EXPECT(host[0] == blocks);
  for (unsigned i = 0; i < blocks; ++i) EXPECT(host[1 + i] == blocks - 1 - i);
  CHECK(cudaFree(p));
  // A kernel that waits for the host, through mapped memory.
  unsigned *mail, *there;
  CHECK(cudaHostAlloc(&mail, 64, cudaHostAllocMapped));
  mail[0] = mail[1] = 0;
  CHECK(cudaHostGetDevicePointer(&there, mail, 0));
  answer<<<1, 1>>>(there);
  EXPECT(cudaStreamQuery(0) == cudaErrorNotReady);
  reinterpret_cast<volatile unsigned *>(mail)[0] = 41;
  CHECK(cudaDeviceSynchronize());
  EXPECT(mail[1] == 42);
  CHECK(cudaFreeHost(mail));
}

__global__ void spin(volatile unsigned *gate, unsigned *log, unsigned *at, unsigned name) {
  while (gate && *gate == 0) {
  }
  log[atomicAdd(at, 1)] = name;
}

// What goes on while stream A's kernel waits: a non-blocking stream's, but nothing of the legacy stream.
static void order() {
  unsigned *gate, *log;
  CHECK(cudaHostAlloc(&gate, 64, cudaHostAllocMapped));
  CHECK(cudaMallocManaged(&log, 64));
  cudaStream_t a, free_stream;
  cudaEvent_t start, end;
  CHECK(cudaStreamCreate(&a));
  CHECK(cudaStreamCreateWithFlags(&free_stream, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&end));
  *gate = 0;
  memset(log, 0, 64);
  CHECK(cudaEventRecord(start, a));
  spin<<<1, 1, 0, a>>>(gate, log + 1, log, 1);
  CHECK(cudaEventRecord(end, a));
  spin<<<1, 1>>>(nullptr, log + 1, log, 2);                  // legacy: behind A
  spin<<<1, 1, 0, free_stream>>>(nullptr, log + 1, log, 3);  // at once
  spin<<<1, 1, 0, cudaStreamPerThread>>>(nullptr, log + 1, log, 4);  // behind the legacy stream
  CHECK(cudaStreamSynchronize(free_stream));
  EXPECT(log[0] == 1 && log[1] == 3);
  EXPECT(cudaEventQuery(end) == cudaErrorNotReady && cudaStreamQuery(cudaStreamPerThread) == cudaErrorNotReady);
  cudaGetLastError();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  *reinterpret_cast<volatile unsigned *>(gate) = 1;
  CHECK(cudaDeviceSynchronize());
  EXPECT(log[0] == 4 && log[2] == 1 && log[3] == 2 && log[4] == 4);
  float milliseconds = 0;
  CHECK(cudaEventElapsedTime(&milliseconds, start, end));
  EXPECT(milliseconds >= 19 && milliseconds < 60000);
  // A stream that waits for an event of another; host functions in their places.
  static int seen[3];
  *gate = 0;
  spin<<<1, 1, 0, a>>>(gate, log + 1, log, 5);
  CHECK(cudaLaunchHostFunc(a, [](void *p) { static_cast<int *>(p)[0] = 1; }, seen));
  CHECK(cudaStreamAddCallback(a, [](cudaStream_t, cudaError_t e, void *p) { static_cast<int *>(p)[1] = e ? -1 : static_cast<int *>(p)[0] + 1; }, seen, 0));
  CHECK(cudaEventRecord(end, a));
  CHECK(cudaStreamWaitEvent(free_stream, end, 0));
  CHECK(cudaLaunchHostFunc(free_stream, [](void *p) { static_cast<int *>(p)[2] = static_cast<int *>(p)[1] + 1; }, seen));
  EXPECT(seen[0] == 0 && cudaStreamQuery(free_stream) == cudaErrorNotReady);
  cudaGetLastError();
  *reinterpret_cast<volatile unsigned *>(gate) = 1;
  CHECK(cudaStreamSynchronize(free_stream));
  EXPECT(seen[0] == 1 && seen[1] == 2 && seen[2] == 3);
  CHECK(cudaStreamDestroy(a));
  CHECK(cudaStreamDestroy(free_stream));
  CHECK(cudaFreeHost(gate));
  CHECK(cudaFree(log));
}

__global__ void twice(unsigned *p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] *= 2;
}

__managed__ unsigned managed[4] = {1, 2, 3, 4};
__device__ unsigned symbol[4];
__constant__ unsigned constant[4];
__global__ void read_constant(unsigned *out) { out[threadIdx.x] = constant[threadIdx.x] + symbol[threadIdx.x]; }

static void kinds_of_memory() {
  twice<<<1, 4>>>(managed, 4);
  CHECK(cudaDeviceSynchronize());
  EXPECT(managed[0] == 2 && managed[3] == 8);
  unsigned *heap = static_cast<unsigned *>(malloc(4096));
  for (int i = 0; i < 1024; ++i) heap[i] = i;
  CHECK(cudaHostRegister(heap, 4096, cudaHostRegisterDefault));
  REFUSED(cudaHostRegister(heap, 4096, cudaHostRegisterDefault), cudaErrorHostMemoryAlreadyRegistered);
  twice<<<8, 128>>>(heap, 1024);
  CHECK(cudaDeviceSynchronize());
  EXPECT(heap[1023] == 2046);
  cudaPointerAttributes what;
  CHECK(cudaPointerGetAttributes(&what, heap));
  EXPECT(what.type == cudaMemoryTypeHost);
  CHECK(cudaHostUnregister(heap));
  REFUSED(cudaHostUnregister(heap), cudaErrorHostMemoryNotRegistered);
  CHECK(cudaPointerGetAttributes(&what, heap));
  EXPECT(what.type == cudaMemoryTypeUnregistered);
  free(heap);
  const unsigned first[4] = {10, 20, 30, 40}, second[4] = {1, 2, 3, 4};
  unsigned out[4], *address, *p;
  size_t size = 0;
  CHECK(cudaMemcpyToSymbol(constant, first, sizeof first));
  CHECK(cudaMemcpyToSymbol(symbol, second, 8, 8));
  CHECK(cudaGetSymbolAddress(reinterpret_cast<void **>(&address), symbol));
  CHECK(cudaGetSymbolSize(&size, symbol));
  EXPECT(size == sizeof first);
  CHECK(cudaMemcpy(address, second, 8, cudaMemcpyHostToDevice));
  CHECK(cudaMalloc(&p, 16));
  read_constant<<<1, 4>>>(p);
  CHECK(cudaMemcpy(out, p, 16, cudaMemcpyDeviceToHost));
  EXPECT(out[0] == 11 && out[1] == 22 && out[2] == 31 && out[3] == 42);
  CHECK(cudaMemcpyFromSymbol(out, symbol, 4, 12));
  EXPECT(out[0] == 2);
  CHECK(cudaFree(p));
}

static uint64_t amount(cudaMemPool_t pool, cudaMemPoolAttr attribute) {
  uint64_t value = 77;
  CHECK(cudaMemPoolGetAttribute(pool, attribute, &value));
  return value;
}

static void pools() {
  cudaMemPool_t common, own;
  CHECK(cudaDeviceGetDefaultMemPool(&common, 0));
  cudaMemPoolProps wish = {};
  wish.allocType = cudaMemAllocationTypePinned;
  wish.location = {cudaMemLocationTypeDevice, {0}};
  CHECK(cudaMemPoolCreate(&own, &wish));
  unsigned *p, *q, *r;
  CHECK(cudaMallocAsync(&p, 4096, 0));
  CHECK(cudaMallocFromPoolAsync(&q, 8192, own, 0));
  CHECK(cudaMallocFromPoolAsync(&r, 512, own, 0));
  EXPECT(amount(common, cudaMemPoolAttrUsedMemCurrent) == 4096);
  EXPECT(amount(own, cudaMemPoolAttrUsedMemCurrent) == 8704 && amount(own, cudaMemPoolAttrReservedMemCurrent) >= 8704);
  CHECK(cudaFreeAsync(q, 0));
  EXPECT(amount(own, cudaMemPoolAttrUsedMemCurrent) == 512 && amount(own, cudaMemPoolAttrUsedMemHigh) == 8704);
  uint64_t zero = 0;
  CHECK(cudaMemPoolSetAttribute(own, cudaMemPoolAttrUsedMemHigh, &zero));
  EXPECT(amount(own, cudaMemPoolAttrUsedMemHigh) == 512);
  CHECK(cudaMemPoolTrimTo(own, 0));
  CHECK(cudaFree(r));
  EXPECT(amount(own, cudaMemPoolAttrUsedMemCurrent) == 0);
  CHECK(cudaMallocFromPoolAsync(&r, 512, own, 0));
  CHECK(cudaMemPoolDestroy(own));
  CHECK(cudaFreeAsync(r, 0));
  CHECK(cudaFreeAsync(p, 0));
  CHECK(cudaDeviceSynchronize());
  EXPECT(amount(common, cudaMemPoolAttrUsedMemCurrent) == 0);
}

static void boxes() {
  const int width = 30, height = 7, depth = 5;
  static unsigned char in[depth][height][width], out[depth][height][width];
  for (int i = 0; i < depth * height * width; ++i) (&in[0][0][0])[i] = static_cast<unsigned char>(i * 7);
  cudaPitchedPtr box;
  CHECK(cudaMalloc3D(&box, make_cudaExtent(width, height, depth)));
  cudaMemcpy3DParms p = {};
  p.srcPtr = make_cudaPitchedPtr(in, width, width, height);
  p.dstPtr = box;
  p.extent = make_cudaExtent(width, height, depth);
  p.kind = cudaMemcpyHostToDevice;
  CHECK(cudaMemcpy3D(&p));
  // A part of it back: from (4, 1, 2), 20 x 5 x 2.
  p = {};
  p.srcPtr = box;
  p.srcPos = make_cudaPos(4, 1, 2);
  p.dstPtr = make_cudaPitchedPtr(out, width, width, height);
  p.dstPos = make_cudaPos(1, 0, 1);
  p.extent = make_cudaExtent(20, 5, 2);
  p.kind = cudaMemcpyDeviceToHost;
  CHECK(cudaMemcpy3D(&p));
  int wrong = 0;
  for (int z = 0; z < 2; ++z)
    for (int y = 0; y < 5; ++y)
      for (int x = 0; x < 20; ++x) wrong += out[z + 1][y][x + 1] != in[z + 2][y + 1][x + 4];
  EXPECT(wrong == 0);
  void *flat;
  size_t pitch;
  CHECK(cudaMallocPitch(&flat, &pitch, width, height));
  CHECK(cudaMemset2D(flat, pitch, 9, width, height));
  CHECK(cudaMemcpy2D(flat, pitch, in, width, 12, height, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy2D(out, width, flat, pitch, width, height, cudaMemcpyDeviceToHost));
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) wrong += out[0][y][x] != (x < 12 ? in[0][y][x] : 9);
  EXPECT(wrong == 0);
  CHECK(cudaFree(flat));
  CHECK(cudaFree(box.ptr));
}

static void properties(int capability) {
  cudaDeviceProp p;
  int count = 0, can = 1;
  CHECK(cudaGetDeviceCount(&count));
  CHECK(cudaGetDeviceProperties(&p, 0));
  EXPECT(p.major * 10 + p.minor == capability);
  EXPECT(p.warpSize == 32 && p.maxThreadsPerBlock == 1024 && p.sharedMemPerBlock == 49152 && p.cooperativeLaunch == 1);
  CHECK(cudaDeviceCanAccessPeer(&can, 0, 0));
  EXPECT(can == 0);
  REFUSED(cudaDeviceCanAccessPeer(&can, 0, count), cudaErrorInvalidDevice);
  REFUSED(cudaDeviceEnablePeerAccess(count, 0), cudaErrorInvalidDevice);
  REFUSED(cudaSetDevice(count), cudaErrorInvalidDevice);
}

int main(int argc, char **argv) {
  properties(argc > 1 ? atoi(argv[1]) : 0);
  grids();
  shared_memory();
  waiting();
  order();
  kinds_of_memory();
  pools();
  boxes();
  printf("bad %d\n", bad);
  return bad != 0;
}
