// Copies whose box lies in an array in part, or not at all: a line per case, with the error and a sum of
// what was copied.
#include <cstdio>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

static unsigned sum(const std::vector<unsigned char> &bytes) {
  unsigned h = 2166136261u;
  for (unsigned char b : bytes) h = (h ^ b) * 16777619u;
  return h;
}

struct Shape {
  const char *name;
  size_t w, h, d;
  unsigned flags;
};
static const Shape kShapes[] = {
    {"line", 20, 0, 0, 0},        {"plane", 20, 10, 0, 0},
    {"solid", 20, 10, 6, 0},      {"lines", 20, 0, 4, cudaArrayLayered},
    {"planes", 20, 10, 4, cudaArrayLayered}, {"cube", 8, 8, 6, cudaArrayCubemap},
};

static cudaArray_t made(const Shape &s) {
  cudaArray_t array = nullptr;
  cudaChannelFormatDesc f = cudaCreateChannelDesc<unsigned>();
  int error = cudaMalloc3DArray(&array, &f, make_cudaExtent(s.w, s.h, s.d), s.flags);
  if (error) printf("%s: %d\n", s.name, error);
  std::vector<unsigned> data(20 * 10 * 6);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<unsigned>(i) * 2654435761u;
  cudaMemcpy3DParms p = {};
  size_t h = s.h ? s.h : 1, d = s.d ? s.d : 1;
  p.srcPtr = make_cudaPitchedPtr(data.data(), s.w * 4, s.w, h);
  p.dstArray = array;
  p.extent = make_cudaExtent(s.w, h, d);
  p.kind = cudaMemcpyHostToDevice;
  error = cudaMemcpy3D(&p);
  if (error) printf("%s filled: %d\n", s.name, error);
  return array;
}

struct Box {
  size_t x, y, z, w, h, d;
};

