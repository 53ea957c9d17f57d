"""RDNA3 instructions as values; names are LLVM's.

An operand names registers, an inline constant or a literal; the encoder decides which encoding
(``VOP2`` or ``VOP3``, with a literal or without) is shortest.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from sassxlate.packed import packed


@dataclass(frozen=True, slots=True)
class V:
    """VGPR tuple v[index : index + n - 1]; n counts 32-bit registers."""

    index: int
    n: int = 1

    def __hash__(self) -> int:
        """Without the tuple that a dataclass makes: tables of instructions ask all the time."""
        return self.index << 6 | self.n


@dataclass(frozen=True, slots=True)
class S:
    """SGPR tuple s[index : index + n - 1]."""

    index: int
    n: int = 1

    def __hash__(self) -> int:
        """As V's, and unlike it for the same numbers."""
        return self.index << 6 | self.n | 1 << 20


# Of single registers, by number, and of tuples.  A function that lru_cache wraps takes longer.
_VGPR: Final = [V(index) for index in range(512)]
_SGPR: Final = [S(index) for index in range(128)]
_VGPRS: Final[dict[int, V]] = {}
_SGPRS: Final[dict[int, S]] = {}
_TUPLES: Final = 1 << 12  # remembered


def vgprs(index: int, n: int = 1) -> V:
    """The one object for a VGPR tuple: a kernel names the same few hundred all the time."""
    if n == 1 and 0 <= index < 512:
        return _VGPR[index]
    key = index << 8 | n
    known = _VGPRS.get(key)
    if known is None:
        known = V(index, n)
        if 0 <= n < 256 and len(_VGPRS) < _TUPLES:
            _VGPRS[key] = known
    return known


def sgprs(index: int, n: int = 1) -> S:
    """The one object for an SGPR tuple."""
    if n == 1 and 0 <= index < 128:
        return _SGPR[index]
    key = index << 8 | n
    known = _SGPRS.get(key)
    if known is None:
        known = S(index, n)
        if 0 <= n < 256 and len(_SGPRS) < _TUPLES:
            _SGPRS[key] = known
    return known


@dataclass(frozen=True, slots=True)
class Sp:
    """A special scalar operand by LLVM's name: vcc_lo, vcc_hi, exec_lo, exec_hi, m0, null, scc,
    src_shared_base, src_shared_limit, src_private_base, src_private_limit, ttmp0 ... ttmp15; of 64
    bits vcc and exec; off where a memory instruction lacks an address operand."""

    name: str
    n: int = 1  # 32-bit registers: Sp("src_shared_base", 2) is the 64-bit value


@dataclass(frozen=True, slots=True)
class I:  # noqa: E742  (an immediate)
    """A constant by its raw bits: 32 bits, or 64 for a 64-bit operand.

    The encoder uses an inline constant where the operand's type has one, otherwise a literal.  Of a
    64-bit operand it is the value itself: ``I(0x3FF0000000000000)`` is 1.0 of an f64 operand, and
    ``I(-1)`` is 64 ones but ``I(0xFFFFFFFF)`` is 32.  Negative numbers are two's complement.
    """

    value: int


@dataclass(frozen=True, slots=True)
class LabelRef:
    """A branch target by name; resolved when a program is assembled."""

    name: str


Arg: TypeAlias = V | S | Sp | I | LabelRef

_ARGS: Final[dict[tuple[Arg, ...], tuple[Arg, ...]]] = {}
_MOST_ARGS: Final = 1 << 13  # remembered


def shared(args: tuple[Arg, ...]) -> tuple[Arg, ...]:
    """One object for equal operands: of a long kernel's instructions one in six has others, and a
    tuple with its numbers takes half as much memory as the rest of an instruction."""
    known = _ARGS.get(args)
    if known is not None:
        return known
    if len(_ARGS) >= _MOST_ARGS:
        _ARGS.clear()
    _ARGS[args] = args
    return args


@dataclass(frozen=True, slots=True)
class InstOrigin:
    """Why an instruction of a translation is there: for the SASS instruction ``text`` at byte
    ``offset`` of its kernel, or, where ``offset`` is None, for what ``text`` names, such as
    ``wait`` or ``prologue`` (the keys of ``lowering.codeobject.source_map.ADDED``)."""

    text: str
    offset: int | None = None


@packed(own=("op", "args", "imm", "origin"), copy="with_own", apart="comment")
@dataclass(frozen=True, slots=True)
class Inst:
    """One instruction: LLVM mnemonic without ``_e32``/``_e64``, operands in LLVM's print order.

    ``neg``, ``abs`` have one bit per source (bit 0 is src0).  ``op_sel`` selects high halves of
    16-bit operands (bit 3: of the destination).  VOP3P has ``op_sel``, ``op_sel_hi``, ``neg``
    (LLVM's neg_lo) and ``neg_hi``; v_fma_mix* have ``neg`` and ``abs``.  ``imm`` is simm16 of
    SOPP/SOPK, or the offset of a memory instruction in bytes.  ``comment`` goes into the assembly
    text and has no meaning; ``origin`` is the purpose of a translated instruction.  ``uniform``
    marks a v_readfirstlane whose active lanes are known to hold the same value, ``fence`` a wait
    after which all memory accesses are complete.
    """

    op: str
    args: tuple[Arg, ...] = ()
    imm: int = 0
    neg: int = 0
    abs: int = 0
    clamp: bool = False
    omod: int = 0
    op_sel: int = 0
    op_sel_hi: int = 7
    neg_hi: int = 0
    glc: bool = False
    dlc: bool = False
    slc: bool = False
    imm2: int = 0  # offset1 of ds_*2addr*
    dpp: str = ""  # LLVM's text of a DPP control, e.g. "row_shr:1 row_mask:0xf bank_mask:0xf"
    y: Inst | None = None  # the second half of a VOPD
    gds: bool = False  # DS: global data share
    more: tuple[tuple[str, int], ...] = ()  # modifiers of the rarer formats, by LLVM's name
    enc: str = field(default="", compare=False)  # "e64": the 64-bit encoding; "lit1": see encode
    comment: str = field(default="", compare=False)
    origin: InstOrigin | None = field(default=None, compare=False)
    uniform: bool = field(default=False, compare=False)
    fence: bool = field(default=False, compare=False)

    def __hash__(self) -> int:
        """Of what differs most: tables of instructions ask for it all the time."""
        return hash((self.op, self.args, self.imm, self.neg))

    def with_own(self, op: str, args: tuple[Arg, ...], imm: int, origin: InstOrigin | None) -> Inst:
        """The instruction with other values of what differs most: :func:`packed` makes this
        without looking at the other fields."""
        return replace(self, op=op, args=args, imm=imm, origin=origin)

    def with_args(self, args: tuple[Arg, ...]) -> Inst:
        """The instruction with other operands."""
        return self.with_own(self.op, args, self.imm, self.origin)

    def with_origin(self, origin: InstOrigin) -> Inst:
        """The instruction with another origin, and shared operands."""
        return self.with_own(self.op, shared(self.args), self.imm, origin)


@dataclass(frozen=True, slots=True)
class Label:
    """A label's place in a program.  ``block``: the byte offset of the SASS block that begins here,
    in a translation; None for any other label."""

    name: str
    comment: str = field(default="", compare=False)
    block: int | None = field(default=None, compare=False)


Item: TypeAlias = Inst | Label
