"""Random kernels in SASS in which about half of the floats are NaN, and whose bits are read in
every way: as integers, by shuffles, stores, conversions to double, halves; under guards, in loops,
calls.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tests.disasm.sass.interpreter import generated
from tests.disasm.sass.interpreter.launches import Prepared, assembled, with_code

SPECIAL = (
    0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001,
    0x7F812345, 0xFF855555, 0x7F7FFFFF, 0x00000001, 0x40490FDB, 0x7FFFFFFF, 0xFFFFFFFF, 0xC2F60000,
    0x7E007C00, 0xFE01FC00, 0x7C00FE7F, 0x3C00BC00, 0x7C007D01, 0x7F80FF80, 0xFFC07FC1,
)  # fmt: skip

# Results of binary32, of halves, of bf16; {0} to {2} are sources with or without a sign.
_SINGLES = (
    "FADD {d}, {0}, {1}", "FADD.FTZ {d}, {0}, {1}", "FADD.SAT {d}, {0}, {1}", "FMUL {d}, {0}, {1}",
    "FFMA {d}, {0}, {1}, {2}", "FFMA.RM {d}, {0}, {1}, {2}", "FMNMX {d}, {0}, {1}, PT",
    "FMNMX {d}, {0}, {1}, !PT", "FMNMX {d}, {0}, {1}, {p}", "FADD {d}, {0}, 1.5",
    "FMUL {d}, {0}, -INF", "MUFU.RCP {d}, {0}", "MUFU.SQRT {d}, {0}", "FRND.FLOOR {d}, {0}",
    "I2FP.F32.S32 {d}, {r}",
)  # fmt: skip
_HALVES = (
    "HADD2 {d}, {r}, {q}", "HADD2 {d}, {r}, -{q}", "HMUL2 {d}, {r}, {q}",
    "HFMA2 {d}, {r}, {q}, {s}", "HMNMX2 {d}, {r}, {q}, PT", "HMNMX2 {d}, {r}, {q}, !PT",
    "HADD2.F32 {d}, -RZ, {r}.H0_H0", "HADD2.F32 {d}, -RZ, {r}.H1_H1",
    "F2FP.F16.F32.PACK_AB {d}, {r}, {q}", "F2FP.BF16.F32.PACK_AB {d}, {r}, {q}",
    "HADD2.BF16_V2 {d}, {r}, {q}", "HMUL2.BF16_V2 {d}, {r}, {q}",
)  # fmt: skip
# Forms that read bits.
_READERS = (
    "LOP3.LUT {d}, {r}, {q}, {s}, 0x96, !PT", "LOP3.LUT {d}, {r}, 0x80000000, RZ, 0xc0, !PT",
    "LOP3.LUT {d}, {r}, 0x7fffffff, {q}, 0xe2, !PT", "SHF.R.U32.HI {d}, RZ, 0x1f, {r}",
    "SHF.L.U32 {d}, {r}, 0x3, RZ", "PRMT {d}, {r}, 0x7632, {q}", "IADD3 {d}, {r}, {q}, RZ",
    "IADD3 {d}, {r}, -0x3f3504f3, RZ", "IMAD {d}, {r}, {q}, {s}", "SEL {d}, {r}, {q}, {p}",
    "FSEL {d}, {0}, {1}, {p}", "MOV {d}, {r}", "IMAD.MOV.U32 {d}, RZ, RZ, {r}",
    "LEA {d}, {r}, {q}, 0x2", "POPC {d}, {r}", "VOTE.ANY R6, PT, PT", "F2I.NTZ {d}, {r}",
)  # fmt: skip

# Of chains: what makes a NaN, what moves it, and what reads it.
_MAKERS = (
    "HFMA2.BF16_V2 {d}, {r}, {q}, {q}", "HFMA2.BF16_V2 {d}, {r}, {q}.H1_H1, -RZ.H0_H0",
    "HFMA2.BF16_V2 {d}, {r}, -{q}.H0_H0, -RZ.H0_H0", "HMUL2 {d}, {r}, {q}", "FADD {d}, {r}, {q}",
)  # fmt: skip
_MOVES = (
    "PRMT {d}, RZ, 0x7610, {r}", "PRMT {d}, RZ, 0x5410, {r}", "PRMT {d}, {r}, 0x5410, {q}",
    "PRMT {d}, {r}, 0x7632, {r}", "PRMT {d}, {r}, 0x3210, {q}", "PRMT {d}, {r}, 0x2143, {q}",
    "IMAD.U32 {d}, {r}, 0x10000, RZ", "SHF.L.U32 {d}, {r}, 0x10, RZ",
    "SHF.R.U32.HI {d}, RZ, 0x10, {r}", "LOP3.LUT {d}, {r}, 0xffff0000, RZ, 0xc0, !PT",
    "LOP3.LUT {d}, {r}, 0xffff, RZ, 0xc0, !PT", "SHFL.BFLY PT, {d}, {r}, 0x1, 0x1f",
    "MOV {d}, {r}", "{g}MOV {d}, {q}", "{g}FADD {d}, {q}, {q}", "ISETP.LT.AND {p}, PT, {q}, RZ, PT",
)  # fmt: skip
_ENDS = (
    "FADD {d}, {r}, {q}", "FADD {d}, {r}, {q}", "HADD2 {d}, {r}, {q}", "IADD3 {d}, {r}, {q}, RZ",
    "HFMA2.BF16_V2 {d}, {r}, {q}, -RZ.H0_H0", "F2F.F64.F32 R22, {r}", "MOV {d}, {r}",
)  # fmt: skip


class Writer(generated.Writer):
    kinds: tuple[tuple[str, ...], ...] = (_SINGLES, _SINGLES, _HALVES, _READERS)

    def operation(self) -> None:
        a, b, c, d = (self.value() for _ in range(4))
        signs = [self.rng.choice(("{}", "{}", "-{}", "|{}|")).format(x) for x in (a, b, c)]
        form = self._on_this(self.rng.choice(self.rng.choice(self.kinds)))
        if self.rng.random() < 0.1:
            self.doubled(d, a)
            return
        guard = self.guard()
        self.put(guard + form.format(*signs, d=d, r=a, q=b, s=c, p=self.pred()))

    def _on_this(self, form: str) -> str:
        """The form as the architecture has it."""
        if self.arch >= 90:
            return form
        for name, old in (("I2FP.F32.S32", "I2F"), ("FP.F16.F32", "FP"), ("16.F32.P", "16.P")):
            form = form.replace(name, old)
        if "BF16_V2" in form:  # products of bf16 alone are there
            form = "HFMA2.BF16_V2 {d}, {r}, {q}, {s}"
        return form

    def doubled(self, d: str, a: str) -> None:
        """A conversion to double keeps sign and payload; so does the one back."""
        self.put(f"F2F.F64.F32 R22, {a}")
        if self.rng.random() < 0.5:
            self.put(f"LOP3.LUT {d}, R22, R23, RZ, 0x3c, !PT")
        else:
            self.put(f"F2F.F32.F64 {d}, R22")

    def test(self) -> str:
        if self.rng.random() < 0.5:
            return super().test()
        p = f"P{self.rng.randrange(3)}"
        kind = self.rng.choice(("LT", "GEU", "NEU", "EQ", "NAN", "GTU"))
        self.put(f"FSETP.{kind}.AND {p}, PT, {self.value()}, |{self.value()}|, PT")
        return p


class Chains(Writer):
    """Straight code: results of halves and binary32 that are moved about and read in one way each.
    Only that reading decides whether a NaN's bits matter."""

    def body(self, depth: int, regions: tuple[tuple[int, str], ...], most: int) -> None:
        for _ in range(12):
            self.chain()

    def together(self, k: int) -> None:
        """Shuffles are among the moves."""

    def chain(self) -> None:
        guard = f"@{self.pred()} "
        p = guard.strip("@! ") if self.rng.random() < 0.3 else "P3"
        known = ["R8", "R9", "R12"]
        moves = [self.rng.choice(_MOVES) for _ in range(self.rng.randrange(4))]
        for n, form in enumerate((self.rng.choice(_MAKERS), *moves, self.rng.choice(_ENDS))):
            made = "R24" if "{g}" in form else f"R{24 + n % 2}"
            source = self.rng.choice(known) if n == 0 else known[-1]
            self.put(form.format(d=made, r=source, q=self.rng.choice(known[:3]), g=guard, p=p))
            if "ISETP" not in form:
                known.append("R22" if "R22" in form else made)
        self.put(f"{self.rng.choice(('', guard))}IMAD R10, R10, 0x3, {known[-1]}")


