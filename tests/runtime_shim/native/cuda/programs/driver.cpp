// Uses the driver API as its header declares it.  `driver CHECK IMAGE`: prints PASS, or what went
// wrong.  Here are the checks of contexts, devices and processes.
#include "driver.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

std::vector<char> image;
CUdevice device;
CUcontext context;

void start() {
  OK(cuInit(0));
  OK(cuDeviceGet(&device, 0));
  OK(cuDevicePrimaryCtxRetain(&context, device));
  OK(cuCtxSetCurrent(context));
}

CUfunction function(const char *name) {
  static CUmodule module = nullptr;
  CUfunction f;
  if (!module) OK(cuModuleLoadData(&module, image.data()));
  OK(cuModuleGetFunction(&f, module, name));
  return f;
}

void saxpy_with(CUfunction f, bool packed, CUstream stream) {
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

void contexts() {
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

void resolution() {
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
  RESULT(cuArray3DCreate(&array, &description), CUDA_ERROR_INVALID_VALUE);
  CUmipmappedArray levels;
  RESULT(cuMipmappedArrayCreate(&levels, &description, 1), CUDA_ERROR_NOT_SUPPORTED);  // exported, not implemented
}

void facts() {
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
  EXPECT(value == (major == 9 ? 227 : minor ? 99 : 163) << 10);
  OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
  printf("multiprocessors %d\n", value);
  for (int id = 1; id < CU_DEVICE_ATTRIBUTE_MAX; ++id)
    OK(cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(id), device));
  RESULT(cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(9999), device), CUDA_ERROR_INVALID_VALUE);
}

void fault() {
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

void forked() {
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

void ending() {
  atexit(atexit_check);  // registered before the driver's own, so it runs after it
  start();
}

void threads() {
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

// A reset takes memory and code from the device; libraries and their kernels come back by themselves.
void reset() {
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

int main(int argc, char **argv) {
  struct Check {
    const char *name;
    void (*run)();
  } const checks[] = {
      {"launch", launch},       {"library", library},       {"mixed", mixed},     {"variables", variables},
      {"shared", shared},       {"limits", limits},         {"extended", extended}, {"memory", memory},
      {"managed", managed}, {"managed_advice", managed_advice},
      {"boxes", boxes},         {"textures", textures},     {"parameters", parameters}, {"newer", newer},
      {"streams", streams},     {"contexts", contexts},     {"resolution", resolution}, {"facts", facts},
      {"fault", fault},         {"forked", forked},         {"ending", ending},   {"threads", threads},
      {"bad_image", bad_image}, {"no_code", no_code},     {"seam", seam},         {"reset", reset},
      {"refused", refused}, {"logs", logs},     {"virtual_memory", virtual_memory},     {"modules", modules},
      {"read_only_memory", read_only_memory}, {"no_access_memory", no_access_memory}, {"access_rights", access_rights}, {"mapped_ranges", mapped_ranges},
      {"shared_handles", shared_handles},
      {"ptx", ptx},             {"ptx_refused", ptx_refused},       {"ptx_link", ptx_link},
      {"ptx_link_files", ptx_link_files}, {"ptx_link_refused", ptx_link_refused}, {"ptx_result", ptx_result},
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
