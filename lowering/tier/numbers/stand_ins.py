"""Instructions that LLVM's IR cannot ask for: roundings otherwise than to nearest, single
operations that flush denormal numbers, or keep them, where the function does not, and conversions
to integers that saturate as the hardware's do.

LLVM does not follow the mode through code that it may reorder, and it writes comparisons
around a conversion whose result is undefined in C.  So another instruction stands in for each: one
with the same sources and the same size of result that LLVM writes only where it is asked to, and
neither folds nor looks into.  :func:`replaced` puts the real ones into the machine code, each
between two changes of the mode if it needs one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from sassxlate.disasm.rdna3 import branch_target, decode, encode
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, V
from sassxlate.domain.interface import Round
from sassxlate.lowering.llvm.ir_text import Function, Val
from sassxlate.lowering.target import NULL
from sassxlate.lowering.tier.numbers.far import addresses, direct
from sassxlate.lowering.tier.numbers.modes import NEAREST, OTHER, Change, blind
from sassxlate.lowering.tier.numbers.pieces import OPCODES, Piece, in_clause
from sassxlate.lowering.tier.numbers.weave import Calls, woven
from sassxlate.lowering.tier.refusal import BACKEND, refused

Operation: TypeAlias = Literal["add", "mul", "fma"]
# s_round_mode: bits 1:0 are for f32, bits 3:2 for f64 and f16.
_MODES: Final = {Round.UP: 0b0101, Round.DOWN: 0b1010, Round.ZERO: 0b1111}

# NVIDIA's NaN, as binary32: of binary32, and of bf16.
SINGLE_NAN: Final = 0x7FFFFFFF
BF16_NAN: Final = 0x7FFF0000


@dataclass(frozen=True, slots=True)
class Real:
    """An instruction that is stood in for, its number of sources and the mode that it needs;
    ``nan``: it gives this for a NaN."""

    op: str
    sources: int
    mode: int = NEAREST
    nan: int = 0


# With three sources, one stand-in for each rounding.
_FUSED: Final = {Round.DOWN: "lerp", Round.UP: "sad.hi.u8", Round.ZERO: "msad.u8"}
FUSED_REAL: Final[Mapping[str, Real]] = MappingProxyType({
    "v_sad_u16": Real("v_fma_f32", 3, OTHER),
    **{"v_" + name.replace(".", "_") + ("_u8" if name == "lerp" else ""):
           Real("v_fma_f32", 3, _MODES[how])
       for how, name in _FUSED.items()},
})  # fmt: skip
_HALVES: Final = Real("v_pk_max_f16", 1, nan=0x7FFF7FFF)
# With fewer, the last operand of v_sad_u8 says which it is; of doubles the second of
# v_qsad_pk_u16_u8, or, with three sources, of v_mqsad_u32_u8, whose last one has two of them.
NUMBERED: Final = (
    *(Real("v_add_f32", 2, mode) for mode in _MODES.values()),
    *(Real("v_mul_f32", 2, mode) for mode in _MODES.values()),
    Real("v_cvt_u32_f32", 1), Real("v_cvt_i32_f32", 1),
    Real("v_cvt_u32_f64", 1), Real("v_cvt_i32_f64", 1),
    Real("v_max3_f32", 1, nan=SINGLE_NAN), _HALVES,
    *(Real(f"v_{op}_f64", n, mode)
      for op, n in (("add", 2), ("mul", 2), ("fma", 3)) for mode in _MODES.values()),
    *(Real(f"v_cvt_f32_{kind}32", 1, mode) for kind in "ui" for mode in _MODES.values()),
    Real("v_add_f32", 2, OTHER), Real("v_mul_f32", 2, OTHER),
    Real("v_max3_f32", 1, OTHER, SINGLE_NAN),
    *(Real("v_max3_f32", 1, mode, BF16_NAN) for mode in (NEAREST, OTHER)),
)  # fmt: skip
SINGLE, DOUBLE, TRIPLE = "v_sad_u8", "v_qsad_pk_u16_u8", "v_mqsad_u32_u8"
STAND_INS: Final = frozenset({*FUSED_REAL, SINGLE, DOUBLE, TRIPLE})
DRAIN = "s_incperflevel"  # a wait for stores, of the same size
RELATIVE = ("s_getpc_b64", "s_swappc_b64")  # what has to do with addresses of code


def _call(fn: Function, name: str, kind: str, *args: Val) -> Val:
    types = ", ".join(a.type for a in args)
    fn.module.declare(f"{kind} @llvm.amdgcn.{name}({types})")
    given = ", ".join(f"{a.type} {a.ref}" for a in args)
    return Val(fn.emit(f"call {kind} @llvm.amdgcn.{name}({given})"), int(kind[1:]), False)


def _number(of: Real) -> Val:
    n = NUMBERED.index(of)
    return Val(str(n), 32, False, n)


def rounded(fn: Function, op: Operation, how: Round, *args: Val) -> Val:
    """A sum, product or both, of binary32 or binary64, rounded otherwise than to nearest."""
    if args[0].width == 64:
        return _rounded_double(fn, op, how, *args)
    if op == "fma":
        return _call(fn, _FUSED[how], "i32", *args)
    return _call(fn, "sad.u8", "i32", *args, _number(Real(f"v_{op}_f32", 2, _MODES[how])))


def otherwise(fn: Function, op: Operation, *args: Val) -> Val:
    """A sum, product or both, of binary32, with denormal numbers flushed where the function keeps
    them, and kept where it flushes them."""
    if op == "fma":
        return _call(fn, "sad.u16", "i32", *args)
    return _call(fn, "sad.u8", "i32", *args, _number(Real(f"v_{op}_f32", 2, OTHER)))


def _rounded_double(fn: Function, op: Operation, how: Round, *args: Val) -> Val:
    # A constant would mean another number to the real instruction.
    first, *others = [a if a.const is None else _register(fn, a) for a in args]
    if op != "fma":
        number = _number(Real(f"v_{op}_f64", 2, _MODES[how]))
        return _call(fn, "qsad.pk.u16.u8", "i64", first, number, *others)
    number = _number(Real("v_fma_f64", 3, _MODES[how]))
    pair = "poison"
    for place, value in enumerate(others):
        pair = fn.emit(f"insertelement <2 x i64> {pair}, i64 {value.ref}, i64 {place}")
    both = fn.emit(f"bitcast <2 x i64> {pair} to <4 x i32>")
    kind = "<4 x i32>"
    fn.module.declare(f"{kind} @llvm.amdgcn.mqsad.u32.u8(i64, i32, {kind})")
    given = f"i64 {first.ref}, i32 {number.ref}, {kind} {both}"
    out = fn.emit(f"call {kind} @llvm.amdgcn.mqsad.u32.u8({given})")
    words = fn.emit(f"bitcast {kind} {out} to <2 x i64>")
    return Val(fn.emit(f"extractelement <2 x i64> {words}, i64 0"), 64, False)


def _register(fn: Function, value: Val) -> Val:
    """A value that LLVM has in vector registers, whatever it knows of it."""
    kind = value.type
    return Val(fn.emit(f'call {kind} asm "", "=v,0"({kind} {value.ref})'), value.width, False)


def converted(fn: Function, a: Val, signed: bool) -> Val:
    """A binary32 or binary64 number as 32-bit integer: towards zero, saturated, 0 for NaN."""
    number = _number(Real(f"v_cvt_{'i' if signed else 'u'}32_f{a.width}", 1))
    if a.width == 32:
        return _call(fn, "sad.u8", "i32", a, Val("0", 32, False, 0), number)
    wide = _call(fn, "qsad.pk.u16.u8", "i64", a, number, Val("0", 64, False, 0))
    return Val(fn.emit(f"trunc i64 {wide.ref} to i32"), 32, False)


def from_integer(fn: Function, a: Val, signed: bool, how: Round) -> Val:
    """A 32-bit integer as binary32 number, rounded otherwise than to nearest.

    LLVM 22 ends on some of these if they are the same in all lanes ("illegal VGPR to SGPR copy"):
    it is not told so.
    """
    number = _number(Real(f"v_cvt_f32_{'i' if signed else 'u'}32", 1, _MODES[how]))
    return _call(fn, "sad.u8", "i32", _register(fn, a), Val("0", 32, False, 0), number)


def canonical(fn: Function, a: Val, *, nan: int = SINGLE_NAN, other_mode: bool = False) -> Val:
    """A binary32 number whose NaN are NVIDIA's; the function's mode would flush it if that
    flushes, and ``other_mode`` does if it does not."""
    number = _number(Real("v_max3_f32", 1, OTHER if other_mode else NEAREST, nan))
    return _call(fn, "sad.u8", "i32", a, Val("0", 32, False, 0), number)


def canonical_halves(fn: Function, a: Val) -> Val:
    """Two halves whose NaN are NVIDIA's."""
    number = _number(_HALVES)
    return _call(fn, "sad.u8", "i32", a, Val("0", 32, False, 0), number)


