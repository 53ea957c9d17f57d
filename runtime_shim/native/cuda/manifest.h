// The text forms that the service writes: a module's manifest, a kernel's launch information.
// runtime_shim/service/manifest.py and lowering/abi/kernarg.py define the lines.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace sx {

struct SectionInfo {
  uint64_t size = 0;
  std::string file;  // "" where the section is zeros
  std::string name;
};

struct RelocInfo {
  enum class Kind { Abs64, Abs32Lo, Unresolved } kind = Kind::Abs64;
  unsigned section = 0, target = 0;
  uint64_t offset = 0, addend = 0, size = 8;
  std::string name;  // of what is unresolved
};

struct GlobalInfo {
  unsigned section = 0;
  uint64_t offset = 0, size = 0;
  bool managed = false;
  std::string name;
};

struct ParamInfo {
  uint64_t offset = 0, size = 0;
};

struct KernelInfo {
  std::string key, name;
  int registers = 0, shared = 0, local = 0, constant = 0, threads = 0, bank2 = -1;
  int fits = 1024;  // threads of the largest block that its vector registers are expected to suffice for
  std::vector<ParamInfo> params;
};

struct Manifest {
  int arch = 0;
  int error = 0;  // CUDA error of an image without usable code, otherwise 0
  std::string reason;
  // Of PTX: the key of the module that was made of it, and the ptxas that made it.
  std::string made_key, made_by;
  uint64_t made_by_size = 0, made_by_time = 0;  // bytes, nanoseconds
  std::vector<SectionInfo> sections;
  std::vector<RelocInfo> relocs;
  std::vector<GlobalInfo> globals;
  std::vector<KernelInfo> kernels;
};

// False if the text is not a whole manifest of this version.
bool parse_manifest(const std::string &text, Manifest &out);

struct FillInfo {
  enum class Kind {
    BlockX, BlockY, BlockZ, GridX, GridY, GridZ, U32, U64, SharedWindow, DynamicShared, GridId, Bank2, Bank3, Bank4,
    Textures,
    Locks,
    ExplicitCluster,
    ReservedShared,
    StackTop,
    Multiprocessors,
    Smid  // their number, and its reciprocal
  } kind = Kind::U32;
  uint64_t offset = 0, value = 0;
};

// Bytes that a fill writes.
size_t fill_width(FillInfo::Kind kind);

struct LaunchInfo {
  uint64_t kernarg_size = 0, param_base = 0, param_size = 0, lds_static = 0, private_size = 0;
  uint64_t max_threads = 1024;
  bool heap = false;  // the kernel calls malloc or free
  bool comes_apart = false;  // an NVIDIA GPU may run lanes apart that stay together here
  std::vector<FillInfo> fills;
};

// False, with the offending line in `error`, for an unknown line: it must not be guessed.
bool parse_launch(const std::string &text, LaunchInfo &out, std::string &error);

}  // namespace sx
