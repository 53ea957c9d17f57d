"""Random kernels of regions, loops, calls, recursion and moved barriers; see :mod:`.listing`.

``KINDS`` lists the contents of each kind.  In "tame" ones a region has a barrier of its own depth
and functions save what they use, as a compiler's code does; in "wild" ones any register is
anywhere.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

KINDS: dict[str, frozenset[str]] = {
    "tame": frozenset({"region", "loop", "free", "exit"}),
    "hints": frozenset({"region", "loop", "hint"}),
    "breaks": frozenset({"region", "loop", "break"}),
    "calls": frozenset({"region", "loop", "call"}),
    "recursion": frozenset({"region", "recursion"}),
    "deeper": frozenset({"region", "loop", "call", "recursion", "hint"}),
    "saves": frozenset({"region", "loop", "save", "wild_number"}),
    "wild": frozenset({"region", "loop", "save", "wild_number", "wild_sync", "wild_mask", "free"}),
    "wilder": frozenset({"region", "save", "wild_number", "wild_sync", "wild_mask", "break",
                         "hint", "exit", "warpsync"}),
}  # fmt: skip
_HINTS = ("YIELD", "NANOSLEEP 0x40")
_NESTS = frozenset(("region", "loop", "call", "recursion", "save", "free"))
_MOST = 26  # events of a kernel's text


@dataclass(slots=True)
class Writer:
    rng: random.Random
    has: frozenset[str]
    lines: list[str] = field(default_factory=list[str])
    labels: int = 0
    events: int = 0
    functions: list[str] = field(default_factory=list[str])
    level: int = 0
    deepest: int = 3  # regions within regions

    def put(self, *lines: str) -> None:
        self.lines += lines

    def label(self) -> str:
        self.labels += 1
        return f".L_{self.labels}"

    def event(self) -> None:
        self.events += 1
        self.put("EV")

    def _event(self, depth: int) -> None:
        self.event()

    def test(self, p: str = "P0") -> str:
        """A predicate of the lane's data: bits 0 to 4 are its number, the others random."""
        bit = self.rng.choice((0, 1, 2, 3, 4, 4, *range(5, 29)))
        bits = 1 << bit if self.rng.random() < 0.7 else 3 << bit
        self.put(f"LOP3.LUT R6, R8, {bits:#x}, RZ, 0xc0, !PT", f"ISETP.NE.AND {p}, PT, R6, RZ, PT")
        return p if self.rng.random() < 0.5 else f"!{p}"

    def barrier(self, depth: int) -> int:
        return self.rng.randrange(4) if "wild_number" in self.has else depth % 4

    def body(self, depth: int, most: int = 4, least: int = 1) -> None:
        for _ in range(self.rng.randrange(least, most)):
            if self.events > _MOST:
                return
            kind = self.rng.choice(sorted(self.has))
            if depth > self.deepest and kind in _NESTS:
                kind = "event"
            getattr(self, f"_{kind}", self._event)(depth)
            if self.rng.random() < 0.4:
                self.event()

    def _region(self, depth: int) -> None:
        b, end, other = self.barrier(depth), self.label(), self.label()
        p = self.test()
        self.put(f"BSSY B{b}, `({end})")
        to = end if self.rng.random() < 0.3 else other
        self.put(f"@{p} BRA `({to})")
        self.event()
        self.body(depth + 1)
        if to == other:
            if self.rng.random() < 0.8:
                self.put(f"BRA `({end})")
            self.put(f"{other}:")
            self.event()
            self.body(depth + 1)
        self.put(f"{end}:", f"BSYNC B{b}")
        self.event()

    def _loop(self, depth: int) -> None:
        b, top, end = self.barrier(depth), self.label(), self.label()
        counter = f"R{30 + depth}"
        self.put(f"SHF.R.U32.HI {counter}, RZ, {self.rng.randrange(28):#x}, R8")
        turns = self.rng.choice((1, 1, 2, 3))
        self.put(f"LOP3.LUT {counter}, {counter}, {turns:#x}, RZ, 0xc0, !PT")
        self.put(f"BSSY B{b}, `({end})", f"{top}:")
        self.event()
        self.body(depth + 2, 3)
        if self.rng.random() < 0.3:
            self.put(f"@{self.test()} BRA `({end})")
        self.put(f"IADD3 {counter}, {counter}, -0x1, RZ", f"ISETP.GE.AND P1, PT, {counter}, RZ, PT")
        self.put(f"@P1 BRA `({top})")
        self.event()
        self.put(f"{end}:", f"BSYNC B{b}")
        self.event()

    def _free(self, depth: int) -> None:
        """A branch without reconvergence."""
        end = self.label()
        self.put(f"@{self.test()} BRA `({end})")
        self.event()
        self.body(depth + 2, 3)
        self.put(f"{end}:")
        self.event()

    def _exit(self, depth: int) -> None:
        if depth and self.rng.random() < 0.3:
            self.put(f"@{self.test()} EXIT")

    def _hint(self, depth: int) -> None:
        guard = f"@{self.test()} " if self.rng.random() < 0.3 else ""
        self.put(guard + self.rng.choice(_HINTS))
        self.event()

    def _break(self, depth: int) -> None:
        if not depth:
            return
        b = (depth - 1) % 4
        p = self.test()
        if self.rng.random() < 0.6:
            end = self.label()
            self.put(f"@{p} BREAK B{b}")
            self.event()
            self.put(f"@{p} BRA `({end})")
            self.event()
            self.put(f"{end}:")
        else:
            self.put(f"@{p} BREAK B{b}")
        self.event()

    def _save(self, depth: int) -> None:
        b = self.rng.randrange(4)
        register = 44 + depth
        self.put(f"BMOV.32.CLEAR R{register}, B{b}" if self.rng.random() < 0.8 else
                 f"BMOV.32 R{register}, B{b}")  # fmt: skip
        self.event()
        self.body(depth + 1, 3)
        self.put(f"BMOV.32 B{b}, R{register}")
        self.event()

    def _wild_sync(self, depth: int) -> None:
        b = self.rng.randrange(4)
        if self.rng.random() < 0.5:
            end = self.label()
            self.put(f"BSSY B{b}, `({end})", f"{end}:")
        else:
            self.put(f"BSYNC B{b}")
        self.event()

    def _wild_mask(self, depth: int) -> None:
        any_ = self.rng.getrandbits(32)
        mask = self.rng.choice((0, 0xFFFFFFFF, 0xFFFF, 0xFF0000, 0x55555555, any_))
        self.put(f"MOV R10, {mask:#x}", f"BMOV.32 B{self.rng.randrange(4)}, R10")
        self.event()

    def _warpsync(self, depth: int) -> None:
        if self.rng.random() < 0.5:
            self.put("VOTE.ANY R10, PT, PT", "WARPSYNC R10")
        else:
            self.put("MOV R10, 0xffff", "ISETP.GE.AND P2, PT, R0, 0x10, PT",
                     "SEL R10, R10, 0xffff0000, !P2", "WARPSYNC R10")  # fmt: skip
        self.event()

    def _call(self, depth: int) -> None:
        """Functions of the first level may call those of the second; all save what they use."""
        if self.level > 1 or self.events > _MOST - 4:
            return
        back = self.label()
        known = [f for f in self.functions if f.startswith(f".F{self.level}")]
        if not known or (len(known) < 2 and self.rng.random() < 0.5):
            known = [f".F{self.level}_{len(self.functions)}"]
            self.functions += known
        self.put(f"MOV R{40 + 2 * self.level}, `({back})")
        self.put(f"CALL.REL.NOINC `({self.rng.choice(known)})", f"{back}:")
        self.event()

    def _recursion(self, depth: int) -> None:
        if "recursive" in self.functions or self.level or depth > 1:
            return
        self.functions.append("recursive")
        back = self.label()
        self.put(f"SHF.R.U32.HI R9, RZ, {self.rng.randrange(27):#x}, R8")
        self.put("LOP3.LUT R9, R9, 0x3, RZ, 0xc0, !PT", f"MOV R40, `({back})")
        self.put("CALL.REL.NOINC `(.REC)", f"{back}:")
        self.event()

    def _the_recursive(self) -> None:
        end, base, past = self.label(), self.label(), self.label()
        two = self.rng.random() < 0.6
        self.put(".REC:", "STG.E.64 desc[UR6][R14.64], R40", "STG.E.64 desc[UR6][R14.64+0x8], R16")
        self.put("STG.E.64 desc[UR6][R14.64+0x10], R8", "IADD3 R14, R14, 0x20, RZ")
        self.put("BMOV.32.CLEAR R16, B3")
        if two:
            self.put("BMOV.32.CLEAR R17, B2")
        self.event()
        self.put("ISETP.EQ.AND P0, PT, R9, RZ, PT", f"BSSY B3, `({past})", f"@P0 BRA `({base})")
        self.put("IADD3 R9, R9, -0x1, RZ")
        self._work(two)
        backs = [self.label() for _ in range(2)]
        if two:
            p, other, join = self.test(), self.label(), self.label()
            self.put(f"BSSY B2, `({join}_P)", f"@{p} BRA `({other})")
            self.put(f"MOV R40, `({backs[0]})", "CALL.REL.NOINC `(.REC)", f"{backs[0]}:")
            if self.rng.random() < 0.5:
                self.event()
            self.put(f"BRA `({join})", f"{other}:")
            if self.rng.random() < 0.7:
                self._work(False)
                self.put("IADD3 R8, R8, 0x3, RZ")
                self.put(f"MOV R40, `({backs[1]})", "CALL.REL.NOINC `(.REC)", f"{backs[1]}:")
            self.put(f"{join}:", "BSYNC B2", f"{join}_P:")
            self.event()
        else:
            self.put(f"MOV R40, `({backs[0]})", "CALL.REL.NOINC `(.REC)", f"{backs[0]}:")
            self.event()
        if self.rng.random() < 0.4:
            self.put(f"BRA `({end})")
        self.put(f"{base}:")
        if self.rng.random() < 0.5:
            self._work(False)
        self.put(f"{end}:", "BSYNC B3", f"{past}:")
        if two:
            self.put("BMOV.32 B2, R17")
        self.put("BMOV.32 B3, R16", "IADD3 R14, R14, -0x20, RZ")
        self.put("LDG.E.64 R40, desc[UR6][R14.64]", "LDG.E.64 R16, desc[UR6][R14.64+0x8]")
        self.put("LDG.E.64 R8, desc[UR6][R14.64+0x10]", "RET.REL.NODEC R40 0x0")

    def _work(self, second: bool) -> None:
        """Writes a small region that uses B1, which the function does not save, or B2."""
        if self.rng.random() < 0.4:
            return
        b, end = 2 if second else 1, self.label()
        self.put(f"BSSY B{b}, `({end})", f"@{self.test()} BRA `({end})")
        if "hint" in self.has and self.rng.random() < 0.5:
            self.put(self.rng.choice(_HINTS))
        self.event()
        self.put(f"{end}:", f"BSYNC B{b}")

    def finish(self) -> None:
        self.put("WARPSYNC.ALL")
        self.event()
        done = 0
        self.put("EXIT")
        while done < len(self.functions):
            name = self.functions[done]
            done += 1
            if name == "recursive":
                self._the_recursive()
                continue
            self.level = int(name[2]) + 1
            self.put(f"{name}:")
            first = self.rng.randrange(3)  # and the next: the two that it uses, and keeps
            free = {1: 17, 2: 28}[self.level]
            kept = [(first, free), (first + 1, free + 1)]
            self.put(*(f"BMOV.32.CLEAR R{r}, B{b}" for b, r in kept))
            self.deepest = first + 1
            self.event()
            past = ""
            if self.rng.random() < 0.3:
                past = self.label()
                self.put(f"@{self.test()} BRA `({past})")
                self.event()
            self.body(first, 4)
            if past:
                self.put(f"{past}:")
                self.event()
            self.put(*(f"BMOV.32 B{b}, R{r}" for b, r in kept))
            self.put(f"RET.REL.NODEC R{38 + 2 * self.level} 0x0")


def kernel(kind: str, seed: int) -> tuple[list[str], bool]:
    """Lines for :func:`.listing.expanded`, and whether its events are heavy."""
    rng = random.Random(f"{kind} {seed}")
    writer = Writer(rng, KINDS[kind])
    writer.event()
    writer.body(0, 8, 3)
    writer.finish()
    return writer.lines, rng.random() < 0.6


def data(name: str) -> list[int]:
    """A word per lane: its number, and random bits."""
    rng = random.Random(f"data {name}")
    common = rng.getrandbits(27)
    out: list[int] = []
    for lane in range(32):
        noise = rng.getrandbits(27) & rng.getrandbits(27)
        out.append((common ^ noise) << 5 & 0xFFFFFFE0 | lane)
    return out