def drain(fn: Function) -> None:
    """Waits for all accesses to memory, on RDNA3.  LLVM waits before a barrier only for those that
    other waves of the workgroup may otherwise miss."""
    fn.module.declare("void @llvm.amdgcn.s.waitcnt(i32 immarg)")
    fn.module.declare("void @llvm.amdgcn.s.incperflevel(i32 immarg)")
    fn.do("call void @llvm.amdgcn.s.waitcnt(i32 0)")
    fn.do("call void @llvm.amdgcn.s.incperflevel(i32 0)")


def _real(inst: Inst) -> tuple[Real, Inst]:
    """What an instruction stands for."""
    vdst, *sources = inst.args
    fused = FUSED_REAL.get(inst.op)
    if fused is None:
        number = sources[2 if inst.op == SINGLE else 1]
        if not isinstance(number, I) or not 0 <= number.value < len(NUMBERED):
            raise refused(BACKEND, "a stand-in without its number")
        real = NUMBERED[number.value]
    else:
        real = fused
    if inst.dpp or inst.clamp or inst.neg or inst.abs:
        raise refused(BACKEND, "a stand-in with modifiers")
    args = sources[: real.sources]
    if inst.op in (DOUBLE, TRIPLE):
        vdst, args = _of_doubles(inst, real)
    if real.nan:
        if isinstance(args[0], I):  # LLVM found out that it is always the same
            return real, Inst("v_mov_b32", (vdst, I(canonical_constant(args[0].value, real))))
        # NVIDIA's NaN beside the source: see `lowering/builder/canonical_nan.py`.
        args.insert(0, I(real.nan))
        if real.op == "v_max3_f32":
            args.append(I(real.nan))
    return real, replace(inst, op=real.op, args=(vdst, *args), enc="e64")


