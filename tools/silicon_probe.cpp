// SPDX-License-Identifier: Apache-2.0
//
// Runs instruction words in the slot of fixtures/silicon/sm_90/template.cubin through the driver
// API, on the device that it finds: NVIDIA's, or ours under `sassxlate run --keep-status`.
//
//   silicon_probe TEMPLATE SLOT WORDS INPUTS RESULTS [FIRST]
//
// SLOT is the offset of the slot in the file.  Each line of WORDS is 32 hexadecimal digits and the
// number of a class of inputs; INPUTS holds 256 vectors of ten words a class.  For each word RESULTS
// gets a status and 256 times three words, behind what it holds.  A word that the device cannot
// execute leaves the context unusable: the program then says `next N` and ends with 7, to be
// started again with FIRST = N.

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

constexpr int kVectors = 256, kInputWords = 10, kResultWords = 3, kWarp = 32;
constexpr int kNotSupported = 801, kNoBinary = 209;

using Pointer = unsigned long long;
using Handle = void *;

template <typename Function>
Function *find(Handle library, const char *name) {
    void *address = dlsym(library, name);
    if (address == nullptr) {
        std::fprintf(stderr, "no %s\n", name);
        std::exit(2);
    }
    return reinterpret_cast<Function *>(address);
}

std::vector<char> read(const char *path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

struct Driver {
    explicit Driver(Handle l)
        : init(find<int(unsigned)>(l, "cuInit")),
          retain(find<int(Handle *, int)>(l, "cuDevicePrimaryCtxRetain")),
          use(find<int(Handle)>(l, "cuCtxSetCurrent")),
          load(find<int(Handle *, const void *)>(l, "cuModuleLoadData")),
          unload(find<int(Handle)>(l, "cuModuleUnload")),
          function(find<int(Handle *, Handle, const char *)>(l, "cuModuleGetFunction")),
          allocate(find<int(Pointer *, size_t)>(l, "cuMemAlloc_v2")),
          put(find<int(Pointer, const void *, size_t)>(l, "cuMemcpyHtoD_v2")),
          get(find<int(void *, Pointer, size_t)>(l, "cuMemcpyDtoH_v2")),
          launch(find<int(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          Handle, void **, void **)>(l, "cuLaunchKernel")),
          wait(find<int()>(l, "cuCtxSynchronize")) {}

    int (*init)(unsigned);
    int (*retain)(Handle *, int);
    int (*use)(Handle);
    int (*load)(Handle *, const void *);
    int (*unload)(Handle);
    int (*function)(Handle *, Handle, const char *);
    int (*allocate)(Pointer *, size_t);
    int (*put)(Pointer, const void *, size_t);
    int (*get)(void *, Pointer, size_t);
    int (*launch)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle,
                  void **, void **);
    int (*wait)();
};

}  // namespace

int main(int count, char **arguments) {
    if (count < 6) {
        std::fputs("silicon_probe TEMPLATE SLOT WORDS INPUTS RESULTS [FIRST]\n", stderr);
        return 2;
    }
    Handle library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) {
        std::fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    const Driver cuda(library);
    std::vector<char> cubin = read(arguments[1]);
    const size_t slot = std::strtoul(arguments[2], nullptr, 0);
    const std::vector<char> inputs = read(arguments[4]);
    std::ifstream words(arguments[3]);
    std::ofstream results(arguments[5], std::ios::binary | std::ios::app);
    if (slot + 16 > cubin.size() || inputs.empty() || !words || !results) {
        std::fputs("a file cannot be read or written\n", stderr);
        return 2;
    }
    const int first = count > 6 ? std::atoi(arguments[6]) : 0;

    Handle context = nullptr;
    Pointer source = 0, target = 0;
    std::array<uint32_t, kVectors * kResultWords> out{};
    if (cuda.init(0) || cuda.retain(&context, 0) || cuda.use(context) ||
        cuda.allocate(&source, inputs.size()) || cuda.put(source, inputs.data(), inputs.size()) ||
        cuda.allocate(&target, sizeof out)) {
        std::fputs("no device\n", stderr);
        return 2;
    }
    std::string line;
    for (int number = 0; std::getline(words, line); ++number) {
        if (number < first) continue;
        const uint64_t high = std::strtoull(line.substr(0, 16).c_str(), nullptr, 16);
        const uint64_t low = std::strtoull(line.substr(16, 16).c_str(), nullptr, 16);
        std::memcpy(&cubin[slot], &low, 8);
        std::memcpy(&cubin[slot + 8], &high, 8);
        Pointer from = source + (line[33] - '0') * sizeof(uint32_t) * kVectors * kInputWords;
        void *parameters[] = {&from, &target};
        Handle module = nullptr, kernel = nullptr;
        out.fill(0xEEEEEEEE);
        int status = cuda.put(target, out.data(), sizeof out);
        if (!status) status = cuda.load(&module, cubin.data());
        if (!status) status = cuda.function(&kernel, module, "probe");
        if (!status)
            status = cuda.launch(kernel, kVectors / kWarp, 1, 1, kWarp, 1, 1, 0, nullptr, parameters, nullptr);
        if (!status) status = cuda.wait();
        if (!status) status = cuda.get(out.data(), target, sizeof out);
        results.write(reinterpret_cast<const char *>(&status), sizeof status);
        results.write(reinterpret_cast<const char *>(out.data()), sizeof out);
        if (status != 0) std::printf("error %d: %s\n", status, line.c_str());
        if (status != 0 && status != kNotSupported && status != kNoBinary) {
            results.flush();
            std::printf("next %d\n", number + 1);
            return 7;
        }
        if (module != nullptr) cuda.unload(module);
    }
    return 0;
}
