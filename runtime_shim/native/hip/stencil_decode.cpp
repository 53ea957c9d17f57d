#include "stencil_decode.h"

#include <algorithm>
#include <cstring>

namespace sx {
namespace {

// lowering/emulate/stencils/encodings.py and stencil.py have these numbers, too.
enum Action : uint8_t { kInvalid, kVgpr, kHalf, kScalar, kConstant, kLiteral, kShape };
enum Literal : uint32_t { kZeroExtended, kHigh, kSignExtended, kLowHalf, kNoLiteral };
enum FieldFlags : uint8_t { kYDestination = 1, kDppSource = 2 };

constexpr unsigned kVStep = 32, kSStep = 16;
constexpr uint8_t kNoBit = 255;

uint64_t literal_value(uint32_t word, uint32_t how) {
  if (how == kHigh) return uint64_t{word} << 32;
  if (how == kSignExtended) return static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(word)));
  return how == kLowHalf ? word & 0xffff : word;
}


uint32_t scalar(const EncodingField &field, unsigned k) { return field.width == 6 ? k * kSStep >> 1 : k * kSStep; }

}  // namespace

bool Decoder::refuse(const char *why) {
  why_ = why;
  return false;
}

uint32_t Decoder::word(uint32_t pc) const {
  uint32_t w;
  memcpy(&w, kernel_.text + pc, 4);
  return w;
}

int32_t Decoder::constant(uint64_t value) {
  auto found = constants_.try_emplace(value, static_cast<uint32_t>(constants_.size()));
  return static_cast<int32_t>(kConstantsAt + size_t{8} * found.first->second);
}

bool Decoder::decode(uint32_t pc, Step &step) {
  uint32_t low = word(pc);
  const EncodingRow *row = tables_.row(low);
  if (!row) return refuse("an instruction that the tables do not have");
  const EncodingFormat &format = tables_.format(low);
  uint64_t raw = low;
  if (format.size == 8) {
    if (!inside(pc + 4)) return refuse("the code ends inside an instruction");
    raw |= uint64_t{word(pc + 4)} << 32;
  }
  step = Step();
  step.pc = pc;
  step.size = format.size;
  step.row = row;
  step.raw = low;
  step.shape = {raw & row->keep, 0, -1};
  if (row->control == kUnsupported) return refuse("an instruction of a kind that this tier does not have");
  bool literal = false;
  const EncodingField *fields = tables_.fields(*row);
  for (unsigned i = 0; i < row->fields; ++i)
    if (!operand(fields[i], *row, raw, step, literal)) return false;
  if (literal && step.shape.dpp) return refuse("DPP and a literal");
  if (row->control == kSetregLiteral && !literal) return refuse("a literal is missing");
  for (unsigned i = 0; i < row->immediates; ++i) {
    const EncodingImmediate &imm = row->imm[i];
    int64_t value = static_cast<int64_t>(raw >> imm.lo & ((1u << imm.width) - 1));
    if (imm.is_signed && value >> (imm.width - 1)) value -= int64_t{1} << imm.width;
    if (row->control == kStraight) step.imm[i] = constant(static_cast<uint64_t>(value * imm.factor));
  }
  return true;
}

bool Decoder::operand(const EncodingField &field, const EncodingRow &row, uint64_t raw, Step &step, bool &literal) {
  uint32_t mask = (1u << field.width) - 1, code = raw >> field.lo & mask, canonical = code;
  const OperandClass *cls = &tables_.operand(field.cls);
  if (field.alt_bit != kNoBit && raw >> field.alt_bit & 1) cls = &tables_.operand(field.alt);
  bool dpp = (field.flags & kDppSource) && (row.flags & kDpp) && (code == 250 || code == 233 || code == 234);
  if (dpp) {
    if (literal || !inside(step.pc + step.size)) return refuse("a DPP word is missing");
    step.shape.dpp = word(step.pc + step.size);
    step.size += 4;
    code = 256 + (step.shape.dpp & 0xff);
  }
  unsigned k = field.slot;
  if (field.flags & kYDestination) code = (code << 1 | (~(raw >> 56) & 1)) & 0xff;
  uint8_t action = cls->action[code];
  uint64_t value = cls->value[code];
  switch (action) {
    case kVgpr:
    case kHalf: {
      uint32_t number = static_cast<uint32_t>(value / 128);
      if (action == kHalf) number &= 127;
      vgprs_ = std::max(vgprs_, number + cls->n);
      step.v[k] = static_cast<int32_t>(number * 128);
      canonical = k * kVStep | (action == kHalf ? code & 128 : 0);
      if (field.flags & kYDestination) {
        step.v[k] -= 128;  // the canonical register is the odd one of its pair
        canonical = k * kVStep >> 1;
      } else if (field.width == 9) {
        canonical |= 256;
      }
      break;
    }
    case kScalar:
      step.s[k] = static_cast<int32_t>(value);
      canonical = scalar(field, k);
      break;
    case kLiteral:
      if (!literal) {
        if (!inside(step.pc + step.size) || step.shape.dpp) return refuse("a literal is missing");
        step.literal = word(step.pc + step.size);
        step.size += 4;
        literal = true;
      }
      value = literal_value(step.literal, cls->literal);
      [[fallthrough]];
    case kConstant:
      if (field.sel_bit != kNoBit && raw >> field.sel_bit & 1) return refuse("op_sel of a number");
      step.s[k] = constant(value);
      canonical = field.width ? scalar(field, k) : 0;
      break;
    case kShape:
      break;
    default:
      return refuse("a reserved operand");
  }
  if (dpp) {
    step.shape.dpp = (step.shape.dpp & ~0xffu) | (canonical & 0xff);
    canonical = raw >> field.lo & mask;
  }
  step.shape.word |= uint64_t{canonical & mask} << field.lo;
  return true;
}

}  // namespace sx
