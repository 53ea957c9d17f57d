"""A launch in the reference interpreter, and which forms of control flow and hints it reached."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.sass.instruction import Instruction, Pred, Reg
from sassxlate.disasm.sass.interpreter import Group, ScheduleOptions, run
from sassxlate.errors import InterpretError
from sassxlate.lowering.trace.interpreter_launch import approximations, launch_of, module_images
from tools.coverage.page import kind_of
from tools.coverage.tables import shape_key

from .cases import AnyCase, Words

LIMIT = 3_000_000
# How a warp executes an instruction: all of its lanes that have not ended; those of them that are
# here; some of those; or none, because guard or predicate hold for none.
OUTCOMES = ("all", "apart", "mixed", "none")
Mask = NDArray[np.bool_]


@dataclass(slots=True)
class Seen:
    """By form: how many warps executed it, by outcome."""

    forms: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    _keys: dict[int, str] = field(default_factory=dict[int, str])

    def see(self, ins: Instruction, group: Group, lanes: Mask) -> None:
        """Called after each instruction."""
        key = self._keys.get(ins.offset)
        if key is None:
            known = kind_of(ins) in ("control", "nothing")
            key = self._keys[ins.offset] = shape_key(ins) if known else ""
        if not key:
            return
        here = group.act
        live = group.s.live[group.at] | here  # those that EXIT ended were
        doing = _doing(ins, group, lanes, live)
        count, present, alive = (np.count_nonzero(x, axis=1) for x in (doing, here, live))
        none = count == 0
        mixed = ~none & (count < present)
        every = ~none & ~mixed & (present == alive)
        into = self.forms.setdefault(key, [0, 0, 0, 0])
        for at, which in enumerate((every, ~(none | mixed | every), mixed, none)):
            into[at] += int(np.count_nonzero(which))


def _doing(ins: Instruction, group: Group, lanes: Mask, live: Mask) -> Mask:
    """The lanes that execute it: those that take a branch."""
    named = [] if ins.mnemonic in ("BAR", "B2R") else [ins.get("Pp")]
    mask = ins.get("Ra")
    if ins.mnemonic == "BRA":
        named.append(mask)
    for p in named:
        if isinstance(p, Pred) and p.index != 7:
            lanes = lanes & (group.pred(p.file, p.index) ^ p.inv)
        elif isinstance(p, Pred) and p.inv:
            lanes = lanes & False
    if ins.mnemonic == "BRA" and ins.has("DIV"):
        wanted = live
        if isinstance(mask, Reg) and not mask.is_zero:
            bits = group.reg(mask.file, mask.index)
            wanted = live & (bits >> np.arange(32, dtype=np.uint32) & 1 != 0)
        apart = (lanes != wanted).any(axis=1, keepdims=True)
        taken: Mask = group.act & apart
        return taken
    return lanes


@dataclass(frozen=True, slots=True)
class Left:
    """Memory after a launch; empty if it ends in a trap."""

    memory: tuple[Words, ...]
    forms: dict[str, list[int]]
    executed: int
    approximate: bool = False  # a multi-function unit's result was taken


def interpreted(case: AnyCase, limit: int = LIMIT) -> Left:
    """Raises InterpretError, but not for a trap that the case expects."""
    cubin = parse_cubin(case.cubin())
    (kernel,) = (k for k in cubin.kernels if k.name == case.kernel)
    end = 0x7000_0000_0000

    def allocate(size: int) -> int:
        nonlocal end
        place, end = end, end + size + 4096 & ~511
        return place

    inputs = case.inputs()
    places = [allocate(x.nbytes) for x in inputs]
    pieces = {at: x.view(np.uint8).copy() for at, x in zip(places, inputs, strict=True)}
    images, banks = module_images(cubin, kernel, allocate)
    pieces |= {at: np.frombuffer(data, np.uint8) for at, data in images.items()}
    params = case.params(places)
    launch = launch_of(cubin, kernel, params, case.shape, pieces, banks, shared=case.shared)
    seen = Seen()
    try:
        done = run(launch, ScheduleOptions(limit=limit), seen.see)
    except InterpretError as error:
        if not case.traps or error.code != "SX0216":
            raise
        return Left((), {"BPT.TRAP I": [0, 0, 1, 0]}, 0)
    memory = tuple(
        done.device.read(at, x.nbytes).view(np.uint32).copy()
        for at, x in zip(places, inputs, strict=True)
    )
    return Left(memory, seen.forms, done.executed, bool(approximations(launch) & done.seen))
