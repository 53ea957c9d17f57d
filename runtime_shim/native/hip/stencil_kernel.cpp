// Builds a kernel of stencils: decodes it into blocks, follows MODE through them, copies and patches.
//
// The blocks are those of cfg/rdna3_flow.py, which the compiler uses: a counter means the same block in both tiers.
#include "stencil_decode.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <sys/mman.h>

namespace sx {

namespace {

// lowering/emulate/stencils/stencil.py, glue.py and pack.py have these numbers, too.
enum RelocKind : uint8_t { kAbsolute, kPool, kNext, kTaken, kConstants };
enum Symbol : unsigned { kV = 0, kS = 6, kImm = 12, kPc = 14, kNumber = 15, kSymbols = 16 };
enum Glue : uint32_t { kEnter, kBlock, kCount, kFuel, kStop, kJump, kIllegalGlue, kEqual, kBelow, kLost, kMark, kResume };

constexpr uint32_t kModeBits = 0x3ff;
constexpr uint32_t kNone = ~0u;
constexpr size_t kLongest = 512;  // instructions of a block
constexpr size_t kLine = 64;
constexpr size_t kMostReturns = 1 << 16;  // ways from an s_setpc to a place, of a kernel
constexpr size_t kMostConstants = 40000;  // of 8 bytes, so that a frame fits a fiber's stack

struct Mode {
  uint32_t value, known;
  void set(uint32_t offset, uint32_t size, uint32_t v) {
    uint32_t mask = ((size >= 32 ? 0u : 1u << size) - 1) << offset & kModeBits;
    value = (value & ~mask) | (v << offset & mask);
    known |= mask;
  }
  void forget(uint32_t offset, uint32_t size) {
    uint32_t mask = ((size >= 32 ? 0u : 1u << size) - 1) << offset;
    known &= ~mask;
    value &= ~mask;
  }
  bool meet(const Mode &other) {  // whether it changes
    uint32_t both = known & other.known & ~(value ^ other.value);
    bool changes = both != known;
    known = both;
    value &= both;
    return changes;
  }
};

struct Block {
  uint32_t first, steps;  // in the sorted list
  uint32_t start, next;   // next: of its last instruction
  uint32_t succs[2];
  Mode mode;
  bool reached, returns;  // returns: it ends in a jump to one of all places where calls go on
};

struct Fixup {
  uint32_t at;     // in the code
  uint32_t block;  // index; kNone: `offset` is in the code itself
  uint32_t offset;
  int32_t addend;
};

struct PoolFixup {
  uint32_t at;
  const uint8_t *target;
};

class Builder {
 public:
  Builder(const std::vector<const Pack *> &packs, const KernelCode &kernel, BuiltKernel &out)
      : packs_(packs), kernel_(kernel), decoder_(*packs[0], kernel), out_(out), at_(kernel.size / 4 + 1, kNone),
        leader_(kernel.size / 4 + 1, 0) {}

  bool run() {
    if (kernel_.size > (1u << 30) || kernel_.entry % 4) return refuse("its code is too large");
    if (!walk()) return false;
    sort_steps();
    make_blocks();
    flow_modes();
    emit();
    if (!out_.missing.empty()) {
      std::sort(out_.missing.begin(), out_.missing.end());
      out_.missing.erase(std::unique(out_.missing.begin(), out_.missing.end()), out_.missing.end());
      return false;
    }
    return out_.why.empty() && finish();
  }

 private:
  bool refuse(const char *why) {
    if (out_.why.empty()) out_.why = why;
    return false;
  }

  // ---- blocks, as cfg/rdna3_flow.py finds them

  static bool ends(uint8_t control) {
    return control == kBranch || control == kEnd || control == kIllegal || control == kTrap || control == kCall || control == kReturn;
  }

  static bool jumps(uint8_t control) { return control == kBranch || control == kConditional || control == kCall; }

  uint32_t target(const Step &step) const {
    return step.pc + 4 + 4 * static_cast<uint32_t>(static_cast<int32_t>(static_cast<int16_t>(step.raw & 0xffff)));
  }