def _of_doubles(inst: Inst, real: Real) -> tuple[V, list[Arg]]:
    """The destination and the sources of an instruction on binary64."""
    vdst, first, _, last = inst.args
    assert isinstance(vdst, V)
    if real.sources == 1:
        if isinstance(first, I) and 64 < first.value < (1 << 32) - 16:  # a literal is its high word
            raise refused(BACKEND, "a stand-in of doubles with a constant")
        return V(vdst.index), [first]
    if inst.op == TRIPLE:
        assert isinstance(last, V)
        args: list[Arg] = [first, V(last.index, 2), V(last.index + 2, 2)]
    else:
        args = [first, last]
    if (inst.op == TRIPLE) != (real.sources == 3) or any(isinstance(a, I) for a in args):
        raise refused(BACKEND, "a stand-in of doubles with a constant")
    return V(vdst.index, 2), args


def canonical_constant(value: int, real: Real) -> int:
    """A constant with NVIDIA's NaN."""
    if real.op == "v_max3_f32":
        return real.nan if value & 0x7FFFFFFF > 0x7F800000 else value
    parts = [value >> i & 0xFFFF for i in (0, 16)]
    low, high = (0x7FFF if p & 0x7FFF > 0x7C00 else p for p in parts)
    return high << 16 | low


def replaced(
    code: bytes,
    lines: Sequence[tuple[int, int]],
    calls: Calls | None = None,
    *,
    flushes: bool = False,
) -> tuple[bytes, tuple[tuple[int, int], ...]]:
    """Machine code with the real instructions, and its table of lines (offset, line).  ``calls``:
    resolves those of functions; ``flushes``: the mode flushes denormal binary32 numbers."""
    ops = OPCODES["RDNA3"]
    insts: list[tuple[int, Inst]] = []
    at = 0
    while at < len(code):
        inst, size = decode(code, at)
        if inst.op == DRAIN:
            code = code[:at] + encode(Inst("s_waitcnt_vscnt", (NULL,), imm=0)) + code[at + size :]
            inst, size = decode(code, at)
        insts.append((at, inst))
        at += size
    if calls is None and not any(i.op in STAND_INS or i.op in RELATIVE for _, i in insts):
        return code, tuple(lines)
    ends = [*(at for at, _ in insts[1:]), len(code)]
    pieces: list[Piece] = []
    for (at, inst), end in zip(insts, ends, strict=True):
        data = code[at:end]
        if inst.op in STAND_INS:
            real, stood_for = _real(inst)
            pieces.append(Piece(at, data, real=encode(stood_for), mode=real.mode))
        else:
            target = branch_target(inst, at) if branches(inst.op) else None
            same = blind(*(i.op for i in (inst, inst.y) if i is not None))
            pieces.append(Piece(at, data, target, clause=in_clause(data, ops), blind=same))
    pieces = direct(pieces, ops)
    if calls is not None:
        pieces = calls(pieces)
    elif addresses(pieces, ops):
        raise refused(BACKEND, "addresses of code")
    done = woven(pieces, lines, _encoded, ops, flushes=flushes)
    return done.code, done.lines


def _encoded(change: Change) -> bytes:
    return encode(Inst(change.name, (), imm=change.value))


def branches(op: str) -> bool:
    """Whether an instruction is a branch with a distance."""
    return op in ("s_branch", "s_call_b64") or op.startswith("s_cbranch_")


__all__ = [
    "BF16_NAN", "DOUBLE", "DRAIN", "FUSED_REAL", "NUMBERED", "RELATIVE", "SINGLE", "SINGLE_NAN",
    "STAND_INS", "TRIPLE", "Operation", "Real", "branches", "canonical", "canonical_constant",
    "canonical_halves", "converted", "drain", "from_integer", "otherwise", "replaced", "rounded",
]  # fmt: skip
