"""Runs words on the device and compares them with their meanings, in several processes.

A word that the device cannot execute takes its process with it (:mod:`silicon.supervised`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.instruction import Const, Instruction, PredFile, RegFile, Special
from sassxlate.disasm.sass.semantics import NoSemantics, Semantics, evaluate, semantics_table
from sassxlate.disasm.sass.semantics.arithmetic.error_bounds import near
from sassxlate.domain.numpy_lanes import Vec, Vectors, vec

from .device import Device, DeviceError
from .forms import CLASSES, Word
from .inputs import inputs
from .supervised import Line, supervised
from .template import PLACES, template

Words = NDArray[np.uint32]
THREADS = 256
# Register -> word of a vector; and of the result.
_SOURCES = {4: 0, 5: 1, 2: 2, 3: 3, 8: 4, 9: 5, 10: 6, 11: 7}
_CHUNK = 8192  # vectors at a time: their values stay in the cache
KEPT = 512  # vectors whose results are kept of words that differ or have no meaning


@dataclass(frozen=True, slots=True)
class _Lanes:
    words: Words

    def reg(self, file: RegFile, index: int) -> Vec:
        return vec(self.words[:, _SOURCES[index]], 32)

    def pred(self, file: PredFile, index: int) -> Vec:
        return vec(self.words[:, 8] >> np.uint32(index) & 1, 1)

    def const(self, operand: Const, word: int) -> Vec:
        raise NoSemantics("constant")

    def special(self, operand: Special) -> Vec:
        raise NoSemantics("special register")


def meant(word: int, arch: int, before: Words) -> Words:
    """(vector, word) of R10, R11 and the predicates, by the meaning; ``before`` are the vectors,
    ten words each.  Raises NoSemantics, or DecodeError.  Bits that mean nothing may be set."""
    ins = decode(word, 0, arch, strict=False)
    meaning = semantics_table().get(ins.mnemonic)
    if meaning is None:
        raise NoSemantics(ins.mnemonic)
    parts = [before[at : at + _CHUNK] for at in range(0, len(before), _CHUNK)]
    return np.concatenate([_part(ins, meaning, part) for part in parts])


def _part(ins: Instruction, meaning: Semantics, before: Words) -> Words:
    out = np.array(before[:, 6:9])
    for ref, value in evaluate(Vectors(), meaning, ins, _Lanes(before)).items():
        lanes = np.broadcast_to(value.v, (len(before),)).astype(np.uint32)
        if ref.file in ("R", "UR"):
            out[:, ref.index - 10] = lanes
        else:
            out[:, 2] &= ~np.uint32(1 << ref.index)
            out[:, 2] |= lanes << np.uint32(ref.index)
    return out


def differing(word: Word, arch: int, actual: Words, real: Words) -> NDArray[np.intp]:
    """The vectors that are not equal to the bit, or within bounds for what is approximate."""
    ins = decode(word.word, 0, arch, strict=False)
    wrong = (actual != real).any(axis=1)
    if semantics_table()[ins.mnemonic].approximate:
        close = near(ins.modifiers, np.ascontiguousarray(actual[:, 0]),
                     np.ascontiguousarray(real[:, 0]))  # fmt: skip
        wrong &= ~(close & (actual[:, 1:] == real[:, 1:]).all(axis=1))
    return np.flatnonzero(wrong)


def _worker(arch: int, words: Sequence[Word], vectors: int, prepared: str,
            numbers: Sequence[int], out: str) -> None:  # fmt: skip
    before = np.load(prepared, mmap_mode="r")
    results = np.empty((vectors, 3), dtype=np.uint32)
    templates = {place: template(place) for place in PLACES}
    device = Device()
    source, target = device.allocate(before.nbytes), device.allocate(vectors * 12)
    device.put(source, before)
    with Path(out).open("a") as lines:
        for number in numbers:
            word = words[number]
            cubin, slot = templates[word.place]
            cubin[slot : slot + 16] = word.word.to_bytes(16, "little")
            kind = CLASSES.index(word.kind)
            at = int(source.value or 0) + kind * before[0].nbytes
            lanes = 1 if word.place == "-" else 32
            line: dict[str, object] = {"n": number}
            print(json.dumps({"n": number, "verdict": "began"}), file=lines, flush=True)
            try:
                device.run(bytes(cubin), "probe", vectors * lanes // THREADS, THREADS, at,
                           int(target.value or 0))  # fmt: skip
                device.get(target, results)
                line |= _compare(word, arch, before[kind], results)
            except DeviceError as error:
                line |= {"verdict": "illegal", "status": error.status}
                print(json.dumps(line), file=lines, flush=True)
                os._exit(0)  # quick, and nothing of the context is worth keeping
            print(json.dumps(line), file=lines, flush=True)


def _compare(word: Word, arch: int, before: Words, real: Words) -> dict[str, object]:
    try:
        actual = meant(word.word, arch, before)
    except NoSemantics as reason:
        return {"verdict": "undescribed", "why": str(reason), "kept": real[:KEPT].tolist()}
    bad = differing(word, arch, actual, real)
    if not bad.size:
        return {"verdict": "equal"}
    some = bad[:8]
    return {
        "verdict": "differ", "count": int(bad.size), "at": some.tolist(),
        "in": before[some].tolist(), "real": real[some].tolist(), "ours": actual[some].tolist(),
        "kept": real[:KEPT].tolist(),
    }  # fmt: skip


def measure(arch: int, words: Sequence[Word], vectors: int, seed: int, folder: Path,
            processes: int, seconds: float) -> list[Line]:  # fmt: skip
    """The verdict of each word, in order; ``late`` where ``seconds`` did not suffice."""
    folder.mkdir(parents=True, exist_ok=True)
    prepared = folder / "inputs.npy"
    np.save(prepared, inputs(vectors, seed))
    shares = [range(p, len(words), processes) for p in range(processes)]
    worker = partial(_worker, arch, words, vectors, str(prepared))
    return supervised(worker, shares, folder, seconds)
