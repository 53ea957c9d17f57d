// Memory that another process opens by a file descriptor.
#include "driver.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace {

constexpr size_t kPage = 2u << 20;
constexpr int kWords = 128;

CUmemAllocationProp shared_memory(CUmemAllocationHandleType type) {
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  prop.requestedHandleTypes = type;
  return prop;
}

// All of the memory, readable and writable.
CUdeviceptr mapped(CUmemGenericAllocationHandle memory, size_t size) {
  CUdeviceptr base = 0;
  CUmemAccessDesc both = {};
  both.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  both.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  OK(cuMemAddressReserve(&base, size, 0, 0, 0));
  OK(cuMemMap(base, size, 0, memory, 0));
  OK(cuMemSetAccess(base, size, &both, 1));
  return base;
}

void send_file(int socket, int file) {
  char byte = 0, control[CMSG_SPACE(sizeof file)] = {};
  iovec data = {&byte, 1};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr *head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof file);
  memcpy(CMSG_DATA(head), &file, sizeof file);
  EXPECT(sendmsg(socket, &message, 0) == 1);
}

int received_file(int socket) {
  char byte, control[CMSG_SPACE(sizeof(int))];
  iovec data = {&byte, 1};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  EXPECT(recvmsg(socket, &message, 0) == 1 && CMSG_FIRSTHDR(&message));
  int file;
  memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof file);
  return file;
}

CUmemGenericAllocationHandle imported(int file) {
  CUmemGenericAllocationHandle memory = 0;
  OK(cuMemImportFromShareableHandle(&memory, reinterpret_cast<void *>(static_cast<uintptr_t>(file)),
                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  return memory;
}

// The other process: y = 2 x + y by a kernel, with x in the first page and y in the second.
int other_process(int socket) {
  const int file = received_file(socket);
  start();
  const CUmemGenericAllocationHandle memory = imported(file);
  close(file);  // the memory has its own
  CUmemAllocationProp told = {};
  OK(cuMemGetAllocationPropertiesFromHandle(&told, memory));
  EXPECT(told.type == CU_MEM_ALLOCATION_TYPE_PINNED && told.requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  CUdeviceptr x = mapped(memory, 2 * kPage), y = x + kPage;
  OK(cuMemRelease(memory));
  int n = kWords;
  float a = 2.0f;
  void *params[] = {&n, &a, &x, &y};
  OK(cuLaunchKernel(function("saxpy"), 2, 1, 1, 64, 1, 1, 0, nullptr, params, nullptr));
  OK(cuCtxSynchronize());
  OK(cuMemUnmap(x, 2 * kPage));
  OK(cuMemAddressFree(x, 2 * kPage));
  return 0;
}

// Descriptors that are no memory of a device's.
void wrong_files(int file) {
  CUmemGenericAllocationHandle memory = 0;
  const int null = open("/dev/null", O_RDWR), plain = memfd_create("plain", 0), reading = open("/proc/self/exe", O_RDONLY);
  EXPECT(ftruncate(plain, kPage) == 0);
  for (const int one : {-1, 9999, null, plain, reading})
    RESULT(cuMemImportFromShareableHandle(&memory, reinterpret_cast<void *>(static_cast<intptr_t>(one)),
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemImportFromShareableHandle(nullptr, reinterpret_cast<void *>(static_cast<intptr_t>(file)),
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), CUDA_ERROR_INVALID_VALUE);
  for (const int one : {null, plain, reading}) close(one);
}

}  // namespace

void shared_handles() {
  int sockets[2];
  EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
  const pid_t other = fork();  // before this process has anything of the driver's
  if (other == 0) _exit(other_process(sockets[1]));
  start();
  int can = 0;
  OK(cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, device));
  EXPECT(can == 1);
  const CUmemAllocationProp prop = shared_memory(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  saxpy_with(function("saxpy"), false, nullptr);  // the module takes memory when it is used first
  size_t before = 0, after = 0, total = 0;
  OK(cuMemGetInfo(&before, &total));
  CUmemGenericAllocationHandle memory = 0, mine = 0;
  OK(cuMemCreate(&memory, 2 * kPage, &prop, 0));
  OK(cuMemGetInfo(&after, &total));
  EXPECT(before - after == 2 * kPage);
  int file = -1;
  OK(cuMemExportToShareableHandle(&file, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  EXPECT(file >= 0);
  EXPECT(ftruncate(file, 4096) != 0);  // its pages are not taken from the others
  wrong_files(file);
  const CUdeviceptr x = mapped(memory, 2 * kPage), y = x + kPage;
  std::vector<float> numbers(kWords, 3.0f), got(kWords);
  OK(cuMemcpyHtoD(x, numbers.data(), sizeof(float) * kWords));
  OK(cuMemsetD32(y, 0x3f800000, kWords));  // 1.0f

  // In the same process it is the same memory at a second place, and is counted once.
  mine = imported(file);
  OK(cuMemGetInfo(&after, &total));
  EXPECT(before - after == 2 * kPage);
  const CUdeviceptr again = mapped(mine, 2 * kPage);
  OK(cuMemcpyDtoH(got.data(), again, sizeof(float) * kWords));
  EXPECT(got == numbers);
  OK(cuMemUnmap(again, 2 * kPage));
  OK(cuMemAddressFree(again, 2 * kPage));
  OK(cuMemRelease(mine));

  send_file(sockets[0], file);
  close(file);
  int status = -1;
  EXPECT(waitpid(other, &status, 0) == other && status == 0);
  OK(cuMemcpyDtoH(got.data(), y, sizeof(float) * kWords));
  EXPECT(got[0] == 7.0f && got[kWords - 1] == 7.0f);
  OK(cuMemUnmap(x, 2 * kPage));
  OK(cuMemAddressFree(x, 2 * kPage));
  OK(cuMemRelease(memory));
  OK(cuMemGetInfo(&after, &total));
  EXPECT(after == before);

  // Memory that is not made for it.
  CUmemAllocationProp plain = shared_memory(CU_MEM_HANDLE_TYPE_NONE);
  OK(cuMemCreate(&memory, kPage, &plain, 0));
  RESULT(cuMemExportToShareableHandle(&file, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuMemExportToShareableHandle(nullptr, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemRelease(memory));
}
