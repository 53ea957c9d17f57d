// "Not ready" is what a query answers, and no last error ("CUDA C++ Programming Guide", Error Checking).
#include <cstdio>

__global__ void wait(volatile int *flag) {
  while (*flag == 0) {
  }
}

int main() {
  int *flag = nullptr;
  cudaStream_t stream;
  cudaEvent_t event;
  if (cudaHostAlloc(&flag, sizeof *flag, cudaHostAllocMapped) || cudaStreamCreate(&stream) || cudaEventCreate(&event)) return 1;
  *flag = 0;
  wait<<<1, 1, 0, stream>>>(flag);
  cudaEventRecord(event, stream);
  const int launch = cudaGetLastError(), query = cudaEventQuery(event), peek = cudaPeekAtLastError(), last = cudaGetLastError();
  const int busy = cudaStreamQuery(stream), after = cudaGetLastError();
  const int mistake = cudaMalloc(nullptr, 4), again = cudaEventQuery(event), kept = cudaGetLastError();
  *flag = 1;
  const int end = cudaStreamSynchronize(stream), done = cudaEventQuery(event);
  printf("%d, %d %d %d, %d %d, %d %d %d, %d %d\n", launch, query, peek, last, busy, after, mistake, again, kept, end, done);
}
