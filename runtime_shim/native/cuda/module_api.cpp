// The entry points of modules, libraries and kernels.
#include "capability.h"
#include "files.h"
#include "handles.h"
#include "jit.h"
#include "module.h"

using namespace sx;

namespace {

constexpr size_t kImageLimit = 1u << 30;

// When PTX is compiled: at its loading, or at the first look-up.
enum class Compile { Now, Later };

// Loads an image; `stays`: the application keeps it until the module is unloaded.
CUresult load_image(const void *data, bool stays, JitOptions &options, Compile compile, Module *&out) {
  if (!data) return CUDA_ERROR_INVALID_VALUE;
  ImageView image = view_image(data);
  // Images linked into a program are checked at their first use; a module loaded explicitly is checked here.
  if (!image.registered && (image.kind == ImageKind::Unknown || image.kind == ImageKind::Unreadable))
    return CUDA_ERROR_INVALID_IMAGE;
  bool ptx = has_ptx_alone(image);
  auto made = std::make_unique<Module>(image, stays || image.registered, ptx ? options.text() : "");
  if (ptx && (compile == Compile::Now || options.wants_log())) {
    Stopwatch watch;
    const Manifest *manifest;
    CUresult result = made->manifest(manifest);
    bool good = result == CUDA_SUCCESS;
    options.give(good ? made->log() : "", good ? "" : made->log(), watch.milliseconds());
    if (!good) return result;
  } else {
    options.give("", "", 0);
  }
  out = made.release();
  return CUDA_SUCCESS;
}

CUresult load_file(const char *path, JitOptions &options, Compile compile, Module *&out) {
  std::string data;
  if (!path) return CUDA_ERROR_INVALID_VALUE;
  if (!can_read(path)) return CUDA_ERROR_FILE_NOT_FOUND;
  if (!read_file(path, data, kImageLimit)) return CUDA_ERROR_INVALID_IMAGE;
  return load_image(data.c_str(), false, options, compile, out);
}

CUresult unload(const void *handle) {
  Module *module = find_module(handle);
  if (!module || !Handles<Module>::all().remove(module)) return CUDA_ERROR_INVALID_HANDLE;
  // Kernels under way still use it.
  hip().hipDeviceSynchronize();
  delete module;
  return CUDA_SUCCESS;
}

CUresult get_kernel(const void *handle, const char *name, Kernel *&out) {
  Module *module = find_module(handle);
  if (!module) return CUDA_ERROR_INVALID_HANDLE;
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  note("%s", name);
  return module->kernel(name, out);
}

CUresult get_global(CUdeviceptr *address, size_t *size, const void *handle, const char *name, bool managed = false) {
  Module *module = find_module(handle);
  if (!module) return CUDA_ERROR_INVALID_HANDLE;
  if (!name || (!address && !size)) return CUDA_ERROR_INVALID_VALUE;
  CUdeviceptr found = 0;
  size_t bytes = 0;
  CUresult result = module->global(current_device(), name, managed, found, bytes);
  if (result != CUDA_SUCCESS) return result;
  if (address) *address = found;
  if (size) *size = bytes;
  return CUDA_SUCCESS;
}

CUresult kernel_count(const void *handle, unsigned *count) {
  Module *module = find_module(handle);
  if (!module) return CUDA_ERROR_INVALID_HANDLE;
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  const Manifest *manifest;
  CUresult result = module->manifest(manifest);
  if (result == CUDA_SUCCESS) *count = static_cast<unsigned>(manifest->kernels.size());
  return result;
}

template <typename Handle>
CUresult enumerate(Handle *out, unsigned limit, const void *handle) {
  Module *module = find_module(handle);
  if (!module) return CUDA_ERROR_INVALID_HANDLE;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  const Manifest *manifest;
  CUresult result = module->manifest(manifest);
  if (result != CUDA_SUCCESS) return result;
  for (size_t i = 0; i < manifest->kernels.size() && i < limit; ++i) {
    Kernel *kernel;
    module->kernel_at(i, kernel);
    out[i] = reinterpret_cast<Handle>(kernel);
  }
  return CUDA_SUCCESS;
}

template <typename Handle>
CUresult name_of(const char **name, Handle handle) {
  Kernel *kernel = find_kernel(handle);
  if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  *name = kernel->info->name.c_str();
  return CUDA_SUCCESS;
}

template <typename Handle>
CUresult param_info(Handle handle, size_t index, size_t *offset, size_t *size) {
  Kernel *kernel = find_kernel(handle);
  if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
  if (!offset || index >= kernel->info->params.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = kernel->info->params[index].offset;
  if (size) *size = kernel->info->params[index].size;
  return CUDA_SUCCESS;
}

// The options of cuLibraryLoadData: whether the image stays.
bool is_preserved(const int *options, void *const *values, unsigned count) {
  for (unsigned i = 0; i < count; ++i)
    if (options && options[i] == CU_LIBRARY_BINARY_IS_PRESERVED) return !values || values[i] != nullptr;
  return false;
}

}  // namespace

SX_API cuModuleGetLoadingMode(int *mode) {
  return enter<Need::Nothing>(__func__, [&]() -> CUresult {
    if (!mode) return CUDA_ERROR_INVALID_VALUE;
    *mode = 2;  // CU_MODULE_LAZY_LOADING
    return CUDA_SUCCESS;
  });
}

SX_API cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, int *options, void **values) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (!module) return CUDA_ERROR_INVALID_VALUE;
    JitOptions jit;
    CUresult result = jit.add(count, options, values);
    if (result != CUDA_SUCCESS) return result;
    Module *loaded = nullptr;
    result = load_image(image, false, jit, Compile::Now, loaded);
    if (result == CUDA_SUCCESS) *module = loaded->module_handle();
    return result;
  });
}

