"""A wave's way through a kernel's code, with numbers: a witness that knows nothing of the prover.

Scalar instructions on masks are computed by the semantics of the instruction set; the results of
all others are numbers drawn from what they read and how often they ran.  What such an instruction
found is written down: two programs that treat lanes alike have the same log.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

from sassxlate.disasm.rdna3 import reads, writes
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, Item, Label, LabelRef, S
from sassxlate.disasm.rdna3.semantics import semantics_table
from sassxlate.disasm.rdna3.tables.operand_codes import ALIASES, EXEC_LO, VCC_LO
from sassxlate.domain.integers import Bits, Reference, make

_D: Any = Reference()
_MASKS = (
    "s_mov_b32", "s_not_b32", "s_and_b32", "s_or_b32", "s_xor_b32", "s_and_not1_b32",
    "s_cmp_eq_u32", "s_cmp_lg_u32", "s_and_saveexec_b32", "s_and_not0_saveexec_b32",
    "s_and_not1_saveexec_b32",
)  # fmt: skip
Log = list[tuple[str, int, tuple[int, ...]]]


class Walk:
    """One wave; ``seed`` chooses its registers, lanes, and what instructions return."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.seed = seed
        self.s = {n: rng.getrandbits(32) for n in range(128)}
        self.s[EXEC_LO] = rng.choice((0xFFFFFFFF, 0xFFFF, 1, rng.getrandbits(32) | 1))
        self.scc = 0
        self.times: Counter[str] = Counter()

    def log(self, items: Sequence[Item], most: int = 150) -> Log:
        """What the first ``most`` instructions found that are not about masks alone."""
        labels = {item.name: n for n, item in enumerate(items) if isinstance(item, Label)}
        out: Log = []
        at = steps = 0
        while len(out) < most and at < len(items) and steps < 20 * most:
            inst = items[at]
            at += 1
            steps += 1
            if isinstance(inst, Label):
                continue
            if inst.op in ("s_endpgm", "s_trap"):
                out.append((inst.op, 0, ()))
                break
            target = inst.args[-1] if inst.args else None
            if isinstance(target, LabelRef):
                if self._jumps(inst):
                    at = labels[target.name]
            elif inst.op in _MASKS:
                self._compute(inst)
            elif inst.op == "s_mov_b64" and inst.args[1] == I(0):
                first = self._place(inst.args[0])
                self.s[first] = self.s[first + 1] = 0
            else:
                out.append(self._opaque(inst))
        return out

    def _jumps(self, inst: Inst) -> bool:
        return {
            "s_branch": True,
            "s_cbranch_execz": self.s[EXEC_LO] == 0,
            "s_cbranch_execnz": self.s[EXEC_LO] != 0,
            "s_cbranch_scc0": self.scc == 0,
            "s_cbranch_scc1": self.scc != 0,
            "s_cbranch_vccz": self.s[VCC_LO] == 0,
            "s_cbranch_vccnz": self.s[VCC_LO] != 0,
        }[inst.op]

    def _place(self, arg: Arg) -> int:
        if isinstance(arg, S):
            return arg.index
        assert not isinstance(arg, I | LabelRef)
        return ALIASES[arg.name]  # type: ignore[union-attr]

    def _value(self, arg: Arg) -> int:
        return arg.value & 0xFFFFFFFF if isinstance(arg, I) else self.s[self._place(arg)]

    def _compute(self, inst: Inst) -> None:
        row = semantics_table()[inst.op]
        printed = [kind for kind in row.dst if kind not in ("scc", "exec")]
        given = list(inst.args[len(printed) :])
        sources = [
            make(self.s[EXEC_LO] if kind == "exec" else self._value(given.pop(0)), 32)
            for kind in row.src
        ]
        found = row.fn(_D, *sources)
        results = cast("tuple[Bits, ...]", found if isinstance(found, tuple) else (found,))
        to = list(inst.args)
        for kind, result in zip(row.dst, results, strict=True):
            if kind == "scc":
                self.scc = result.n
            else:
                self.s[EXEC_LO if kind == "exec" else self._place(to.pop(0))] = result.n

    def _opaque(self, inst: Inst) -> tuple[str, int, tuple[int, ...]]:
        text = f"{inst.op} {inst.args} {inst.imm}"
        found = tuple(
            self.scc if ref.kind == "scc" else self.s[ref.number]
            for ref in sorted(reads(inst))
            if ref.kind in ("s", "scc")
        )
        self.times[text] += 1
        rng = random.Random(f"{self.seed} {text} {found} {self.times[text]}")
        for ref in sorted(writes(inst)):
            if ref.kind == "scc":
                self.scc = rng.getrandbits(1)
            elif ref.kind == "s":
                drawn = rng.choice((rng.getrandbits(32), 0, 0xFFFFFFFF))
                lanes = inst.op.startswith("v_cmp_")
                self.s[ref.number] = drawn & self.s[EXEC_LO] if lanes else drawn
        return text, self.s[EXEC_LO] if EXEC_LO in {r.number for r in reads(inst)} else 0, found


def logs(items: Sequence[Item], seeds: range) -> list[Log]:
    return [Walk(seed).log(items) for seed in seeds]
