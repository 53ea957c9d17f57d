"""The cost of a block of RDNA3 as one number, which compares the code of all engines.

The unit is a sixteenth of the cycle in which a wave32 issues, because dwords of code count too, one
unit each (an instruction cache line of 128 bytes then weighs two cycles).  Cycles are those of
LLVM's GFX11SpeedModel (llvm/lib/Target/AMDGPU/SISchedule.td), whose latencies are "1 / (operations
/ cycle)" on top of a pipeline of four cycles that other waves fill: 5 is one cycle, 6 two, 8 four,
10 six, 38 thirty-four.  The latency of memory is left out, because an accepted block makes the same
accesses as the rules' block; their issue counts.  Hints cost nothing.

Dependences between instructions, registers, and dual issue are not modelled.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from sassxlate.disasm.rdna3 import OPS, OpInfo, encode
from sassxlate.disasm.rdna3.instruction import Inst, Item, LabelRef
from sassxlate.lowering.passes import made_safe

UNIT = 16  # units per cycle

# Cycles by class: GFX11SpeedModel's latency less four; units other than the VALU by their issue.
PLAIN, WIDE, MULTIPLY, TRANSCENDENTAL, DOUBLE, DOUBLE_TRANS = 1, 2, 4, 6, 34, 36
SCALAR, SCALAR_LOAD, ACCESS, BRANCH, WAIT = 1, 4, 4, 8, 1

_MULTIPLIES = (
    "v_mul_lo_u32", "v_mul_hi_u32", "v_mul_hi_i32", "v_mad_u64_u32", "v_mad_i64_i32",
    "v_qsad_", "v_mqsad_",
)  # fmt: skip
_FREE = frozenset({"s_delay_alu", "s_clause", "s_setprio"})
_KINDS = {
    "smem": SCALAR_LOAD,
    "lds": ACCESS,
    "flat": ACCESS,
    "global": ACCESS,
    "scratch": ACCESS,
    "buffer": ACCESS,
    "inv": ACCESS,
    "branch": BRANCH,
    "jump": BRANCH,
    "barrier": BRANCH,
    "wait": WAIT,
}


@cache
def cycles(op: str) -> int:
    """The cycles of a mnemonic.  EncodeError SX0501 if RDNA3 does not have it."""
    row = OPS[op]
    if op in _FREE:
        return 0
    if row.kind != "valu":
        return _KINDS.get(row.kind, SCALAR)
    return _vector(row)


def _vector(row: OpInfo) -> int:
    types = {a.type for a in row.args}
    if "f64" in types:
        return DOUBLE_TRANS if row.is_trans else DOUBLE
    if row.op.startswith(_MULTIPLIES):
        return MULTIPLY
    if row.is_trans:
        return TRANSCENDENTAL
    return WIDE if types & {"b64", "u64", "i64"} else PLAIN


def instruction(inst: Inst) -> int:
    """The units of one instruction; the halves of a VOPD go together."""
    both = max(cycles(inst.op), cycles(inst.y.op) if inst.y is not None else 0)
    return UNIT * both + _dwords(inst)


def _dwords(inst: Inst) -> int:
    if inst.args and isinstance(inst.args[-1], LabelRef):
        return 1
    return len(encode(inst)) // 4


def cost(items: Iterable[Item]) -> int:
    """The units of a block as an engine writes it: with the waits and hazards that it will get."""
    made = made_safe(items)
    return sum(instruction(item) for item in made if isinstance(item, Inst))