SX_API cuModuleLoadData(CUmodule *module, const void *image) { return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr); }

SX_API cuModuleLoadFatBinary(CUmodule *module, const void *image) { return cuModuleLoadData(module, image); }

SX_API cuModuleLoad(CUmodule *module, const char *path) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (!module) return CUDA_ERROR_INVALID_VALUE;
    Module *loaded = nullptr;
    JitOptions none;
    CUresult result = load_file(path, none, Compile::Now, loaded);
    if (result == CUDA_SUCCESS) *module = loaded->module_handle();
    return result;
  });
}

SX_API cuModuleUnload(CUmodule module) {
  return enter<Need::Context>(__func__, [&] { return unload(module); });
}

SX_API cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (!function) return CUDA_ERROR_INVALID_VALUE;
    Kernel *kernel = nullptr;
    CUresult result = get_kernel(module, name, kernel);
    if (result == CUDA_SUCCESS) *function = kernel->function_handle();
    return result;
  });
}

SX_API cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *size, CUmodule module, const char *name) {
  return enter<Need::Context>(__func__, [&] { return get_global(address, size, module, name); });
}

SX_API cuModuleGetFunctionCount(unsigned *count, CUmodule module) {
  return enter<Need::Context>(__func__, [&] { return kernel_count(module, count); });
}

SX_API cuModuleEnumerateFunctions(CUfunction *functions, unsigned limit, CUmodule module) {
  return enter<Need::Context>(__func__, [&] { return enumerate(functions, limit, module); });
}

SX_API cuLibraryLoadData(CUlibrary *library, const void *image, int *jit_options, void **jit_values, unsigned jit_count,
                         int *options, void **values, unsigned count) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    if (!library) return CUDA_ERROR_INVALID_VALUE;
    JitOptions jit;
    CUresult result = jit.add(jit_count, jit_options, jit_values);
    if (result != CUDA_SUCCESS) return result;
    Module *loaded = nullptr;
    result = load_image(image, is_preserved(options, values, count), jit, Compile::Later, loaded);
    if (result == CUDA_SUCCESS) *library = loaded->library_handle();
    return result;
  });
}

