"""Writes what a GPU computes for words to the files that tests read (``fixtures/silicon``).

``forms.txt`` and ``results.xz`` belong together and are written together; the inputs stay.
"""

from __future__ import annotations

import json
import lzma
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.containers.cubin import parse_cubin

from .device import Device, DeviceError
from .forms import CLASSES, Word
from .inputs import WORDS
from .supervised import supervised
from .template import CUBIN

FOLDER = CUBIN.parent
SLOT = 0x180  # of the template's code, which nvcc made
VECTORS, THREADS = 512, 32  # the template numbers vectors by blocks of a warp
Words = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Kept:
    """Forms as (word, class of inputs, text), and (form, vector, word) of what they left."""

    forms: tuple[tuple[int, str, str], ...]
    results: Words


def read_inputs(folder: Path) -> Words:
    """(class, vector, word).  OSError, lzma.LZMAError or ValueError where they cannot be read."""
    raw = lzma.decompress((folder / "inputs.xz").read_bytes())
    return np.frombuffer(raw, "<u4").reshape(len(CLASSES), VECTORS, WORDS)


def _before(forms: Sequence[tuple[int, str, str]], inputs: Words) -> Words:
    return inputs[[CLASSES.index(kind) for _, kind, _ in forms]][:, :, 6:9]


def read(folder: Path) -> Kept:
    """Reads the stored results.  Raises as :func:`read_inputs` does."""
    forms: list[tuple[int, str, str]] = []
    for line in (folder / "forms.txt").read_text(encoding="utf-8").splitlines()[1:]:
        word, kind, text = line.split(" ", 2)
        forms.append((int(word, 16), kind, text))
    planes = np.frombuffer(lzma.decompress((folder / "results.xz").read_bytes()), np.uint8)
    flat = np.ascontiguousarray(planes.reshape(4, -1).T).view("<u4")
    changes = flat.reshape(3, len(forms), VECTORS).transpose(1, 2, 0)
    return Kept(tuple(forms), changes ^ _before(forms, read_inputs(folder)))


def write(folder: Path, kept: Kept) -> None:
    """Writes both files, each as a whole.  The exact inverse of :func:`read`."""
    changes = kept.results ^ _before(kept.forms, read_inputs(folder))
    flat = np.ascontiguousarray(changes.transpose(2, 0, 1)).astype("<u4").reshape(-1, 1)
    planes = np.ascontiguousarray(flat.view(np.uint8).T)
    head = (folder / "forms.txt").read_text(encoding="utf-8").splitlines()[0]
    lines = [head, *(f"{word:032x} {kind} {text}" for word, kind, text in kept.forms)]
    for name, data in (
        ("results.xz", lzma.compress(planes.tobytes(), preset=9 | lzma.PRESET_EXTREME)),
        ("forms.txt", ("\n".join(lines) + "\n").encode()),
    ):
        beside = folder / f"{name}.{os.getpid()}.tmp"
        beside.write_bytes(data)
        beside.replace(folder / name)


def joined(old: Kept, words: Sequence[Word]) -> tuple[tuple[int, str, str], ...]:
    """The forms of before, then those words that are new and whose lanes are for themselves (the
    template has no uniform registers)."""
    known = {word for word, _, _ in old.forms}
    new = [w for w in words if w.place == "-" and w.word not in known]
    return old.forms + tuple((w.word, w.kind, w.text) for w in new)


def _worker(forms: Sequence[tuple[int, str, str]], folder: str, numbers: Sequence[int],
            out: str) -> None:  # fmt: skip
    inputs = np.ascontiguousarray(read_inputs(Path(folder)))
    cubin = bytearray(CUBIN.read_bytes())
    (kernel,) = parse_cubin(bytes(cubin)).kernels
    slot = cubin.index(kernel.code) + SLOT
    device = Device()
    source, target = device.allocate(inputs.nbytes), device.allocate(VECTORS * 12)
    device.put(source, inputs)
    results = np.empty((VECTORS, 3), dtype=np.uint32)
    with Path(out).open("a") as lines:
        for n in numbers:
            word, kind, _ = forms[n]
            cubin[slot : slot + 16] = word.to_bytes(16, "little")
            at = int(source.value or 0) + CLASSES.index(kind) * inputs[0].nbytes
            print(json.dumps({"n": n, "verdict": "began"}), file=lines, flush=True)
            try:
                device.run(bytes(cubin), kernel.name, VECTORS // THREADS, THREADS, at,
                           int(target.value or 0))  # fmt: skip
                device.get(target, results)
            except DeviceError as error:
                line = {"n": n, "verdict": "illegal", "status": error.status}
                print(json.dumps(line), file=lines, flush=True)
                os._exit(0)
            line = {"n": n, "verdict": "done", "words": results.tobytes().hex()}
            print(json.dumps(line), file=lines, flush=True)


def measured(forms: Sequence[tuple[int, str, str]], folder: Path, scratch: Path, processes: int,
             seconds: float) -> tuple[Kept, list[str]]:  # fmt: skip
    """The device's results for the forms that it executes; and the other forms, with the reason."""
    shares = [range(p, len(forms), processes) for p in range(processes)]
    worker = partial(_worker, forms, str(folder))
    done: list[tuple[int, str, str]] = []
    results: list[Words] = []
    others: list[str] = []
    for form, line in zip(forms, supervised(worker, shares, scratch, seconds), strict=True):
        if line["verdict"] == "done":
            done.append(form)
            raw = bytes.fromhex(str(line["words"]))
            results.append(np.frombuffer(raw, "<u4").reshape(VECTORS, 3))
        else:
            others.append(f"{line['verdict']}: {form[2]}")
    every = np.stack(results) if results else np.zeros((0, VECTORS, 3), np.uint32)
    return Kept(tuple(done), every), others


__all__ = ["FOLDER", "Kept", "joined", "measured", "read", "write"]
