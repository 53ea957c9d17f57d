"""Runs words in the template on the device and compares their results with the semantics.

A word that faults takes its process with it (:mod:`silicon.supervised`).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from ctypes import c_void_p
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.instruction import Instruction, Mem
from sassxlate.disasm.sass.semantics import NoSemantics
from sassxlate.disasm.sass.semantics.memory.atomic import element
from sassxlate.disasm.sass.semantics.memory.memory import shape
from sassxlate.disasm.sass.semantics.warp_state import LANES, Bytes, SemanticsFault
from sassxlate.disasm.sass.semantics.warp_state import Words as Lanes
from tools.silicon.device import Device, DeviceError
from tools.silicon.supervised import Line, supervised

from .inputs import constants, made
from .kept import Arrays, digest, shown
from .state import Warps, meant
from .template import RECORD, REGION, RESULT, patched
from .words import Word

MISALIGNED = 716  # CUDA's status


def access_size(ins: Instruction) -> int:
    """Bytes that a lane's address must be aligned to."""
    if ins.mnemonic in ("LDSM", "STSM"):
        return 16
    if ins.mnemonic.startswith(("ATOM", "RED")):
        return 16 if "128" in ins.modifiers else element(ins.modifiers).size
    if ins.mnemonic == "LDGSTS":
        return next((int(m) // 8 for m in ins.modifiers if m in ("64", "128")), 4)
    if ins.mnemonic == "SYNCS":
        return 8
    if isinstance(ins.get("mem"), Mem):
        return shape(ins).size
    return 4


def _key(ins: Instruction, word: Word) -> tuple[object, ...]:
    """The properties of a word that its inputs depend on."""
    mem = ins.get("mem")
    where: tuple[object, ...] = ()
    if isinstance(mem, Mem):
        base = mem.base and (mem.base.width, mem.base.is_zero)
        where = (base, mem.offset, mem.scale, mem.ureg and mem.ureg.width)
    return (word.kind, word.space, access_size(ins), *where)


def _in_memory(word: Word) -> bool:
    """Whether memory may change."""
    return bool(word.space) or re.match(r"(@\S+ )?(ST|ATOM|RED)", word.text) is not None


def _cost(word: Word) -> float:
    return 20 if "DMMA" in word.text else 8 if "HMMA" in word.text else 1


@dataclass(frozen=True, slots=True)
class Seen:
    """The results of a word: the lanes' results and all of memory."""

    results: Lanes
    memory: Bytes


class Bench:
    """The buffers of one context; ``few``: the warps of a matrix product."""

    def __init__(self, warps: int, seed: int, few: int, arch: int = 90) -> None:
        self.device = Device()
        self.warps, self.seed, self.arch = warps, seed, arch
        self.source = self.device.allocate(warps * LANES * RECORD * 4)
        self.target = self.device.allocate(warps * LANES * RESULT * 4)
        # A region more on either side: wrong addresses should be seen, not fault.
        self.field = self.device.allocate((warps + 2) * REGION)
        self.base = int(self.field.value or 0) + REGION
        self.constants = constants(seed)
        self.few = few
        self._key: tuple[object, ...] = ()
        self._made: tuple[Lanes, Bytes]
        self._sent = False

    def prepared(self, word: Word) -> tuple[Lanes, Bytes]:
        """The records and the memory before; those of the last word again where they are its."""
        ins = decode(word.word, 0, self.arch, strict=False)
        warps = min(self.warps, self.few) if word.kind.startswith("matrix") else self.warps
        key = (*_key(ins, word), warps)
        if key != self._key:
            self._made = made(
                ins, word.kind, word.space, warps, self.base, access_size(ins), self.seed
            )
            self._key, self._sent = key, False
            self._made[0].setflags(write=False)
            self._made[1].setflags(write=False)
        return self._made

    def run(self, word: Word, records: Lanes, memory: Bytes) -> Seen:
        """Raises DeviceError."""
        put, at = self.device.put, self.base
        warps = len(records)
        if not self._sent:
            put(self.source, np.ascontiguousarray(records))
            put(c_void_p(at), np.ascontiguousarray(memory).reshape(-1).view(np.uint32))
            self._sent = True
        self.device.run(
            patched(word.word, word.space), "warp_probe", warps, LANES,
            int(self.source.value or 0), int(self.target.value or 0), at,
            self.constants.tobytes(),
        )  # fmt: skip
        results = np.empty((warps, LANES, RESULT), dtype=np.uint32)
        self.device.get(self.target, results)
        if not _in_memory(word):
            return Seen(results, memory)
        after = np.empty(warps * REGION // 4, dtype=np.uint32)
        self.device.get(c_void_p(at), after)
        self._sent = False
        return Seen(results, after.view(np.uint8).reshape(warps, REGION))

    def model(self, word: Word, records: Lanes, memory: Bytes) -> Seen:
        """Raises NoSemantics, SemanticsFault."""
        own = memory.copy() if _in_memory(word) else memory
        warps = Warps(records, own, self.constants, self.base, word.space)
        return Seen(meant(word.word, self.arch, warps), warps.memory)


def compared(
    word: Word, records: Lanes, memory: Bytes, real: Seen, ours: Seen
) -> dict[str, object]:
    """The verdict, with the first lanes and bytes that differ."""
    wrong = (real.results != ours.results).any(axis=-1)
    if word.kind.startswith("collide"):  # what lanes get depends on their order
        wrong[:] = False
    spots = np.zeros((0, 2), dtype=np.intp)
    same = real.memory is ours.memory
    if not same and (real.memory.view(np.uint64) != ours.memory.view(np.uint64)).any():
        spots = np.argwhere(real.memory != ours.memory)
    if "CAST" in word.text and "shared" in (word.space, "shared" * (word.space == "window")):
        # May fail where it could succeed; then it leaves memory alone, and the result is 0.
        failed = (real.results[..., :1] == 0)[..., 0] & (ours.results[..., 0] == 1)
        wrong &= ~(failed & (real.results[..., 1] == 0 if "64" in word.text else True))
        spots = spots[real.memory[tuple(spots.T)] != memory[tuple(spots.T)]]
    bad = np.argwhere(wrong)
    if not len(bad) and not len(spots):
        return {"verdict": "equal"}
    line: dict[str, object] = {"verdict": "differ", "lanes": len(bad), "bytes": len(spots)}
    line["at"] = [
        {
            "warp": int(w), "lane": int(n), "in": records[w, n].tolist(),
            "real": real.results[w, n].tolist(), "ours": ours.results[w, n].tolist(),
            "active": int((records[w, :, 20] >> 6 & 1) @ (1 << np.arange(LANES, dtype=np.int64))),
        }
        for w, n in bad[:6]
    ]  # fmt: skip
    seen: set[tuple[int, int]] = set()
    for w, b in spots:
        if len(seen) < 6:
            seen.add((int(w), int(b) & ~15))
    line["memory"] = [
        {"warp": w, "byte": b, "was": memory[w, b : b + 16].tobytes().hex(),
         "real": real.memory[w, b : b + 16].tobytes().hex(),
         "ours": ours.memory[w, b : b + 16].tobytes().hex()}
        for w, b in sorted(seen)
    ]  # fmt: skip
    return line


def _worker(
    words: Sequence[Word], warps: int, few: int, seed: int, numbers: Sequence[int], out: str
) -> None:
    bench = Bench(warps, seed, few)
    kept: Arrays = {}

    def save() -> None:
        np.savez_compressed(f"{out}.{os.getpid()}.npz", **kept)  # type: ignore[arg-type]

    with Path(out).open("a") as lines:
        for number in numbers:
            word = words[number]
            line: dict[str, object] = {"n": number, "base": bench.base}
            print(json.dumps({"n": number, "verdict": "began"}), file=lines, flush=True)
            records, memory = bench.prepared(word)
            try:
                real = bench.run(word, records, memory)
            except DeviceError as error:
                wrong = word.kind.partition(" ")[0] == "misaligned"
                known = wrong and error.status == MISALIGNED
                line |= {"verdict": "equal" if known else "illegal", "status": error.status}
                print(json.dumps(line), file=lines, flush=True)
                lines.close()
                save()
                os._exit(0)  # quick, and nothing of the context is worth keeping
            kept |= shown(str(number), records, memory, real.results, real.memory)
            line["digest"] = digest(word, real.results, real.memory)
            try:
                line |= compared(word, records, memory, real, bench.model(word, records, memory))
            except (
                NoSemantics,
                SemanticsFault,
                ArithmeticError,
                LookupError,
                ValueError,
            ) as reason:
                line |= {"verdict": "undescribed", "why": f"{type(reason).__name__}: {reason}"}
            print(json.dumps(line), file=lines, flush=True)
    save()


def measure(
    words: Sequence[Word], warps: int, few: int, seed: int, folder: Path, processes: int,
    seconds: float,
) -> list[Line]:  # fmt: skip
    """The verdict of each word, in order; ``late`` where ``seconds`` did not suffice."""
    worker = partial(_worker, words, warps, few, seed)
    return supervised(worker, _shares(words, processes), folder, seconds)


def _shares(words: Sequence[Word], processes: int) -> list[list[int]]:
    """Words with the same inputs go to one process, in a row."""
    keys = [_key(decode(w.word, 0, 90, strict=False), w) for w in words]
    order = sorted(range(len(words)), key=lambda n: (repr(keys[n]), n))
    whole = sum(map(_cost, words))
    out: list[list[int]] = [[] for _ in range(processes)]
    done = 0.0
    for n in order:
        out[min(processes - 1, int(done / whole * processes))].append(n)
        done += _cost(words[n])
    return out
