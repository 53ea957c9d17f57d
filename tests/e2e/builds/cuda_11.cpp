// A program with the interface of CUDA 11 where 12 has another one: what nvcc 11 makes of a source, by hand.
// Argument: a fat binary with `__global__ void twice(int *p)`.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

struct dim3 {
  unsigned x, y, z;
};
struct Wrapper {  // what the compiler registers
  unsigned magic, version;
  const void *image;
  void *unused;
};
struct ChannelDesc {
  int x, y, z, w, f;
};
struct ResourceDesc {
  int type;
  union {
    struct {
      void *pointer;
      ChannelDesc format;
      size_t size;
    } linear;
    char whole[56];
  };
};
struct Texture11 {  // cudaTextureDesc of 11: without seamlessCubemap
  int words[17];
};

extern "C" {
void **__cudaRegisterFatBinary(void *);
void __cudaRegisterFatBinaryEnd(void **);
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *);
int cudaRuntimeGetVersion(int *);
int cudaGetDeviceProperties(void *, int);
int cudaFuncGetAttributes(void *, const void *);
int cudaMalloc(void **, size_t);
int cudaMemcpy(void *, const void *, size_t, int);
int cudaStreamCreate(void **);
int cudaStreamSynchronize(void *);
int cudaStreamBeginCapture(void *, int);
int cudaStreamEndCapture(void *, void **);
int cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, void *);
int cudaGraphLaunch(void *, void *);
int cudaGraphInstantiate(void **, void *, void **node, char *log, size_t size);
int cudaGraphExecUpdate(void *, void *, void **node, int *result);
int cudaGetDriverEntryPoint(const char *, void **, unsigned long long);
int cudaCreateTextureObject(unsigned long long *, const ResourceDesc *, const Texture11 *, const void *);
int cudaBindTexture(size_t *, const void *, const void *, const void *, size_t);
}

static void twice() {}  // the host's stub: its address names the kernel

int main(int, char **argv) {
  std::vector<char> image;
  FILE *file = fopen(argv[1], "rb");
  if (!file) return 2;
  for (int c; (c = fgetc(file)) != EOF;) image.push_back(static_cast<char>(c));
  fclose(file);
  Wrapper wrapper{0x466243b1, 1, image.data(), nullptr};
  void **handle = __cudaRegisterFatBinary(&wrapper);
  const void *kernel = reinterpret_cast<const void *>(&twice);
  __cudaRegisterFunction(handle, reinterpret_cast<const char *>(kernel), const_cast<char *>("_Z5twicePi"), "_Z5twicePi",
                         -1, nullptr, nullptr, nullptr, nullptr, nullptr);
  __cudaRegisterFatBinaryEnd(handle);

  int version = 0;
  cudaRuntimeGetVersion(&version);
  printf("version %d\n", version);
  // Structures are shorter than 12's: nothing past their end is written.
  unsigned char place[1200];
  auto written = [&place] {
    size_t end = sizeof place;
    while (end && place[end - 1] == 0xa5) --end;
    return end;
  };
  memset(place, 0xa5, sizeof place);
  int error = cudaGetDeviceProperties(place, 0);
  printf("properties %d, %zu bytes\n", error, written());
  memset(place, 0xa5, sizeof place);
  error = cudaFuncGetAttributes(place, kernel);
  printf("attributes %d, %zu bytes\n", error, written());

  int *p = nullptr, value = 21;
  cudaMalloc(reinterpret_cast<void **>(&p), sizeof value);
  cudaMemcpy(p, &value, sizeof value, 1);
  void *stream = nullptr, *graph = nullptr, *exec = nullptr;
  void *arguments[] = {&p};
  cudaStreamCreate(&stream);
  cudaStreamBeginCapture(stream, 0);
  cudaLaunchKernel(kernel, {1, 1, 1}, {1, 1, 1}, arguments, 0, stream);
  cudaStreamEndCapture(stream, &graph);
  char log[8] = "before";
  void *node = nullptr;
  error = cudaGraphInstantiate(&exec, graph, &node, log, sizeof log);
  printf("instantiated %d, log \"%s\"\n", error, log);
  cudaGraphLaunch(exec, stream);
  cudaStreamSynchronize(stream);
  cudaMemcpy(&value, p, sizeof value, 2);
  printf("value %d\n", value);
  int result = -1;
  node = &result;
  error = cudaGraphExecUpdate(exec, graph, &node, &result);
  printf("updated %d, result %d, node %s\n", error, result, node ? "set" : "null");

  void *function = nullptr;
  error = cudaGetDriverEntryPoint("cuMemAlloc", &function, 0);
  printf("entry point %d %d\n", error, function != nullptr);

  // The description's end is not the end of 12's: the words after it are not its.
  struct {
    Texture11 description;
    int after[4];
  } texture{};
  for (int &word : texture.after) word = 1;
  ResourceDesc resource{};
  resource.type = 2;  // linear
  resource.linear.pointer = p;
  resource.linear.format = {32, 0, 0, 0, 0};
  resource.linear.size = sizeof value;
  unsigned long long object = 0;
  error = cudaCreateTextureObject(&object, &resource, &texture.description, nullptr);
  printf("texture %d\n", error);
  printf("texture reference %d\n", cudaBindTexture(nullptr, nullptr, p, nullptr, 4));
}
