"""Launches on the device, compared with the interpreter.

A launch that faults or never ends takes its process with it (:mod:`silicon.supervised`).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from sassxlate.errors import SassxlateError
from sassxlate.lowering.trace.compare_memory import both_nan
from tools.silicon.device import Device, DeviceError
from tools.silicon.supervised import HUNG, Line, supervised

from .cases import AnyCase, Words
from .interpreted import interpreted

TIMES = 4  # that each case is launched; all must leave the same


def digest(memory: Sequence[Words]) -> str:
    """The digest of all memory after a launch."""
    out = hashlib.blake2b(digest_size=12)
    for words in memory:
        out.update(np.ascontiguousarray(words).tobytes())
    return out.hexdigest()


def launched(device: Device, case: AnyCase) -> tuple[Words, ...]:
    """Its memory after a launch on the device.  Raises DeviceError."""
    memory = case.inputs()
    places = [device.allocate(x.nbytes) for x in memory]
    for at, words in zip(places, memory, strict=True):
        device.put(at, words)
    arguments = case.arguments([int(at.value or 0) for at in places])
    device.run(case.cubin(), case.kernel, *case.shape, *arguments, shared=case.shared)
    for at, words in zip(places, memory, strict=True):
        device.get(at, words)
        device.free(at)
    return memory


def compared(real: Sequence[Words], ours: Sequence[Words]) -> Line:
    """The verdict, with the first words that differ."""
    places: list[tuple[int, int, int, int]] = []
    nan = False
    for number, (a, b) in enumerate(zip(real, ours, strict=True)):
        at = np.flatnonzero(a != b)
        if len(at):
            payload = both_nan(a, b, at)
            nan |= bool(payload.any())
            places += [(number, int(i), int(a[i]), int(b[i])) for i in at[~payload]]
    if places:
        return {"verdict": "differ", "words": len(places), "first": places[:8]}
    return {"verdict": "equal", "payload": True} if nan else {"verdict": "equal"}


def _worker(cases: Sequence[AnyCase], numbers: Sequence[int], out: str) -> None:
    device = Device()
    kept: dict[str, Words] = {}

    def save() -> None:
        np.savez_compressed(f"{out}.{os.getpid()}.npz", **kept)  # type: ignore[arg-type]

    with Path(out).open("a") as lines:

        def put(line: Line) -> None:
            print(json.dumps(line), file=lines, flush=True)

        for number in numbers:
            case = cases[number]
            line: Line = {"n": number, "name": case.name}
            put({"n": number, "verdict": HUNG})  # unless another line follows
            try:
                real = launched(device, case)
                again = [launched(device, case) for _ in range(TIMES - 1)]
            except DeviceError as error:
                line |= {"status": error.status, "call": str(error), "verdict": "failed"}
                if case.traps and str(error).startswith("cuCtxSynchronize"):
                    line["forms"] = interpreted(case).forms  # raises, unless it traps too
                    line["verdict"] = "equal"
                put(line)
                lines.close()
                save()
                os._exit(0)  # quick, and nothing of the context is worth keeping
            put({"n": number, "verdict": "late", "launched": True})
            if len(real) == 3:
                kept[case.name] = real[2]
            line["digest"] = digest(real)
            try:
                left = interpreted(case)
                line |= compared(real, left.memory) | {"executed": left.executed}
                line["forms"] = left.forms
                if line["verdict"] == "differ" and left.approximate:
                    line["verdict"] = "approximate"  # within bounds on both sides: not decidable
            except (SassxlateError, ArithmeticError, LookupError, ValueError) as error:
                line |= {"verdict": "undescribed", "why": f"{type(error).__name__}: {error}"}
            if any(digest(x) != line["digest"] for x in again):
                line["verdict"] = "unsteady"
            put(line)
    save()


def measure(
    cases: Sequence[AnyCase], folder: Path, processes: int, patience: float, seconds: float
) -> list[Line]:
    """The verdict of each case, in order; ``patience``: seconds after which launches of one case
    hang, ``seconds``: of all."""
    shares = [range(p, len(cases), processes) for p in range(processes)]
    return supervised(partial(_worker, cases), shares, folder, seconds, patience)
