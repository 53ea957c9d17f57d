"""Random kernels of ``tests/disasm/sass/interpreter/generated.py`` in other forms.

Branches, exits and breaks on predicates instead of guards, calls through registers, jump tables,
barriers of other numbers, saved convergence barriers, synchronised arms, and hints everywhere.
"""

from __future__ import annotations

from tests.disasm.sass.interpreter import generated

_HINTS = (
    "NOP", "YIELD", "NANOSLEEP 0x20", "NANOSLEEP R45", "NANOSLEEP.SYNCS 0x10", "ERRBAR",
    "CGAERRBAR", "CCTL.IVALL", "CCTL.E.PF2 [R14]", "FENCE.VIEW.ASYNC.S", "ACQBULK", "PREEXIT",
    "LDGDEPBAR", "DEPBAR.LE SB0, 0x0", "DEPBAR.LE SB2, 0x0",
    *(f"MEMBAR.{order}.{reach}" for order in ("ALL", "SC") for reach in ("CTA", "GPU", "SYS")),
)  # fmt: skip
_SHARED = "SHF.L.U32 R7, R3, 0x2, RZ"
# A lane's word of shared memory, which begins at 0x400; what is read is zero before.
_START = (
    "LEA R7, R3, 0x400, 0x2", "LOP3.LUT R45, R3, 0x3f, RZ, 0xc0, !PT",
    *(f"STS [R7{at}], RZ" for at in ("", "+0x40", "+0x800", "+0x840")),
    "BAR.SYNC.DEFER_BLOCKING 0x0",
)  # fmt: skip
_CALLEE = 34  # the register of addresses that are called
_SAVED = 36  # of a convergence barrier that a function saves


class Writer(generated.Writer):
    """``jumps``: through tables and registers, whose targets nothing lists."""

    jumps = False
    used: int = 0

    # --- lines ---------------------------------------------------------------------------------

    def put(self, line: str) -> None:
        """The line in one of its forms; the lines put before it are never inside a call."""
        if line == _SHARED:
            for own in _START:
                super().put(own)
            return
        if line.startswith("@P"):
            line = self._predicate(line)
        elif line.startswith("BAR.SYNC"):
            line = self._barrier(line)
        super().put(line)

    def _predicate(self, line: str) -> str:
        guard, name, *rest = line.split(" ")
        if name not in ("BRA", "EXIT", "BREAK") or self.rng.random() < 0.5:
            return line
        p = guard.removeprefix("@")
        if self.rng.random() < 0.3:  # both: the guard holds where the predicate does
            super().put(f"PLOP3.LUT P4, PT, {p}, PT, PT, 0x80, 0x0")
            return f"{guard} {name} P4" + ("" if name == "EXIT" else ", " + " ".join(rest))
        if name == "EXIT":
            return f"EXIT {p}"
        return f"{name} {p}, {' '.join(rest)}"

    def _barrier(self, line: str) -> str:
        name = self.rng.choice(("BAR.SYNC.DEFER_BLOCKING", "BAR.SYNC"))
        number = self.rng.randrange(16)
        if self.rng.random() < 0.5:
            return f"{name} {number:#x}"
        super().put(f"MOV R44, {number:#x}")
        return f"{name} R44"

    # --- code between --------------------------------------------------------------------------

    def hint(self) -> None:
        if self.rng.random() < 0.25:
            super().put(self.guard() + self.rng.choice(_HINTS))

    def operation(self) -> None:
        self.hint()
        super().operation()

    def branch(self, depth: int, regions: tuple[tuple[int, str], ...]) -> None:
        kind = self.rng.random()
        if self.jumps and kind < 0.25:
            self.table(depth, regions)
        elif kind < 0.3 and not regions and not self.exits and not self.first:
            self.synchronised()
        else:
            super().branch(depth, regions)

    def table(self, depth: int, regions: tuple[tuple[int, str], ...]) -> None:
        """A jump through a table of branches."""
        number, end = self.number(regions), self.label()
        arms = [self.label() for _ in range(4)]
        super().put(f"BSSY B{number}, `({end})")
        value, shift = self.value(), self.rng.randrange(20)
        super().put(f"SHF.R.U32.HI R46, RZ, {shift:#x}, {value}")
        super().put("LOP3.LUT R46, R46, 0x3, RZ, 0xc0, !PT")
        here = self.here + 48  # of the instruction after BRX
        first = here + 16  # the table
        super().put(f"LEA R46, R46, {first:#x}, 0x4")
        super().put("MOV R47, RZ")
        super().put(f"BRX R46 -{here:#x}")
        super().put("NOP")
        for arm in arms:
            super().put(f"BRA `({arm})")
        for at, arm in enumerate(arms):
            self.mark(arm)
            self.body(depth + 2, (*regions, (number, end)), 3)
            if at < 3 and self.rng.random() < 0.6:
                super().put(f"BRA `({end})")
        self.mark(end)
        super().put(f"BSYNC B{number}")

    def synchronised(self) -> None:
        """Two arms that each wait for the whole warp; then every lane reads another's word."""
        end, other = self.label(), self.label()
        p = self.test()
        value = self.value()
        mask = self.rng.choice(("R43", ""))
        if mask:
            super().put("MOV R43, 0xffffffff")
        super().put("BSSY B0, `(" + end + ")")
        self.put(f"@{p} BRA `({other})")
        for arm in range(2):
            if arm:
                self.mark(other)
            for _ in range(self.rng.randrange(3)):
                self.operation()
            super().put(f"STS [R7+0x800], {value}")
            super().put(f"WARPSYNC {mask}" if mask else "WARPSYNC.ALL")
            step = 4 * self.rng.randrange(1, 32)
            super().put(f"LOP3.LUT R6, R7, {step:#x}, RZ, 0x3c, !PT")
            super().put("LDS R6, [R6+0x800]")
            super().put(f"IADD3 {self.value()}, R6, {self.value()}, RZ")
            super().put(f"WARPSYNC {mask}" if mask else "WARPSYNC.ALL")
            if not arm:
                super().put(f"BRA `({end})")
        self.mark(end)
        super().put("BSYNC B0")

    def call(self) -> None:
        if not self.functions or self.rng.random() < 0.4:
            self.functions.append((self.label(), self.rng.randrange(1 << 30)))
        name, _ = self.rng.choice(self.functions)
        through = self.jumps and self.rng.random() < 0.4
        back = self.here + (80 if through else 48)
        super().put(f"MOV R30, {back:#x}")
        super().put("MOV R31, 0x0")
        if through:
            super().put(f"MOV R{_CALLEE}, `({name})")
            super().put(f"MOV R{_CALLEE + 1}, 0x0")
            super().put(f"CALL.REL.NOINC R{_CALLEE} 0x0")
        else:
            super().put(f"CALL.REL.NOINC `({name})")


