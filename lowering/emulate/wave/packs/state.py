"""Registers and operations of a run of instructions that is executed for eight lanes at a time.

`loop` has the active lanes in order, without the others between them; vectors here are of eight
of those.  What the run reads of VGPRs is in buffers, each register's lanes in order; scalars are
the wave's own.  What this cannot say raises NotPacked, and the run is compiled as any other.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_HI, NULL
from sassxlate.domain.interface import IEEE, Approximation, Fp
from sassxlate.lowering.emulate.wave.registers import State
from sassxlate.lowering.llvm.domain import LlvmDomain
from sassxlate.lowering.llvm.ir_text import Function, Val, const, vec_type

LANES = 8  # of a pack: 64 bits of each are one vector of the host
V32, V64, MASK = vec_type(32, LANES), vec_type(64, LANES), vec_type(1, LANES)


class NotPacked(Exception):
    """Something that only whole waves have."""


class PackedFunction(Function):
    """The instructions for one pack.  What is computed of the wave's scalars alone is put before
    all packs."""

    def __init__(self, outer: Function, run: str, form: str) -> None:
        super().__init__(outer.module, "", "")
        self.outer, self._run, self._form = outer, f"%{run}.", form

    @contextmanager
    def earlier(self, at: int) -> Generator[None]:
        """What is emitted is put in before a line, and can use only what those before it made."""
        lines, memo = self.lines, self.memo
        self.lines, self.memo = [], {}
        yield
        self.lines, self.memo = lines[:at] + self.lines + lines[at:], memo

    def name(self) -> str:
        self._n += 1
        return f"{self._run}{self._form}{self._n}"

    def emit(self, text: str) -> str:
        if "<" not in text and self._run not in text:
            return self.outer.emit(text)
        return super().emit(text)


class PackedDomain(LlvmDomain):
    """Operations on eight lanes; those that are functions of the image have 32."""

    lanes = LANES

    def _plain(self, width: int, fp: Fp) -> None:
        if fp != IEEE or width == 16:
            raise NotPacked

    def fadd(self, a: Val, b: Val, fp: Fp) -> Val:
        self._plain(a.width, fp)
        return super().fadd(a, b, fp)

    def fmul(self, a: Val, b: Val, fp: Fp) -> Val:
        self._plain(a.width, fp)
        return super().fmul(a, b, fp)

    def ffma(self, a: Val, b: Val, c: Val, fp: Fp) -> Val:
        self._plain(a.width, fp)
        return super().ffma(a, b, c, fp)

    def fcvt(self, a: Val, width: int, fp: Fp) -> Val:
        raise NotPacked

    def itof(self, a: Val, width: int, signed: bool, fp: Fp) -> Val:
        raise NotPacked

    def approx(self, fn: Approximation, a: Val) -> Val:
        raise NotPacked

    def lanes_of(self, mask: Val) -> Val:
        raise NotPacked

    def mask_of(self, lanes: Val) -> Val:
        raise NotPacked


class PackedState(State):
    """The registers as the instructions of a run see them.

    ``first`` is the number of the pack's first lane, an i32; ``places`` are the values of the
    wave's registers that are read, and their buffers, by name; all forms of a run share them.
    """

    def __init__(
        self,
        outer: State,
        fn: PackedFunction,
        d: PackedDomain,
        first: str,
        places: dict[str, tuple[Val, str]],
    ) -> None:
        super().__init__(fn, d)
        self.outer, self.first_lane, self.places = outer, first, places
        self.vectors: dict[int, Val] = {}  # that the run has read or written
        self.written: set[int] = set()
        self.masks: dict[int, Val] = {}  # by SGPR, that the run has written

    def _place(self, given: Val) -> str:
        """Where the pack's lanes of a value of the wave are."""
        _, place = self.places.setdefault(
            given.ref, (given, self.outer.fn.buffer(f"pack{len(self.places)}", 128))
        )
        at = self.fn.emit(f"zext i32 {self.first_lane} to i64")
        return self.fn.emit(f"getelementptr i32, ptr {place}, i64 {at}")

    def passes(self, vectors: int, masks: int) -> bool:
        """Whether packs have written none of these registers, one bit each."""
        mine = any(vectors >> i & 1 for i in self.written)
        return not mine and not any(masks >> i & 1 for i in self.masks)

    def forget_v(self, i: int) -> None:
        """The wave has written the register."""
        self.vectors.pop(i, None)
        self.written.discard(i)

    # -- vectors --------------------------------------------------------------------------

    def read_v(self, i: int) -> Val:
        known = self.vectors.get(i)
        if known is not None:
            return known
        given = self.outer.read_v(i)
        if given.const is not None:
            given = const(given.const, 32)
        elif given.vec:
            text = f"load {V32}, ptr {self._place(given)}, align 32"
            given = Val(self.fn.emit(text), 32, True, None, LANES)
        self.vectors[i] = given
        return given

    def write_v(self, i: int, value: Val) -> None:
        self.vectors[i] = value
        self.written.add(i)

    def read_v_all(self, i: int) -> Val:
        raise NotPacked

    def write_v_all(self, i: int, value: Val) -> None:
        raise NotPacked

    def lane_numbers(self) -> Val:
        raise NotPacked

    # -- scalars --------------------------------------------------------------------------

    def read_s(self, i: int) -> Val:
        if i in self.masks:
            raise NotPacked
        return self.outer.read_s(i)

    def write_s(self, i: int, value: Val) -> None:
        if i not in (NULL, EXEC_HI):
            raise NotPacked

    def read_mask(self, i: int) -> Val:
        known = self.masks.get(i)
        return known if known is not None else self._packed(self.outer.read_s(i))

    def _packed(self, mask: Val) -> Val:
        """The pack's bits of a scalar register."""
        fn, outer = self.fn, self.outer.fn
        fn.module.declare("i32 @llvm.x86.bmi.pext.32(i32, i32)")
        exec_ = self.outer.exec_mask().ref
        whole = outer.emit(f"call i32 @llvm.x86.bmi.pext.32(i32 {mask.ref}, i32 {exec_})")
        moved = fn.emit(f"lshr i32 {whole}, {self.first_lane}")
        byte = fn.emit(f"trunc i32 {moved} to i8")
        return Val(fn.emit(f"bitcast i8 {byte} to {MASK}"), 1, True, None, LANES)

    def write_mask(self, i: int, lanes: Val) -> None:
        if i not in (NULL, EXEC_HI):
            self.masks[i] = self.d.splat(lanes)

    def forget(self, i: int) -> None:
        """A scalar instruction has written the register."""
        self.masks.pop(i, None)

    def read_scc(self) -> Val:
        raise NotPacked

    def write_scc(self, value: Val) -> None:
        raise NotPacked

    def exec_mask(self) -> Val:
        raise NotPacked

    def exec_lanes(self) -> Val:
        raise NotPacked


__all__ = [
    "LANES",
    "MASK",
    "V32",
    "V64",
    "NotPacked",
    "PackedDomain",
    "PackedFunction",
    "PackedState",
]
