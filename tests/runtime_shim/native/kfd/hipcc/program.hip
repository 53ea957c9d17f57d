// SPDX-License-Identifier: Apache-2.0
//
// A HIP program as hipcc builds it: kernels in the executable's fat binary, registered before main, launched with
// <<<...>>>; variables of the card, templates, recursion, spills, graphs.  Prints each part's result.
#include "hip.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

void need(hipError_t error, const char* what) {
    if (!error) return;
    printf("%s: error %d\n", what, error);
    exit(1);
}
#define NEED(call) need(call, #call)

}  // namespace

template <typename T>
__global__ void axpy(T a, const T* x, T* y, unsigned n) {
    unsigned i = index_x();
    if (i < n) y[i] += a * x[i];
}

__device__ unsigned g_total = 5;
__device__ int g_table[64];
__constant__ int c_weights[16];

// A sum by a tree in shared memory, then one atomic for the block.
__global__ void total(const unsigned* x, unsigned n) {
    extern __shared__ unsigned part[];
    unsigned i = index_x(), t = thread_x();
    part[t] = i < n ? x[i] : 0;
    for (unsigned half = block_size() / 2; half; half /= 2) {
        synchronize();
        if (t < half) part[t] += part[t + half];
    }
    if (!t) __hip_atomic_fetch_add(&g_total, part[0], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

__global__ void weigh() {
    unsigned t = thread_x();
    g_table[t] = c_weights[t % 16] * static_cast<int>(t) - 7;
}

// Calls that cannot be inlined, with a stack of their own.
__device__ __attribute__((noinline)) int ackermann(int m, int n) {
    if (!m) return n + 1;
    return n ? ackermann(m - 1, ackermann(m, n - 1)) : ackermann(m - 1, 1);
}
__global__ void recursive(int* out) { out[index_x()] = ackermann(2, static_cast<int>(thread_x() % 4)); }

// An array that is indexed by a value: private memory.
__global__ void sorted(const int* in, int* out, unsigned each) {
    int mine[24];
    unsigned base = index_x() * 24;
    for (unsigned i = 0; i < each; ++i) {
        int value = in[base + i];
        unsigned at = i;
        for (; at && mine[at - 1] > value; --at) mine[at] = mine[at - 1];
        mine[at] = value;
    }
    for (unsigned i = 0; i < each; ++i) out[base + i] = mine[i];
}

// Functions whose addresses are in memory: a table's, and a class's virtual ones.
using Function = int (*)(int);
__device__ __attribute__((noinline)) int more(int x) { return x + 1; }
__device__ __attribute__((noinline)) int squared(int x) { return x * x; }
__device__ Function g_functions[2] = {more, squared};
struct Shape {
    __device__ virtual int sides(int x) const = 0;
};
struct Plus : Shape {
    int k;
    __device__ explicit Plus(int number) : k(number) {}
    __device__ int sides(int x) const override { return x + k; }
};
struct Times : Shape {
    __device__ int sides(int x) const override { return x * 3; }
};
__global__ void indirect(int* out) {
    int i = static_cast<int>(index_x());
    Plus plus(i);
    Times times;
    const Shape* shape = i % 3 ? static_cast<const Shape*>(&plus) : &times;
    out[i] = g_functions[i % 2](i) * 1000 + shape->sides(i);
}

// Lanes of a wave: votes and permutations.
__global__ void lanes(unsigned* out) {
    unsigned t = thread_x();
    unsigned odd = static_cast<unsigned>(__builtin_amdgcn_ballot_w32((t * t) % 3 == 1));
    unsigned turned = static_cast<unsigned>(__builtin_amdgcn_ds_bpermute(static_cast<int>(((t + 5) % 32) * 4), static_cast<int>(t * 3)));
    out[index_x()] = odd ^ turned;
}

__global__ void accumulate(double* sums, const float* x, unsigned n) {
    double mine = 0;
    for (unsigned i = index_x(); i < n; i += grid_size()) mine += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    __hip_atomic_fetch_add(&sums[thread_x() % 4], mine, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// All blocks of a grid wait for each other; needs a cooperative launch.
__global__ void together(unsigned* arrived, unsigned* out, unsigned blocks) {
    if (!thread_x()) {
        __hip_atomic_fetch_add(arrived, 1u, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
        while (__hip_atomic_load(arrived, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) != blocks) __builtin_amdgcn_s_sleep(1);
    }
    synchronize();
    out[index_x()] = __hip_atomic_load(arrived, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

namespace {

template <typename T>
bool run_axpy(T a) {
    const unsigned n = 1000;
    std::vector<T> x(n), y(n), got(n);
    for (unsigned i = 0; i < n; ++i) x[i] = static_cast<T>(i % 37), y[i] = static_cast<T>(i);
    void *dx, *dy;
    NEED(hipMalloc(&dx, n * sizeof(T)));
    NEED(hipMalloc(&dy, n * sizeof(T)));
    NEED(hipMemcpy(dx, x.data(), n * sizeof(T), hipMemcpyHostToDevice));
    NEED(hipMemcpy(dy, y.data(), n * sizeof(T), hipMemcpyHostToDevice));
    axpy<T><<<dim3((n + 127) / 128), dim3(128)>>>(a, static_cast<T*>(dx), static_cast<T*>(dy), n);
    NEED(hipGetLastError());
    NEED(hipMemcpy(got.data(), dy, n * sizeof(T), hipMemcpyDeviceToHost));
    NEED(hipFree(dx));
    NEED(hipFree(dy));
    for (unsigned i = 0; i < n; ++i)
        if (got[i] != y[i] + a * x[i]) return false;
    return true;
}

bool run_total() {
    const unsigned n = 5000;
    unsigned* x;
    NEED(hipMallocManaged(reinterpret_cast<void**>(&x), n * 4, 1));
    unsigned wanted = 5, got = 0;
    for (unsigned i = 0; i < n; ++i) wanted += x[i] = i * 7 + 1;
    total<<<dim3((n + 255) / 256), dim3(256), 256 * 4>>>(x, n);
    NEED(hipMemcpyFromSymbol(&got, &g_total, 4, 0, hipMemcpyDeviceToHost));
    NEED(hipFree(x));
    return got == wanted;
}

bool run_weigh() {
    int weights[16], got[64];
    for (int i = 0; i < 16; ++i) weights[i] = i * i - 20;
    NEED(hipMemcpyToSymbol(&c_weights, weights, sizeof weights, 0, hipMemcpyHostToDevice));
    weigh<<<dim3(1), dim3(64)>>>();
    void* table;
    NEED(hipGetSymbolAddress(&table, &g_table));
    NEED(hipMemcpy(got, table, sizeof got, hipMemcpyDeviceToHost));
    for (int i = 0; i < 64; ++i)
        if (got[i] != weights[i % 16] * i - 7) return false;
    return true;
}

bool run_recursive() {
    int got[64];
    void* out;
    NEED(hipMalloc(&out, sizeof got));
    recursive<<<dim3(2), dim3(32)>>>(static_cast<int*>(out));
    NEED(hipMemcpy(got, out, sizeof got, hipMemcpyDeviceToHost));
    NEED(hipFree(out));
    for (int i = 0; i < 64; ++i)
        if (got[i] != 2 * (i % 4) + 3) return false;
    return true;
}

bool run_sorted() {
    const unsigned n = 64 * 24;
    std::vector<int> in(n), got(n);
    for (unsigned i = 0; i < n; ++i) in[i] = static_cast<int>((i * 2654435761u) >> 16) % 1000;
    void *from, *to;
    NEED(hipMalloc(&from, n * 4));
    NEED(hipMalloc(&to, n * 4));
    NEED(hipMemcpy(from, in.data(), n * 4, hipMemcpyHostToDevice));
    sorted<<<dim3(2), dim3(32)>>>(static_cast<int*>(from), static_cast<int*>(to), 24);
    NEED(hipMemcpy(got.data(), to, n * 4, hipMemcpyDeviceToHost));
    NEED(hipFree(from));
    NEED(hipFree(to));
    long before = 0, after = 0;
    for (unsigned i = 0; i < n; ++i) {
        before += in[i], after += got[i];
        if (i % 24 && got[i - 1] > got[i]) return false;
    }
    return before == after;
}

bool run_indirect() {
    int got[64];
    void* out;
    NEED(hipMalloc(&out, sizeof got));
    indirect<<<dim3(2), dim3(32)>>>(static_cast<int*>(out));
    NEED(hipMemcpy(got, out, sizeof got, hipMemcpyDeviceToHost));
    NEED(hipFree(out));
    for (int i = 0; i < 64; ++i)
        if (got[i] != (i % 2 ? i * i : i + 1) * 1000 + (i % 3 ? 2 * i : 3 * i)) return false;
    return true;
}

bool run_lanes() {
    unsigned got[64], votes = 0;
    void* out;
    NEED(hipMalloc(&out, sizeof got));
    lanes<<<dim3(2), dim3(32)>>>(static_cast<unsigned*>(out));
    NEED(hipMemcpy(got, out, sizeof got, hipMemcpyDeviceToHost));
    NEED(hipFree(out));
    for (unsigned t = 0; t < 32; ++t) votes |= (t * t % 3 == 1 ? 1u : 0u) << t;
    for (unsigned i = 0; i < 64; ++i)
        if (got[i] != (votes ^ (((i + 5) % 32) * 3))) return false;
    return true;
}

// Two streams, one waits for the other's event.
bool run_streams() {
    const unsigned n = 4096;
    hipStream_t first, second;
    hipEvent_t begin, done;
    NEED(hipStreamCreate(&first));
    NEED(hipStreamCreate(&second));
    NEED(hipEventCreate(&begin));
    NEED(hipEventCreate(&done));
    float* x;
    void *dx, *sums;
    NEED(hipHostMalloc(reinterpret_cast<void**>(&x), n * 4, 0));
    for (unsigned i = 0; i < n; ++i) x[i] = static_cast<float>(i % 50) / 4;
    NEED(hipMallocAsync(&dx, n * 4, first));
    NEED(hipMalloc(&sums, 4 * sizeof(double)));
    NEED(hipMemsetAsync(sums, 0, 4 * sizeof(double), first));
    NEED(hipEventRecord(begin, first));
    NEED(hipMemcpyAsync(dx, x, n * 4, hipMemcpyHostToDevice, first));
    NEED(hipEventRecord(done, first));
    NEED(hipStreamWaitEvent(second, done, 0));
    accumulate<<<dim3(4), dim3(64), 0, second>>>(static_cast<double*>(sums), static_cast<const float*>(dx), n);
    int called = 0;
    NEED(hipStreamAddCallback(second, [](hipStream_t, hipError_t error, void* out) { *static_cast<int*>(out) = 1 + error; }, &called, 0));
    NEED(hipStreamSynchronize(second));
    NEED(hipFreeAsync(dx, second));
    NEED(hipEventRecord(done, second));
    NEED(hipEventSynchronize(done));
    float elapsed = -1;
    NEED(hipEventElapsedTime(&elapsed, begin, done));
    double got[4], wanted = 0;
    NEED(hipMemcpy(got, sums, sizeof got, hipMemcpyDeviceToHost));
    for (unsigned i = 0; i < n; ++i) wanted += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    NEED(hipFree(sums));
    NEED(hipHostFree(x));
    NEED(hipEventDestroy(begin));
    NEED(hipEventDestroy(done));
    NEED(hipStreamDestroy(first));
    NEED(hipStreamDestroy(second));
    return got[0] + got[1] + got[2] + got[3] == wanted && called == 1 && elapsed >= 0;
}

bool run_graph() {
    const unsigned n = 256;
    hipStream_t stream;
    hipGraph_t graph;
    hipGraphExec_t ready;
    std::vector<float> x(n, 2), y(n);
    void *dx, *dy;
    NEED(hipStreamCreate(&stream));
    NEED(hipMalloc(&dx, n * 4));
    NEED(hipMalloc(&dy, n * 4));
    NEED(hipMemcpy(dx, x.data(), n * 4, hipMemcpyHostToDevice));
    NEED(hipMemset(dy, 0, n * 4));
    NEED(hipStreamBeginCapture(stream, 0));
    for (int i = 0; i < 3; ++i)
        axpy<float><<<dim3(2), dim3(128), 0, stream>>>(1.5f, static_cast<const float*>(dx), static_cast<float*>(dy), n);
    NEED(hipMemcpyAsync(y.data(), dy, n * 4, hipMemcpyDeviceToHost, stream));
    NEED(hipStreamEndCapture(stream, &graph));
    NEED(hipGraphInstantiate(&ready, graph, nullptr, nullptr, 0));
    for (int i = 0; i < 4; ++i) NEED(hipGraphLaunch(ready, stream));
    NEED(hipStreamSynchronize(stream));
    NEED(hipGraphExecDestroy(ready));
    NEED(hipGraphDestroy(graph));
    NEED(hipStreamDestroy(stream));
    NEED(hipFree(dx));
    NEED(hipFree(dy));
    for (float value : y)
        if (value != 3 * 4 * 3.0f) return false;
    return true;
}

bool run_together() {
    unsigned blocks = 8, got[8 * 32];
    unsigned *arrived, *out;
    NEED(hipMalloc(reinterpret_cast<void**>(&arrived), 4));
    NEED(hipMalloc(reinterpret_cast<void**>(&out), sizeof got));
    NEED(hipMemset(arrived, 0, 4));
    int active = 0;
    NEED(hipOccupancyMaxActiveBlocksPerMultiprocessor(&active, reinterpret_cast<const void*>(together), 32, 0));
    void* arguments[] = {&arrived, &out, &blocks};
    NEED(hipLaunchCooperativeKernel(reinterpret_cast<const void*>(together), dim3(blocks), dim3(32), arguments, 0, nullptr));
    NEED(hipMemcpy(got, out, sizeof got, hipMemcpyDeviceToHost));
    NEED(hipFree(arrived));
    NEED(hipFree(out));
    for (unsigned value : got)
        if (value != blocks) return false;
    return active > 0;
}

bool run_peer() {
    char text[100] = "from one to the other", back[100] = {};
    void *a, *b;
    NEED(hipMalloc(&a, sizeof text));
    NEED(hipMalloc(&b, sizeof text));
    NEED(hipMemcpy(a, text, sizeof text, hipMemcpyHostToDevice));
    NEED(hipMemcpyPeerAsync(b, 0, a, 0, sizeof text, nullptr));
    NEED(hipMemcpy(back, b, sizeof text, hipMemcpyDeviceToHost));
    NEED(hipFree(a));
    NEED(hipFree(b));
    return !memcmp(text, back, sizeof text);
}

}  // namespace

int main() {
    int count = 0;
    NEED(hipGetDeviceCount(&count));
    const struct {
        const char* name;
        bool passed;
    } parts[] = {
        {"float", run_axpy<float>(1.5f)}, {"double", run_axpy<double>(-2.25)}, {"int", run_axpy<int>(7)},
        {"total", run_total()},           {"weigh", run_weigh()},              {"recursive", run_recursive()},
        {"sorted", run_sorted()},         {"lanes", run_lanes()},              {"streams", run_streams()},
        {"indirect", run_indirect()},
        {"graph", run_graph()},           {"together", run_together()},        {"peer", run_peer()},
    };
    bool all = count == 1;
    for (const auto& part : parts) {
        printf("%s %s\n", part.name, part.passed ? "ok" : "WRONG");
        all = all && part.passed;
    }
    puts(all ? "PASS" : "FAIL");
    return all ? 0 : 1;
}
