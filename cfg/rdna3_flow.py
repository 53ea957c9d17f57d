"""The blocks of a wave function: all code reachable from the entry by branches with known targets,
and the value of MODE before each instruction."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from sassxlate.disasm.rdna3.codec.decode.instruction import branch_target, decode
from sassxlate.disasm.rdna3.instruction import I, Inst, S
from sassxlate.disasm.rdna3.semantics import Mode
from sassxlate.domain.interface import Fp, Round
from sassxlate.errors import EmulatorError, EncodeError, Where

ENDS = frozenset({"s_endpgm", "s_endpgm_saved", "s_code_end", "s_trap"})
INDIRECT = frozenset({"s_setpc_b64", "s_swappc_b64"})
# The most instructions in a block: LLVM's time is more than linear in the length of a block.
LONGEST = 512
READS = re.compile(r"(global|flat|scratch|ds|s)_(load|atomic)|ds_\w+_rtn|buffer_load")


@dataclass(frozen=True, slots=True)
class DecodedStep:
    """An instruction and its place; `pc` and `next` are byte offsets in the code."""

    pc: int
    next: int
    inst: Inst


@dataclass(slots=True)
class MachineBlock:
    start: int
    steps: list[DecodedStep] = field(default_factory=list[DecodedStep])
    succs: tuple[int, ...] = ()
    fall: int | None = None  # the next block, if the last instruction is not a jump


@dataclass(slots=True)
class Flow:
    """Blocks by their start; `indirect` are the possible targets of s_setpc and s_swappc.
    `cuts` are the starts of blocks that nothing jumps to: the block before them was full."""

    entry: int
    blocks: dict[int, MachineBlock]
    indirect: tuple[int, ...]
    cuts: frozenset[int] = frozenset()

    def goes_back(self) -> bool:
        """Whether a block leads to one that does not come after it, as every loop has it."""
        return any(succ <= start for start, b in self.blocks.items() for succ in b.succs)

    def reads_memory(self, low: int, high: int) -> bool:
        """Whether an instruction in [low, high] reads memory."""
        return any(
            low <= s.pc <= high and READS.match(s.inst.op)
            for b in self.blocks.values()
            for s in b.steps
        )


def _target(step: DecodedStep) -> int | None:
    op = step.inst.op
    if op == "s_branch" or op.startswith("s_cbranch_") or op == "s_call_b64":
        return branch_target(step.inst, step.pc)
    return None


def _is_end(op: str) -> bool:
    return op in ENDS or op in INDIRECT or op == "s_call_b64" or op == "s_branch"


class _Walk:
    def __init__(self, code: bytes, entry: int) -> None:
        self.code = code
        self.entry = entry
        self.steps: dict[int, DecodedStep] = {}
        self.leaders: set[int] = set()
        self.work: list[int] = []
        self.taken: set[int] = set()

    def lead(self, pc: int, source: int) -> None:
        if not 0 <= pc <= len(self.code) or pc % 4:
            raise EmulatorError(
                "SX0621", f"a branch to {pc:#x}, outside the code", Where(offset=source)
            )
        if pc not in self.leaders:
            self.leaders.add(pc)
            self.work.append(pc)

    def run(self) -> None:
        self.lead(self.entry, self.entry)
        while self.work:
            self._straight(self.work.pop())

    def _straight(self, pc: int) -> None:
        known: dict[int, int] = {}  # s_getpc: low register to the constant there
        while pc < len(self.code) and pc not in self.steps:
            step = self._decode(pc)
            self.steps[pc] = step
            op = step.inst.op
            self._addresses(step, known)
            target = _target(step)
            if target is not None:
                self.lead(target, pc)
            if op in ("s_swappc_b64", "s_call_b64"):
                self.taken.add(step.next)
            if _is_end(op):
                return
            if op.startswith("s_cbranch_"):
                self.lead(step.next, pc)
                return
            pc = step.next

    def _decode(self, pc: int) -> DecodedStep:
        try:
            inst, size = decode(self.code, pc)
        except EncodeError as e:
            raise EmulatorError("SX0623", e.message, Where(offset=pc)) from e
        return DecodedStep(pc, pc + size, inst)

    def _addresses(self, step: DecodedStep, known: dict[int, int]) -> None:
        """Records the code addresses that s_getpc_b64 and s_add_u32 of a literal make."""
        inst = step.inst
        dst = inst.args[0] if inst.args else None
        if not isinstance(dst, S):
            return
        if inst.op == "s_getpc_b64":
            known[dst.index] = step.next
        elif inst.op == "s_add_u32" and dst.index in known and isinstance(inst.args[2], I):
            value = known.pop(dst.index) + inst.args[2].value & 0xFFFFFFFF
            if value < len(self.code) and value % 4 == 0:
                self.taken.add(value)
        else:
            known.pop(dst.index, None)


def discover(code: bytes, entry: int, pointers: Iterable[int] = ()) -> Flow:
    """The reachable blocks.  ``pointers``: offsets of code whose addresses are in memory, as those
    of virtual functions are; s_setpc and s_swappc may reach them.

    Raises:
        EmulatorError: SX0621, a jump that leaves the code; SX0623, not an instruction.
    """
    walk = _Walk(code, entry)
    walk.run()
    indirect: tuple[int, ...] = ()
    if any(s.inst.op == "s_swappc_b64" for s in walk.steps.values()):
        walk.taken.update(pointers)
    if any(s.inst.op in INDIRECT for s in walk.steps.values()):
        while set(indirect) != walk.taken:
            indirect = tuple(sorted(walk.taken))
            for pc in indirect:
                walk.lead(pc, pc)
            walk.run()
    blocks, cuts = _blocks(walk, indirect)
    return Flow(entry, blocks, indirect, cuts)


def _blocks(
    walk: _Walk, indirect: tuple[int, ...]
) -> tuple[dict[int, MachineBlock], frozenset[int]]:
    blocks: dict[int, MachineBlock] = {}
    cuts: set[int] = set()
    current: MachineBlock | None = None
    last: DecodedStep | None = None
    for pc in sorted(walk.steps):
        step = walk.steps[pc]
        if current is None or pc in walk.leaders or last is None or last.next != pc:
            current = blocks[pc] = MachineBlock(pc)
        elif len(current.steps) >= LONGEST:
            current = blocks[pc] = MachineBlock(pc)
            cuts.add(pc)
        current.steps.append(step)
        last = step
        if _is_end(step.inst.op) or step.inst.op.startswith("s_cbranch_"):
            current = None
    for block in blocks.values():
        _close(block, blocks, len(walk.code), indirect)
    return blocks, frozenset(cuts)


def _close(
    block: MachineBlock, blocks: dict[int, MachineBlock], size: int, indirect: tuple[int, ...]
) -> None:
    step = block.steps[-1]
    succs: list[int] = []
    target = _target(step)
    if target is not None:
        succs.append(target)
    if not _is_end(step.inst.op):
        block.fall = step.next if step.next in blocks else None
        if block.fall is not None:
            succs.append(block.fall)
    if step.inst.op in INDIRECT:
        succs += indirect
    block.succs = tuple(dict.fromkeys(s for s in succs if s in blocks))
    del size


# --- MODE ------------------------------------------------------------------------------------

MODE_BITS = 0x3FF  # round 3:0, denormals 7:4, dx10_clamp 8, ieee 9


@dataclass(frozen=True, slots=True)
class ModeBits:
    """The MODE register's value, in the bits that `known` has set."""

    value: int
    known: int = MODE_BITS

    def set(self, offset: int, size: int, value: int) -> ModeBits:
        mask = ((1 << size) - 1) << offset & MODE_BITS
        bits = value << offset & mask
        return ModeBits(self.value & ~mask | bits, self.known | mask)

    def forget(self, offset: int, size: int) -> ModeBits:
        mask = ((1 << size) - 1) << offset
        return replace(self, known=self.known & ~mask, value=self.value & ~mask)

    def meet(self, other: ModeBits) -> ModeBits:
        known = self.known & other.known & ~(self.value ^ other.value)
        return ModeBits(self.value & known, known)

    def mode(self) -> Mode | None:
        """None if a part of it is unknown."""
        if self.known != MODE_BITS:
            return None
        v = self.value
        return Mode(
            _fp(v & 3, v >> 4 & 3), _fp(v >> 2 & 3, v >> 6 & 3), bool(v >> 9 & 1), bool(v >> 8 & 1)
        )