  bool lead(uint32_t pc) {
    if (pc > kernel_.size || pc % 4) return refuse("a branch outside the code");
    if (!leader_[pc / 4]) {
      leader_[pc / 4] = 1;
      work_.push_back(pc);
    }
    return true;
  }

  // The places where calls go on are reached if there is a jump to an address in registers.
  bool walk() {
    if (!lead(kernel_.entry) || !follow()) return false;
    for (size_t known = 0; returns_ && known != places_.size();) {
      std::sort(places_.begin(), places_.end());
      known = places_.size();
      for (size_t i = 0; i < known; ++i)
        if (!lead(places_[i])) return false;
      if (!follow()) return false;
    }
    if (returns_ && addresses_) return refuse("a jump to an address that the code computes");
    if (returns_ && places_.empty()) return refuse("a jump to an address that is not known");
    return returns_ * places_.size() <= kMostReturns || refuse("too many jumps to addresses in registers");
  }

  bool follow() {
    while (!work_.empty()) {
      uint32_t pc = work_.back();
      work_.pop_back();
      while (decoder_.inside(pc) && at_[pc / 4] == kNone) {
        Step step;
        if (!decoder_.decode(pc, step)) return refuse(decoder_.why());
        at_[pc / 4] = static_cast<uint32_t>(steps_.size());
        steps_.push_back(step);
        uint8_t control = step.row->control;
        if (jumps(control) && !lead(target(step))) return false;
        if (control == kCall) places_.push_back(step.pc + step.size);
        returns_ += control == kReturn;
        addresses_ |= control == kAddress;
        if (ends(control)) break;
        if (control == kConditional) {
          if (!lead(step.pc + step.size)) return false;
          break;
        }
        pc += step.size;
      }
    }
    return true;
  }

  void sort_steps() {
    std::sort(steps_.begin(), steps_.end(), [](const Step &a, const Step &b) { return a.pc < b.pc; });
    reads_.assign(kernel_.size / 4 + 2, 0);
    for (const Step &s : steps_) reads_[s.pc / 4 + 1] = (s.row->flags & kReadsMemory) != 0;
    for (size_t i = 1; i < reads_.size(); ++i) reads_[i] += reads_[i - 1];
  }

  bool reads_memory(uint32_t low, uint32_t high) const { return reads_[high / 4 + 1] != reads_[low / 4]; }

  void make_blocks() {
    std::fill(at_.begin(), at_.end(), kNone);
    bool open = false;
    for (size_t i = 0; i < steps_.size(); ++i) {
      const Step &s = steps_[i];
      bool joined = i && steps_[i - 1].pc + steps_[i - 1].size == s.pc;
      if (!open || leader_[s.pc / 4] || !joined || blocks_.back().steps >= kLongest) {
        at_[s.pc / 4] = static_cast<uint32_t>(blocks_.size());
        blocks_.push_back({static_cast<uint32_t>(i), 0, s.pc, 0, {kNone, kNone}, {0, kModeBits}, false, false});
      }
      ++blocks_.back().steps;
      blocks_.back().next = s.pc + s.size;
      open = !ends(s.row->control) && s.row->control != kConditional;
    }
    for (Block &b : blocks_) {
      const Step &last = steps_[b.first + b.steps - 1];
      uint8_t control = last.row->control;
      if (jumps(control)) b.succs[0] = block_at(target(last));
      b.returns = control == kReturn;
      if (!ends(control)) b.succs[1] = block_at(b.next);
    }
  }

  uint32_t block_at(uint32_t pc) const { return pc / 4 < at_.size() ? at_[pc / 4] : kNone; }

  static void step_mode(Mode &mode, const Step &step) {
    uint32_t imm = step.raw & 0xffff, offset = imm >> 6 & 31, size = (imm >> 11 & 31) + 1;
    switch (step.row->control) {
      case kRoundMode:
        return mode.set(0, 4, imm);
      case kDenormMode:
        return mode.set(4, 4, imm);
      case kSetreg:
        return mode.forget(offset, size);
      case kSetregLiteral:
        return mode.set(offset, size, step.literal);
      default:
        return;
    }
  }

