"""Reorders the instructions of a step, with the same meaning, so that it splits into smaller
steps.

Code that keeps a value in a temporary from one instruction to a distant one is one step with
everything in between, most of it unrelated.  Two instructions may change places, on both sides at
once, if neither writes what the other reads or writes; so related instructions become adjacent and
are proved as a step of their own.  Accesses to memory keep their order.  EXEC and MODE are left
out: each step is proved to restore them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sassxlate.disasm.rdna3 import MACRO, OPS, RRef, keeps_part, reads, writes
from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO, VCC_LO
from sassxlate.disasm.sass.instruction import Instruction, RegRef
from sassxlate.disasm.sass.traits import traits
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.region import Region
from sassxlate.lowering.region.subset import guard

_MODES = {"s_denorm_mode": 15, "s_round_mode": 0}
_ACCESS = RRef("access")  # a pseudo-register that every access writes
_SCC = RRef("scc")
_IN_ORDER = frozenset({"lds", "flat", "global", "scratch", "buffer", "inv", "message", "wait"})


@dataclass(slots=True)
class _Unit:
    """Instructions that stay together, and the registers that they touch."""

    groups: list[int]
    reads: set[RRef | RegRef]
    writes: set[RRef | RegRef]

    def before(self, other: _Unit) -> bool:
        """Whether it must stay before ``other``, which follows it."""
        return bool(
            self.writes & other.reads or self.writes & other.writes or self.reads & other.writes
        )


def parts(
    block: Region,
    regs: RegisterMap,
    code: Sequence[Sequence[Inst]],
    bound: Iterable[Iterable[int]],
) -> list[list[int]]:
    """The numbers of a step's instructions, in lists that may be proved one after another.
    ``bound``: which instructions belong together."""
    runs = _runs(code, regs)
    if _masks(code, regs):
        return [list(range(len(code)))]
    units = [_unit(block.instructions, code, run, regs) for run in runs]
    _forget(units, regs)
    place = {n: i for i, run in enumerate(runs) for n in run}
    count = len(units)
    after = [0] * count  # bits: the units that must come after it
    for i, one in enumerate(units):
        for j in range(i + 1, count):
            if one.before(units[j]):
                after[i] |= 1 << j
    for together in bound:
        mine = sorted({place[n] for n in together if n in place})
        for a, b in pairwise(mine):
            after[a] |= 1 << b
            after[b] |= 1 << a
    reach = _closed(after)
    # Units that must come both before and after each other are merged.
    left = (1 << count) - 1
    sets: list[int] = []
    for i in range(count):
        if left >> i & 1:
            mutual = 1 << i
            for j in _bits(reach[i], count):
                mutual |= (reach[j] >> i & 1) << j
            sets.append(mutual)
            left &= ~mutual
    out: list[list[int]] = []
    done = 0
    while sets:
        # The first unit that no remaining unit must precede.
        ready = next(s for s in sets if not any(reach[i] & s for i in _bits(~(done | s), count)))
        done |= ready
        sets.remove(ready)
        out.append([n for i in _bits(ready, count) for n in runs[i]])
    return out


def _bits(mask: int, count: int) -> list[int]:
    return [i for i in range(count) if mask >> i & 1]


def _closed(after: Sequence[int]) -> list[int]:
    """The transitive closure."""
    reach = list(after)
    for k in range(len(reach)):
        through = reach[k]
        for i, mine in enumerate(reach):
            if mine >> k & 1:
                reach[i] = mine | through
    return reach


def _runs(code: Sequence[Sequence[Inst]], regs: RegisterMap) -> list[list[int]]:
    """Groups instructions between which a guard is open or MODE is changed."""
    runs: list[list[int]] = []
    opened, mode = False, dict(_MODES)
    for n, group in enumerate(code):
        if runs and (opened or mode != _MODES):
            runs[-1].append(n)
        else:
            runs.append([n])
        for inst in group:
            found = guard(inst, regs)
            if found is not None:
                opened = found[0] != ".endpred"
            elif inst.op in mode:
                mode[inst.op] = inst.imm
    return runs


def _masks(code: Sequence[Sequence[Inst]], regs: RegisterMap) -> bool:
    """Whether anything but a guard writes EXEC, or touches where guards save it."""
    save, lanes = RRef("s", regs.save_exec.index), RRef("s", EXEC_LO)
    return any(
        guard(inst, regs) is None
        and (lanes in writes(inst) or save in writes(inst) or save in reads(inst))
        for group in code
        for inst in group
    )


def _unit(
    sass: Sequence[Instruction],
    code: Sequence[Sequence[Inst]],
    run: list[int],
    regs: RegisterMap,
) -> _Unit:
    out = _Unit(run, set(), set())
    made: dict[RRef, int] = {}  # registers written in full, and under which guard
    region = 0
    for n in run:
        ins = sass[n]
        out.reads |= ins.reads
        out.writes |= ins.writes
        t = traits(ins)
        if t.memory is not None or t.order or t.transfer:
            out.writes.add(_ACCESS)
        for inst in code[n]:
            if inst.op == MACRO or OPS[inst.op].kind in _IN_ORDER:
                out.writes.add(_ACCESS)
            found = guard(inst, regs)
            part = keeps_part(inst)
            written = writes(inst)
            for ref in reads(inst) | (written if part else frozenset[RRef]()):
                if made.get(ref, -1) not in (0, region):
                    out.reads.add(ref)
            for ref in written:
                out.writes.add(ref)
                if not part and ref not in made:
                    made[ref] = region if ref.kind == "v" else 0
            if found is not None:
                region = 0 if found[0] == ".endpred" else region + 1
                if found[0] == ".endpred":
                    made = {ref: at for ref, at in made.items() if at == 0}
    return out


def _forget(units: Sequence[_Unit], regs: RegisterMap) -> None:
    """Removes the temporaries that each unit writes before it reads them, and the registers that
    it restores."""
    exposed = {ref for unit in units for ref in unit.reads}
    kept = {RRef("s", EXEC_LO), RRef("s", regs.save_exec.index), RRef("mode")}
    scalars = {*regs.stemps, VCC_LO, VCC_LO + 1}

    def local(ref: RRef | RegRef) -> bool:
        if isinstance(ref, RegRef) or ref in exposed:
            return False
        vector = ref.kind == "v" and ref.number >= regs.vtemp_base
        return vector or (ref.kind == "s" and ref.number in scalars) or ref == _SCC

    for unit in units:
        unit.reads -= kept
        unit.writes = {ref for ref in unit.writes - kept if not local(ref)}


__all__ = ["parts"]
