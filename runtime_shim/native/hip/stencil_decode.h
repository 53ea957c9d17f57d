// From an instruction's encoding to its shape and what a stencil needs of it besides.
#pragma once
#include "stencils.h"

#include <string>
#include <unordered_map>

namespace sx {

// lowering/emulate/stencils/encodings.py has these numbers, too.
enum Control : uint8_t {
  kStraight, kNothing, kBranch, kConditional, kEnd, kIllegal, kTrap, kRoundMode, kDenormMode, kSetreg, kSetregLiteral,
  kUnsupported, kCall, kReturn, kAddress
};
enum RowFlags : uint8_t { kReadsMemory = 1, kMode = 2, kDpp = 4, kAccess = 8 };

// Values are byte offsets: of registers from the first one of their kind, of scalars and immediates in the frame.
struct Step {
  uint32_t pc, size;
  const EncodingRow *row;
  Shape shape;
  uint32_t raw, literal;
  int32_t v[6], s[6], imm[2];
};

// Decodes a kernel's instructions; their constants become slots of the frame.
class Decoder {
 public:
  Decoder(const Pack &tables, const KernelCode &kernel) : tables_(tables), kernel_(kernel) {}

  // The instruction at an offset of the code, all of whose first word is inside; false, with a reason, if it is none that
  // this tier has.
  bool decode(uint32_t pc, Step &step);
  uint32_t word(uint32_t pc) const;
  bool inside(uint32_t pc) const { return pc + 4 <= kernel_.size; }

  const std::unordered_map<uint64_t, uint32_t> &constants() const { return constants_; }  // to their number
  uint32_t vgprs() const { return vgprs_; }
  const char *why() const { return why_; }

  static constexpr size_t kConstantsAt = 0xc00 + 256 * 128;

 private:
  bool refuse(const char *why);
  bool operand(const EncodingField &field, const EncodingRow &row, uint64_t raw, Step &step, bool &literal);
  int32_t constant(uint64_t value);

  const Pack &tables_;
  const KernelCode &kernel_;
  std::unordered_map<uint64_t, uint32_t> constants_;
  uint32_t vgprs_ = 1;
  const char *why_ = "";
};

}  // namespace sx
