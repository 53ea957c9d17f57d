// SPDX-License-Identifier: Apache-2.0
//
// Launches one kernel of fixtures/kernels through the driver API, loaded at run time, so that only
// a C++ compiler is needed.  Each line of standard input is a launch:
//   CUBIN KERNEL GRID BLOCK SHARED N START OUT_WORDS A B OUT
// where A and B are files of words to read and OUT is one to write.

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

namespace {

using Status = int;
using Pointer = unsigned long long;
using Handle = void *;

template <typename Function>
Function *find(Handle library, const char *name) {
    void *address = dlsym(library, name);
    if (address == nullptr) {
        std::printf("no %s\n", name);
        std::exit(2);
    }
    return reinterpret_cast<Function *>(address);
}

void check(Status status, const char *what, const std::string &kernel) {
    if (status == 0) return;
    std::printf("%s: %s: error %d\n", kernel.c_str(), what, status);
    std::exit(1);
}

std::vector<char> read(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        std::printf("cannot read %s\n", path.c_str());
        std::exit(2);
    }
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

int main() {
    Handle cuda = dlopen("libcuda.so.1", RTLD_NOW);
    if (cuda == nullptr) {
        std::printf("%s\n", dlerror());
        return 2;
    }
    auto init = find<Status(unsigned)>(cuda, "cuInit");
    auto retain = find<Status(Handle *, int)>(cuda, "cuDevicePrimaryCtxRetain");
    auto make_current = find<Status(Handle)>(cuda, "cuCtxSetCurrent");
    auto load = find<Status(Handle *, const void *)>(cuda, "cuModuleLoadData");
    auto function = find<Status(Handle *, Handle, const char *)>(cuda, "cuModuleGetFunction");
    auto allocate = find<Status(Pointer *, size_t)>(cuda, "cuMemAlloc_v2");
    auto release = find<Status(Pointer)>(cuda, "cuMemFree_v2");
    auto to_device = find<Status(Pointer, const void *, size_t)>(cuda, "cuMemcpyHtoD_v2");
    auto to_host = find<Status(void *, Pointer, size_t)>(cuda, "cuMemcpyDtoH_v2");
    auto launch = find<Status(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                              unsigned, Handle, void **, void **)>(cuda, "cuLaunchKernel");
    auto synchronize = find<Status()>(cuda, "cuCtxSynchronize");

    Handle context = nullptr;
    check(init(0), "cuInit", "");
    check(retain(&context, 0), "cuDevicePrimaryCtxRetain", "");
    check(make_current(context), "cuCtxSetCurrent", "");

    std::string cubin, kernel, file_a, file_b, file_out;
    unsigned grid, block, shared, start;
    int n;
    size_t out_words;
    while (std::cin >> cubin >> kernel >> grid >> block >> shared >> n >> start >> out_words >>
           file_a >> file_b >> file_out) {
        Handle module = nullptr, entry = nullptr;
        check(load(&module, read(cubin).data()), "cuModuleLoadData", kernel);
        check(function(&entry, module, kernel.c_str()), "cuModuleGetFunction", kernel);

        const std::vector<char> host_a = read(file_a), host_b = read(file_b);
        std::vector<uint32_t> out(out_words, start);
        const size_t out_bytes = out_words * sizeof(uint32_t);
        Pointer a = 0, b = 0, device_out = 0;
        check(allocate(&a, host_a.size()), "cuMemAlloc", kernel);
        check(allocate(&b, host_b.size()), "cuMemAlloc", kernel);
        check(allocate(&device_out, out_bytes), "cuMemAlloc", kernel);
        check(to_device(a, host_a.data(), host_a.size()), "cuMemcpyHtoD", kernel);
        check(to_device(b, host_b.data(), host_b.size()), "cuMemcpyHtoD", kernel);
        check(to_device(device_out, out.data(), out_bytes), "cuMemcpyHtoD", kernel);

        void *parameters[] = {&a, &b, &device_out, &n};
        check(launch(entry, grid, 1, 1, block, 1, 1, shared, nullptr, parameters, nullptr),
              "cuLaunchKernel", kernel);
        check(synchronize(), "cuCtxSynchronize", kernel);
        check(to_host(out.data(), device_out, out_bytes), "cuMemcpyDtoH", kernel);
        for (Pointer pointer : {a, b, device_out}) check(release(pointer), "cuMemFree", kernel);
        std::ofstream(file_out, std::ios::binary)
            .write(reinterpret_cast<const char *>(out.data()), static_cast<std::streamsize>(out_bytes));
    }
    std::printf("done\n");
}
