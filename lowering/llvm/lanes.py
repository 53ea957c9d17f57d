"""The domain's operations that LLVM has directly: one value is 32 lanes, or uniform."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Self

from sassxlate.domain.interface import Approximation, FloatPredicate, Fp, Round
from sassxlate.lowering.llvm.ir_text import FOLD, Function, Val, const, literal, signed, vec_type
from sassxlate.lowering.target import LANES

_FLOAT = {16: "half", 32: "float", 64: "double"}


def float_type(width: int, vec: bool, lanes: int = LANES) -> str:
    return f"<{lanes} x {_FLOAT[width]}>" if vec else _FLOAT[width]


class LlvmLanes(ABC):
    """`Domain[Val]` over the current block of a function, except for six operations.

    `avx512` says whether mask registers exist; `narrow` conversions differ by it.  `seed_offset`
    is the offset of strict mode's 64-bit seed in the wave that `%w` points to.
    """

    lanes = LANES  # of a vector

    def __init__(self, fn: Function, *, avx512: bool, seed_offset: int) -> None:
        self.fn = fn
        self.avx512 = avx512
        self.seed_offset = seed_offset
        self.perturbed = False  # strict mode: approximations err by as much as AMD allows
        self._as_float: dict[str, str] = {}
        # Of halves of 64-bit vectors: the upper ones' vectors, and the vectors' lower ones.
        self._upper: dict[str, Val] = {}
        self._lower: dict[str, set[str]] = {}
        # Of integers: the instruction that made them, and its operands.
        self.origins: dict[str, tuple[str, tuple[Val, ...]]] = {}
        # The vector of 64 bits that two of 32 are, upper ones first, if other blocks have made it.
        self.arrived: Callable[[Val, Val], Val | None] | None = None

    def over(self, fn: Function) -> Self:
        """The same operations in another function."""
        return type(self)(fn, avx512=self.avx512, seed_offset=self.seed_offset)

    def _val(self, ref: str, width: int, vec: bool, known: int | None = None) -> Val:
        return Val(ref, width, vec, known, self.lanes)

    def _ints(self, width: int) -> str:
        return vec_type(width, self.lanes)

    def _float(self, width: int, vec: bool) -> str:
        return float_type(width, vec, self.lanes)

    # -- values ---------------------------------------------------------------------------

    def const(self, n: int, width: int) -> Val:
        return const(n, width)

    def width(self, a: Val) -> int:
        return a.width

    def text(self, a: Val, vec: bool) -> str:
        """The value as an operand, of a vector if `vec`."""
        if a.vec or not vec:
            return a.ref
        if a.const is not None:
            return f"splat (i{a.width} {a.ref})"
        return self.splat(a).ref

    def splat(self, a: Val) -> Val:
        if a.vec:
            return a
        ty = self._ints(a.width)
        if a.const is not None:
            return self._val(f"splat (i{a.width} {a.ref})", a.width, True, a.const)
        one = self.fn.emit(f"insertelement {ty} poison, i{a.width} {a.ref}, i64 0")
        return self._val(
            self.fn.emit(
                f"shufflevector {ty} {one}, {ty} poison, <{self.lanes} x i32> zeroinitializer"
            ),
            a.width,
            True,
        )

    def _binary(self, op: str, a: Val, b: Val) -> Val:
        if a.const is not None and b.const is not None:
            return const(FOLD[op](a.const, b.const, a.width), a.width)
        vec = a.vec or b.vec
        ty = self._ints(a.width) if vec else f"i{a.width}"
        ref = self.fn.emit(f"{op} {ty} {self.text(a, vec)}, {self.text(b, vec)}")
        self.origins[ref] = op, (a, b)
        return self._val(ref, a.width, vec)

    def is_part(self, a: Val, whole: Val, depth: int = 4) -> bool:
        """Whether the bits of one mask are seen to be among those of another, by how it is made."""
        if a == whole or a.const == 0:
            return True
        if not depth:
            return False
        op, parts = self.origins.get(a.ref, ("", ()))
        if op == "and" and any(self.is_part(p, whole, depth - 1) for p in parts):
            return True
        if op in ("or", "xor") and all(self.is_part(p, whole, depth - 1) for p in parts):
            return True
        op, parts = self.origins.get(whole.ref, ("", ()))
        return op == "or" and any(self.is_part(a, p, depth - 1) for p in parts)

    # -- integers -------------------------------------------------------------------------

    def add(self, a: Val, b: Val) -> Val:
        if b.const == 0:
            return a
        if a.const == 0:
            return b
        return self._binary("add", a, b)

    def sub(self, a: Val, b: Val) -> Val:
        return a if b.const == 0 else self._binary("sub", a, b)

    def mul(self, a: Val, b: Val) -> Val:
        return self._binary("mul", a, b)

    def and_(self, a: Val, b: Val) -> Val:
        ones = (1 << a.width) - 1
        if b.const == ones or a.const == 0:
            return a
        if a.const == ones or b.const == 0:
            return b
        return self._binary("and", a, b)

    def or_(self, a: Val, b: Val) -> Val:
        if b.const == 0:
            return a
        if a.const == 0:
            return b
        return self._binary("or", a, b)

    def xor(self, a: Val, b: Val) -> Val:
        return a if b.const == 0 else self._binary("xor", a, b)

    def not_(self, a: Val) -> Val:
        return self._binary("xor", a, const(-1, a.width))

    def shl(self, a: Val, count: Val) -> Val:
        return a if count.const == 0 else self._binary("shl", a, count)

    def lshr(self, a: Val, count: Val) -> Val:
        return self._right("lshr", a, count)

    def ashr(self, a: Val, count: Val) -> Val:
        return self._right("ashr", a, count)

    def _right(self, op: str, a: Val, count: Val) -> Val:
        if count.const == 0:
            return a
        made = self.by_halves(op, a, count) if a.width == 64 else None
        return self._binary(op, a, count) if made is None else made

    def pair_shifted(self, hi: Val, lo: Val, count: int) -> Val:
        """The lower half of hi:lo shifted right by fewer bits than a half has."""
        vec = hi.vec or lo.vec
        ty, name = (
            self._ints(hi.width) if vec else f"i{hi.width}",
            f"{f'v{self.lanes}' if vec else ''}i",
        )
        full = f"@llvm.fshr.{name}{hi.width}"
        self.fn.module.declare(f"{ty} {full}({ty}, {ty}, {ty})")
        by = self.text(const(count, hi.width), vec)
        given = f"{ty} {self.text(hi, vec)}, {ty} {self.text(lo, vec)}, {ty} {by}"
        return self._val(self.fn.emit(f"call {ty} {full}({given})"), hi.width, vec)

    def by_halves(self, op: str, a: Val, b: Val) -> Val | None:
        """A shift or comparison of 64 bits on halves that are kept apart, if they are seen."""
        del op, a, b
        return None

    def _icmp(self, pred: str, a: Val, b: Val) -> Val:
        vec = a.vec or b.vec
        made = self.by_halves(pred, a, b) if vec and a.width == 64 else None
        if made is not None:
            return made
        ty = self._ints(a.width) if vec else f"i{a.width}"
        ref = self.fn.emit(f"icmp {pred} {ty} {self.text(a, vec)}, {self.text(b, vec)}")
        self.origins[ref] = pred, (a, b)
        return self._val(ref, 1, vec)

    def eq(self, a: Val, b: Val) -> Val:
        return self._icmp("eq", a, b)

    def ult(self, a: Val, b: Val) -> Val:
        return self._icmp("ult", a, b)

    def slt(self, a: Val, b: Val) -> Val:
        return self._icmp("slt", a, b)

    def select(self, c: Val, a: Val, b: Val) -> Val:
        if a == b:
            return a
        if c.const is not None:
            return a if c.const & 1 else b
        vec = a.vec or b.vec or c.vec
        ty = self._ints(a.width) if vec else f"i{a.width}"
        # A scalar condition may select whole vectors.
        cond = f"{c.type} {c.ref}"
        ref = self.fn.emit(f"select {cond}, {ty} {self.text(a, vec)}, {ty} {self.text(b, vec)}")
        return self._val(ref, a.width, vec)

    def _convert(self, op: str, a: Val, width: int) -> Val:
        if width == a.width:
            return a
        to = self._ints(width) if a.vec else f"i{width}"
        ref = self.fn.emit(f"{op} {a.type} {a.ref} to {to}")
        self.origins[ref] = op, (a,)
        return self._val(ref, width, a.vec)

    def zext(self, a: Val, width: int) -> Val:
        if a.const is not None:
            return self._const_like(a, a.const, width)
        return self._convert("zext", a, width)

    def sext(self, a: Val, width: int) -> Val:
        if a.const is not None:
            return self._const_like(a, signed(a.const, a.width), width)
        return self._convert("sext", a, width)

    def _const_like(self, a: Val, n: int, width: int) -> Val:
        c = const(n, width)
        return self.splat(c) if a.vec else c

    def extract(self, a: Val, lo: int, width: int) -> Val:
        if a.const is not None:
            return self._const_like(a, a.const >> lo, width)
        if a.width == 64 and width == 32 and a.vec and lo in (0, 32):
            return self._half(a, lo // 32)
        if lo:
            a = self.lshr(a, const(lo, a.width))
        return self._convert("trunc", a, width)

    def concat(self, hi: Val, lo: Val) -> Val:
        width = hi.width + lo.width
        if hi.const is not None and lo.const is not None:
            return self._const_like(hi, hi.const << lo.width | lo.const, width)
        if hi.width == lo.width == 32 and (hi.vec or lo.vec):
            whole = self.whole(hi, lo)
            return self._interleave(hi, lo) if whole is None else whole
        top = self.shl(self.zext(hi, width), const(lo.width, width))
        return self.or_(top, self.zext(lo, width))

    def extracted_from(self, hi: Val, lo: Val) -> Val | None:
        """The vector of 64-bit values that these are the halves of, if they were extracted."""
        one = self._upper.get(hi.ref)
        return one if one is not None and lo.ref in self._lower.get(one.ref, ()) else None

    def whole(self, hi: Val, lo: Val) -> Val | None:
        """The vector of 64-bit values whose halves these are, if that is seen."""
        return self.extracted_from(hi, lo)

    def low_half(self, a: Val) -> Val | None:
        """The lower dwords of a vector of 64-bit values without computing it, if that is seen."""
        del a
        return None

    def _half(self, a: Val, which: int) -> Val:
        """The even or odd dwords of a vector of 64-bit values."""
        low = None if which else self.low_half(a)
        if low is not None:
            self._lower.setdefault(a.ref, set()).add(low.ref)
            return low
        high = self._shifted_half(a) if which else None
        if high is not None:
            self._upper[high.ref] = a
            return high
        n = 2 * self.lanes
        flat = self.fn.emit(f"bitcast {a.type} {a.ref} to <{n} x i32>")
        index = ", ".join(f"i32 {2 * i + which}" for i in range(self.lanes))
        ref = self.fn.emit(
            f"shufflevector <{n} x i32> {flat}, <{n} x i32> poison, <{self.lanes} x i32> <{index}>"
        )
        if which:
            self._upper[ref] = a
        else:
            self._lower.setdefault(a.ref, set()).add(ref)
        return self._val(ref, 32, True)

    def _shifted_half(self, a: Val) -> Val | None:
        """The upper half of halves put together and shifted left, by these: it takes no shuffle."""
        op, parts = self.origins.get(a.ref, ("", ()))
        if op != "shl" or parts[1].const is None or not 0 < parts[1].const < 32:
            return None
        made, halves = self.origins.get(parts[0].ref, ("", ()))
        if made != "concat":
            return None
        hi, lo = halves
        return self.pair_shifted(hi, lo, 32 - parts[1].const)

    def _interleave(self, hi: Val, lo: Val) -> Val:
        ty = self._ints(32)
        index = ", ".join(f"i32 {i}, i32 {i + self.lanes}" for i in range(self.lanes))
        n = 2 * self.lanes
        flat = self.fn.emit(
            f"shufflevector {ty} {self.text(lo, True)}, {ty} {self.text(hi, True)}, "
            f"<{n} x i32> <{index}>"
        )
        ref = self.fn.emit(f"bitcast <{n} x i32> {flat} to {self._ints(64)}")
        self.origins[ref] = "concat", (hi, lo)
        return self._val(ref, 64, True)

    def _intrinsic(self, name: str, a: Val, extra: str = "") -> Val:
        suffix = f"v{self.lanes}i{a.width}" if a.vec else f"i{a.width}"
        arg_types = a.type + (", i1" if extra else "")
        self.fn.module.declare(f"{a.type} @llvm.{name}.{suffix}({arg_types})")
        ref = self.fn.emit(f"call {a.type} @llvm.{name}.{suffix}({a.type} {a.ref}{extra})")
        return self._val(ref, a.width, a.vec)

    def popcount(self, a: Val) -> Val:
        return self._intrinsic("ctpop", a)

    def clz(self, a: Val) -> Val:
        return self._intrinsic("ctlz", a, ", i1 false")

    def ctz(self, a: Val) -> Val:
        return self._intrinsic("cttz", a, ", i1 false")

    def bitreverse(self, a: Val) -> Val:
        return self._intrinsic("bitreverse", a)

    # -- floating point -------------------------------------------------------------------

    def as_float(self, a: Val, vec: bool) -> str:
        """The float whose bits `a` are, as an operand."""
        a = self.splat(a) if vec else a
        if a.const is None:
            known = self._as_float.get(a.ref)
            if known is not None:
                return known
        return self.fn.emit(f"bitcast {a.type} {a.ref} to {self._float(a.width, vec)}")

    def from_float(self, ref: str, width: int, vec: bool) -> Val:
        to = self._ints(width) if vec else f"i{width}"
        bits = self.fn.emit(f"bitcast {self._float(width, vec)} {ref} to {to}")
        self._as_float[bits] = ref
        return self._val(bits, width, vec)

    def float_op(self, op: str, *args: Val) -> Val:
        """An LLVM float instruction on values of one width: nearest even, denormals kept."""
        vec = any(a.vec for a in args)
        width = args[0].width
        text = ", ".join(self.as_float(a, vec) for a in args)
        return self.from_float(self.fn.emit(f"{op} {self._float(width, vec)} {text}"), width, vec)

    def float_call(self, name: str, *args: Val) -> Val:
        """An LLVM intrinsic on floats of one width."""
        vec = any(a.vec for a in args)
        width = args[0].width
        ty = self._float(width, vec)
        full = f"@llvm.{name}.{f'v{self.lanes}' if vec else ''}f{width}"
        self.fn.module.declare(f"{ty} {full}({', '.join([ty] * len(args))})")
        text = ", ".join(f"{ty} {self.as_float(a, vec)}" for a in args)
        return self.from_float(self.fn.emit(f"call {ty} {full}({text})"), width, vec)

    def float_convert(self, op: str, a: Val, width: int) -> Val:
        """fpext or fptrunc."""
        to = self._float(width, a.vec)
        ref = self.as_float(a, a.vec)
        return self.from_float(
            self.fn.emit(f"{op} {self._float(a.width, a.vec)} {ref} to {to}"), width, a.vec
        )

    def float_extend(self, a: Val, width: int) -> Val:
        """fpext that LLVM does not look through.

        LLVM 22 compares before an fpext next to a zero, moves the select out of it
        as well, and turns ``a > 0 ? 0 : a`` into ``a >= 0 ? 0 : a`` there: -0 became +0.
        """
        to, ty = self._float(width, a.vec), self._float(a.width, a.vec)
        suffix = (
            f"v{self.lanes}f{width}.v{self.lanes}f{a.width}" if a.vec else f"f{width}.f{a.width}"
        )
        name = f"@llvm.experimental.constrained.fpext.{suffix}"
        self.fn.module.declare(f"{to} {name}({ty}, metadata)")
        given = f'{ty} {self.as_float(a, a.vec)}, metadata !"fpexcept.ignore"'
        return self.from_float(self.fn.emit(f"call {to} {name}({given}) strictfp"), width, a.vec)

    def fcmp(self, predicate: FloatPredicate, a: Val, b: Val) -> Val:
        if a.width == 16:
            a, b = self.float_convert("fpext", a, 32), self.float_convert("fpext", b, 32)
        vec = a.vec or b.vec
        ty = self._float(a.width, vec)
        text = f"{self.as_float(a, vec)}, {self.as_float(b, vec)}"
        return self._val(self.fn.emit(f"fcmp {predicate} {ty} {text}"), 1, vec)

    def frint(self, a: Val, how: Round) -> Val:
        name = {
            Round.NEAREST: "roundeven",
            Round.UP: "ceil",
            Round.DOWN: "floor",
            Round.ZERO: "trunc",
        }[how]
        if a.width == 16:
            wide = self.float_call(name, self.float_convert("fpext", a, 32))
            return self.float_convert("fptrunc", wide, 16)
        return self.float_call(name, a)

    def ftoi(self, a: Val, width: int, signed: bool) -> Val:
        if a.width == 16:
            a = self.float_convert("fpext", a, 32)
        lo = -(1 << (width - 1)) if signed else 0
        hi = (1 << (width - 1)) - 1 if signed else (1 << width) - 1
        return self._saturate(a, width, signed, lo, hi)

    def _saturate(self, a: Val, width: int, signed: bool, lo: int, hi: int) -> Val:
        op = "fptosi" if signed else "fptoui"
        ty = self._float(a.width, a.vec)
        to = self._ints(width) if a.vec else f"i{width}"
        suffix = (
            f"v{self.lanes}i{width}.v{self.lanes}f{a.width}" if a.vec else f"i{width}.f{a.width}"
        )
        self.fn.module.declare(f"{to} @llvm.{op}.sat.{suffix}({ty})")
        ref = self.fn.emit(f"call {to} @llvm.{op}.sat.{suffix}({ty} {self.as_float(a, a.vec)})")
        del lo, hi
        return self._val(ref, width, a.vec)

    def int_to_float(self, a: Val, width: int, signed: bool) -> Val:
        """LLVM's conversion: nearest even."""
        op = "sitofp" if signed else "uitofp"
        ref = self.fn.emit(f"{op} {a.type} {a.ref} to {self._float(width, a.vec)}")
        return self.from_float(ref, width, a.vec)

    # -- directed rounding and approximations: see LlvmDomain ------------------------------------

    @abstractmethod
    def fadd(self, a: Val, b: Val, fp: Fp) -> Val: ...

    @abstractmethod
    def fmul(self, a: Val, b: Val, fp: Fp) -> Val: ...

    @abstractmethod
    def ffma(self, a: Val, b: Val, c: Val, fp: Fp) -> Val: ...

    @abstractmethod
    def fcvt(self, a: Val, width: int, fp: Fp) -> Val: ...

    @abstractmethod
    def itof(self, a: Val, width: int, signed: bool, fp: Fp) -> Val: ...

    @abstractmethod
    def approx(self, fn: Approximation, a: Val) -> Val: ...

    # -- lane masks -----------------------------------------------------------------------

    def lanes_of(self, mask: Val) -> Val:
        """A 32-bit mask as 32 truth values."""
        if mask.const is not None:
            bits = mask.const
            if bits in (0, 0xFFFFFFFF):
                return self._val(f"splat (i1 {literal(bits, 1)})", 1, True, bits & 1)
        if self.avx512:
            return self._val(
                self.fn.emit(f"bitcast i32 {mask.ref} to <{self.lanes} x i1>"), 1, True
            )
        bit = ", ".join(f"i32 {1 << i if i < 31 else -(1 << 31)}" for i in range(self.lanes))
        wide = self.splat(mask)
        hit = self.fn.emit(f"and {self._ints(32)} {wide.ref}, <{bit}>")
        return self._val(self.fn.emit(f"icmp ne {self._ints(32)} {hit}, zeroinitializer"), 1, True)

    def mask_of(self, lanes: Val) -> Val:
        """32 truth values as a 32-bit mask; a scalar truth value applies to every lane."""
        if not lanes.vec:
            return self.sext(lanes, 32)
        if self.avx512:
            ref = self.fn.emit(f"bitcast <{self.lanes} x i1> {lanes.ref} to i32")
            self.origins[ref] = "mask", (lanes,)
            return self._val(ref, 32, False)
        total: Val | None = None
        for part in range(4):
            index = ", ".join(f"i32 {8 * part + i}" for i in range(8))
            piece = self.fn.emit(
                f"shufflevector <{self.lanes} x i1> {lanes.ref}, <{self.lanes} x i1> poison, "
                f"<8 x i32> <{index}>"
            )
            bits = self.fn.emit(f"bitcast <8 x i1> {piece} to i8")
            word = self.shl(self.zext(self._val(bits, 8, False), 32), const(8 * part, 32))
            total = word if total is None else self.or_(total, word)
        assert total is not None
        self.origins[total.ref] = "mask", (lanes,)
        return total
