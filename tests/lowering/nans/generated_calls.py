"""Random kernels in SASS that keep floats, doubles and integers over calls: of functions that name
few of their registers, save and restore one, call each other or themselves, return early.
"""

from __future__ import annotations

import random

import numpy as np

from tests.disasm.sass.interpreter import generated
from tests.disasm.sass.interpreter.launches import Prepared, assembled, with_code
from tests.lowering.nans import generated_nans
from tests.lowering.nans.generated_nans import SPECIAL

_OWN = generated.VALUES
_KEPT = tuple(f"R{n}" for n in range(50, 62))  # that few functions name
_DOUBLES = (62, 64, 66)
_FORMS = (
    "FADD {d}, {a}, {b}", "FADD {d}, {a}, -{b}", "FMUL {d}, {a}, {b}", "FFMA {d}, {a}, {b}, {c}",
    "FMUL {d}, {a}, -INF", "HADD2 {d}, {a}, {b}", "HFMA2.BF16_V2 {d}, {a}, {b}, {c}",
    "MOV {d}, {a}", "SEL {d}, {a}, {b}, {p}", "IADD3 {d}, {a}, 0x1, RZ", "MOV {d}, 0x7fc00001",
    "LOP3.LUT {d}, {a}, {b}, RZ, 0x3c, !PT",
)  # fmt: skip


class Calls(generated_nans.Writer):
    """``callees``: of each function its name, the register of its return address, and the registers
    that it names."""

    callees: tuple[tuple[str, int, tuple[str, ...]], ...] = ()

    def operation(self) -> None:
        self.on((*_OWN, *_KEPT))

    def on(self, registers: tuple[str, ...]) -> None:
        rng = self.rng
        if not registers:
            self.put("NOP")
            return
        a, b, c, d = (rng.choice(registers) for _ in range(4))
        guard = self.guard()
        x, y = (rng.choice(_DOUBLES) for _ in range(2))
        doubles = (
            f"F2F.F64.F32 R{x}, {a}", f"DADD R{x}, R{x}, -R{y}", f"F2F.F32.F64 {d}, R{x}",
            f"MOV R{x + rng.randrange(2)}, R{y + rng.randrange(2)}",
            f"LOP3.LUT {d}, R{x}, R{x + 1}, {a}, 0x96, !PT",
        )  # fmt: skip
        form = rng.choice(doubles if rng.random() < 0.12 else _FORMS)
        self.put(guard + form.format(a=a, b=b, c=c, d=d, p=self.pred()))

    def some(self, registers: tuple[str, ...], most: int) -> None:
        for _ in range(self.rng.randrange(most)):
            self.on(registers)

    def read(self, register: str) -> None:
        """As bits, into what is stored at the end."""
        self.put(f"LOP3.LUT R{self.rng.choice((70, 71))}, R70, R71, {register}, 0x96, !PT")

    def body(self, depth: int, regions: tuple[tuple[int, str], ...], most: int) -> None:
        for _ in range(self.rng.randrange(1, most)):
            kind = self.rng.random()
            if kind < 0.4 or depth > 2 or len(self.lines) > 150:
                self.operation()
            elif kind < 0.5:
                self.branch(depth, regions)
            elif kind < 0.6:
                self.loop(depth, regions)
            elif kind < 0.9:
                self.call_of(self.rng.randrange(len(self.callees)))
            else:
                self.read(self.rng.choice((*_OWN, *_KEPT)))

    def call_of(self, number: int, guard: str | None = None) -> None:
        name, link, _ = self.callees[number]
        if guard is None:
            guard = f"@{self.pred()} " if self.rng.random() < 0.25 else ""
        self.put(f"MOV R{link}, {self.here + 48:#x}")
        self.put(f"MOV R{link + 1}, 0x0")
        self.put(f"{guard}CALL.REL.NOINC `({name})")

    def compared(self, registers: tuple[str, ...]) -> str:
        p = f"P{self.rng.randrange(3)}"
        a, b = (self.rng.choice(registers) for _ in range(2))
        self.put(f"ISETP.LT.AND {p}, PT, {a}, {b}, PT")
        return p

    def function(self, number: int) -> None:
        rng = self.rng
        name, link, registers = self.callees[number]
        self.mark(name)
        self.first = 4 + 2 * number
        saved = rng.choice(_KEPT) if rng.random() < 0.5 else ""
        if saved:
            self.put(f"MOV R{80 + 2 * number}, {saved}")
            registers = (*registers, saved)
        self.some(registers, 4)
        if number + 1 < len(self.callees) and rng.random() < 0.6:
            self.call_of(rng.randrange(number + 1, len(self.callees)))
            self.some(registers, 3)
        if rng.random() < 0.35:
            self.itself(number, registers)
        if registers and rng.random() < 0.2:
            self.read(rng.choice(registers))
        if saved:
            self.put(f"MOV {saved}, R{80 + 2 * number}")
        if registers and rng.random() < 0.2:
            self.put(f"@{self.compared(registers)} RET.REL.NODEC R{link} 0x0")
            self.some(registers, 3)
        self.put(f"RET.REL.NODEC R{link} 0x0")

    def itself(self, number: int, registers: tuple[str, ...]) -> None:
        """A call of the function itself, of which a thread makes two in all."""
        link, end, barrier = self.callees[number][1], self.label(), self.first + 1
        self.put("ISETP.GE.AND P5, PT, R90, 0x2, PT")
        self.put(f"BSSY B{barrier}, `({end})")
        self.put(f"@P5 BRA `({end})")
        self.put("IADD3 R90, R90, 0x1, RZ")
        self.put("MOV R93, R92")
        self.put(f"MOV R92, R{link}")
        self.call_of(number, "")
        self.put(f"MOV R{link}, R92")
        self.put("MOV R92, R93")
        self.some(registers, 3)
        self.mark(end)
        self.put(f"BSYNC B{barrier}")


