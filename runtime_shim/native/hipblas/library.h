// AMD's hipBLAS, on a card: the library, its numbers for cuBLAS's words, and calls of its functions.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include "../cublas/handle.h"

namespace sx::hipblas {

// The library of `name`: the file that the variable names, or beside the HIP library, or by the linker's paths.
void *open_library(const char *variable, std::initializer_list<const char *> names, std::string &reason);

// hipBLAS's major release, 2 (ROCm 6) or 3 (ROCm 7); 0 where there is none that can be used, which is said once (SX0786).
int release();

// The function of this name; null, which is said once (SX0780), where this hipBLAS has none.
void *function(const char *cuda, const std::string &name);

// CUBLAS_STATUS_NOT_SUPPORTED, with one line.
cublasStatus refuse(const char *cuda, const std::string &why);

// cuBLAS's status for hipBLAS's; NOT_SUPPORTED gets a line.
cublasStatus status_of(const char *cuda, int status);

// Gives hipBLAS's handle the stream and the modes of cuBLAS's.  Under the handle's mutex.
cublasStatus prepare(void *engine, CUstream stream, int pointer_mode, int atomics_mode);

// The legacy default stream is HIP's null stream; the thread's own has the same number in both.
CUstream native_stream(CUstream stream);

// Whether what a stream gets now can be passed on: not while it is captured.
cublasStatus check_stream(const char *cuda, CUstream stream);

// Kinds of arguments: what cuBLAS has, what hipBLAS has, and one from the other.  A word that cuBLAS does not have is
// CUBLAS_STATUS_INVALID_VALUE; a type that is not passed on CUBLAS_STATUS_NOT_SUPPORTED, with a line.
template <class T>
struct Same {
  using Cuda = T;
  using Hip = T;
  static constexpr bool typed = false;
  static cublasStatus convert(const char *, T value, T &out) { return out = value, CUBLAS_STATUS_SUCCESS; }
};
using I32 = Same<int>;
using I64 = Same<int64_t>;
using L = Same<long long>;
using P = Same<const void *>;

template <int (*kWord)(int)>
struct Word {
  using Cuda = int;
  using Hip = int;
  static constexpr bool typed = false;
  static cublasStatus convert(const char *, int value, int &out) {
    out = kWord(value);
    return out ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
  }
};
// hipBLAS has the numbers of BLAS's C interface for these.
using Op = Word<cublas::op>;
using Fill = Word<cublas::fill>;
using Diag = Word<cublas::diagonal>;
using Side = Word<cublas::side>;
// It chooses among its kernels itself: HIPBLAS_GEMM_DEFAULT.
inline int default_algorithm(int) { return 160; }
using Algo = Word<default_algorithm>;

// Functions with these are hipblasX_v2 in hipBLAS 2, whose hipblasX has other numbers.
struct Type {
  using Cuda = int;
  using Hip = int;
  static constexpr bool typed = true;
  static cublasStatus convert(const char *cuda, int value, int &out);
};
struct Compute {
  using Cuda = int;
  using Hip = int;
  static constexpr bool typed = true;
  static cublasStatus convert(const char *cuda, int value, int &out);
};

// A function of hipBLAS's, looked for once.
struct Entry {
  Entry(const char *cuda_name, const char *base, bool typed, bool wide);
  const char *cuda;
  void *address;
};

template <class... K>
struct Call {
  static constexpr bool typed = (K::typed || ...);

  static cublasStatus run(cublasHandle handle, const Entry &entry, typename K::Cuda... given) {
    return cublas::with_handle(handle, [&](cublasContext &h) -> cublasStatus {
      if (const cublasStatus status = check_stream(entry.cuda, h.stream)) return status;
      std::lock_guard<std::mutex> guard(h.calls);
      if (const cublasStatus status = prepare(h.engine, h.stream, h.pointer_mode, h.atomics_mode)) return status;
      return pass(h.engine, entry, given...);
    });
  }

  static cublasStatus pass(void *engine, const Entry &entry, typename K::Cuda... given) {
    if (!entry.address) return CUBLAS_STATUS_NOT_SUPPORTED;
    std::tuple<typename K::Hip...> passed;
    if (const cublasStatus status = convert(entry.cuda, passed, std::index_sequence_for<K...>(), given...)) return status;
    auto *call = reinterpret_cast<int (*)(void *, typename K::Hip...)>(entry.address);
    return status_of(entry.cuda, std::apply([&](auto... each) { return call(engine, each...); }, passed));
  }

 private:
  template <size_t... kAt>
  static cublasStatus convert(const char *cuda, std::tuple<typename K::Hip...> &passed, std::index_sequence<kAt...>,
                              typename K::Cuda... given) {
    cublasStatus status = CUBLAS_STATUS_SUCCESS;
    const auto refused = [&status](cublasStatus one) {
      status = one;
      return one != CUBLAS_STATUS_SUCCESS;
    };
    (void)(refused(K::convert(cuda, given, std::get<kAt>(passed))) || ...);
    return status;
  }
};

}  // namespace sx::hipblas
