"""Random kernels in SASS: nested regions, loops, breaks, early exits, calls, barriers, shuffles.

Lanes communicate only where all lanes of a warp are together, so every order of lanes must give the
same memory.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

VALUES = ("R8", "R9", "R10", "R11", "R12", "R13")
WORDS = 8  # of ``out`` a thread: the values, predicates, and what was stored on the way
SHARED = 4096
MOST = 180  # lines, about
_LINK = 30  # the register of return addresses
_COUNTER = 40  # the first register of loop counters
_TESTS = ("LT.U32", "GE.U32", "EQ.U32", "NE.U32", "GT", "LE")


@dataclass(slots=True)
class Writer:
    """Lines of one kernel; a name before a colon is a label."""

    rng: random.Random
    arch: int
    lines: list[str] = field(default_factory=list[str])
    labels: int = 0
    functions: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    exits: bool = True
    first: int = 0  # the number of the outermost convergence barrier; functions have their own

    def put(self, line: str) -> None:
        self.lines.append(line)

    def label(self) -> str:
        self.labels += 1
        return f".L_{self.labels}"

    def mark(self, label: str) -> None:
        self.lines.append(label + ":")

    @property
    def here(self) -> int:
        """The offset of the next instruction."""
        return 16 * sum(not line.endswith(":") for line in self.lines)

    def number(self, regions: tuple[tuple[int, str], ...]) -> int:
        """The number of the convergence barrier of a region within others."""
        return self.first + len(regions)

    # --- data ----------------------------------------------------------------------------------

    def value(self) -> str:
        return self.rng.choice(VALUES)

    def pred(self) -> str:
        return self.rng.choice(("P0", "P1", "P2", "!P0", "!P1", "!P2"))

    def guard(self) -> str:
        return f"@{self.pred()} " if self.rng.random() < 0.25 else ""

    def test(self) -> str:
        """Sets a predicate from data; gives its name."""
        p = f"P{self.rng.randrange(3)}"
        if self.rng.random() < 0.5:
            shift, bits = self.rng.randrange(24), self.rng.choice((1, 1, 3, 6))
            self.put(f"SHF.R.U32.HI R6, RZ, {shift:#x}, {self.value()}")
            self.put(f"LOP3.LUT R6, R6, {bits:#x}, RZ, 0xc0, !PT")
            self.put(f"ISETP.NE.U32.AND {p}, PT, R6, RZ, PT")
        else:
            kind = self.rng.choice(_TESTS)
            self.put(f"ISETP.{kind}.AND {p}, PT, {self.value()}, {self.value()}, PT")
        return p

    def operation(self) -> None:
        a, b, c, d = (self.value() for _ in range(4))
        number = self.rng.choice((3, 7, 0x55, 0x1003, 0x7FFF))
        self.put(
            self.guard()
            + self.rng.choice((
                f"IADD3 {a}, {b}, {c}, {d}",
                f"IMAD {a}, {b}, {c}, {d}",
                f"IMAD {a}, {b}, {number:#x}, {d}",
                f"LOP3.LUT {a}, {b}, {c}, {d}, {self.rng.randrange(256):#x}, !PT",
                f"SHF.L.U32 {a}, {b}, {self.rng.randrange(1, 31):#x}, RZ",
                f"SHF.R.S32.HI {a}, RZ, {self.rng.randrange(1, 31):#x}, {b}",
                f"SEL {a}, {b}, {c}, {self.pred()}",
                f"POPC {a}, {b}",
                f"IADD3 {a}, {b}, {number:#x}, RZ",
            ))
        )  # fmt: skip

    def store(self, word: int, value: str) -> None:
        self.put(f"STG.E {self.address(2, 4 * word)}, {value}")

    def address(self, register: int, offset: int = 0) -> str:
        """A global address; sm_90 names a descriptor."""
        where = f"[R{register}.64{f'+{offset:#x}' if offset else ''}]"
        return where if self.arch < 90 else f"desc[UR6]{where}"

    # --- code with all lanes of a block together --------------------------------------------------

    def together(self, k: int) -> None:
        """An operation across lanes."""
        match k % 3:
            case 0:
                mode = self.rng.choice(("BFLY", "IDX", "DOWN", "UP"))
                clamp = "RZ" if mode == "UP" else "0x1f"
                step = self.rng.randrange(1, 31)
                self.put(f"SHFL.{mode} PT, R6, {self.value()}, {step:#x}, {clamp}")
                self.put(f"IADD3 {self.value()}, R6, {self.value()}, RZ")
            case 1:
                self.put(f"VOTE.ANY R6, PT, {self.pred()}")
                self.put(f"IADD3 {self.value()}, R6, {self.value()}, RZ")
            case _:
                self.put(f"STS [R7], {self.value()}")
                self.put("BAR.SYNC.DEFER_BLOCKING 0x0")
                self.put(f"LOP3.LUT R6, R7, {4 * self.rng.randrange(1, 32):#x}, RZ, 0x3c, !PT")
                self.put(f"LDS {self.value()}, [R6]")
                self.put("BAR.SYNC.DEFER_BLOCKING 0x0")

    # --- control -------------------------------------------------------------------------------

    def body(self, depth: int, regions: tuple[tuple[int, str], ...], most: int) -> None:
        """``regions``: (barrier, label of its BSYNC) of the regions around, the outermost first."""
        for _ in range(self.rng.randrange(1, most)):
            kind = self.rng.random()
            if kind < 0.45 or depth > 3 or len(self.lines) > MOST:
                self.operation()
            elif kind < 0.65:
                self.branch(depth, regions)
            elif kind < 0.8:
                self.loop(depth, regions)
            elif kind < 0.86 and regions and self.exits:
                self.put(f"@{self.test()} EXIT")
            elif kind < 0.93 and len(regions) > 1:
                self.leave(regions)
            elif kind < 0.96 and not self.first:
                self.call()
            else:
                self.store(7, self.value())

    def branch(self, depth: int, regions: tuple[tuple[int, str], ...]) -> None:
        number, end, other = self.number(regions), self.label(), self.label()
        p = self.test()
        self.put(f"BSSY B{number}, `({end})")
        inner = (*regions, (number, end))
        self.put(f"@{p} BRA `({other})")
        self.body(depth + 1, inner, 4)
        if self.rng.random() < 0.7:
            self.put(f"BRA `({end})")
        self.mark(other)
        self.body(depth + 1, inner, 4)
        self.mark(end)
        self.put(f"BSYNC B{number}")

    def loop(self, depth: int, regions: tuple[tuple[int, str], ...]) -> None:
        number, end, top = self.number(regions), self.label(), self.label()
        counter = f"R{_COUNTER + number}"
        self.put(f"LOP3.LUT {counter}, {self.value()}, 0x7, RZ, 0xc0, !PT")
        self.put(f"BSSY B{number}, `({end})")
        self.mark(top)
        self.body(depth + 1, (*regions, (number, end)), 4)
        if self.rng.random() < 0.3:
            self.put(f"@{self.test()} BRA `({end})")
        self.put(f"IADD3 {counter}, {counter}, -0x1, RZ")
        self.put(f"ISETP.GT.AND P3, PT, {counter}, RZ, PT")
        self.put(f"@P3 BRA `({top})")
        self.mark(end)
        self.put(f"BSYNC B{number}")

    def leave(self, regions: tuple[tuple[int, str], ...]) -> None:
        """A jump out of the inner regions, which the lanes leave by BREAK."""
        to = self.rng.randrange(len(regions) - 1)
        p = self.test()
        for number, _ in reversed(regions[to + 1 :]):
            self.put(f"@{p} BREAK B{number}")
        self.put(f"@{p} BRA `({regions[to][1]})")

    def call(self) -> None:
        if not self.functions or self.rng.random() < 0.4:
            self.functions.append((self.label(), self.rng.randrange(1 << 30)))
        name, _ = self.rng.choice(self.functions)
        self.put(f"MOV R{_LINK}, {self.here + 48:#x}")
        self.put(f"MOV R{_LINK + 1}, 0x0")
        self.put(f"CALL.REL.NOINC `({name})")


def kernel(seed: int, arch: int, writer: type[Writer] = Writer) -> str:
    """A listing for sm_80 or sm_90 of a kernel (const u32 *a, const u32 *b, u32 *out, int n).

    Its threads, a block of at most 1,024 in x, read one word of ``a`` and ``b`` each and have
    ``WORDS`` words of ``out``; it has ``SHARED`` bytes of shared memory.
    """
    w = writer(random.Random(seed), arch)
    params = {80: 0x160, 90: 0x210}[arch]
    w.exits = w.rng.random() < 0.5
    w.put("S2R R0, SR_CTAID.X")
    w.put("S2R R3, SR_TID.X")
    w.put("ULDC UR4, c[0x0][0x0]")
    w.put("IMAD R0, R0, UR4, R3")
    w.put("SHF.L.U32 R7, R3, 0x2, RZ")
    for number, register in enumerate((14, 16, 2)):
        w.put(f"ULDC.64 UR4, c[0x0][{params + 8 * number:#x}]")
        w.put(f"MOV R{register}, UR4")
        w.put(f"MOV R{register + 1}, UR5")
        scale = 4 * WORDS if number == 2 else 4
        w.put(f"IMAD.WIDE R{register}, R0, {scale:#x}, R{register}")
    if arch >= 90:
        w.put("ULDC.64 UR6, c[0x0][0x208]")
    w.put(f"LDG.E R8, {w.address(14)}")
    w.put(f"LDG.E R9, {w.address(16)}")
    for n, line in enumerate(("IADD3 {}, R8, R9, R0", "IMAD {}, R8, R9, R0", "MOV {}, R0",
                              "LOP3.LUT {}, R8, R9, RZ, 0x3c, !PT")):  # fmt: skip
        w.put(line.format(VALUES[2 + n]))
    for n in range(3):
        w.put(f"ISETP.LT.AND P{n}, PT, {VALUES[n]}, {VALUES[n + 1]}, PT")
    for n in range(3):
        w.body(0, (), 5)
        w.together(w.rng.randrange(3))
        if n == 1 and not w.exits and w.rng.random() < 0.5:
            w.put(f"@{w.test()} EXIT")
            w.exits = False
            break
    for n, name in enumerate(VALUES):
        w.store(n, name)
    w.put("P2R R6, PR, RZ, 0x7")
    w.store(6, "R6")
    w.put("EXIT")
    w.first = 8
    for name, inner in w.functions:
        w.mark(name)
        rng, w.rng = w.rng, random.Random(inner)
        for _ in range(w.rng.randrange(1, 4)):
            w.operation()
        if w.rng.random() < 0.6:
            w.branch(3, ())
        w.rng = rng
        w.put(f"RET.REL.NODEC R{_LINK} 0x0")
    end = w.label()
    w.mark(end)
    w.put(f"BRA `({end})")
    return "\n".join(line if line.endswith(":") else f"{line} ;" for line in w.lines) + "\n"
