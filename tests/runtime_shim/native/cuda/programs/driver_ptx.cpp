// PTX: modules, libraries, the linker, their options and their errors.  The module of the command line is PTX.
#include "driver.h"

#include <cstring>
#include <string>

namespace {

const std::string kHead = ".version 7.0\n.target sm_52\n.address_size 64\n";

// Stores f(thread) at out[thread]; f comes from another piece.
const std::string kCaller = kHead + R"(
.extern .func (.param .u32 r) f (.param .u32 a);
.visible .entry caller(.param .u64 out) {
  .reg .u64 %o, %d; .reg .u32 %t, %v;
  ld.param.u64 %o, [out];
  mov.u32 %t, %tid.x;
  { .param .u32 a; .param .u32 r; st.param.u32 [a], %t; call (r), f, (a); ld.param.u32 %v, [r]; }
  mul.wide.u32 %d, %t, 4;
  add.u64 %d, %d, %o;
  st.global.u32 [%d], %v;
  ret;
})";

std::string callee(int number) {
  return kHead + R"(
.visible .func (.param .u32 r) f (.param .u32 a) {
  .reg .u32 %v;
  ld.param.u32 %v, [a];
  add.u32 %v, %v, )" + std::to_string(number) + R"(;
  st.param.u32 [r], %v;
  ret;
})";
}

const std::string kPlain = kHead + ".visible .entry plain() { ret; }\n";

void runs(const void *cubin, unsigned expected) {
  CUmodule module;
  CUfunction f;
  CUdeviceptr out;
  OK(cuModuleLoadData(&module, cubin));
  OK(cuModuleGetFunction(&f, module, "caller"));
  OK(cuMemAlloc(&out, 128));
  void *arguments[] = {&out};
  OK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
  unsigned found[32];
  OK(cuMemcpyDtoH(found, out, sizeof found));
  for (unsigned i = 0; i < 32; ++i) EXPECT(found[i] == i + expected);
  OK(cuMemFree(out));
  OK(cuModuleUnload(module));
}

// The application's buffers, as the driver wants them.
struct Logs {
  char info[4096], error[4096];
  std::vector<CUjit_option> names;
  std::vector<void *> values;

  Logs() {
    memset(info, 'i', sizeof info);
    memset(error, 'e', sizeof error);
    set(CU_JIT_INFO_LOG_BUFFER, info);
    set(CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, reinterpret_cast<void *>(sizeof info));
    set(CU_JIT_ERROR_LOG_BUFFER, error);
    set(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, reinterpret_cast<void *>(sizeof error));
  }
  void set(CUjit_option name, void *value) {
    names.push_back(name);
    values.push_back(value);
  }
  void number(CUjit_option name, size_t value) { set(name, reinterpret_cast<void *>(value)); }
  unsigned count() const { return unsigned(names.size()); }
  // The bytes that the driver says it filled are those before the NUL.
  void whole() const {
    EXPECT(strlen(info) == reinterpret_cast<size_t>(values[1]));
    EXPECT(strlen(error) == reinterpret_cast<size_t>(values[3]));
  }
};

CUresult load(const std::string &text, Logs &logs) {
  CUmodule module;
  CUresult result = cuModuleLoadDataEx(&module, text.c_str(), logs.count(), logs.names.data(), logs.values.data());
  logs.whole();
  if (result == CUDA_SUCCESS) OK(cuModuleUnload(module));
  return result;
}

CUresult add(CUlinkState state, const std::string &text, const char *name) {
  return cuLinkAddData(state, CU_JIT_INPUT_PTX, const_cast<char *>(text.c_str()), text.size() + 1, name, 0, nullptr, nullptr);
}

}  // namespace

