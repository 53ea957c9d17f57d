"""What instructions do to masks: scalar registers of which each bit belongs to one lane.

Masks are columns here: integers with a bit for each case that is looked at, so that one operation
computes all cases.  An instruction that is not listed is opaque: its results may be anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from sassxlate.disasm.rdna3 import OPS, reads, writes
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, LabelRef, S, Sp
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO, VCC_LO

SCC: Final = 512  # the number of SCC, whose column is the mask that it was made from
_CONSTANTS: Final = 1024  # numbers of constants that are neither 0 nor all ones
_ALL: Final = 0xFFFFFFFF
_NAMED: Final = {"exec_lo": EXEC_LO, "vcc_lo": VCC_LO}
_TWO: Final[Mapping[str, Callable[[int, int, int], int]]] = {
    "and": lambda _, a, b: a & b,
    "or": lambda _, a, b: a | b,
    "xor": lambda _, a, b: a ^ b,
    "and_not1": lambda _, a, b: a & ~b,
    "or_not1": lambda ones, a, b: a | (ones & ~b),
    "nand": lambda ones, a, b: ones & ~(a & b),
    "nor": lambda ones, a, b: ones & ~(a | b),
    "xnor": lambda ones, a, b: ones & ~(a ^ b),
}
_SAVE: Final[Mapping[str, Callable[[int, int, int], int]]] = {
    "s_and_saveexec_b32": _TWO["and"],
    "s_or_saveexec_b32": _TWO["or"],
    "s_and_not1_saveexec_b32": _TWO["and_not1"],
    "s_and_not0_saveexec_b32": lambda _, a, b: b & ~a,
}
ZERO: Final = -1  # a source that is 0
ONES: Final = -2  # a source that is all ones
Compute = Callable[..., tuple[int, ...]]  # of all ones and the sources: the results, then SCC's


def bits(keys: Iterable[int]) -> int:
    """A set of registers as one number; constants are none."""
    out = 0
    for key in keys:
        if 0 <= key < _CONSTANTS:
            out |= 1 << key
    return out


@dataclass(frozen=True, slots=True)
class MaskOperation:
    """An instruction on masks alone.  ``to`` are the registers that it writes, ``sources`` those
    that it reads (or ZERO, ONES).  ``scc``: SCC is set where the last of the computed columns is
    (True) or is not (False) anything but 0; None: SCC stays."""

    to: tuple[int, ...]
    sources: tuple[int, ...]
    compute: Compute
    scc: bool | None = None

    @property
    def reads(self) -> tuple[int, ...]:
        return self.sources

    @property
    def writes(self) -> tuple[int, ...]:
        return self.to if self.scc is None else (*self.to, SCC)


@dataclass(frozen=True, slots=True)
class Opaque:
    """Any other instruction, by the scalar registers that it reads and writes (SCC among them).
    ``per_lane``: what it writes is 0 in the lanes that EXEC leaves out."""

    reads: frozenset[int]
    writes: frozenset[int]
    per_lane: bool = False


@dataclass(frozen=True, slots=True)
class Jump:
    """A transfer of control to a label, or the end of the wave (no label).  ``on`` is the register
    that decides (0: always), ``taken_if`` whether it jumps where that is not 0; None: by something
    that is not a mask."""

    label: str
    on: int = 0
    taken_if: bool | None = None


def _source(arg: Arg) -> int | None:
    match arg:
        case S(index, 1):
            return index
        case Sp(name):
            return _NAMED.get(name)
        case I(value):
            value &= _ALL
            return {0: ZERO, _ALL: ONES}.get(value, _CONSTANTS + value)
        case _:
            return None


def _register(arg: Arg) -> int | None:
    return None if isinstance(arg, I) else _source(arg)


def _two_zeros(_: int) -> tuple[int, ...]:
    return 0, 0


def _copy(_: int, a: int) -> tuple[int, ...]:
    return (a,)


def _inverse(ones: int, a: int) -> tuple[int, ...]:
    return ones & ~a, ones & ~a


def _unequal(_: int, a: int, b: int) -> tuple[int, ...]:
    return (a ^ b,)


def _mask_operation(inst: Inst) -> MaskOperation | None:
    op, args = inst.op, inst.args
    if op == "s_mov_b64" and isinstance(args[0], S) and args[1] == I(0):
        return MaskOperation((args[0].index, args[0].index + 1), (), _two_zeros)
    if not op.endswith(("_b32", "_u32", "_i32")) or not op.startswith("s_"):
        return None
    if op in ("s_cmp_eq_u32", "s_cmp_lg_u32", "s_cmp_eq_i32", "s_cmp_lg_i32"):
        a, b = map(_source, args)
        if a is None or b is None:
            return None
        return MaskOperation((), (a, b), _unequal, "_lg_" in op)
    to = _register(args[0]) if args else None
    sources = tuple(map(_source, args[1:]))
    known = tuple(s for s in sources if s is not None)
    if to is None or len(known) != len(sources):
        return None
    if op == "s_mov_b32":
        return MaskOperation((to,), known, _copy)
    if op == "s_not_b32":
        return MaskOperation((to,), known, _inverse, True)
    if op in _SAVE and to != EXEC_LO:
        f = _SAVE[op]

        def save(ones: int, a: int, running: int) -> tuple[int, ...]:
            new = f(ones, a, running)
            return running, new, new

        return MaskOperation((to, EXEC_LO), (*known, EXEC_LO), save, True)
    logic = _TWO.get(op[2:-4])
    if logic is None or not op.endswith("_b32") or len(known) != 2:
        return None

    def two(ones: int, a: int, b: int) -> tuple[int, ...]:
        new = logic(ones, a, b)
        return new, new

    return MaskOperation((to,), known, two, True)


_ENDS: Final = ("s_endpgm", "s_trap", "s_sethalt")
_ON: Final = {
    "s_cbranch_execz": (EXEC_LO, False),
    "s_cbranch_execnz": (EXEC_LO, True),
    "s_cbranch_scc0": (SCC, False),
    "s_cbranch_scc1": (SCC, True),
    "s_branch": (0, True),
}
_LOST: Final = ("s_setpc", "s_swappc", "s_call", "s_getpc", "s_rfe", "s_subvector", "s_cbranch_i")


class Unfollowed(Exception):
    """The instruction may go anywhere."""


@lru_cache(maxsize=1 << 14)
def meaning(inst: Inst) -> MaskOperation | Opaque | Jump:
    """What an instruction does to masks.  Raises Unfollowed for calls and the like."""
    op = inst.op
    if op in _ENDS:
        return Jump("")
    if op.startswith(_LOST):
        raise Unfollowed(op)
    target = inst.args[-1] if inst.args else None
    if isinstance(target, LabelRef):
        if not op.startswith(("s_branch", "s_cbranch_")):
            raise Unfollowed(op)
        on, taken_if = _ON.get(op, (VCC_LO, None))
        return Jump(target.name, on, taken_if)
    found = _mask_operation(inst) if op.startswith("s_") else None
    if found is not None:
        return found
    row = OPS[op]
    per_lane = row.kind == "valu" and op.startswith("v_cmp_") and not inst.dpp
    return Opaque(_scalars(reads(inst)), _scalars(writes(inst)), per_lane)


def _scalars(refs: frozenset[tuple[str, int]]) -> frozenset[int]:
    return frozenset(
        SCC if kind == "scc" else number for kind, number in refs if kind in ("s", "scc")
    )


__all__ = [
    "ONES", "SCC", "ZERO", "Jump", "MaskOperation", "Opaque", "Unfollowed", "meaning",
]  # fmt: skip
