// SPDX-License-Identifier: Apache-2.0
//
// Long runs.  "loop N": N rounds of everything that makes and gives back something, and how much larger the process
// has become since the first tenth.  "streams SECONDS": eight threads with a stream each, results checked; built with
// --default-stream per-thread it uses the threads' own default streams.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <unistd.h>
#include <vector>

__global__ void step(unsigned *p, int n, unsigned salt) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = p[i] * 1664525u + salt + i;
}

__global__ void sum(const unsigned *p, int n, unsigned *out) {
  unsigned mine = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) mine += p[i];
  atomicAdd(out, mine);
}

#define CHECK(x)                                                                          \
  do {                                                                                    \
    cudaError_t e = (x);                                                                  \
    if (e) printf("line %d: %s: %s\n", __LINE__, #x, cudaGetErrorName(e)), exit(1);       \
  } while (0)

static long resident_kib() {
  long size = 0, resident = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  if (!f || fscanf(f, "%ld %ld", &size, &resident) != 2) exit(2);
  fclose(f);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void count(void *user) { ++*static_cast<int *>(user); }

// One round: what most programs do; each further thing in every sixteenth.
static int round_of(int r) {
  static int calls = 0;
  const int n = 1 + r * 37 % 5000;
  std::vector<unsigned> host(n, 7);
  unsigned *p;
  CHECK(cudaMalloc(&p, n * 4));
  CHECK(cudaMemcpy(p, host.data(), n * 4, cudaMemcpyHostToDevice));
  step<<<(n + 127) / 128, 128>>>(p, n, r);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), p, n * 4, cudaMemcpyDeviceToHost));
  int bad = 0;
  for (int i = 0; i < n; ++i) bad += host[i] != 7 * 1664525u + r + i;
  CHECK(cudaFree(p));
  if (r % 16) return bad;

  cudaStream_t stream;
  cudaEvent_t event;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaEventCreate(&event));
  unsigned *q, *pinned, *managed;
  CHECK(cudaMallocAsync(&q, n * 4, stream));
  CHECK(cudaMallocHost(&pinned, n * 4));
  CHECK(cudaMallocManaged(&managed, 64));
  CHECK(cudaMemsetAsync(q, 1, n * 4, stream));
  step<<<(n + 127) / 128, 128, 0, stream>>>(q, n, r);
  CHECK(cudaLaunchHostFunc(stream, count, &calls));
  CHECK(cudaEventRecord(event, stream));
  CHECK(cudaMemcpyAsync(pinned, q, n * 4, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaFreeAsync(q, stream));
  CHECK(cudaStreamSynchronize(stream));
  for (int i = 0; i < n; ++i) bad += pinned[i] != 0x01010101u * 1664525u + r + i;
  bad += calls != r / 16 + 1;

  cudaGraph_t graph;
  cudaGraphExec_t exec;
  managed[0] = 3;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  step<<<1, 1, 0, stream>>>(managed, 1, 5);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  bad += managed[0] != 3 * 1664525u + 5;
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));

  cudaArray_t array;
  cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned>();
  CHECK(cudaMallocArray(&array, &format, 64, 16));
  CHECK(cudaHostRegister(host.data(), host.size() * 4, 0));
  CHECK(cudaHostUnregister(host.data()));
  CHECK(cudaFreeArray(array));
  CHECK(cudaFree(managed));
  CHECK(cudaFreeHost(pinned));
  CHECK(cudaEventDestroy(event));
  CHECK(cudaStreamDestroy(stream));
  return bad;
}

static int loop(int rounds) {
  int bad = 0;
  long first = 0;
  for (int r = 0; r < rounds; ++r) {
    bad += round_of(r);
    if (r == rounds / 10) first = resident_kib();
  }
  printf("rounds %d bad %d grown %ld KiB\n", rounds, bad, resident_kib() - first);
  return bad != 0;
}

// The work of one thread until the time is over: the number of wrong results.
static void worker(int id, std::chrono::steady_clock::time_point end, long *rounds, int *bad) {
  const int n = 3000 + 500 * id;
  cudaStream_t stream = nullptr;
#ifndef CUDA_API_PER_THREAD_DEFAULT_STREAM
  CHECK(cudaStreamCreateWithFlags(&stream, id % 2 ? cudaStreamNonBlocking : cudaStreamDefault));
#endif
  unsigned *p, *total, *host;
  CHECK(cudaMallocHost(&host, (n + 1) * 4));
  std::vector<unsigned> expected(n);
  cudaEvent_t event;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  while (std::chrono::steady_clock::now() < end) {
    CHECK(cudaMallocAsync(&p, n * 4, stream));
    CHECK(cudaMallocAsync(&total, 4, stream));
    for (int i = 0; i < n; ++i) host[i] = expected[i] = i * 3 + id;
    CHECK(cudaMemcpyAsync(p, host, n * 4, cudaMemcpyHostToDevice, stream));
    CHECK(cudaMemsetAsync(total, 0, 4, stream));
    for (int k = 0; k < 4; ++k) {
      step<<<(n + 255) / 256, 256, 0, stream>>>(p, n, id * 10 + k);
      for (int i = 0; i < n; ++i) expected[i] = expected[i] * 1664525u + id * 10 + k + i;
    }
    sum<<<1, 128, 0, stream>>>(p, n, total);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyAsync(host, p, n * 4, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaMemcpyAsync(host + n, total, 4, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaEventRecord(event, stream));
    CHECK(cudaFreeAsync(p, stream));
    CHECK(cudaFreeAsync(total, stream));
    if (*rounds % 2) CHECK(cudaStreamSynchronize(stream));
    else CHECK(cudaEventSynchronize(event));
    unsigned all = 0;
    for (int i = 0; i < n; ++i) *bad += host[i] != expected[i], all += expected[i];
    *bad += host[n] != all;
    ++*rounds;
  }
  CHECK(cudaEventDestroy(event));
  CHECK(cudaFreeHost(host));
  if (stream) CHECK(cudaStreamDestroy(stream));
}

static int streams(double seconds) {
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(static_cast<long>(seconds * 1000));
  std::vector<std::thread> threads;
  long rounds[8] = {}, all = 0;
  int bad[8] = {}, wrong = 0;
  for (int i = 0; i < 8; ++i) threads.emplace_back(worker, i, end, &rounds[i], &bad[i]);
  for (std::thread &thread : threads) thread.join();
  for (int i = 0; i < 8; ++i) all += rounds[i], wrong += bad[i] + (rounds[i] == 0);
  printf("rounds %ld bad %d\n", all, wrong);
  return wrong != 0;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  return strcmp(argv[1], "loop") ? streams(atof(argv[2])) : loop(atoi(argv[2]));
}
