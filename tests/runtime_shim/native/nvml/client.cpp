// A client of NVML and of the driver as C programs are: NVML by its documented interface, declared here.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <fstream>
#include <iterator>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

extern "C" {
typedef struct nvmlDevice_st *nvmlDevice_t;
struct Memory { unsigned long long total, free, used; };
struct Memory2 { unsigned version; unsigned long long total, reserved, free, used; };
struct Process { unsigned pid; unsigned long long used; unsigned gpu, compute; };
struct Pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char text[32]; };
struct PciExt { unsigned version, domain, bus, device, id, subsystem, base, sub; char text[32]; };
struct Utilisation { unsigned gpu, memory; };
int nvmlInit_v2(), nvmlShutdown(), nvmlInitWithFlags(unsigned);
const char *nvmlErrorString(int);
int nvmlDeviceGetCount_v2(unsigned *);
int nvmlDeviceGetHandleByIndex_v2(unsigned, nvmlDevice_t *);
int nvmlDeviceGetHandleByUUID(const char *, nvmlDevice_t *);
int nvmlDeviceGetHandleByPciBusId_v2(const char *, nvmlDevice_t *);
int nvmlDeviceGetName(nvmlDevice_t, char *, unsigned);
int nvmlDeviceGetUUID(nvmlDevice_t, char *, unsigned);
int nvmlDeviceGetIndex(nvmlDevice_t, unsigned *);
int nvmlDeviceGetMemoryInfo(nvmlDevice_t, Memory *);
int nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t, Memory2 *);
int nvmlDeviceGetPciInfo_v3(nvmlDevice_t, Pci *);
int nvmlDeviceGetPciInfoExt(nvmlDevice_t, PciExt *);
int nvmlDeviceGetP2PStatus(nvmlDevice_t, nvmlDevice_t, unsigned, unsigned *);
int nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t, unsigned *, Process *);
int nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t, unsigned *, Process *);
int nvmlDeviceGetUtilizationRates(nvmlDevice_t, Utilisation *);
int nvmlDeviceGetCudaComputeCapability(nvmlDevice_t, int *, int *);
int nvmlDeviceGetTemperature(nvmlDevice_t, int, unsigned *);
int nvmlDeviceGetPowerUsage(nvmlDevice_t, unsigned *);
int nvmlDeviceGetClockInfo(nvmlDevice_t, int, unsigned *);
int nvmlSystemGetDriverVersion(char *, unsigned);
int nvmlSystemGetNVMLVersion(char *, unsigned);
int nvmlSystemGetCudaDriverVersion_v2(int *);
int nvmlSystemGetProcessName(unsigned, char *, unsigned);
}