  void flow_modes() {
    Mode initial = {kernel_.mode & kModeBits, kModeBits};
    for (Block &b : blocks_) b.mode = initial;
    std::vector<uint32_t> work;
    uint32_t first = block_at(kernel_.entry);
    if (first == kNone) return;
    blocks_[first].reached = true;
    work.push_back(first);
    while (!work.empty()) {
      const Block &b = blocks_[work.back()];
      work.pop_back();
      Mode mode = b.mode;
      for (uint32_t i = 0; i < b.steps; ++i) step_mode(mode, steps_[b.first + i]);
      auto reach = [&](uint32_t to) {
        if (to == kNone) return;
        Block &succ = blocks_[to];
        if (succ.reached ? succ.mode.meet(mode) : true) {
          if (!succ.reached) succ.mode = mode;
          succ.reached = true;
          work.push_back(to);
        }
      };
      for (uint32_t to : b.succs) reach(to);
      if (b.returns)
        for (uint32_t pc : places_) reach(block_at(pc));
    }
  }

  // ---- code

  struct Jump {
    uint32_t block;   // where it goes
    uint32_t offset;  // in the code, where block is kNone
  };

  const StencilRow *find(const Shape &shape, const Pack *&from) {
    for (const Pack *pack : packs_) {
      if (const StencilRow *row = pack->find(shape)) {
        from = pack;
        return row;
      }
    }
    return nullptr;
  }

  // Copies a stencil and patches it.  `next` may be null: what follows.
  void copy(const Shape &shape, const int32_t *values, const Jump *taken, const Jump *next = nullptr) {
    const Pack *pack = nullptr;
    const StencilRow *row = find(shape, pack);
    if (!row) {
      out_.missing.push_back(shape);
      return;
    }
    size_t start = code_.size();
    code_.resize(start + row->size);
    memcpy(code_.data() + start, pack->code(*row), row->size);
    const StencilReloc *relocs = pack->relocs(*row);
    for (uint32_t i = 0; i < row->relocs; ++i) {
      const StencilReloc &r = relocs[i];
      uint32_t at = static_cast<uint32_t>(start + r.offset);
      switch (r.kind) {
        case kAbsolute: {
          int32_t value = values[r.symbol] + r.addend;
          memcpy(code_.data() + at, &value, 4);
          break;
        }
        case kPool:
          pool_fixups_.push_back({at, pack->pool() + r.addend});
          break;
        case kNext:
          if (next) fixups_.push_back({at, next->block, next->offset, r.addend});
          else fixups_.push_back({at, kNone, static_cast<uint32_t>(start + row->size), r.addend});
          break;
        case kTaken:
          if (taken) fixups_.push_back({at, taken->block, taken->offset, r.addend});
          else refuse("a stencil that jumps");
          break;
        default:
          constants_fixups_.push_back({at, kNone, 0, r.addend});
      }
    }
  }

  static Shape glue(Glue piece) { return {0xffffffff00000000u | piece, 0, -1}; }

  void copy_glue(Glue piece, int32_t pc, int32_t number, const Jump *taken, const Jump *next = nullptr) {
    int32_t values[kSymbols] = {};
    values[kPc] = pc;
    values[kNumber] = number;
    copy(glue(piece), values, taken, next);
  }

  int32_t offset(uint32_t pc) const { return static_cast<int32_t>(pc - kernel_.entry); }

  // A jump to `to` from the instruction at `source`, as the code that follows.
  void go(uint32_t to, uint32_t source, uint32_t here) {
    uint32_t block = block_at(to);
    if (block == kNone) return copy_glue(kIllegalGlue, offset(source), 0, nullptr);
    Jump jump = {block, 0};
    if (to <= source) copy_glue(reads_memory(to, source) ? kFuel : kStop, offset(source), 0, &jump);
    else if (block != here + 1) copy_glue(kJump, 0, 0, &jump);
  }

