// What the runtime says about a managed variable, by its name and by its address, and about a __device__ one.
#include <cstdio>

#include <cuda_runtime.h>

__managed__ int number = 5;
__managed__ int list[3000];
__device__ int plain = 7;

__global__ void add() { list[3] = number += plain; }

static void describe(const char *name, const void *pointer) {
  cudaPointerAttributes a{};
  const int error = cudaPointerGetAttributes(&a, pointer);
  printf("%s: %d type %d device %d, %s %s\n", name, error, a.type, a.device, a.devicePointer == pointer ? "same" : "other",
         a.hostPointer == pointer ? "same" : a.hostPointer ? "other" : "null");
}

int main() {
  void *by_name = nullptr, *device = nullptr;
  cudaGetSymbolAddress(&by_name, number);
  cudaGetSymbolAddress(&device, plain);
  describe("number", &number);
  describe("list", list + 7);
  describe("by name", by_name);
  describe("plain", device);
  const cudaMemLocation here{cudaMemLocationTypeDevice, 0};
  int places[2] = {7, 7};
  void *outs[] = {&places[0], &places[1]};
  size_t sizes[] = {4, 4};
  cudaMemRangeAttribute ids[] = {cudaMemRangeAttributeLastPrefetchLocation, cudaMemRangeAttributePreferredLocation};
  printf("prefetch %d %d %d\n", cudaMemPrefetchAsync(list, sizeof list, here, 0, 0),
         cudaMemPrefetchAsync(device, 4, here, 0, 0),
         cudaMemAdvise(list, sizeof list, cudaMemAdviseSetPreferredLocation, {cudaMemLocationTypeHost, 0}));
  printf("asked %d:", cudaMemRangeGetAttribute(places, 4, ids[0], list, sizeof list));
  printf(" %d\n", places[0]);
  places[0] = 7;
  printf("asked %d:", cudaMemRangeGetAttributes(outs, sizes, ids, 2, list, sizeof list));
  printf(" %d %d\n", places[0], places[1]);
  printf("free %d %d %d\n", cudaFree(&number), cudaFree(by_name), cudaFree(device));
  cudaGetLastError();
  add<<<1, 1>>>();
  printf("launch %d: ", cudaDeviceSynchronize());
  printf("%d %d\n", number, list[3]);
}