int main() {
  setvbuf(stdout, nullptr, _IONBF, 0);
  std::vector<unsigned char> host(1 << 16);
  unsigned char *device = nullptr;
  cudaMalloc(&device, host.size());
  for (const Shape &s : kShapes) {
    cudaArray_t array = made(s);
    size_t h = s.h ? s.h : 1, d = s.d ? s.d : 1;
    std::vector<Box> boxes = {
        {0, 0, 0, s.w, h, d},     {1, 0, 0, s.w - 1, h, d}, {1, 0, 0, s.w, h, d},  {s.w, 0, 0, 0, h, d},
        {s.w, 0, 0, 1, 1, 1},     {s.w + 1, 0, 0, 0, 1, 1}, {0, 0, 0, s.w + 1, 1, 1}, {0, 1, 0, 4, h - 1, 1},
        {0, 1, 0, 4, h, 1},       {0, h, 0, 4, 0, 1},       {0, h, 0, 4, 1, 1},    {0, h + 1, 0, 4, 0, 1},
        {0, 0, 0, 4, h + 1, 1},   {0, 0, 1, 4, 1, d - 1},   {0, 0, 1, 4, 1, d},    {0, 0, d, 4, 1, 0},
        {0, 0, d, 4, 1, 1},       {0, 0, d + 1, 4, 1, 0},   {0, 0, 0, 4, 1, d + 1}, {0, 0, 0, 0, h, d},
        {0, 0, 0, 4, 0, d},       {0, 0, 0, 4, 1, 0},       {0, 0, 0, 0, 0, 0},    {s.w - 1, h - 1, d - 1, 1, 1, 1},
        {~size_t{0}, 0, 0, 1, 1, 1}, {0, 0, 0, ~size_t{0} / 4, 1, 1}, {size_t{1} << 62, 0, 0, 4, 1, 1},
        {0, size_t{1} << 32, 0, 4, 1, 1}, {0, 0, size_t{1} << 32, 4, 1, 1}, {0, 0, 0, 4, size_t{1} << 32, 1},
        {0, 0, 0, 4, 1, size_t{1} << 32}, {3, 1, 0, 5, 2, 1}, {3, 0, 1, 5, 1, 2},
    };
    for (const Box &b : boxes)
      for (int way = 0; way < 4; ++way) {  // out of the array to the host and the device, and into it
        memset(host.data(), 0x5a, host.size());
        cudaMemset(device, 0x5a, host.size());
        cudaMemcpy3DParms p = {};
        bool to_host = way % 2 == 0;
        cudaPitchedPtr memory = make_cudaPitchedPtr(to_host ? host.data() : device, 96, 96, 12);
        p.extent = make_cudaExtent(b.w, b.h, b.d);
        if (way < 2) {
          p.srcArray = array, p.srcPos = make_cudaPos(b.x, b.y, b.z), p.dstPtr = memory;
          p.kind = to_host ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
        } else {
          p.dstArray = array, p.dstPos = make_cudaPos(b.x, b.y, b.z), p.srcPtr = memory;
          p.kind = to_host ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice;
        }
        int error = cudaMemcpy3D(&p);
        if (way == 1) cudaMemcpy(host.data(), device, host.size(), cudaMemcpyDeviceToHost);
        printf("%s %d at %zd %zd %zd of %zd %zd %zd: %d %08x %d\n", s.name, way, b.x, b.y, b.z, b.w, b.h, b.d, error,
               way < 2 ? sum(host) : 0, cudaGetLastError());
      }
    cudaFreeArray(array);
  }
  // The memory's own shape: rows shorter than what is copied, few rows, positions in it.
  cudaArray_t solid = made(kShapes[2]);
  struct Memory {
    size_t pitch, xsize, ysize, x, y, z, w, h, d;
  };
  static const Memory memories[] = {
      {80, 80, 10, 0, 0, 0, 20, 10, 6}, {79, 80, 10, 0, 0, 0, 20, 10, 6}, {80, 40, 10, 0, 0, 0, 20, 10, 6},
      {80, 80, 5, 0, 0, 0, 20, 10, 6},  {80, 80, 5, 0, 0, 0, 20, 10, 1},  {80, 80, 0, 0, 0, 0, 20, 10, 1},
      {80, 0, 10, 0, 0, 0, 20, 10, 6},  {80, 0, 0, 0, 0, 0, 20, 1, 1},    {0, 0, 0, 0, 0, 0, 20, 1, 1},
      {0, 0, 0, 0, 0, 0, 20, 2, 1},     {0, 80, 10, 0, 0, 0, 20, 1, 1},   {96, 96, 12, 4, 1, 1, 20, 5, 2},
      {96, 96, 12, 16, 0, 0, 20, 5, 2}, {96, 96, 12, 17, 0, 0, 20, 5, 2}, {96, 96, 12, 0, 8, 0, 20, 5, 2},
      {96, 96, 12, 0, 12, 0, 20, 1, 1}, {96, 96, 12, 0, 13, 0, 20, 1, 1}, {96, 96, 12, 90, 0, 0, 1, 1, 1},
      {96, 96, 12, 96, 0, 0, 1, 1, 1},  {96, 96, 12, 96, 0, 0, 0, 1, 1},  {2147483647, 96, 12, 0, 0, 0, 20, 1, 1},
      {2147483648, 96, 12, 0, 0, 0, 20, 1, 1}, {size_t{1} << 40, 96, 12, 0, 0, 0, 20, 1, 1},
  };
  for (const Memory &m : memories)
    for (int way = 0; way < 4; ++way) {
      memset(host.data(), 0x5a, host.size());
      cudaMemset(device, 0x5a, host.size());
      cudaMemcpy3DParms p = {};
      bool to_host = way % 2 == 0;
      cudaPitchedPtr memory = make_cudaPitchedPtr(to_host ? host.data() : device, m.pitch, m.xsize, m.ysize);
      p.extent = make_cudaExtent(m.w, m.h, m.d);
      p.kind = cudaMemcpyDefault;
      if (way < 2) p.srcArray = solid, p.dstPtr = memory, p.dstPos = make_cudaPos(m.x, m.y, m.z);
      else p.dstArray = solid, p.srcPtr = memory, p.srcPos = make_cudaPos(m.x, m.y, m.z);
      int error = cudaMemcpy3D(&p);
      if (way == 1) cudaMemcpy(host.data(), device, host.size(), cudaMemcpyDeviceToHost);
      printf("memory %d, %zu %zu %zu at %zu %zu %zu of %zu %zu %zu: %d %08x %d\n", way, m.pitch, m.xsize, m.ysize, m.x, m.y,
             m.z, m.w, m.h, m.d, error, way < 2 ? sum(host) : 0, cudaGetLastError());
    }
  // Both, neither, and between arrays.
  cudaMemcpy3DParms p = {};
  p.extent = make_cudaExtent(4, 1, 1);
  printf("nothing: %d\n", cudaMemcpy3D(&p));
  p.srcArray = solid;
  printf("no target: %d\n", cudaMemcpy3D(&p));
  p.dstArray = solid, p.dstPos = make_cudaPos(8, 2, 1);
  for (int kind = 0; kind < 6; ++kind) {
    p.kind = static_cast<cudaMemcpyKind>(kind);
    printf("within, kind %d: %d\n", kind, cudaMemcpy3D(&p));
  }
  p.srcPtr = make_cudaPitchedPtr(device, 96, 96, 12);
  p.kind = cudaMemcpyDefault;
  printf("two sources: %d\n", cudaMemcpy3D(&p));
  p.srcPtr = {}, p.dstPtr = make_cudaPitchedPtr(device, 96, 96, 12);
  printf("two targets: %d\n", cudaMemcpy3D(&p));
  cudaGetLastError();
  cudaArray_t bytes = nullptr, plane = made(kShapes[1]);
  cudaChannelFormatDesc f = cudaCreateChannelDesc<unsigned char>();
  printf("%d\n", cudaMallocArray(&bytes, &f, 40, 10));
  for (size_t w : {1, 4, 10, 11, 20, 40}) {
    cudaMemcpy3DParms q = {};
    q.srcArray = plane, q.dstArray = bytes, q.extent = make_cudaExtent(w, 2, 1), q.kind = cudaMemcpyDeviceToDevice;
    printf("to bytes, %zu: %d\n", w, cudaMemcpy3D(&q));
    q.srcArray = bytes, q.dstArray = plane;
    printf("from bytes, %zu: %d\n", w, cudaMemcpy3D(&q));
  }
  cudaGetLastError();
  for (size_t w : {0, 4, 78, 80, 81, 84})
    for (size_t h : {0, 1, 10, 11})
      for (size_t x : {0, 4, 78, 80, 81})
        for (size_t y : {0, 5, 9, 10, 11}) {
          memset(host.data(), 0x5a, host.size());
          int a = cudaMemcpy2DFromArray(host.data(), 100, plane, x, y, w, h, cudaMemcpyDeviceToHost);
          unsigned got = sum(host);
          int b = cudaMemcpy2DToArray(plane, x, y, host.data(), 100, w, h, cudaMemcpyHostToDevice);
          int c = cudaMemcpy2DArrayToArray(plane, 0, 0, plane, x, y, w, h, cudaMemcpyDeviceToDevice);
          printf("2D at %zu %zu of %zu %zu: %d %08x, %d, %d\n", x, y, w, h, a, got, b, c);
          cudaFreeArray(plane);
          plane = made(kShapes[1]);
        }
  cudaGetLastError();
  for (size_t offset : {0, 4, 76, 80, 796, 800})
    for (size_t count : {0, 4, 80, 160, 724, 800, 804}) {
      memset(host.data(), 0x5a, host.size());
      int a = cudaMemcpyFromArray(host.data(), plane, offset % 80, offset / 80, count, cudaMemcpyDeviceToHost);
      printf("bytes at %zu, %zu: %d %08x\n", offset, count, a, sum(host));
    }
  printf("%d\n", cudaDeviceSynchronize());
  return 0;
}
