"""Matrices whose elements are spread over a warp: moves, products of integers, bits and doubles.

A warp's fragments (``disasm/sass/semantics/warp/matrix.py``): lane 4 g + t holds words of row g of
A and
of column g of B, and computes columns 2 t and 2 t + 1 of row g.  So what a lane needs of A is in
the four lanes of its quad, which DPP reaches, and what it needs of B in the lanes 8 t to 8 t + 7.
All of a warp's lanes take part; if some are missing, the wave traps.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, V
from sassxlate.disasm.sass.instruction import Instruction, Pred
from sassxlate.lowering.builder.lane_id import lane_id
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.arithmetic.modes import rounding
from sassxlate.lowering.rules.memory.memory import address32
from sassxlate.lowering.rules.modifiers import ROUND
from sassxlate.lowering.rules.rule import Rule, knowing
from sassxlate.lowering.target import ALL_ONES, EXEC, ZERO

TRAP_PARTIAL = 0x53  # trap id: a matrix instruction that only some lanes of a warp execute
QUADS = tuple(f"quad_perm:[{k},{k},{k},{k}] row_mask:0xf bank_mask:0xf" for k in range(4))


# --- fragments ------------------------------------------------------------------------------------


@contextmanager
def whole_warp(c: RuleEmitter) -> Generator[None]:
    """Skips the code inside if no lane executes it, and traps if only some do."""
    fine, done = c.k.label("Lwhole"), c.k.label("Lwhole_done")
    c.branch("s_cbranch_execz", done)
    c.emit("s_cmp_eq_u32", EXEC, ALL_ONES)
    c.branch("s_cbranch_scc1", fine)
    c.raw(Inst("s_trap", (), imm=TRAP_PARTIAL))
    c.mark(fine)
    yield
    c.mark(done)


def words_of(c: RuleEmitter, role: str) -> list[V]:
    """The registers of a source."""
    pair = c.vtuple(role)
    return [V(pair.index + i) for i in range(pair.n)]


def addend(c: RuleEmitter) -> list[V]:
    """The registers of C; zeros if the uniform predicate does not hold."""
    words = words_of(c, "Rc")
    which = c.operand("Pp") if "Pp" in c.ins.operands else None
    if not isinstance(which, Pred) or which.is_true:
        return words
    mask = c.mask_reg("Pp")
    out = [c.vtemp() for _ in words]
    for new, old in zip(out, words, strict=True):
        c.emit("v_cndmask_b32", new, ZERO, old, mask)
    return out


def of_quad(c: RuleEmitter, word: V, place: int) -> V:
    """A register of lane ``place`` of this lane's quad."""
    out = c.vtemp()
    c.raw(Inst("v_mov_b32", (out, word), dpp=QUADS[place]))
    return out


def columns(c: RuleEmitter) -> V:
    """The byte address, for ds_bpermute, of lane 8 t: words of this lane's two columns of B."""
    out = lane_id(c)
    c.emit("v_lshlrev_b32", out, I(5), out)
    c.emit("v_and_b32", out, I(0x60), out)
    return out


def of_column(c: RuleEmitter, base: V, word: V, column: int, place: int) -> V:
    """A register of the lane that has word ``place`` (of four) of column 2 t + ``column``."""
    out = c.vtemp()
    c.raw(Inst("ds_bpermute_b32", (out, base, word), imm=16 * column + 4 * place))
    return out


def give(c: RuleEmitter, words: Sequence[V]) -> None:
    """Writes the results to Rd, whose registers may be sources."""
    target = c.dst_last()
    for i, word in enumerate(words):
        c.raw(Inst("v_mov_b32", (V(target.index + i), word)))


# --- integers -------------------------------------------------------------------------------------