void ptx() {
  start();
  saxpy_with(function("saxpy"), false, nullptr);

  CUlibrary library;
  CUkernel kernel;
  OK(cuLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  OK(cuLibraryGetKernel(&kernel, library, "saxpy"));
  saxpy_with(reinterpret_cast<CUfunction>(kernel), false, nullptr);
  OK(cuLibraryUnload(library));

  Logs logs;
  logs.number(CU_JIT_LOG_VERBOSE, 1);
  logs.number(CU_JIT_MAX_REGISTERS, 24);
  logs.number(CU_JIT_OPTIMIZATION_LEVEL, 1);
  logs.number(CU_JIT_GENERATE_LINE_INFO, 1);
  logs.number(CU_JIT_CACHE_MODE, CU_JIT_CACHE_OPTION_CG);
  logs.number(CU_JIT_WALL_TIME, 0);
  CUmodule module;
  CUfunction f;
  OK(cuModuleLoadDataEx(&module, image.data(), logs.count(), logs.names.data(), logs.values.data()));
  logs.whole();
  EXPECT(strstr(logs.info, "registers") && !*logs.error);
  float passed;
  memcpy(&passed, &logs.values.back(), sizeof passed);
  EXPECT(passed > 0 && passed < 600000);
  OK(cuModuleGetFunction(&f, module, "saxpy"));
  int registers;
  OK(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
  EXPECT(registers <= 24);
  saxpy_with(f, false, nullptr);

  // Another target than the device.
  Logs target;
  target.number(CU_JIT_TARGET, CU_TARGET_COMPUTE_75);
  const std::string low = kHead + ".visible .entry low() { ret; }\n";
  OK(cuModuleLoadDataEx(&module, low.c_str(), target.count(), target.names.data(), target.values.data()));
  OK(cuModuleGetFunction(&f, module, "low"));
  int version;
  OK(cuFuncGetAttribute(&version, CU_FUNC_ATTRIBUTE_BINARY_VERSION, f));
  EXPECT(version == 75);

  // Debug information switches optimisation off, whatever its level.
  Logs debug;
  debug.number(CU_JIT_GENERATE_DEBUG_INFO, 1);
  debug.number(CU_JIT_OPTIMIZATION_LEVEL, 3);
  OK(load(kPlain, debug));

  // A log that is too short is cut, and ends.
  Logs cut;
  cut.values[1] = reinterpret_cast<void *>(8);
  cut.number(CU_JIT_LOG_VERBOSE, 1);
  OK(load(kPlain, cut));
  EXPECT(strlen(cut.info) == 7 && cut.info[8] == 'i');
}

// What applications are told of PTX that cannot be compiled.
void ptx_refused() {
  start();
  Logs broken;
  RESULT(load(kHead + ".visible .entry k() { mvo.u32 %r, 1; ret; }", broken), CUDA_ERROR_INVALID_PTX);
  EXPECT(strstr(broken.error, "application ptx input, line 4") && strstr(broken.error, "mvo") && !*broken.info);
  Logs missing;
  RESULT(load(kCaller, missing), CUDA_ERROR_INVALID_PTX);
  EXPECT(strstr(missing.error, "'f'"));
  Logs newer;
  RESULT(load(".version 99.0\n.target sm_52\n.address_size 64\n", newer), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  EXPECT(strstr(newer.error, "99.0"));
  Logs above;
  RESULT(load(".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n", above), CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT(strstr(above.error, "sm_90"));
  Logs value;
  value.number(CU_JIT_OPTIMIZATION_LEVEL, 5);
  CUmodule module;
  RESULT(cuModuleLoadDataEx(&module, kPlain.c_str(), value.count(), value.names.data(), value.values.data()), CUDA_ERROR_INVALID_VALUE);
  CUjit_option unknown = CUjit_option(77);
  void *nothing = nullptr;
  RESULT(cuModuleLoadDataEx(&module, kPlain.c_str(), 1, &unknown, &nothing), CUDA_ERROR_INVALID_VALUE);
  CUjit_option symbols = CU_JIT_GLOBAL_SYMBOL_COUNT;
  void *one = reinterpret_cast<void *>(1);
  RESULT(cuModuleLoadDataEx(&module, kPlain.c_str(), 1, &symbols, &one), CUDA_ERROR_NOT_SUPPORTED);
  // What follows is not affected.
  saxpy_with(function("saxpy"), false, nullptr);
}

void ptx_link() {
  start();
  CUlinkState state;
  void *cubin;
  size_t size;
  Logs logs;
  logs.number(CU_JIT_LOG_VERBOSE, 1);
  OK(cuLinkCreate(logs.count(), logs.names.data(), logs.values.data(), &state));
  OK(add(state, kCaller, "caller.ptx"));
  OK(add(state, callee(7), "callee.ptx"));
  OK(cuLinkComplete(state, &cubin, &size));
  logs.whole();
  EXPECT(strstr(logs.info, "registers") && !*logs.error);
  runs(cubin, 7);
  // The same again, and nothing can be added any more.
  void *again;
  OK(cuLinkComplete(state, &again, nullptr));
  EXPECT(again == cubin);
  RESULT(add(state, kPlain, "late"), CUDA_ERROR_INVALID_VALUE);
  std::vector<char> linked(static_cast<char *>(cubin), static_cast<char *>(cubin) + size);
  OK(cuLinkDestroy(state));
  RESULT(cuLinkDestroy(state), CUDA_ERROR_INVALID_HANDLE);
  runs(linked.data(), 7);

  // One piece alone: no nvlink is needed for PTX, or for what is linked.
  OK(cuLinkCreate(0, nullptr, nullptr, &state));
  OK(add(state, kPlain, "plain"));
  OK(cuLinkComplete(state, &cubin, &size));
  OK(cuLinkDestroy(state));
  OK(cuLinkCreate(0, nullptr, nullptr, &state));
  OK(cuLinkAddData(state, CU_JIT_INPUT_CUBIN, linked.data(), linked.size(), "linked", 0, nullptr, nullptr));
  OK(cuLinkComplete(state, &cubin, &size));
  EXPECT(size == linked.size() && !memcmp(cubin, linked.data(), size));
  // A part of another program it cannot be: its kernels would be lost.
  OK(cuLinkDestroy(state));
  OK(cuLinkCreate(0, nullptr, nullptr, &state));
  OK(cuLinkAddData(state, CU_JIT_INPUT_CUBIN, linked.data(), linked.size(), "linked", 0, nullptr, nullptr));
  OK(add(state, callee(1), "callee"));
  RESULT(cuLinkComplete(state, &cubin, &size), CUDA_ERROR_UNKNOWN);
  OK(cuLinkDestroy(state));
}

// Pieces as files; their names are in the environment: an object, a fat binary, an archive, a cubin, each with f.
void ptx_link_files() {
  start();
  const char *names[] = {"PIECE_OBJECT", "PIECE_FATBIN", "PIECE_LIBRARY", "PIECE_CUBIN", "PIECE_PTX"};
  CUjitInputType kinds[] = {CU_JIT_INPUT_OBJECT, CU_JIT_INPUT_FATBINARY, CU_JIT_INPUT_LIBRARY, CU_JIT_INPUT_CUBIN, CU_JIT_INPUT_PTX};
  for (int i = 0; i < 5; ++i) {
    CUlinkState state;
    void *cubin;
    size_t size;
    OK(cuLinkCreate(0, nullptr, nullptr, &state));
    OK(add(state, kCaller, "caller"));
    OK(cuLinkAddFile(state, kinds[i], getenv(names[i]), 0, nullptr, nullptr));
    OK(cuLinkComplete(state, &cubin, &size));
    runs(cubin, 9);
    OK(cuLinkDestroy(state));
  }
  // A relocatable cubin or PTX that is called PTX or a fat binary is taken as what it is (an H100, driver 13.0).
  for (const char *name : {"PIECE_CUBIN", "PIECE_PTX"})
    for (CUjitInputType kind : {CU_JIT_INPUT_PTX, CU_JIT_INPUT_FATBINARY}) {
      std::vector<char> piece;
      FILE *file = fopen(getenv(name), "rb");
      for (int c; (c = fgetc(file)) != EOF;) piece.push_back(static_cast<char>(c));
      fclose(file);
      CUlinkState state;
      void *cubin;
      size_t size;
      OK(cuLinkCreate(0, nullptr, nullptr, &state));
      OK(add(state, kCaller, "caller"));
      OK(cuLinkAddData(state, kind, piece.data(), piece.size(), "callee", 0, nullptr, nullptr));
      OK(cuLinkComplete(state, &cubin, &size));
      runs(cubin, 9);
      OK(cuLinkDestroy(state));
    }
}

void ptx_link_refused() {
  start();
  CUlinkState state;
  void *cubin;
  size_t size;
  Logs logs;
  OK(cuLinkCreate(logs.count(), logs.names.data(), logs.values.data(), &state));
  RESULT(cuLinkComplete(nullptr, &cubin, &size), CUDA_ERROR_INVALID_HANDLE);
  RESULT(add(state, "rubbish", "rubbish"), CUDA_ERROR_INVALID_PTX);
  EXPECT(strstr(logs.error, ".version"));
  // A NUL within it, as its size says.
  std::string nul = kPlain + std::string(1, '\0') + "more";
  RESULT(add(state, nul, "nul"), CUDA_ERROR_INVALID_PTX);
  RESULT(cuLinkAddData(state, CU_JIT_INPUT_CUBIN, const_cast<char *>("rubbish"), 8, "x", 0, nullptr, nullptr), CUDA_ERROR_INVALID_IMAGE);
  RESULT(cuLinkAddData(state, CU_JIT_INPUT_FATBINARY, const_cast<char *>("rubbish"), 8, "x", 0, nullptr, nullptr), CUDA_ERROR_INVALID_IMAGE);
  RESULT(cuLinkAddData(state, CUjitInputType(9), const_cast<char *>("rubbish"), 8, "x", 0, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuLinkAddData(state, CU_JIT_INPUT_NVVM, const_cast<char *>("rubbish"), 8, "x", 0, nullptr, nullptr), CUDA_ERROR_NOT_SUPPORTED);
  RESULT(cuLinkAddFile(state, CU_JIT_INPUT_PTX, "/nowhere", 0, nullptr, nullptr), CUDA_ERROR_FILE_NOT_FOUND);
  // A cubin that only looks like one.
  OK(cuLinkAddData(state, CU_JIT_INPUT_CUBIN, const_cast<char *>("\x7f" "ELF rubbish"), 12, "x", 0, nullptr, nullptr));
  RESULT(cuLinkComplete(state, &cubin, &size), CUDA_ERROR_INVALID_IMAGE);
  OK(cuLinkDestroy(state));

  Logs undefined;
  OK(cuLinkCreate(undefined.count(), undefined.names.data(), undefined.values.data(), &state));
  OK(add(state, kCaller, "caller"));
  OK(add(state, kPlain, "plain"));
  RESULT(cuLinkComplete(state, &cubin, &size), CUDA_ERROR_UNKNOWN);
  undefined.whole();
  EXPECT(strstr(undefined.error, "Undefined reference to 'f'"));
  OK(cuLinkDestroy(state));

  Logs twice;
  OK(cuLinkCreate(twice.count(), twice.names.data(), twice.values.data(), &state));
  OK(add(state, kCaller, "caller"));
  OK(add(state, callee(1), "one"));
  OK(add(state, callee(2), "two"));
  RESULT(cuLinkComplete(state, &cubin, &size), CUDA_ERROR_UNKNOWN);
  EXPECT(strstr(twice.error, "Multiple definition of 'f'"));
  OK(cuLinkDestroy(state));
}

// Prints what loading the module of the command line says; for tools that fail.
void ptx_result() {
  start();
  CUmodule module;
  Logs logs;
  CUresult result = cuModuleLoadDataEx(&module, image.data(), logs.count(), logs.names.data(), logs.values.data());
  logs.whole();
  printf("result %d\nlog %zu\n", result, strlen(logs.error));
}
