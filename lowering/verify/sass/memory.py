"""The effects of SASS instructions on memory: their spaces, sizes, addresses and operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Generic, TypeVar

from sassxlate.disasm.sass.instruction import Const, Instruction, Mem, Pred, Reg, RegFile, RegRef
from sassxlate.disasm.sass.semantics.memory.memory import place, shape, size_of
from sassxlate.disasm.sass.semantics.memory.wide import chosen
from sassxlate.disasm.sass.semantics.whole_warps import has_meaning
from sassxlate.disasm.sass.traits import Traits, traits
from sassxlate.domain.interface import Domain
from sassxlate.lowering.verify.memory import Memory
from sassxlate.lowering.verify.verdict import Undecided

T = TypeVar("T")
# AMD's names of the spaces.
_SPACES = {"global": "global", "generic": "flat", "shared": "ds", "local": "scratch"}
_WIDE = frozenset({"64", "U64", "S64", "F64"})
# Modifiers of scope, order and caching, and of one address for all lanes; they do not change the
# size of an atomic's word.
_ORDER = frozenset(
    "E STRONG WEAK CONSTANT MMIO GPU SM SYS CTA EF EL EU LU NA EN DESC 64 128 U8 S8 U16 S16 32 "
    "PRIVATE LTC128B LTC64B LTC256B LTCXXX U 256 EFL2 ENL2 ELL2".split()
)


def is_access(ins: Instruction) -> bool:
    """Whether :class:`Accesses` covers it; constants at a fixed address are not memory."""
    t = traits(ins)
    if t.reaches(("load",), "constant"):
        source = ins.get("src")
        return isinstance(source, Const) and source.index is not None and not source.index.is_zero
    if ins.mnemonic == "SYNCS":
        return ins.has("CCTL") or ins.has("FLUSH")
    if t.reaches(("atomic",)) and ins.has("ARRIVE"):
        return False
    silent = t.order == "hint" and not ins.writes
    return silent or t.order == "memory" or t.reaches(("copy",)) or _is_plain(t) or _is_atomic(t)


def _is_plain(t: Traits) -> bool:
    """A per-lane load or store that is done at once."""
    m = t.memory
    plain = m is not None and m.kind in ("load", "store") and m.space in _SPACES
    return plain and not t.lanes and has_meaning(t.mnemonic)


def _is_atomic(t: Traits) -> bool:
    return t.reaches(("atomic", "reduction"), *_SPACES) and has_meaning(t.mnemonic)


class Accesses(Generic[T]):
    """Adds the accesses of instructions to one side's memory."""

    def __init__(self, d: Domain[T], get: Callable[[RegRef], T], memory: Memory[T]) -> None:
        self.d = d
        self.get = get
        self.memory = memory

    def run(self, ins: Instruction, when: T) -> dict[RegRef, T]:
        """The registers that an instruction loads.  Raises Undecided."""
        t = traits(ins)
        if _is_plain(t):
            return self._plain(ins, when)
        if _is_atomic(t):
            return self._atomic(ins, when)
        if t.reaches(("load",), "constant"):
            return self._constant(ins, when)
        if t.reaches(("copy",)):
            self._copy(ins, when)
        if t.order == "memory":
            self._fence(ins)
        return {}

    # -- operands -------------------------------------------------------------------------

    def _register(self, file: RegFile, index: int) -> T:
        return self.get(RegRef(file, index))

    def _address(self, ins: Instruction, width: int, role: str = "mem") -> T:
        mem = ins.get(role)
        if not isinstance(mem, Mem):
            raise Undecided(f"this form of {ins.mnemonic}")
        return place(self.d, mem, self._register, width)

    def _words(self, ins: Instruction, role: str, count: int) -> list[T]:
        operand = ins.get(role)
        if not isinstance(operand, Reg) or operand.neg or operand.inv or operand.select:
            raise Undecided(f"this form of {ins.mnemonic}")
        if operand.is_zero:
            return [self.d.const(0, 32)] * count
        return [self.get(RegRef(operand.file, operand.index + i)) for i in range(count)]

    @staticmethod
    def _written(ins: Instruction, words: list[T], role: str = "Rd") -> dict[RegRef, T]:
        target = ins.get(role)
        if not isinstance(target, Reg) or target.is_zero:
            return {}
        return {RegRef(target.file, target.index + i): w for i, w in enumerate(words)}

    # -- loads and stores -----------------------------------------------------------------

    def _plain(self, ins: Instruction, when: T) -> dict[RegRef, T]:
        what = shape(ins)
        space, store = _SPACES[what.space], what.store
        if not _ORDER.issuperset(ins.modifiers):
            raise Undecided(f"this form of {ins.mnemonic}")
        address = self._address(ins, 64 if space in ("global", "flat") else 32)
        size, signed = what.size, what.signed
        if size == 32:
            return self._wide(ins, when, address, store)
        if store:
            data = self._words(ins, "Rb", (size + 3) // 4)
            self.memory.store(space, size, when, address, data)
            return {}
        told, zero = self._told(ins), self.d.const(0, 32)
        loaded = self.memory.load(space, size, signed, self.d.and_(when, told), address)
        out = self._written(ins, [self.d.select(told, word, zero) for word in loaded])
        never = ins.get("Pu")
        if isinstance(never, Pred) and never.index != 7:
            out[RegRef(never.file, never.index)] = self.d.const(0, 1)
        return out

    def _wide(self, ins: Instruction, when: T, address: T, store: bool) -> dict[RegRef, T]:
        """256 bits, as two halves."""
        if self._told_at_all(ins):
            raise Undecided(f"a second predicate of {ins.mnemonic}")
        out: dict[RegRef, T] = {}
        for half, words in enumerate(chosen(ins)):
            at = self.d.add(address, self.d.const(16 * half, 64))
            role = ("Rb", "Rb2") if store else ("Rd", "Rd2")
            if store:
                self.memory.store("global", 16, when, at, self._words(ins, role[half], 4))
                continue
            loaded = self.memory.load("global", 16, False, when, at)
            out |= self._written(ins, [loaded[i - 4 * half] for i in words], role[half])
        return out

    @staticmethod
    def _told_at_all(ins: Instruction) -> bool:
        second = ins.get("Pp")
        return isinstance(second, Pred) and not second.is_true

    def _told(self, ins: Instruction) -> T:
        """The second predicate; true if there is none."""
        d, second = self.d, ins.get("Pp")
        told = d.const(1, 1)
        if isinstance(second, Pred):
            if second.index != 7:
                told = self.get(RegRef(second.file, second.index))
            told = d.xor(told, d.const(int(second.inv), 1))
        return told

    def _copy(self, ins: Instruction, when: T) -> None:
        """From global to shared memory; zeros if a second predicate is false, and with .ZFILL in as
        many of the last bytes as the low bits of the address give."""
        d, told = self.d, self._told(ins)
        size, _ = size_of(ins)
        source, target = self._address(ins, 64), self._address(ins, 32, "dst")
        filled = d.const(0, 64)
        if ins.has("ZFILL"):
            filled = d.and_(source, d.const(size - 1, 64))
            source = d.and_(source, d.const(-size, 64))
        words = self.memory.load("global", size, False, d.and_(when, told), source)
        data: list[T] = []
        for i, word in enumerate(words):
            kept = d.const(0, 32)
            for byte in range(4):
                is_copied = d.ult(filled, d.const(size - 4 * i - byte, 64))
                mask = d.select(is_copied, d.const(0xFF << 8 * byte, 32), d.const(0, 32))
                kept = d.or_(kept, mask)
            data.append(d.select(told, d.and_(word, kept), d.const(0, 32)))
        self.memory.store("ds", size, when, target, data)

    def _constant(self, ins: Instruction, when: T) -> dict[RegRef, T]:
        """A constant at a computed address: the sum has 32 bits."""
        d, source = self.d, ins.get("src")
        if not isinstance(source, Const) or source.ur is not None:
            raise Undecided("a computed constant bank")
        if any(ins.has(m) for m in ("IL", "IS", "ISL")):
            raise Undecided(f"this form of {ins.mnemonic}")
        at = place(d, Mem(source.index, source.offset), self._register, 32)
        size, signed = size_of(ins)
        space = f"c[{source.bank}]"
        words = self.memory.load(space, size, signed, when, d.zext(at, 64))
        return self._written(ins, words)

    # -- atomics --------------------------------------------------------------------------

    def _atomic(self, ins: Instruction, when: T) -> dict[RegRef, T]:
        memory, d = traits(ins).memory, self.d
        assert memory is not None
        space = _SPACES[memory.space]
        if (
            memory.kind == "reduction"
        ):  # RED: nvcc writes it for global memory alone (docs/errata.md)
            space = "global"
        done = ins.get("Pu")
        if isinstance(done, Pred) and done.index != 7:
            if ins.mnemonic != "ATOMG":
                raise Undecided(f"the predicate of {ins.mnemonic}")
            plain = replace(ins, operands={**ins.operands, "Pu": Pred("P", 7)})
            never = {RegRef(done.file, done.index): d.const(0, 1)}
            return self._atomic(plain, when) | never
        words = 2 if _WIDE.intersection(ins.modifiers) else 1
        address = self._address(ins, 32 if space == "ds" else 64)
        if ins.has("POPC"):  # adds one per lane
            target = ins.get("Rd")
            if isinstance(target, Reg) and not target.is_zero:
                raise Undecided("the lanes that share a word of ATOMS.POPC.INC")
            self.memory.atomic(space, "add_u32", 1, when, address, [d.const(1, 32)])
            return {}
        if ins.has("CAS") or ins.has("CAST"):
            old = self._words(ins, "Rb", words)
            data = [*self._words(ins, "Rc", words), *old]
            came = self.memory.atomic(space, f"cmpswap_b{32 * words}", words, when, address, data)
            if ins.has("CAST"):  # whether the exchange was done
                same = d.const(1, 1)
                for a, b in zip(came, old, strict=True):
                    same = d.and_(same, d.eq(a, b))
                came = [d.zext(same, 32), *(d.const(0, 32) for _ in old[1:])]
            return self._written(ins, came)
        data = self._words(ins, "Rb", words)
        name = _operation(ins, words)
        return self._written(ins, self.memory.atomic(space, name, words, when, address, data))

    # -- order ----------------------------------------------------------------------------

    def _fence(self, ins: Instruction) -> None:
        if ins.mnemonic == "CCTL":
            if ins.has("IVALL") or ins.has("IV"):
                self.memory.fence("done", "gl1", "gl0")
            return
        wide = any(ins.has(m) for m in ("GPU", "SYS", "VC"))
        self.memory.fence("done", *(("gl1", "gl0") if wide else ()))


_NAMES = {"EXCH": "swap_b", "AND": "and_b", "OR": "or_b", "XOR": "xor_b"}


def _operation(ins: Instruction, words: int) -> str:
    """RDNA3's name of the operation and its type."""
    bits = 32 * words
    op = next((m for m in ins.modifiers if m in ("ADD", "MIN", "MAX", "INC", "DEC", *_NAMES)), None)
    if op is None or any(m in ins.modifiers for m in ("RZ", "RM", "RP")):
        raise Undecided(f"this form of {ins.mnemonic}")
    if op in _NAMES:
        return f"{_NAMES[op]}{bits}"
    if any("x" in m and m.startswith(("F16", "BF16", "F32")) for m in ins.modifiers):
        raise Undecided("an atomic sum of a vector")  # RDNA3 needs several loops
    kind = next((m for m in ins.modifiers if m[:1] in "FB" and m[1:2].isdigit()), None)
    if kind == "F32" and op == "ADD" and not ins.has("FTZ"):
        raise Undecided("an atomic sum that keeps denormals")  # add_f32 flushes them
    if kind is not None:
        return f"{op.lower()}_{kind.lower()}"
    signed = op in ("MIN", "MAX") and (ins.has("S32") or ins.has("S64"))
    return f"{op.lower()}_{'i' if signed else 'u'}{bits}"