def kernel(seed: int, arch: int) -> str:
    """A listing, as :func:`generated.kernel` has one."""
    w = Calls(random.Random(seed), arch)
    rng = w.rng
    w.callees = tuple(
        (f".F{n}", 100 + 4 * n, (*rng.sample(_OWN, rng.randrange(4)),
                                 *rng.sample(_KEPT, rng.randrange(3))))
        for n in range(rng.randrange(1, 5))
    )  # fmt: skip
    params = {80: 0x160, 90: 0x210}[arch]
    for line in ("S2R R0, SR_CTAID.X", "S2R R3, SR_TID.X", "ULDC UR4, c[0x0][0x0]",
                 "IMAD R0, R0, UR4, R3"):  # fmt: skip
        w.put(line)
    for n, register in enumerate((14, 16, 2)):
        w.put(f"ULDC.64 UR4, c[0x0][{params + 8 * n:#x}]")
        w.put(f"MOV R{register}, UR4")
        w.put(f"MOV R{register + 1}, UR5")
        step = 4 * generated.WORDS if n == 2 else 4
        w.put(f"IMAD.WIDE R{register}, R0, {step:#x}, R{register}")
    if arch >= 90:
        w.put("ULDC.64 UR6, c[0x0][0x208]")
    w.put(f"LDG.E R8, {w.address(14)}")
    w.put(f"LDG.E R9, {w.address(16)}")
    for line in ("MOV R10, R8", "MOV R11, R9", "LOP3.LUT R12, R8, R9, RZ, 0x3c, !PT",
                 "FADD R13, R8, -R9"):  # fmt: skip
        w.put(line)
    for n, register in enumerate(_KEPT):
        forms = ("MOV {}, R{}", "FADD {}, R{}, -R9", "FMUL {}, R{}, R9", "HADD2 {}, R{}, R9")
        w.put(rng.choice(forms).format(register, 8 + n % 5))
    for low in _DOUBLES:
        w.put(f"F2F.F64.F32 R{low}, {rng.choice(('R8', '-R9', 'R12'))}")
    for register in (70, 71, 90, 92, 93):
        w.put(f"MOV R{register}, RZ")
    for n in range(3):
        w.put(f"ISETP.LT.AND P{n}, PT, {_OWN[n]}, {_OWN[n + 1]}, PT")
    for _ in range(3):
        w.body(0, (), 6)
    for register in rng.sample(_KEPT, rng.randrange(8)):
        w.put(f"IMAD R70, R70, 0x3, {register}")
    if rng.random() < 0.5:
        w.put("LOP3.LUT R71, R71, R62, R65, 0x96, !PT")
    for n, register in enumerate(rng.sample((*_OWN, *_KEPT), 6)):
        w.store(n, register)
    w.store(6, "R70")
    w.store(7, "R71")
    w.put("EXIT")
    for number in range(len(w.callees)):
        w.function(number)
    w.mark(".End")
    w.put("BRA `(.End)")
    return "\n".join(line if line.endswith(":") else f"{line} ;" for line in w.lines) + "\n"


def of_seed(seed: int, arch: int) -> Prepared:
    """Over special values, one block of two warps."""
    rng = np.random.default_rng(seed)
    threads = 64
    a, b = (rng.choice(np.array(SPECIAL, np.uint32), threads) for _ in range(2))
    out = np.full(threads * generated.WORDS, 0xABCD, np.uint32)
    cubin = with_code(assembled(kernel(seed, arch), arch), arch)
    return Prepared(cubin, "divergent_if", (1, 1, 1), (threads, 1, 1), (a, b, out), threads)


__all__ = ["kernel", "of_seed"]