SX_API cuLibraryLoadFromFile(CUlibrary *library, const char *path, int *jit_options, void **jit_values, unsigned jit_count,
                             int *, void **, unsigned) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    if (!library) return CUDA_ERROR_INVALID_VALUE;
    JitOptions jit;
    CUresult result = jit.add(jit_count, jit_options, jit_values);
    if (result != CUDA_SUCCESS) return result;
    Module *loaded = nullptr;
    result = load_file(path, jit, Compile::Later, loaded);
    if (result == CUDA_SUCCESS) *library = loaded->library_handle();
    return result;
  });
}

SX_API cuLibraryUnload(CUlibrary library) {
  return enter<Need::Init>(__func__, [&] { return unload(library); });
}

SX_API cuLibraryGetKernel(CUkernel *out, CUlibrary library, const char *name) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    Kernel *kernel = nullptr;
    CUresult result = get_kernel(library, name, kernel);
    if (result == CUDA_SUCCESS) *out = kernel->kernel_handle();
    return result;
  });
}

SX_API cuLibraryGetKernelCount(unsigned *count, CUlibrary library) {
  return enter<Need::Init>(__func__, [&] { return kernel_count(library, count); });
}

SX_API cuLibraryEnumerateKernels(CUkernel *kernels, unsigned limit, CUlibrary library) {
  return enter<Need::Init>(__func__, [&] { return enumerate(kernels, limit, library); });
}

SX_API cuLibraryGetModule(CUmodule *module, CUlibrary library) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    Module *found = find_module(library);
    if (!found) return CUDA_ERROR_INVALID_HANDLE;
    if (!module) return CUDA_ERROR_INVALID_VALUE;
    *module = found->module_handle();
    return CUDA_SUCCESS;
  });
}

SX_API cuLibraryGetGlobal(CUdeviceptr *address, size_t *size, CUlibrary library, const char *name) {
  return enter<Need::Context>(__func__, [&] { return get_global(address, size, library, name); });
}

SX_API cuLibraryGetManaged(CUdeviceptr *address, size_t *size, CUlibrary library, const char *name) {
  return enter<Need::Context>(__func__, [&] { return get_global(address, size, library, name, true); });
}

SX_API cuKernelGetFunction(CUfunction *function, CUkernel handle) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    Kernel *kernel = find_kernel(handle);
    if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
    if (!function) return CUDA_ERROR_INVALID_VALUE;
    *function = kernel->function_handle();
    return CUDA_SUCCESS;
  });
}

SX_API cuKernelGetLibrary(CUlibrary *library, CUkernel handle) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    Kernel *kernel = find_kernel(handle);
    if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
    if (!library) return CUDA_ERROR_INVALID_VALUE;
    *library = kernel->owner->library_handle();
    return CUDA_SUCCESS;
  });
}

SX_API cuFuncGetModule(CUmodule *module, CUfunction handle) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    Kernel *kernel = find_kernel(handle);
    if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
    if (!module) return CUDA_ERROR_INVALID_VALUE;
    *module = kernel->owner->module_handle();
    return CUDA_SUCCESS;
  });
}

SX_API cuKernelGetName(const char **name, CUkernel kernel) {
  return enter<Need::Init>(__func__, [&] { return name_of(name, kernel); });
}
SX_API cuFuncGetName(const char **name, CUfunction function) {
  return enter<Need::Init>(__func__, [&] { return name_of(name, function); });
}
SX_API cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *size) {
  return enter<Need::Init>(__func__, [&] { return param_info(kernel, index, offset, size); });
}
SX_API cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size) {
  return enter<Need::Init>(__func__, [&] { return param_info(function, index, offset, size); });
}
// Whether it is translated already; loading it is what its first use does.
SX_API cuFuncIsLoaded(int *state, CUfunction function) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    if (!find_kernel(function)) return CUDA_ERROR_INVALID_HANDLE;
    if (!state) return CUDA_ERROR_INVALID_VALUE;
    *state = 1;
    return CUDA_SUCCESS;
  });
}

SX_API cuFuncLoad(CUfunction function) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    Kernel *kernel = find_kernel(function);
    hipFunction_t loaded;
    return kernel ? kernel->load(current_device(), loaded) : CUDA_ERROR_INVALID_HANDLE;
  });
}
