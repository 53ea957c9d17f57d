// The program of the tasks in tools/tasks/tasks.toml.  tools/tasks builds it three times: BUILD=1, BUILD=2 (`smooth` has
// another name, `steps` another loop), and BUILD=1 with 32 registers at most, in which `smooth` spills.
#include <cstdio>
#include <cstdlib>

#if BUILD == 2
#define smooth soften
#endif

__device__ __noinline__ float weight(float x) { return x < 0.5f ? x * 0.25f : 1.0f - x; }

template <class T>
__global__ void scale(T factor, const T* in, T* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = factor * in[i];
}

__global__ void smooth(const float* in, float* out, int n) {
  float window[48];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
  for (int k = 0; k < 48; ++k) window[k] = in[(i + k) % n];
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 48; ++k) sum += window[k] * window[47 - k];
  out[i % n] = sum * weight(sum);
}

__global__ void steps(const unsigned* in, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned x = in[i], count = 0;
  while (x > 1) {
#if BUILD == 2
    x = x & 1 ? (3 * x + 1) / 2 : x / 2;
#else
    x = x & 1 ? 3 * x + 1 : x / 2;
#endif
    ++count;
  }
  out[i] = count;
}

template <class T>
void fill(T* values, int n) {
  for (int i = 0; i < n; ++i) values[i] = T(i + 1);
}

__attribute__((noinline)) static int scaled(double* memory, int n) {
  fill(memory, n);
  scale<double><<<n / 64, 64>>>(3.0, memory, memory, n);
  return cudaDeviceSynchronize();
}

__attribute__((noinline)) static int smoothed(float* memory, int n) {
  fill(memory, n);
  scale<float><<<n / 64, 64>>>(0.01f, memory, memory, n);
  smooth<<<n / 64, 64>>>(memory, memory + n, n);
  return cudaDeviceSynchronize();
}

__attribute__((noinline)) static int counted(unsigned* memory, int n) {
  fill(memory, n);
  steps<<<n / 64, 64>>>(memory, memory + n, n);
  return cudaDeviceSynchronize();
}

int main() {
  const int n = 128;
  void* memory = nullptr;
  if (cudaMallocManaged(&memory, 2 * n * sizeof(double))) return 1;
  if (scaled(static_cast<double*>(memory), n)) return 1;
  double last = static_cast<double*>(memory)[n - 1];
  if (smoothed(static_cast<float*>(memory), n)) return 1;
  float middle = static_cast<float*>(memory)[n + 5];
  if (counted(static_cast<unsigned*>(memory), n)) return 1;
  std::printf("%g %g %u\n", last, middle, static_cast<unsigned*>(memory)[n + 26]);
  return 0;
}
