"""Vectors that grow from lane to lane by a known number wherever the threads are in rows.

Whether a wave's threads are in rows of 16 or 32 neighbours is known when a launch begins, and the
same in all workgroups (`SxWave.rows`).  Where they are, sums and products of thread numbers with
scalars have strides that are known here, so that no wave has to compare its addresses.
"""

from __future__ import annotations

from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO
from sassxlate.lowering.emulate.image.abi import WaveLayout
from sassxlate.lowering.emulate.wave.context import Context
from sassxlate.lowering.llvm.ir_text import Val, const

_FIELD = 10  # bits of a thread number in v0: x | y << 10 | z << 20
_DEPTH = 12  # operations that are looked through
_NUMBERS_MASK = (1 << _FIELD) - 1


def stride(c: Context, value: Val, depth: int = _DEPTH) -> int | None:
    """What a value grows by from lane to lane in a row, modulo 2 ** its width; None if unknown."""
    if not value.vec or value.const is not None:
        return 0
    if value.ref == c.state.threads:
        return 1
    op, parts = c.d.origins.get(value.ref, ("", ()))
    if not parts or not depth:
        return None
    if op in ("and", "mul") and parts[0].const is not None:
        parts = parts[::-1]
    if op in ("and", "lshr") and parts[0].ref == c.state.threads:
        return _field(op, parts[1].const)
    strides = [stride(c, part, depth - 1) for part in parts]
    if None in strides:
        return None
    first, *rest = (s for s in strides if s is not None)
    if not first and not any(rest):
        return 0  # equal operands have equal results
    modulus = 1 << value.width
    match op:
        case "add":
            return (first + rest[0]) % modulus
        case "sub":
            return (first - rest[0]) % modulus
        case "mul" | "shl":
            by = parts[1].const
            if by is None or (op == "shl" and by >= value.width):
                return None
            return (first * by if op == "mul" else first << by) % modulus
        case "trunc":
            return first % modulus
        case _:
            return None


def _field(op: str, by: int | None) -> int | None:
    """The stride of v0 shifted or masked by a constant: in a row the upper numbers stay, and x does
    not leave its bits."""
    if op == "lshr":
        return 0 if by is not None and _FIELD <= by < 32 else None
    return 1 if by is not None and by & _NUMBERS_MASK == _NUMBERS_MASK else None


def grows(c: Context, value: Val, by: int, length: int) -> Val | None:
    """Whether the active lanes of each run of ``length`` have values ``by`` apart, as a scalar;
    None where only a comparison can tell."""
    if c.strict or not c.state.threads or stride(c, value) != by % (1 << value.width):
        return None
    start = next((ref for ref, i in c.state.first.items() if i == EXEC_LO), None)
    # Lanes that were not active at the start have no numbers.
    if start is None or not c.d.is_part(c.state.exec_mask(), Val(start, 32, False)):
        return None
    p = c.fn.emit(f"getelementptr i8, ptr %w, i64 {int(WaveLayout.ROWS)}")
    rows = Val(c.fn.emit(f"load i32, ptr {p}, align 4, !invariant.load !0"), 32, False)
    bit = c.d.and_(rows, const(1 if length < 32 else 2, 32))
    return c.d.not_(c.d.eq(bit, const(0, 32)))


__all__ = ["grows", "stride"]
