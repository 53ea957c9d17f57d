// What applications do besides launching kernels.  The first argument says what; a line says how it went.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

__global__ void add(int *p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] += i;
}

// Loops that end when the host says so, which it never does.
__global__ void spin(volatile int *p) {
  while (p[0] == 0) {
  }
}

__global__ void reckon(unsigned *out, unsigned odd) {
  unsigned x = odd, n = 0;
  while (x != 0) {
    x = x * 1664525u + n * 2u;
    x |= 1u;
    n += x >> 3;
  }
  out[0] = n;
}

__global__ void meet(int *out, int one) {
  __shared__ int s;
  do {
    s = one;
    __syncthreads();
  } while (s);
  out[0] = s;
}

// Its first instruction is overwritten by the test.
__global__ void refused(int *p) { p[threadIdx.x] = 7; }

// 0: right; else a CUDA error, or 1000 for a wrong result.
static int work() {
  int *p, h[256];
  if (int e = cudaMalloc(&p, sizeof h)) return e;
  if (int e = cudaMemset(p, 0, sizeof h)) return e;
  add<<<1, 256>>>(p, 256);
  if (int e = cudaGetLastError()) return e;
  if (int e = cudaMemcpy(h, p, sizeof h, cudaMemcpyDeviceToHost)) return e;
  for (int i = 0; i < 256; ++i)
    if (h[i] != i) return 1000;
  return cudaFree(p);
}

static int ended(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

static void leave_running() {
  int *p;
  cudaMalloc(&p, 64);
  cudaMemset(p, 0, 64);
  spin<<<8, 64>>>(p);
  puts("running");
}

static int endless(const char *which) {
  int *p;
  cudaMalloc(&p, 64);
  cudaMemset(p, 0, 64);
  puts("running");
  if (!strcmp(which, "spin")) spin<<<4, 64>>>(p);
  if (!strcmp(which, "reckon")) reckon<<<4, 64>>>(reinterpret_cast<unsigned *>(p), 1);
  if (!strcmp(which, "meet")) meet<<<4, 64>>>(p, 1);
  int error = cudaDeviceSynchronize();
  printf("ended %d then %d\n", error, work());
  return 0;
}

static int ask_refused() {
  int *p, blocks = 0;
  cudaFuncAttributes attributes;
  cudaMalloc(&p, 1024);
  int early = cudaFuncGetAttributes(&attributes, refused);
  cudaGetLastError();
  int occupancy = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, refused, 32, 0);
  cudaGetLastError();
  refused<<<1, 32>>>(p);
  int launch = cudaGetLastError();
  printf("refused %d %d %d others %d\n", early, occupancy, launch, work());
  return 0;
}

// Takes the free addresses within 4 GiB of where `path` is loaded, but for 32 KiB in every megabyte below it.
static void crowd(const char *path) {
  void *library = dlopen(path, RTLD_NOW);
  Dl_info info;
  dladdr(dlsym(library, "run"), &info);
  char *base = static_cast<char *>(info.dli_fbase);
  const size_t block = 64 << 10;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  for (long i = -(long{4} << 30); i < long{4} << 30; i += block)
    if (mmap(base + i, block, PROT_NONE, flags, -1, 0) == base + i && i < 0 && i % (1 << 20) == 0)
      munmap(base + i + (8 << 10), 32 << 10);
  dlclose(library);
}

int main(int argc, char **argv) {
  setvbuf(stdout, nullptr, _IONBF, 0);
  const char *what = argc > 1 ? argv[1] : "";
  auto is = [what](const char *name) { return !strcmp(what, name); };
  if (is("plain")) printf("work %d\n", work());
  if (is("refused")) return ask_refused();
  if (is("spin") || is("reckon") || is("meet")) return endless(what);
  if (is("fork_before")) {
    pid_t child = fork();
    int result = work(), status;
    if (!child) _exit(result);
    waitpid(child, &status, 0);
    printf("parent %d child %d\n", result, ended(status));
  }
  if (is("fork_after")) {
    int result = work(), status;
    pid_t child = fork();
    if (!child) _exit(work());
    waitpid(child, &status, 0);
    printf("parent %d child %d again %d\n", result, ended(status), work());
  }
  if (is("exec")) {
    printf("first %d\n", work());
    execv(argv[2], argv + 2);
  }
  if (is("system")) {
    int result = work();
    printf("own %d system %d\n", result, ended(system((std::string("exec ") + argv[2] + " plain").c_str())));
  }
  if (is("threads")) {
    std::vector<std::thread> threads;
    std::vector<int> results(16, -1);
    for (int &result : results)
      threads.emplace_back([&result] {
        for (int i = 0; i < 5; ++i) result = work();
      });
    for (std::thread &thread : threads) thread.join();
    int bad = 0;
    for (int result : results) bad += result != 0;
    printf("threads %d\n", bad);
  }
  if (is("crowded")) crowd(argv[2]);
  if (is("dlopen") || is("crowded"))
    for (int i = 0; i < 3; ++i) {
      void *library = dlopen(argv[2], RTLD_NOW);
      if (!library) return puts(dlerror()), 1;
      printf("opened %d own %d\n", reinterpret_cast<int (*)()>(dlsym(library, "run"))(), work());
      dlclose(library);
    }
  if (is("exit")) leave_running(), exit(5);
  if (is("_exit")) leave_running(), _exit(6);
  if (is("return")) return leave_running(), 7;
  if (is("abort")) leave_running(), abort();
  if (is("thread_exit"))
    std::thread([] {
      leave_running();
      exit(8);
    }).join();
  if (is("at_exit")) {
    work();
    atexit([] { printf("at exit %d\n", work()); });
    return 3;
  }
  if (is("main_ends")) {
    std::thread([] {
      usleep(100000);
      printf("late %d\n", work());
      _exit(4);
    }).detach();
    pthread_exit(nullptr);
  }
  if (is("close_all")) {
    for (int i = 3; i < 1024; ++i) close(i);
    int result = work();
    for (int i = 3; i < 1024; ++i) close(i);
    printf("closed %d %d\n", result, work());
  }
  if (is("clearenv")) {
    clearenv();
    printf("cleared %d\n", work());
  }
  if (is("segv")) {
    work();
    *reinterpret_cast<volatile int *>(8) = 1;
  }
  return 0;
}