  // Copies a stencil that may jump to `to`; a back edge's own code comes after the blocks.
  void copy_conditional(const Shape &shape, const int32_t *values, uint32_t to, uint32_t source) {
    uint32_t block = block_at(to);
    if (block != kNone && to > source) {
      Jump taken = {block, 0};
      return copy(shape, values, &taken);
    }
    Jump taken = {kNone, kNone};
    later_.push_back({fixups(), 0, to, source});
    copy(shape, values, &taken);
    later_.back().end = fixups();
  }

  uint32_t fixups() const { return static_cast<uint32_t>(fixups_.size()); }

  // The jumps of [begin, end) that have no target yet go to the code that follows.
  void land(uint32_t begin, uint32_t end) {
    uint32_t here = static_cast<uint32_t>(code_.size());
    for (uint32_t i = begin; i < end; ++i)
      if (fixups_[i].block == kNone && fixups_[i].offset == kNone) fixups_[i].offset = here;
  }

  // To the place of [first, last) whose number the frame has, by halves.
  void go_back(size_t first, size_t last, uint32_t source) {
    int32_t values[kSymbols] = {};
    values[kPc] = offset(source);
    if (last - first == 1) {
      values[kNumber] = static_cast<int32_t>(places_[first]);
      if (block_at(places_[first]) != kNone) copy_conditional(glue(kEqual), values, places_[first], source);
      return copy(glue(kLost), values, nullptr);
    }
    size_t middle = first + (last - first) / 2;
    values[kNumber] = static_cast<int32_t>(places_[middle]);
    Jump below = {kNone, kNone};
    uint32_t begin = fixups();
    copy(glue(kBelow), values, &below);
    uint32_t end = fixups();
    go_back(middle, last, source);
    land(begin, end);
    go_back(first, middle, source);
  }

  void emit_step(const Step &step, const Mode &mode, uint32_t here, const Block &block) {
    uint8_t control = step.row->control;
    if (control == kNothing || control == kRoundMode || control == kDenormMode) return;
    if (control == kSetreg || control == kSetregLiteral) {
      if ((step.raw & 63) != 1) refuse("a hardware register that the device does not have");
      return;
    }
    if (control == kBranch) return go(target(step), step.pc, here);
    if (control == kIllegal) return copy_glue(kIllegalGlue, offset(step.pc), 0, nullptr);
    int32_t values[kSymbols];
    memcpy(values + kV, step.v, sizeof step.v);
    memcpy(values + kS, step.s, sizeof step.s);
    memcpy(values + kImm, step.imm, sizeof step.imm);
    values[kPc] = offset(step.pc);
    values[kNumber] = static_cast<int32_t>(step.pc + step.size);
    Shape shape = step.shape;
    if ((step.row->flags & kMode) || (raw(step) & step.row->mode_bits)) {
      if (mode.known != kModeBits) {
        refuse("the rounding or denormal mode is not known");
        return;
      }
      shape.mode = static_cast<int32_t>(mode.value);
    } else if (kernel_.unaligned && step.row->flags & kAccess) {
      shape.mode = kUnaligned;
    }
    if (control == kConditional) copy_conditional(shape, values, target(step), step.pc);
    else copy(shape, values, nullptr);
    if (control == kCall) return go(target(step), step.pc, here);
    if (control == kReturn) return go_back(0, places_.size(), step.pc);
    if (control == kConditional && block_at(block.next) == kNone) copy_glue(kIllegalGlue, offset(step.pc), 0, nullptr);
  }

  static uint64_t raw(const Step &step) { return step.shape.word; }