class Doubles(Chains):
    """Straight code on doubles whose words are moved, shuffled and put together with those of
    others, and read in one way each."""

    _LOW = (24, 26, 28, 32)

    def body(self, depth: int, regions: tuple[tuple[int, str], ...], most: int) -> None:
        for _ in range(5):
            self.chain()

    def chain(self) -> None:
        for d in self._LOW[:3]:
            form = self.rng.choice(("{}", "-{}", "|{}|"))
            self.put(f"F2F.F64.F32 R{d}, {form.format(self.rng.choice(('R8', 'R9', 'R12')))}")
        self.put("MOV R32, R8")
        self.put("MOV R33, R9")
        guard = f"@{self.pred()} "
        for _ in range(self.rng.randrange(2, 9)):
            self._step(guard if self.rng.random() < 0.25 else "")
        self._end(self.rng.choice(self._LOW))

    def _step(self, guard: str) -> None:
        a, b, c, d = (self.rng.choice(self._LOW) for _ in range(4))
        x, y = (self.rng.choice(("", "", "-")) for _ in range(2))
        high = f"R{d + 1}, R{a + 1}"
        kind = self.rng.choice(
            ("DADD", "DADD", "DMUL", "DFMA", "SHFL", "SHFL", "MOV", "one", "F2F")
        )
        match kind:
            case "DADD":
                self.put(f"{guard}DADD R{d}, {x}R{a}, {y}R{b}")
            case "DMUL":
                self.put(f"{guard}DMUL R{d}, {x}R{a}, R{b}")
            case "DFMA":
                self.put(f"{guard}DFMA R{d}, {x}R{a}, R{b}, {y}R{c}")
            case "SHFL":
                how = f"{self.rng.choice((1, 2, 7, 16)):#x}, 0x1f"
                words = self.rng.choice(((f"R{d}, R{a}", high), (f"R{d}, R{a}",), (high,)))
                for word in words:
                    self.put(f"SHFL.BFLY PT, {word}, {how}")
            case "MOV":
                self.put(f"{guard}MOV R{d}, R{a}")
                self.put(f"{guard}MOV {high}")
            case "F2F":
                self.put(f"F2F.F32.F64 R{d + 1}, R{a}")
            case _:
                some = (f"PRMT {high}, 0x7610, R{b + 1}", f"MOV R{d}, R{a}", f"MOV {high}")
                self.put(guard + self.rng.choice(some))

    def _end(self, a: int) -> None:
        kind = self.rng.choice(("high", "low", "float", "sum", "test", "both"))
        read = f"R{a + (kind == 'high')}"
        if kind == "both":
            self.put(f"LOP3.LUT R10, R10, R{a}, R{a + 1}, 0x96, !PT")
            return
        if kind == "test":
            self.put(f"DSETP.GEU.AND P3, PT, R{a}, R{self.rng.choice(self._LOW)}, PT")
            read = "R6"
            self.put("SEL R6, RZ, 0x1, P3")
        elif kind in ("float", "sum"):
            read = "R6"
            if kind == "sum":
                self.put(f"DADD R28, R{a}, R{self.rng.choice(self._LOW)}")
            self.put(f"F2F.F32.F64 R6, R{28 if kind == 'sum' else a}")
            if kind == "sum":
                self.put("FADD R6, R6, R8")
        self.put(f"IMAD R10, R10, 0x3, {read}")


def of_seed(seed: int, arch: int, writer: type[Writer] = Writer) -> Prepared:
    """A kernel over special values, two blocks of it."""
    rng = np.random.default_rng(seed)
    grid, block = 2, 96
    threads = grid * block
    words: list[NDArray[np.uint32]] = []
    for _ in range(2):
        some = rng.choice(np.array(SPECIAL, np.uint32), threads)
        near = some ^ (np.uint32(1) << rng.integers(0, 32, threads).astype(np.uint32))
        words.append(np.where(rng.random(threads) < 0.8, some, near).astype(np.uint32))
    code = assembled(generated.kernel(seed, arch, writer), arch)
    out = np.full(threads * generated.WORDS, 0xABCD, np.uint32)
    cubin = with_code(code, arch, generated.SHARED)
    inputs = (words[0], words[1], out)
    return Prepared(cubin, "divergent_if", (grid, 1, 1), (block, 1, 1), inputs, threads)