#define IS(call, expected)                                                        \
  do {                                                                            \
    int is_result = (call);                                                       \
    if (is_result != (expected)) {                                                \
      printf("%d: " #call " gave %d\n", __LINE__, is_result);                     \
      exit(1);                                                                    \
    }                                                                             \
  } while (0)
#define TRUE(what)                                     \
  do {                                                 \
    if (!(what)) {                                     \
      printf("%d: not " #what "\n", __LINE__);         \
      exit(1);                                         \
    }                                                  \
  } while (0)

enum { kSuccess, kUninitialized, kInvalid, kNotSupported, kNotFound = 6, kSmall = 7, kVersion = 25 };

static void use_cuda(CUdeviceptr *out, size_t bytes) {
  CUcontext context;
  IS(cuInit(0), 0);
  IS(cuDevicePrimaryCtxRetain(&context, 0), 0);
  IS(cuCtxSetCurrent(context), 0);
  IS(cuMemAlloc(out, bytes), 0);
}

static void facts() {
  char text[96], again[96];
  unsigned count = 0, index = 9;
  nvmlDevice_t device = nullptr, same = nullptr;
  IS(nvmlDeviceGetCount_v2(&count), kUninitialized);
  IS(nvmlShutdown(), kUninitialized);
  IS(nvmlDeviceGetPowerUsage(device, &count), kUninitialized);
  IS(nvmlInitWithFlags(1u << 20), kInvalid);
  IS(nvmlInit_v2(), 0);
  IS(nvmlInit_v2(), 0);
  IS(nvmlShutdown(), 0);  // counted
  IS(nvmlDeviceGetCount_v2(&count), 0);
  TRUE(count == 1);
  IS(nvmlDeviceGetCount_v2(nullptr), kInvalid);
  IS(nvmlDeviceGetHandleByIndex_v2(1, &device), kInvalid);
  IS(nvmlDeviceGetHandleByIndex_v2(0, &device), 0);
  IS(nvmlDeviceGetIndex(device, &index), 0);
  TRUE(index == 0);
  IS(nvmlDeviceGetIndex(reinterpret_cast<nvmlDevice_t>(text), &index), kInvalid);
  IS(nvmlDeviceGetIndex(nullptr, &index), kInvalid);

  IS(nvmlDeviceGetUUID(device, text, 40), kSmall);  // "GPU-", 36 characters and a NUL
  IS(nvmlDeviceGetUUID(device, text, 41), 0);
  IS(nvmlDeviceGetHandleByUUID(text, &same), 0);
  TRUE(same == device);
  IS(nvmlDeviceGetHandleByUUID("GPU-00000000-0000-0000-0000-000000000000", &same), kNotFound);
  CUuuid uuid;
  CUdeviceptr memory;
  Memory before = {}, after = {};
  Memory2 second = {};
  unsigned processes = 0;
  Process process = {};
  IS(nvmlDeviceGetMemoryInfo(device, &before), 0);
  TRUE(before.used == 0 && before.free == before.total);
  IS(nvmlDeviceGetComputeRunningProcesses_v3(device, &processes, nullptr), 0);
  TRUE(processes == 0);

  use_cuda(&memory, 64u << 20);
  IS(cuDeviceGetUuid(&uuid, 0), 0);
  snprintf(again, 13, "GPU-%02x%02x%02x%02x", uuid.bytes[0] & 255, uuid.bytes[1] & 255, uuid.bytes[2] & 255,
           uuid.bytes[3] & 255);
  TRUE(!strncmp(text, again, 12));
  IS(cuDeviceGetName(again, sizeof again, 0), 0);
  IS(nvmlDeviceGetName(device, text, sizeof text), 0);
  TRUE(text[0] && !strcmp(text, again));
  size_t total = 0;
  IS(cuDeviceTotalMem(&total, 0), 0);
  IS(nvmlDeviceGetMemoryInfo(device, &after), 0);
  TRUE(after.total == total && before.total == total && after.used >= (64u << 20) && after.free + after.used == total);
  IS(nvmlDeviceGetMemoryInfo_v2(device, &second), kVersion);
  second.version = 0x02000028;
  IS(nvmlDeviceGetMemoryInfo_v2(device, &second), 0);
  TRUE(second.used >= (64u << 20) && second.used + second.free + second.reserved == second.total);
  IS(nvmlDeviceGetComputeRunningProcesses_v3(device, &processes, nullptr), kSmall);
  TRUE(processes == 1);
  IS(nvmlDeviceGetComputeRunningProcesses_v3(device, &processes, &process), 0);
  TRUE(process.pid == static_cast<unsigned>(getpid()) && process.used == second.used);
  IS(nvmlDeviceGetGraphicsRunningProcesses_v3(device, &processes, &process), 0);
  TRUE(processes == 0);
  IS(nvmlSystemGetProcessName(static_cast<unsigned>(getpid()), text, sizeof text), 0);
  TRUE(strstr(text, "client"));
  IS(nvmlSystemGetProcessName(0x7ffffff0, text, sizeof text), kNotFound);

  Pci pci = {};
  IS(cuDeviceGetPCIBusId(again, sizeof again, 0), 0);
  IS(nvmlDeviceGetPciInfo_v3(device, &pci), 0);
  TRUE(!strcasecmp(pci.legacy, again) && !strncmp(pci.text, "0000", 4) && !strcmp(pci.text + 4, pci.legacy));
  int number = -1;
  IS(cuDeviceGetAttribute(&number, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0), 0);
  TRUE(static_cast<unsigned>(number) == pci.domain);
  IS(cuDeviceGetAttribute(&number, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0), 0);
  TRUE(static_cast<unsigned>(number) == pci.bus);
  IS(cuDeviceGetAttribute(&number, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0), 0);
  TRUE(static_cast<unsigned>(number) == pci.device);
  PciExt more = {};
  IS(nvmlDeviceGetPciInfoExt(device, &more), kVersion);
  more.version = sizeof more | 1u << 24;
  IS(nvmlDeviceGetPciInfoExt(device, &more), 0);
  TRUE(more.domain == pci.domain && more.bus == pci.bus && more.device == pci.device && !strcmp(more.text, pci.text));
  unsigned status = 99;
  for (unsigned capability = 0; capability < 6; ++capability) {  // NVML_P2P_CAPS_INDEX_READ to UNKNOWN
    IS(nvmlDeviceGetP2PStatus(device, device, capability, &status), capability < 5 ? 0 : kInvalid);
    TRUE(status == 0);
  }
  IS(nvmlDeviceGetP2PStatus(device, device, 0, nullptr), kInvalid);
  IS(nvmlDeviceGetP2PStatus(device, nullptr, 0, &status), kInvalid);
  IS(nvmlDeviceGetHandleByPciBusId_v2(again, &same), 0);
  TRUE(same == device);
  IS(nvmlDeviceGetHandleByPciBusId_v2("0000:7f:1f.0", &same), kNotFound);
  IS(nvmlDeviceGetHandleByPciBusId_v2("here", &same), kInvalid);

  int major = 0, minor = 0, value = 0, driver = 0;
  unsigned clock = 0;
  IS(nvmlDeviceGetCudaComputeCapability(device, &major, &minor), 0);
  IS(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0), 0);
  TRUE(value == major);
  printf("capability %d.%d\n", major, minor);
  IS(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 0), 0);
  IS(nvmlDeviceGetClockInfo(device, 1, &clock), 0);
  TRUE(static_cast<unsigned>(value) / 1000 == clock);
  IS(nvmlDeviceGetClockInfo(device, 4, &clock), kInvalid);
  IS(nvmlDeviceGetTemperature(device, 0, &clock), kNotSupported);
  IS(nvmlDeviceGetPowerUsage(device, &clock), kNotSupported);
  IS(cuDriverGetVersion(&driver), 0);
  IS(nvmlSystemGetCudaDriverVersion_v2(&value), 0);
  TRUE(value == driver);
  IS(nvmlSystemGetDriverVersion(text, sizeof text), 0);
  IS(nvmlSystemGetNVMLVersion(again, sizeof again), 0);
  printf("versions %s %s\n", text, again);
  IS(nvmlSystemGetDriverVersion(text, 3), kSmall);
  TRUE(!strcmp(nvmlErrorString(0), "Success") && !strcmp(nvmlErrorString(kNotSupported), "Not Supported"));
  TRUE(!strcmp(nvmlErrorString(9), "Driver Not Loaded") && !strcmp(nvmlErrorString(12345), "Unknown Error"));
  IS(nvmlShutdown(), 0);
  IS(nvmlDeviceGetCount_v2(&count), kUninitialized);
}