def _fp(how: int, denormals: int) -> Fp:
    """denormals: bit 0 keeps them in sources, bit 1 in results."""
    return Fp(Round(how), not denormals & 1, not denormals & 2)


def hwreg(imm: int) -> tuple[int, int, int]:
    """(register, offset, size) from the simm16 of s_getreg and s_setreg."""
    return imm & 63, imm >> 6 & 31, (imm >> 11 & 31) + 1


def step_mode(bits: ModeBits, inst: Inst) -> ModeBits:
    """MODE after an instruction."""
    op, imm = inst.op, inst.imm & 0xFFFF
    if op == "s_round_mode":
        return bits.set(0, 4, imm)
    if op == "s_denorm_mode":
        return bits.set(4, 4, imm)
    if op in ("s_setreg_imm32_b32", "s_setreg_b32"):
        register, offset, size = hwreg(imm)
        if register != 1:
            return bits
        last = inst.args[-1] if inst.args else None
        if op == "s_setreg_imm32_b32" and isinstance(last, I):
            return bits.set(offset, size, last.value)
        return bits.forget(offset, size)
    return bits


def modes(flow: Flow, initial: ModeBits) -> dict[int, ModeBits]:
    """MODE at the start of every block."""
    before: dict[int, ModeBits] = {flow.entry: initial}
    work = [flow.entry]
    while work:
        block = flow.blocks[work.pop()]
        bits = before[block.start]
        for step in block.steps:
            bits = step_mode(bits, step.inst)
        for succ in block.succs:
            old = before.get(succ)
            new = bits if old is None else old.meet(bits)
            if new != old:
                before[succ] = new
                work.append(succ)
    return before
