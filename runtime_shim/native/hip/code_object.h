// A code object of the target: its ELF file, kernel descriptors and metadata, checked.
#pragma once
#include "elf_file.h"
#include "target.h"

#include <memory>
#include <string>
#include <vector>

namespace sx {

struct KernelArg {
  uint64_t offset, size;  // in the kernarg segment, bytes
  std::string kind;       // the metadata's .value_kind
  bool hidden() const { return kind.compare(0, 7, "hidden_") == 0; }
};

struct KernelInfo {
  std::string name;
  std::string unusable;  // why it cannot run; "" if it can
  uint64_t entry_vaddr = 0, descriptor_vaddr = 0;
  uint32_t kernarg_size = 0, group_size = 0, private_size = 0;  // bytes; private is per lane
  uint32_t rsrc1 = 0, rsrc2 = 0;
  uint16_t properties = 0;
  uint32_t vgprs = 0, sgprs = 0;
  uint32_t max_flat_workgroup_size = 1024;
  bool dynamic_stack = false;
  bool unaligned = false;  // its accesses to memory may be at any byte: the note says so, or it is a compiler's
  std::vector<KernelArg> args;
  std::vector<std::pair<uint32_t, std::string>> source;  // offset from the entry, and the SASS it came from

  // The SASS instruction for an offset of the code; "" if unknown.
  std::string sass_at(uint32_t pc) const;
};

struct CodeObject {
  std::vector<uint8_t> bytes;
  ElfFile elf;  // points into bytes
  std::vector<KernelInfo> kernels;
};

// Reads the code object (or the target's entry of an offload bundle) at `image`, whose size only its
// headers give; unmapped memory is an error, not a crash.  Returns 0, hipErrorInvalidImage if it
// is malformed or hipErrorNoBinaryForGpu if it is for another device, with a reason in `why`.
//
// A code object is refused for one kernel that cannot run (All), or the kernel has its reason (Some).
enum class Kernels { All, Some };
int read_code_object(const void *image, const Target &target, std::unique_ptr<CodeObject> &out, std::string &why,
                     Kernels kernels = Kernels::All);

}  // namespace sx