def _dots(
    c: RuleEmitter, op: str, a: Sequence[V], b: Sequence[V], tall: bool, neg: int = 0
) -> list[V]:
    """For each result of this lane the sum over its row and column of ``op``, which accumulates, or
    of the bits that ``op`` leaves."""
    base = columns(c)
    halves = 2 if tall else 1
    out = [c.vtemp() for _ in range(2 * halves)]
    deep = len(a) // halves
    words = range(4 * deep)
    right = [[of_column(c, base, b[k // 4], n, k % 4) for n in (0, 1)] for k in words]
    for k in words:
        for half in range(halves):
            with c.scope():
                left = of_quad(c, a[k // 4 * halves + half], k % 4)
                for column in (0, 1):
                    total = out[2 * half + column]
                    _dot(c, op, total, left, right[k][column], neg, first=k == 0)
    return out


def _dot(c: RuleEmitter, op: str, total: V, a: V, b: V, neg: int, *, first: bool) -> None:
    before: Arg = ZERO if first else total
    if op.startswith("v_dot"):
        c.emit(op, total, a, b, before, neg=neg)
        return
    both = c.vtemp()
    c.emit(op, both, a, b)
    c.emit("v_bcnt_u32_b32", total, both, before)


def laid_out(c: RuleEmitter) -> None:
    """Refuses a layout other than that of :func:`words_of`: .ROW and .COL, with which A and B of
    some instructions are always printed, confirm it."""
    for role, layout in (("Ra", "ROW"), ("Rb", "COL")):
        if getattr(c.operand(role), "select", "") not in ("", layout):
            raise c.refuse(f"the layout of {role}")


def _factors(c: RuleEmitter) -> tuple[list[V], list[V]]:
    """A's words and B's."""
    laid_out(c)
    return words_of(c, "Ra"), words_of(c, "Rb")


def _shape(ins: Instruction) -> str:
    return next(m for m in ins.modifiers if m.isdigit())


def _dense(ins: Instruction) -> bool:
    return not ins.has("SP")


_DOTS = {"8": "v_dot4_i32_iu8", "4": "v_dot8_i32_iu4"}


def imma(c: RuleEmitter) -> None:
    """Bytes or half bytes: the dot product of a word's elements is one instruction."""
    sorts = [m for m in c.ins.modifiers if m in ("U8", "S8", "U4", "S4")]
    if len(sorts) != 2 or sorts[0][1] != sorts[1][1]:
        raise c.refuse("IMMA of elements of two widths")
    (a, b), addends = _factors(c), addend(c)
    tall = _shape(c.ins).startswith("16")
    with whole_warp(c):
        give(c, integer_sums(c, a, b, addends, sorts, c.ins.has("SAT"), tall))


def integer_sums(
    c: RuleEmitter, a: Sequence[V], b: Sequence[V], addends: Sequence[V], sorts: Sequence[str],
    saturated: bool, tall: bool,
) -> list[V]:  # fmt: skip
    """A times B plus an addend, of elements of the types ``sorts``; ``tall``: A has 16 rows."""
    neg = (sorts[0][0] == "S") | (sorts[1][0] == "S") << 1
    out = _dots(c, _DOTS[sorts[0][1]], a, b, tall, neg)
    for total, more in zip(out, addends, strict=True):
        if saturated:
            c.emit("v_add_nc_i32", total, total, more, clamp=True)
        else:
            c.emit("v_add_nc_u32", total, total, more)
    return out


def bmma(c: RuleEmitter) -> None:
    """Single bits: the population count of their AND or XOR."""
    (a, b), addends = _factors(c), addend(c)
    op = "v_and_b32" if c.ins.has("AND") else "v_xor_b32"
    with whole_warp(c):
        out = _dots(c, op, a, b, _shape(c.ins).startswith("16"))
        for total, more in zip(out, addends, strict=True):
            c.emit("v_add_nc_u32", total, total, more)
        give(c, out)


# --- doubles --------------------------------------------------------------------------------------


def _signs(c: RuleEmitter, role: str, words: list[V]) -> list[V]:
    """A source's doubles with its printed signs."""
    out: list[V] = []
    for i, word in enumerate(words):
        if i % 2 and (c.flag(role, "abs") or c.flag(role, "neg")):
            signed = c.vtemp()
            op = "v_and_b32" if not c.flag(role, "neg") else "v_xor_b32"
            if c.flag(role, "abs") and c.flag(role, "neg"):
                op = "v_or_b32"
            c.emit(op, signed, I(0x7FFFFFFF if op == "v_and_b32" else 0x80000000), word)
            word = signed
        out.append(word)
    return out


def dmma(c: RuleEmitter) -> None:
    """Each result is a chain of fused multiply-adds over k."""
    tall = _shape_of_doubles(c).startswith("16")
    halves = 2 if tall else 1
    a, b = (_signs(c, role, words_of(c, role)) for role in ("Ra", "Rb"))
    addends = _signs(c, "Rc", addend(c))
    with whole_warp(c):
        base = columns(c)
        totals = [c.vtemp(2) for _ in range(2 * halves)]
        for at, total in enumerate(totals):
            for i in (0, 1):
                c.emit("v_mov_b32", V(total.index + i), addends[2 * at + i])
        for k in range(2 * len(b)):
            with c.scope():
                pair = 2 * (k // 4)
                right = [c.vtemp(2), c.vtemp(2)]
                for column, words in enumerate(right):
                    for i in (0, 1):
                        to = V(words.index + i)
                        at = 16 * column + 4 * (k % 4)
                        c.raw(Inst("ds_bpermute_b32", (to, base, b[pair + i]), imm=at))
                for half in range(halves):
                    first = halves * pair + 2 * half
                    left = _double(c, a[first : first + 2], [QUADS[k % 4]])
                    with rounding(c):
                        for column, words in enumerate(right):
                            total = totals[2 * half + column]
                            c.emit("v_fma_f64", total, left, words, total)
        give(c, [V(t.index + i) for t in totals for i in (0, 1)])


def _shape_of_doubles(c: RuleEmitter) -> str:
    shapes = ("8x8x4", "884", "16x8x4", "16x8x8", "16x8x16")
    found = next((m for m in shapes if c.ins.has(m)), None)
    if found is None:
        raise c.refuse("this shape of DMMA")
    return found


def _double(c: RuleEmitter, words: Sequence[V], dpp: Sequence[str]) -> V:
    pair = c.vtemp(2)
    for i in (0, 1):
        c.raw(Inst("v_mov_b32", (V(pair.index + i), words[i]), dpp=dpp[0]))
    return pair


# --- moves ----------------------------------------------------------------------------------------


def _check_halves(c: RuleEmitter) -> bool:
    """Whether the matrices of halves are transposed."""
    if not c.ins.has("16") or not (c.ins.has("M88") or c.ins.has("MT88")):
        raise c.refuse(f"this shape of {c.ins.mnemonic}")
    return c.ins.has("MT88")


def _count(c: RuleEmitter) -> int:
    return 4 if c.ins.has("4") else 2 if c.ins.has("2") else 1


def _lane_parts(c: RuleEmitter) -> tuple[V, V]:
    """(4 g, t) of lane 4 g + t."""
    lane, four, t = lane_id(c), c.vtemp(), c.vtemp()
    c.emit("v_and_b32", four, I(0x1C), lane)
    c.emit("v_and_b32", t, I(3), lane)
    return four, t


class _Rows:
    """The addresses in shared memory of the elements of 8 x 8 halves.

    Lane 8 m + r has the address of row r of matrix m; lane 4 g + t holds word t of row g, or
    transposed element g of rows 2 t and 2 t + 1.
    """

    def __init__(self, c: RuleEmitter, transposed: bool) -> None:
        self.c = c
        self.transposed = transposed
        at, self.imm = address32(c, c.mem(), 0, 0xFFFF)
        self.address = c.to_v(at)
        four, t = _lane_parts(c)
        self.row, self.within = four, t
        if transposed:
            c.emit("v_lshlrev_b32", t, I(3), t)  # lane 2 t as bpermute names it
            self.row, self.within = t, four
            c.emit("v_lshrrev_b32", four, I(1), four)  # 2 g bytes
        else:
            c.emit("v_lshlrev_b32", t, I(2), t)

    def place(self, matrix: int, odd: int = 0) -> V:
        """The address of this lane's word, or of one of its two halves."""
        c = self.c
        out = c.vtemp()
        source = (out, self.row, self.address)
        c.raw(Inst("ds_bpermute_b32", source, imm=32 * matrix + 4 * odd))
        c.emit("v_add_nc_u32", out, out, self.within)
        return out


def ldsm(c: RuleEmitter) -> None:
    transposed, count = _check_halves(c), _count(c)
    with whole_warp(c):
        rows = _Rows(c, transposed)
        out = [c.vtemp() for _ in range(count)]
        for matrix, word in enumerate(out):
            at = rows.place(matrix)
            if not transposed:
                c.raw(Inst("ds_load_b32", (word, at), imm=rows.imm))
                continue
            c.raw(Inst("ds_load_u16", (word, at), imm=rows.imm))
        if transposed:
            for matrix, word in enumerate(out):
                high = c.vtemp()
                c.raw(Inst("ds_load_u16", (high, rows.place(matrix, 1)), imm=rows.imm))
                c.emit("v_lshl_or_b32", word, high, I(16), word)
        give(c, out)


def stsm(c: RuleEmitter) -> None:
    transposed, count = _check_halves(c), _count(c)
    words = words_of(c, "Rb")
    assert len(words) == count
    with whole_warp(c):
        rows = _Rows(c, transposed)
        for matrix, word in enumerate(words):
            at = rows.place(matrix)
            if not transposed:
                c.raw(Inst("ds_store_b32", (at, word), imm=rows.imm))
                continue
            high = c.vtemp()
            c.emit("v_lshrrev_b32", high, I(16), word)
            c.raw(Inst("ds_store_b16", (at, word), imm=rows.imm))
            c.raw(Inst("ds_store_b16", (rows.place(matrix, 1), high), imm=rows.imm))


def movm(c: RuleEmitter) -> None:
    """8 x 8 halves, transposed: lane 4 g + t gets elements g of rows 2 t and 2 t + 1, which are
    half g mod 2 of lanes 8 t + g / 2 and 8 t + 4 + g / 2."""
    if not c.ins.has("16") or not c.ins.has("MT88"):
        raise c.refuse("this shape of MOVM")
    word = c.vsrc("Ra")
    with whole_warp(c):
        lane, from_, odd, pick = lane_id(c), c.vtemp(), c.vtemp(), c.vtemp()
        c.emit("v_lshlrev_b32", from_, I(5), lane)
        c.emit("v_and_b32", from_, I(0x60), from_)  # byte address of lane 8 t
        c.emit("v_lshrrev_b32", odd, I(1), lane)
        c.emit("v_and_b32", pick, I(0xC), odd)  # 4 (g / 2)
        c.emit("v_or_b32", from_, from_, pick)
        low, high = c.vtemp(), c.vtemp()
        c.raw(Inst("ds_bpermute_b32", (low, from_, word)))
        c.raw(Inst("ds_bpermute_b32", (high, from_, word), imm=16))
        # bytes of the low words (0 to 3) and the high ones (4 to 7)
        c.emit("v_and_b32", odd, I(2), odd)
        c.emit("v_mul_lo_u32", odd, I(0x01010101), odd)
        c.emit("v_or_b32", pick, I(0x05040100), odd)
        c.emit("v_perm_b32", low, high, low, pick)
        give(c, [low])


# The modifiers that each rule, or all rules of a mnemonic, translate or refuse.
KNOWN: Mapping[str, str] = {
    "IMMA": "8816 8832 16816 16832 16864 U8 S8 U4 S4 SAT",
    "BMMA": "88128 168128 168256 AND XOR POPC",
    "DMMA": f"8x8x4 884 16x8x4 16x8x8 16x8x16 {ROUND}",
    "LDSM": "16 M88 MT88 2 4",
    "STSM": "16 M88 MT88 2 4",
    "MOVM": "16 MT88",
}
RULES: tuple[Rule, ...] = knowing(
    KNOWN,
    Rule("imma", "IMMA", imma, _dense, temporaries=32),
    Rule("bmma", "BMMA", bmma, temporaries=32),
    Rule("dmma", "DMMA", dmma, temporaries=48),
    Rule("ldsm", "LDSM", ldsm, temporaries=28),
    Rule("stsm", "STSM", stsm, temporaries=28),
    Rule("movm", "MOVM", movm),
)
