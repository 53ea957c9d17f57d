// Kernels built of stencils: the host code of single instructions, copied and patched.
//
// A pack (lowering/emulate/stencils/pack.py writes it) has the stencils, by the shape of the instruction, the helpers
// that they call, and the tables that say how an instruction's encoding falls into a shape and its registers,
// constants and offsets.  Nothing here knows a mnemonic or what an instruction computes.  The structures are those of
// lowering/emulate/stencils/encodings.py.
#pragma once
#include "abi.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sx {

// The canonical encoding of an instruction, the DPP word or 0, and MODE or -1 where it does not matter; kUnaligned in
// place of MODE: an access to memory that may be at any byte.
constexpr int32_t kUnaligned = 1 << 16;

struct Shape {
  uint64_t word;
  uint32_t dpp;
  int32_t mode;
  bool operator<(const Shape &o) const {
    return word != o.word ? word < o.word : dpp != o.dpp ? dpp < o.dpp : mode < o.mode;
  }
  bool operator==(const Shape &o) const { return word == o.word && dpp == o.dpp && mode == o.mode; }
};

struct StencilRow {
  Shape shape;
  uint32_t code, size, reloc, relocs;
};

struct StencilReloc {
  uint32_t offset;
  uint8_t kind, symbol;
  uint16_t zero;
  int32_t addend;
};

struct OperandClass {
  uint32_t n, literal;
  uint8_t action[512];
  uint64_t value[512];
};

struct EncodingField {
  uint8_t lo, width, slot, alt_bit, sel_bit, flags;
  uint16_t cls, alt, zero;
} __attribute__((packed));

struct EncodingImmediate {
  uint8_t lo, width, is_signed, zero;
  uint32_t factor;
};

struct EncodingRow {
  uint64_t keep, mode_bits;
  uint16_t first;
  uint8_t fields, immediates, control, flags;
  uint16_t zero;
  EncodingImmediate imm[2];
} __attribute__((packed));

struct EncodingFormat {
  uint8_t lo, width;
  uint16_t size;
  uint32_t first;
};

// A pack in memory.  Its helpers and constants are mapped executable, near to where kernels are built.
class Pack {
 public:
  Pack() = default;
  Pack(const Pack &) = delete;
  Pack &operator=(const Pack &) = delete;
  ~Pack();
  // `data` must stay; it has been checked against damage.  False, with a reason, if it is not a pack for this processor.
  bool open(const uint8_t *data, size_t size, std::string &why);
  const StencilRow *find(const Shape &shape) const;
  const uint8_t *code(const StencilRow &row) const { return code_ + row.code; }
  const StencilReloc *relocs(const StencilRow &row) const { return relocs_ + row.reloc; }
  const uint8_t *pool() const { return pool_; }
  size_t count() const { return rows_size_; }

  const EncodingRow *row(uint32_t word) const;  // null: not an encoding of a known format
  const EncodingFormat &format(uint32_t word) const { return formats_[dispatch_[word >> 23]]; }
  const EncodingField *fields(const EncodingRow &row) const { return fields_ + row.first; }
  const OperandClass &operand(uint16_t number) const { return classes_[number]; }

 private:
  const OperandClass *classes_ = nullptr;
  const EncodingField *fields_ = nullptr;
  const EncodingRow *encodings_ = nullptr;
  const uint16_t *opcodes_ = nullptr;
  const EncodingFormat *formats_ = nullptr;
  const uint8_t *dispatch_ = nullptr;
  const StencilRow *rows_ = nullptr;
  size_t rows_size_ = 0;
  const StencilReloc *relocs_ = nullptr;
  const uint8_t *code_ = nullptr;
  const uint8_t *pool_ = nullptr;
  size_t pool_size_ = 0;
};

struct KernelCode {
  const uint8_t *text;
  size_t size;
  uint32_t entry;  // its offset in the text
  uint32_t mode;   // MODE at the start: rounding 3:0, denormals 7:4, DX10 clamp 8, IEEE 9
  bool counts;
  bool unaligned;  // its accesses to memory may be at any byte, as the hardware has it
};

// Kernels of at least so many instructions note which of their blocks have been entered, in bytes that SxWave.counts
// points to where they do not count; wave/partial/left_out.py has the same number.
constexpr size_t kLeastMarked = 1000;

struct BlockPlace {
  int32_t pc;     // from the kernel's entry
  uint32_t code;  // its offset in the code
};

struct BuiltKernel {
  SxEntry entry = nullptr;
  void *code = nullptr;
  size_t size = 0;
  uint32_t instructions = 0, blocks = 0;
  size_t frame = 0;            // bytes of stack that a wave needs
  std::vector<BlockPlace> blocks_at;   // by pc, of a kernel that notes its blocks; `resume` is its other entry
  uint32_t resume = 0, table = 0;      // in the code; at `table` are the frame's sizes and constants
  std::vector<Shape> missing;  // shapes that no pack has
  std::string why;             // where there is no code for another reason
};

// Builds a kernel of the stencils of `packs`, whose first has the glue.  False if there is no code: shapes are missing, or
// the kernel has what this tier does not do.
bool build_kernel(const std::vector<const Pack *> &packs, const KernelCode &kernel, BuiltKernel &out);
void release_kernel(void *code, size_t size);

// What is needed to go on with a wave in the middle of a built kernel.
struct ResumableKernel {
  const uint8_t *code = nullptr;
  std::vector<BlockPlace> blocks;
  uint32_t resume = 0, table = 0;
  size_t frame = 0;
};

// Runs a wave to its end from the block at `pc` on, with the registers that it left compiled code with, on this stack.
// False if there is no such block.
bool resume_kernel(const ResumableKernel &kernel, SxWave *wave, uint32_t pc, const SxLeft &left);

// Writable memory for a kernel's code, near to the packs' helpers; null if there is none.
uint8_t *take_code(size_t size);

}  // namespace sx