// What a process asks NVML before it forks leaves CUDA to its children, as NVIDIA's does.
static void forks() {
  nvmlDevice_t device;
  Memory memory;
  Utilisation rates;
  char name[96];
  unsigned processes = 0;
  IS(nvmlInit_v2(), 0);
  IS(nvmlDeviceGetHandleByIndex_v2(0, &device), 0);
  IS(nvmlDeviceGetName(device, name, sizeof name), 0);
  IS(nvmlDeviceGetMemoryInfo(device, &memory), 0);
  IS(nvmlDeviceGetUtilizationRates(device, &rates), 0);
  for (int child = 0; child < 2; ++child) {
    pid_t pid = fork();
    if (!pid) {
      CUdeviceptr p;
      use_cuda(&p, 1u << 20);
      IS(nvmlDeviceGetMemoryInfo(device, &memory), 0);
      TRUE(memory.used >= 1u << 20);
      fflush(stdout);
      _exit(0);
    }
    int status = 1;
    waitpid(pid, &status, 0);
    TRUE(status == 0);
  }
  // And after CUDA was initialised, a child is told of the device, of which it has nothing.
  CUdeviceptr p;
  use_cuda(&p, 1u << 20);
  pid_t pid = fork();
  if (!pid) {
    IS(nvmlDeviceGetName(device, name, sizeof name), 0);
    IS(nvmlDeviceGetMemoryInfo(device, &memory), 0);
    TRUE(memory.used == 0);
    IS(nvmlDeviceGetComputeRunningProcesses_v3(device, &processes, nullptr), 0);
    fflush(stdout);
    _exit(0);
  }
  int status = 1;
  waitpid(pid, &status, 0);
  TRUE(status == 0);
}

static void busy(const char *image_path) {
  std::ifstream file(image_path, std::ios::binary);
  std::vector<char> image((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  nvmlDevice_t device;
  Utilisation rates = {77, 77};
  CUdeviceptr out;
  CUmodule module;
  CUfunction spin;
  use_cuda(&out, 4);
  IS(cuModuleLoadData(&module, image.data()), 0);
  IS(cuModuleGetFunction(&spin, module, "spin"), 0);
  unsigned rounds = 1;
  void *params[] = {&out, &rounds};
  IS(cuLaunchKernel(spin, 1, 1, 1, 32, 1, 1, 0, nullptr, params, nullptr), 0);  // translated now
  IS(cuCtxSynchronize(), 0);
  IS(nvmlInit_v2(), 0);
  IS(nvmlDeviceGetHandleByIndex_v2(0, &device), 0);
  IS(nvmlDeviceGetUtilizationRates(device, &rates), 0);
  usleep(400000);
  IS(nvmlDeviceGetUtilizationRates(device, &rates), 0);
  TRUE(rates.gpu == 0);  // nothing ran since
  rounds = 0;
  IS(cuLaunchKernel(spin, 1, 1, 1, 32, 1, 1, 0, nullptr, params, nullptr), 0);  // until the host writes
  usleep(600000);
  IS(nvmlDeviceGetUtilizationRates(device, &rates), 0);
  *reinterpret_cast<volatile unsigned *>(out) = 1;
  IS(cuCtxSynchronize(), 0);
  printf("while it ran: %u\n", rates.gpu);
  TRUE(rates.gpu >= 80 && rates.gpu <= 100);
}

int main(int argc, char **argv) {
  if (!strcmp(argv[1], "facts")) facts();
  if (!strcmp(argv[1], "forks")) forks();
  if (!strcmp(argv[1], "busy") && argc > 2) busy(argv[2]);
  printf("PASS\n");
}