  void emit() {
    uint32_t first = block_at(kernel_.entry);
    Jump entry = {first, 0};
    if (first == kNone) {
      refuse("no code");
      return;
    }
    copy_glue(kEnter, 0, 0, nullptr, &entry);
    starts_.resize(blocks_.size());
    const bool marks = steps_.size() >= kLeastMarked;
    for (uint32_t n = 0; n < blocks_.size(); ++n) {
      const Block &b = blocks_[n];
      starts_[n] = static_cast<uint32_t>(code_.size());
      copy_glue(kBlock, 0, static_cast<int32_t>(b.steps), nullptr);
      if (kernel_.counts) copy_glue(kCount, 0, static_cast<int32_t>(8 * n), nullptr);
      else if (marks) copy_glue(kMark, 0, static_cast<int32_t>(n), nullptr);
      if (marks) out_.blocks_at.push_back({offset(b.start), starts_[n]});
      Mode mode = b.mode;
      for (uint32_t i = 0; i < b.steps; ++i) {
        const Step &step = steps_[b.first + i];
        emit_step(step, mode, n, b);
        step_mode(mode, step);
      }
      const Step &last = steps_[b.first + b.steps - 1];
      if (!ends(last.row->control) && last.row->control != kConditional) go(b.next, last.pc, n);
    }
    for (const Later &l : later_) {
      land(l.fixup, l.end);
      go(l.to, l.source, kNone - 1);
    }
    if (marks) {
      out_.resume = static_cast<uint32_t>(code_.size());
      copy_glue(kResume, 0, 0, nullptr);
    }
    out_.instructions = static_cast<uint32_t>(steps_.size());
    out_.blocks = static_cast<uint32_t>(blocks_.size());
  }

  bool finish() {
    const auto &constants = decoder_.constants();
    size_t table = (code_.size() + kLine - 1) / kLine * kLine;
    size_t lines = (constants.size() * 8 + kLine - 1) / kLine;
    if (constants.size() > kMostConstants) return refuse("too many constants");
    size_t size = table + kLine + lines * kLine;
    if (size > INT32_MAX) return refuse("its code is too large");
    uint8_t *base = take_code(size);
    if (!base) return refuse("no memory for its code");
    memcpy(base, code_.data(), code_.size());
    auto relative = [base](uint32_t at, const uint8_t *to, int32_t addend) {
      int32_t value = static_cast<int32_t>(to + addend - (base + at));
      memcpy(base + at, &value, 4);
    };
    for (const Fixup &f : fixups_) relative(f.at, base + (f.block == kNone ? f.offset : starts_[f.block]), f.addend);
    for (const PoolFixup &f : pool_fixups_) relative(f.at, f.target, 0);
    for (const Fixup &f : constants_fixups_) relative(f.at, base + table, f.addend);
    out_.frame = Decoder::kConstantsAt + lines * kLine;
    uint64_t numbers[3] = {out_.frame, std::min<uint64_t>(decoder_.vgprs(), 256) * 2, lines};
    memcpy(base + table, numbers, sizeof numbers);
    out_.table = static_cast<uint32_t>(table);
    for (const auto &c : constants) memcpy(base + table + kLine + size_t{8} * c.second, &c.first, 8);
    if (mprotect(base, (size + 4095) / 4096 * 4096, PROT_READ | PROT_EXEC) != 0) {
      release_kernel(base, size);
      return refuse("its code cannot be made executable");
    }
    out_.code = base;
    out_.size = size;
    out_.entry = reinterpret_cast<SxEntry>(base);
    return true;
  }

  struct Later {  // the way to a block's start by a back edge, placed after the code
    uint32_t fixup, end;
    uint32_t to, source;
  };

  const std::vector<const Pack *> &packs_;
  const KernelCode &kernel_;
  Decoder decoder_;
  BuiltKernel &out_;
  std::vector<uint32_t> at_;  // by pc / 4: the step, later the block that begins there
  std::vector<uint8_t> leader_;
  std::vector<uint32_t> work_, reads_, starts_;
  std::vector<uint32_t> places_;  // where calls go on, ascending
  size_t returns_ = 0;            // jumps to addresses in registers
  bool addresses_ = false;        // an instruction makes another address of the code
  std::vector<Step> steps_;
  std::vector<Block> blocks_;
  std::vector<Later> later_;
  std::vector<uint8_t> code_;
  std::vector<Fixup> fixups_, constants_fixups_;
  std::vector<PoolFixup> pool_fixups_;
};

}  // namespace

bool build_kernel(const std::vector<const Pack *> &packs, const KernelCode &kernel, BuiltKernel &out) {
  out = BuiltKernel();
  return Builder(packs, kernel, out).run();
}

}  // namespace sx
