// Kernels of CUB device algorithms for six types, which tools/figures/kernels.py builds with two compilers.
#include <cub/cub.cuh>

struct Less {
  template <class T>
  __host__ __device__ bool operator()(const T& a, const T& b) const { return a < b; }
};
struct Equal {
  template <class T>
  __host__ __device__ bool operator()(const T& a, const T& b) const { return a == b; }
};
struct Largest {
  template <class T>
  __host__ __device__ T operator()(const T& a, const T& b) const { return a < b ? b : a; }
};
struct Positive {
  template <class T>
  __host__ __device__ bool operator()(const T& a) const { return T(0) < a; }
};
struct Halve {
  template <class T>
  __device__ void operator()(T& a) const { a = a / T(2); }
};

static void* scratch;
static size_t bytes;

template <class T>
void reductions(const T* in, T* out, int n, const int* offsets) {
  cub::DeviceReduce::Sum(scratch, bytes, in, out, n);
  cub::DeviceReduce::Min(scratch, bytes, in, out, n);
  cub::DeviceReduce::Reduce(scratch, bytes, in, out, n, Largest{}, T(1));
  cub::DeviceSegmentedReduce::Sum(scratch, bytes, in, out, n, offsets, offsets + 1);
  cub::DeviceReduce::ReduceByKey(scratch, bytes, offsets, (int*)scratch, in, out, (int*)scratch, Largest{}, n);
}
template <class T>
void scans(const T* in, T* out, int n) {
  cub::DeviceScan::ExclusiveSum(scratch, bytes, in, out, n);
  cub::DeviceScan::InclusiveSum(scratch, bytes, in, out, n);
  cub::DeviceScan::InclusiveScan(scratch, bytes, in, out, Largest{}, n);
  cub::DeviceScan::ExclusiveSumByKey(scratch, bytes, (const int*)scratch, in, out, n);
}
template <class T>
void sorts(const T* in, T* out, int n) {
  cub::DeviceRadixSort::SortKeys(scratch, bytes, in, out, n);
  cub::DeviceRadixSort::SortPairsDescending(scratch, bytes, in, out, (const int*)scratch, (int*)scratch, n);
  cub::DeviceMergeSort::SortKeys(scratch, bytes, out, n, Less{});
  cub::DeviceMergeSort::SortPairs(scratch, bytes, out, (int*)scratch, n, Less{});
}
template <class T>
void selections(const T* in, T* out, int n, const char* flags) {
  cub::DeviceSelect::Flagged(scratch, bytes, in, flags, out, (int*)scratch, n);
  cub::DeviceSelect::If(scratch, bytes, in, out, (int*)scratch, n, Positive{});
  cub::DeviceSelect::Unique(scratch, bytes, in, out, (int*)scratch, n);
  cub::DevicePartition::If(scratch, bytes, in, out, (int*)scratch, n, Positive{});
  cub::DeviceRunLengthEncode::Encode(scratch, bytes, in, out, (int*)scratch, (int*)scratch, n);
  cub::DeviceRunLengthEncode::NonTrivialRuns(scratch, bytes, in, (int*)scratch, (int*)scratch, (int*)scratch, n);
  cub::DeviceAdjacentDifference::SubtractLeftCopy(scratch, bytes, in, out, n);
  cub::DeviceHistogram::HistogramEven(scratch, bytes, in, (int*)scratch, 65, T(0), T(100), n);
  cub::DeviceFor::ForEachN(out, n, Halve{});
}
template <class T>
void all(const void* in, void* out, int n) {
  const T* from = (const T*)in;
  T* to = (T*)out;
  reductions(from, to, n, (const int*)in);
  scans(from, to, n);
  sorts(from, to, n);
  selections(from, to, n, (const char*)in);
}

void everything(const void* in, void* out, int n) {
  all<signed char>(in, out, n);
  all<short>(in, out, n);
  all<int>(in, out, n);
  all<unsigned long long>(in, out, n);
  all<float>(in, out, n);
  all<double>(in, out, n);
}
