"""Proofs of straight-line regions, in steps that are proved once.

A step is a run of SASS instructions after which the code has no pending state: no guard is open,
and each register that is still read is in its place.  The verifier proves a step from any state
that both sides share, with MODE and EXEC as between blocks, to a state that both share; so a list
of proved steps is a proved region.  The proof of a step does not depend on the registers that it
names: steps with one canonical text have one proof, which is kept.  Waits, which the verifier
counts apart from values, are counted for the region as a whole.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import Literal, TypeAlias

from sassxlate.cfg.liveness import live_before
from sassxlate.disasm.rdna3 import RRef, reads, writes
from sassxlate.disasm.rdna3.instruction import Arg, Inst, Label, LabelRef, S, V
from sassxlate.disasm.rdna3.tables.operand_codes import VCC_LO
from sassxlate.disasm.sass.instruction import Const, Instruction, Mem, Reg, RegRef
from sassxlate.disasm.sass.traits import traits
from sassxlate.errors import EncodeError, SassxlateError
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.places import place_of, words_of
from sassxlate.lowering.region.region import Region
from sassxlate.lowering.region.subset import guard
from sassxlate.lowering.region.text import RegionText, code_words, region_text
from sassxlate.lowering.verify import Proved, Refuted, Unknown, Verdict, verify
from sassxlate.lowering.verify.block.check import CUT_MS
from sassxlate.lowering.verify.rdna3.wait_counters import waits
from sassxlate.lowering.verify.steps.framing import framed_for_verifier
from sassxlate.lowering.verify.steps.region_proofs import RegionProofs
from sassxlate.lowering.verify.steps.reorder import parts

Code: TypeAlias = Sequence[Sequence[Inst]]
TIMEOUT_MS = 2_000
KEPT = 50_000  # results in memory: some 50 MB
WORTH_S = 0.02  # faster proofs are not stored: a look-up costs as much
VECTORS = 64  # few: without an answer of the solver the code is dropped anyway


@dataclass(frozen=True)
class ProofStep:
    """A run of instructions of a region, between two places with no pending state."""

    first: int
    end: int
    question: RegionText
    code: tuple[tuple[Inst, ...], ...]

    @cached_property
    def key(self) -> str:
        """The step's canonical text, question and answer, and all else that its proof depends
        on."""
        words = chain.from_iterable(code_words(self.code, self.question))
        arch = self.question.block.instructions[0].arch
        numbers = " ".join((*_numbers(self.question, self.code), *_macros(self.question)))
        return f"{arch} {numbers}\n{self.question.text}\n=>{' '.join(words)}"


def _numbers(here: RegionText, code: Code) -> Iterator[str]:
    """Facts that the text leaves out and the proof depends on, where one place has a number and a
    name: words of constant banks that SASS or code also reaches by offset, banks whose address the
    code loads, predicates that a mask selects, code addresses that are read (LEPC), and writes to
    registers that SASS only reads."""
    sass = here.block.instructions
    loads = {inst.imm for group in code for inst in group if inst.op.startswith("s_load")}
    consts = here.regs.consts
    by_offset = (
        o.index is not None or any((o.bank, at) not in consts for at in words_of(o))
        for ins in sass
        for o in ins.operands.values()
        if isinstance(o, Const)
    )
    if loads or any(by_offset):
        for (bank, offset), place in sorted(consts.items()):
            name = here.names.name.get(place)
            if name is not None:
                yield f"{name}={bank}:{offset}"
    yield from (f"{at}->{bank}" for at, bank in here.block.around.tables.items() if at in loads)
    yield from _overwritten(here, code)
    if any(traits(ins).masked for ins in sass):
        for kind, masks in _predicates(here.regs):
            for number, mask in sorted(masks.items()):
                name = here.names.name.get(mask)
                # For a predicate without a name, the text does not show whether it is live-out.
                told = "" if name else _wanted(here, RegRef(kind, number))
                yield f"{name}={kind}{number}{told}"
    yield from (f"@{ins.offset}" for ins in sass if ins.mnemonic == "LEPC")


def _macros(here: RegionText) -> Iterator[str]:
    """The code of macros: registers by their names, as far as they have one."""
    labels: dict[str, int] = {}
    for ins in here.block.instructions:
        macro = here.block.macros.get(ins.offset)
        for item in macro.items if macro is not None else ():
            if isinstance(item, Label):
                yield f"L{labels.setdefault(item.name, len(labels))}:"
                continue
            args = tuple(_said(arg, here, labels) for arg in item.args)
            y = item.y
            also = (y.op, *(_said(arg, here, labels) for arg in y.args)) if y is not None else ()
            rest = replace(item, args=(), y=None, enc="", comment="", origin=None)
            yield f"{rest} {item.enc} {' '.join(args)} {' '.join(also)}"


def _said(arg: Arg, here: RegionText, labels: dict[str, int]) -> str:
    if isinstance(arg, LabelRef):
        return f"L{labels.setdefault(arg.name, len(labels))}"
    if not isinstance(arg, V | S):
        return repr(arg)
    every = (here.names.name.get(type(arg)(arg.index + i)) for i in range(arg.n))
    names = [name if name is not None else f"{arg}+{i}" for i, name in enumerate(every)]
    return f"({' '.join(names)})"


def _predicates(regs: RegisterMap) -> Iterator[tuple[Literal["P", "UP"], Mapping[int, S]]]:
    yield "P", regs.p
    yield "UP", regs.up


def _wanted(here: RegionText, ref: RegRef) -> str:
    """Whether a register must be right after the step, and in lanes that wait."""
    return f":{int(ref in here.live_out)}{int(ref in here.block.merged)}"


def _overwritten(here: RegionText, code: Code) -> Iterator[str]:
    """For places that the code writes and SASS only reads: whether they must be unchanged after the
    step, and in lanes that wait."""
    sass = here.block.instructions
    own = frozenset[RegRef]().union(*(i.writes for i in sass))
    read = frozenset[RegRef]().union(*(i.reads for i in sass))
    written = frozenset[RRef]().union(*(writes(inst) for group in code for inst in group))
    for ref in sorted(read - own, key=lambda r: (r.file, r.index)):
        kind, at = place_of(ref, here.regs)
        if RRef("v" if kind in "vl" else "s", at) in written:
            name = here.names.name.get(V(at) if kind in "vl" else S(at))
            yield f"{name}{_wanted(here, ref)}"


def reduced(regs: RegisterMap, here: RegionText) -> RegisterMap:
    """The map restricted to what a block names: nothing else is touched."""
    refs = frozenset[RegRef]().union(*(i.reads | i.writes for i in here.block.instructions))
    used = {file: {r.index for r in refs if r.file == file} for file in ("R", "UR", "P", "UP")}
    named = {at.index for name, at in here.names.place.items() if name[0] == "c"}
    return replace(
        regs,
        r={i: v for i, v in regs.r.items() if i in used["R"]},
        ur={i: v for i, v in regs.ur.items() if i in used["UR"]},
        ur_lanes={i: v for i, v in regs.ur_lanes.items() if i in used["UR"]},
        p={i: v for i, v in regs.p.items() if i in used["P"]},
        up={i: v for i, v in regs.up.items() if i in used["UP"]},
        consts={k: s for k, s in regs.consts.items() if s.index in named},
        spilled={},
        barriers={},
        ready={},
        regions=(),
    )


def lives(block: Region, live_out: frozenset[RegRef]) -> list[frozenset[RegRef]]:
    """The live-out set of each instruction.  Descriptors of accesses have no meaning here and do
    not count as read."""
    out: list[frozenset[RegRef]] = []
    live = live_out
    for ins in reversed(block.instructions):
        out.append(live)
        seen = live_before(ins, live)
        described = _descriptors(ins)
        live = seen - (described - live) if described else seen
    return out[::-1]


def _descriptors(ins: Instruction) -> frozenset[RegRef]:
    """The registers that are read only as a descriptor."""
    named: set[RegRef] = set()
    others: set[RegRef] = set()
    for operand in ins.operands.values():
        match operand:
            case Mem(desc=Reg() as desc):
                named |= _words(desc)
                for reg in (operand.base, operand.ureg):
                    others |= _words(reg) if reg is not None else set()
            case Reg():
                others |= _words(operand)
            case _:
                pass
    return frozenset(named - others)


def _words(reg: Reg) -> set[RegRef]:
    return {RegRef(reg.file, reg.index + i) for i in range(reg.width)}


def joints(code: Code, regs: RegisterMap) -> list[int]:
    """The numbers of the instructions before which no guard is open, and the end."""
    out: list[int] = []
    opened = False
    for n, group in enumerate(code):
        if not opened:
            out.append(n)
        for inst in group:
            found = guard(inst, regs)
            if found is not None:
                opened = found[0] != ".endpred"
    return [*out, len(code)]


def ends_of(
    block: Region, regs: RegisterMap, live_after: Sequence[frozenset[RegRef]], code: Code
) -> list[int]:
    """Where steps of any code may end: after instructions where no guard is open, MODE is as at
    the start, no temporary is still to be read, and each register that is still read was last
    written by the code of the SASS instruction that wrote it last.  A guess: the proofs decide."""
    count = len(code)
    own: dict[RRef, set[RegRef]] = {}
    for ins in block.instructions:
        for ref in ins.writes:
            kind, at = place_of(ref, regs)
            own.setdefault(RRef("v" if kind in "vl" else "s", at), set()).add(ref)
    # Temporaries that are read after each instruction, from the end.
    pending: list[set[RRef]] = [set() for _ in range(count + 1)]
    live: set[RRef] = set()
    for n in range(count - 1, -1, -1):
        pending[n + 1] = set(live)
        for inst in reversed(code[n]):
            live -= {r for r in writes(inst) if r not in own}
            live |= {r for r in reads(inst) if _temporary(r, regs) and r not in own}
    last: dict[RRef, tuple[int, int]] = {}  # last writer in SASS, last writer in the code
    opened, mode = False, {"s_denorm_mode": 15, "s_round_mode": 0}
    start = dict(mode)
    out: list[int] = []
    for n, ins in enumerate(block.instructions):
        for ref in ins.writes:
            kind, at = place_of(ref, regs)
            place = RRef("v" if kind in "vl" else "s", at)
            last[place] = n, last.get(place, (-1, -1))[1]
        for inst in code[n]:
            found = guard(inst, regs)
            if found is not None:
                opened = found[0] != ".endpred"
            if inst.op in mode:
                mode[inst.op] = inst.imm
            for place in writes(inst):
                if place in own:
                    last[place] = last.get(place, (-1, -1))[0], n
        placed = all(a == b or not own[p] & live_after[n] for p, (a, b) in last.items())
        if not opened and mode == start and not pending[n + 1] and placed:
            out.append(n + 1)
    return out if out and out[-1] == count else [*out, count]


def _temporary(ref: RRef, regs: RegisterMap) -> bool:
    if ref.kind == "v":
        return ref.number >= regs.vtemp_base
    return ref.kind == "scc" or (ref.kind == "s" and ref.number in {*regs.stemps, *_VCC})


_VCC = (VCC_LO, VCC_LO + 1)


def step_of(
    block: Region,
    regs: RegisterMap,
    live_after: Sequence[frozenset[RegRef]],
    code: Code,
    first: int,
    end: int,
) -> ProofStep:
    """The step of instructions ``first`` to ``end``.  EncodeError if the text cannot express it."""
    part = replace(block, instructions=block.instructions[first:end])
    return ProofStep(
        first, end, region_text(part, regs, live_after[end - 1]), tuple(map(tuple, code[first:end]))
    )


@dataclass(slots=True)
class Prover:
    """Proves steps, and keeps the results by the canonical text of steps.

    ``read`` and ``write`` are a store beyond this process, by the steps' keys; quick proofs are not
    stored there.  ``regions`` is a store of whole regions' proofs, however quick.
    """

    read: Callable[[str], Verdict | None] = lambda _: None
    write: Callable[[str, Verdict], None] = lambda _, __: None
    timeout_ms: int = TIMEOUT_MS
    cut_ms: int = CUT_MS  # for a single instruction's part of a step
    regions: RegionProofs | None = None
    kept: dict[str, Verdict] = field(default_factory=dict[str, "Verdict"])
    asked: int = 0
    solved: int = 0
    # For the current block, keyed by its instruction objects, which it keeps alive.
    _here: dict[object, Verdict] = field(default_factory=dict[object, "Verdict"])
    _block: Region | None = None
    _regs: RegisterMap | None = None

    def _begin(self, block: Region, regs: RegisterMap) -> None:
        if self._block is not block or self._regs is not regs:
            self._here.clear()
            self._block, self._regs = block, regs

    def of(
        self,
        block: Region,
        regs: RegisterMap,
        live_after: Sequence[frozenset[RegRef]],
        code: Code,
        first: int,
        end: int,
    ) -> Verdict:
        """The verdict on the step of instructions ``first`` to ``end``."""
        sass, mine = block.instructions[first:end], tuple(map(tuple, code[first:end]))
        # Marks do not count when two instructions are compared.
        marks = tuple(i.uniform for group in mine for i in group if i.op == "v_readfirstlane_b32")
        key = tuple(map(id, sass)), live_after[end - 1], mine, marks
        found = self._here.get(key)
        if found is None:
            found = self._here[key] = self.step(step_of(block, regs, live_after, code, first, end))
        return found

    def step(self, step: ProofStep) -> Verdict:
        """The verdict on one step."""
        self.asked += 1
        key = step.key
        found = self.kept.get(key)
        if found is None:
            found = self.read(key)
            if found is None:
                started = time.perf_counter()
                found = self._solve(step)
                if time.perf_counter() - started > WORTH_S:
                    self.write(key, found)
            self._keep(key, found)
        return found

    def _keep(self, key: str, verdict: Verdict) -> None:
        if len(self.kept) >= KEPT:
            self.kept.clear()
        self.kept[key] = verdict

    def forget(self) -> None:
        """Lets go of all results that are kept in this process."""
        self.kept.clear()
        self._here.clear()
        self._block = self._regs = None
        gc.collect()  # terms of proofs that were cut off

    def _solve(self, step: ProofStep) -> Verdict:
        self.solved += 1
        here = step.question
        regs = reduced(here.regs, here)
        try:
            block = framed_for_verifier(here.block, regs, here.live_out, step.code)
        except SassxlateError as error:
            return Unknown(str(error))
        return verify(block, timeout_ms=self.timeout_ms, vectors=VECTORS, cut_ms=self.cut_ms)

    def pieces(
        self,
        block: Region,
        regs: RegisterMap,
        live_after: Sequence[frozenset[RegRef]],
        code: Code,
        first: int,
        end: int,
        bound: Iterable[frozenset[int]],
    ) -> Verdict:
        """The verdict on the step of instructions ``first`` to ``end``: in smaller steps if it can
        be split (:mod:`.reorder`), otherwise as a whole; then the step as it stands is proved, too,
        and not again for a later question.  EncodeError if the text cannot express it."""
        self._begin(block, regs)
        if end - first > 1:
            part = replace(block, instructions=block.instructions[first:end])
            inner = code[first:end]
            lists = parts(part, regs, inner, [{n - first for n in b} for b in bound])
            if len(lists) > 1 and (
                found := self._small(part, regs, live_after[end - 1], inner, lists)
            ):
                with suppress(EncodeError):  # it has words, or is asked for in other parts
                    self._keep(step_of(block, regs, live_after, code, first, end).key, found)
                return found
        return self.of(block, regs, live_after, code, first, end)

    def _small(
        self,
        block: Region,
        regs: RegisterMap,
        live_out: frozenset[RegRef],
        code: Code,
        lists: Sequence[Sequence[int]],
    ) -> Proved | None:
        """Proved, if each of these lists of instructions is, one after another."""
        order = [n for mine in lists for n in mine]
        block = replace(block, instructions=tuple(block.instructions[n] for n in order))
        code = [code[n] for n in order]
        live_after = lives(block, live_out)
        modulo: set[str] = set()
        first = 0
        for mine in lists:
            end = first + len(mine)
            try:
                verdict = self.of(block, regs, live_after, code, first, end)
            except EncodeError:  # the code names a register that only another instruction names
                return None
            if not isinstance(verdict, Proved):
                return None
            modulo.update(verdict.modulo)
            first = end
        return Proved(tuple(sorted(modulo)))

    def region(
        self,
        block: Region,
        regs: RegisterMap,
        live_out: frozenset[RegRef],
        code: Code,
        ends: Sequence[int] | None = None,
    ) -> Verdict:
        """The verdict on a region's code, step by step.  ``ends`` are the places between steps
        (and the end); without them, they are guessed, and if that proof fails the whole is tried.

        With ``ends``, a step that is not proved makes the region Unknown, with the step's verdict
        as the reason, unless the step is the whole region.
        """
        live_after = lives(block, live_out)
        key = _region_key(block, regs, live_after, code) if self.regions and ends is None else None
        known = self.regions.find(key) if self.regions and key else None
        if known is not None:
            return known
        verdict = self._region(block, regs, live_after, code, ends)
        if self.regions and key and isinstance(verdict, Proved):
            self.regions.keep(key, verdict)
        return verdict

    def _region(
        self,
        block: Region,
        regs: RegisterMap,
        live_after: Sequence[frozenset[RegRef]],
        code: Code,
        ends: Sequence[int] | None,
    ) -> Verdict:
        places = list(ends) if ends is not None else ends_of(block, regs, live_after, code)
        self._begin(block, regs)
        modulo: set[str] = set()
        for first, end in pairwise([0, *places]):
            try:
                verdict = self.of(block, regs, live_after, code, first, end)
            except EncodeError:  # the code names a register that only another instruction names
                if len(places) == 1:
                    raise
                return self._region(block, regs, live_after, code, [len(code)])
            if not isinstance(verdict, Proved):
                if ends is None and len(places) > 1:
                    return self._region(block, regs, live_after, code, [len(code)])
                return (
                    verdict
                    if len(places) == 1
                    else Unknown(f"instruction {first}: {_why(verdict)}")
                )
            modulo.update(verdict.modulo)
        if len(places) > 1 and not waited(block, regs, live_after[-1], code):
            return Unknown("a wait is missing")
        return Proved(tuple(sorted(modulo)))


def _region_key(
    block: Region, regs: RegisterMap, live_after: Sequence[frozenset[RegRef]], code: Code
) -> str | None:
    """What the proof of a whole region depends on; None for code without words."""
    try:
        return step_of(block, regs, live_after, code, 0, len(code)).key
    except EncodeError:
        return None


def _why(verdict: Refuted | Unknown) -> str:
    return verdict.reason if isinstance(verdict, Unknown) else verdict.defect or verdict.where


def waited(block: Region, regs: RegisterMap, live_out: frozenset[RegRef], code: Code) -> bool:
    """Whether no wait is missing.  Raises like :func:`.framing.framed_for_verifier`."""
    made = framed_for_verifier(block, regs, live_out, code)
    return waits([*chain.from_iterable(made.rdna)]).early is None


__all__ = ["ProofStep", "Prover", "ends_of", "joints", "lives", "reduced", "step_of", "waited"]