class Jumping(Writer):
    """With them."""

    jumps = True


class Saving(Writer):
    """Functions that save a convergence barrier of their callers, use it and restore it."""

    def call(self) -> None:
        if self.rng.random() < 0.4:
            super().call()
            return
        name, end = self.label(), self.label()
        super().put(f"MOV R30, {self.here + 48:#x}")
        super().put("MOV R31, 0x0")
        super().put(f"CALL.REL.NOINC `({name})")
        past = self.label()
        super().put(f"BRA `({past})")
        self.mark(name)
        super().put(f"BMOV.32.CLEAR R{_SAVED}, B0")
        super().put(f"BSSY B0, `({end})")
        p = self.test()
        super().put(f"@{p} BRA `({end})")
        self.operation()
        self.mark(end)
        super().put("BSYNC B0")
        super().put(f"BMOV.32 B0, R{_SAVED}")
        super().put("RET.REL.NODEC R30 0x0")
        self.mark(past)


class Yielding(Writer):
    """Lanes yield in the middle of arms.  There is one B0 per warp, so no two regions share a
    barrier, functions have none, and no arm waits for the whole warp."""

    def number(self, regions: tuple[tuple[int, str], ...]) -> int:
        self.used += 1
        return self.used - 1

    def hint(self) -> None:
        if self.rng.random() < 0.35:
            sleep = self.rng.choice(("YIELD", "YIELD", "NANOSLEEP 0x20", "NANOSLEEP R0",
                                     "NANOSLEEP.SYNCS 0x10"))  # fmt: skip
            self.lines.append(self.guard() + (sleep if self.rng.random() < 0.6 else "NOP"))

    def branch(self, depth: int, regions: tuple[tuple[int, str], ...]) -> None:
        if self.first or self.used > 15:
            self.operation()
        else:
            generated.Writer.branch(self, depth, regions)

    def loop(self, depth: int, regions: tuple[tuple[int, str], ...]) -> None:
        if self.used > 15:
            self.operation()
        else:
            super().loop(depth, regions)


class Meeting(Yielding):
    """The lanes that yield, and the ones that their guard excludes, meet right after it."""

    def hint(self) -> None:
        if self.rng.random() >= 0.35 or self.used > 15:
            return
        number, end = self.number(()), self.label()
        super().put(f"BSSY B{number}, `({end})")
        sleep = self.rng.choice(("YIELD", "NANOSLEEP 0x20", "NANOSLEEP R0"))
        super().put(self.guard() + sleep)
        self.mark(end)
        super().put(f"BSYNC B{number}")


WRITERS = {
    "random": Writer,
    "jumps": Jumping,
    "saving": Saving,
    "yielding": Yielding,
    "meeting": Meeting,
}


_GIVES_WAY = ("YIELD", "NANOSLEEP", "WARPSYNC")


def settled(seed: int, kind: str) -> bool:
    """Whether an H200 must have the results of any one order.

    Not if lanes yield in arms whose regions share a convergence barrier, of which a warp has
    one; nor where two arms wait for the whole warp, each at a WARPSYNC of its own: they hang.
    """
    text = kernel(seed, kind)
    return kind in ("yielding", "meeting") or not any(name in text for name in _GIVES_WAY)


def kernel(seed: int, kind: str) -> str:
    """A listing for sm_90, as :func:`generated.kernel`."""
    return generated.kernel(seed, 90, WRITERS[kind])
