"""Launches of the self-checking programs, recorded where they ran under ``sassxlate run``.

``record`` writes one file per launch below ``build/launches``: the cubin, the arguments, and the
memory before it that they point to.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.containers.cubin import parse_cubin

Bytes = NDArray[np.uint8]
MOST = 3 << 20  # bytes of memory of one launch


def record(programs: list[Path], into: Path) -> int:
    """Runs the programs; gives the number of launches that were kept: the first of each kernel and
    shape, of modules without variables of their own."""
    from sassxlate.lowering.trace import recording as records

    into.mkdir(parents=True, exist_ok=True)
    count = 0
    for program in programs:
        with tempfile.TemporaryDirectory() as name:
            cache = Path(name) / "cache"
            command = [sys.executable, "-P", "-m", "sassxlate", "run", "--keep-status"]
            command += ["--device", "emulator", "--", str(program)]
            settings = {"SASSXLATE_RECORD": name, "SASSXLATE_CACHE_DIR": str(cache)}
            subprocess.run(command, env={**os.environ, **settings}, check=False)
            seen: set[tuple[object, ...]] = set()
            for path in sorted(Path(name).glob("launches-*")):
                for launch in records.read(path):
                    mark = (launch.kernel, launch.grid, launch.block)
                    if mark not in seen:
                        count += _keep(launch, cache, into / f"{program.name}{len(seen)}")
                    seen.add(mark)
    return count


def _keep(launch: Any, cache: Path, into: Path) -> bool:
    from sassxlate.runtime_shim.replay.against_interpreter import _of  # pyright: ignore[reportPrivateUsage]

    used = _of(cache, launch)
    if used is None or launch.fault or launch.cooperative:
        return False
    if any(n.startswith((".nv.global", ".nv.constant3")) for n in used.cubin.section_sizes):
        return False
    base, size = int(used.launch["param_base"]), int(used.launch["param_size"])
    params = np.frombuffer(launch.kernarg[base : base + size], np.uint8)
    pointers: list[tuple[int, int, int]] = []  # offset in the parameters, piece, offset in it
    pieces: list[Bytes] = []
    numbers: dict[int, int] = {}
    for at in range(0, size - 7, 8):
        value = int.from_bytes(params[at : at + 8].tobytes(), "little")
        for place, data in launch.before.items():
            if place <= value < place + len(data):
                if place not in numbers:
                    numbers[place] = len(pieces)
                    pieces.append(data)
                pointers.append((at, numbers[place], value - place))
    if sum(map(len, pieces)) > MOST:
        return False
    module = next(p for p in sorted(cache.glob("module/*/*.cubin")) if _holds(p, launch.kernel))
    about = {
        "kernel": launch.kernel, "grid": launch.grid, "block": launch.block,
        "shared": launch.shared, "pointers": pointers,
    }  # fmt: skip
    parts: dict[str, Any] = {f"piece{n}": data for n, data in enumerate(pieces)}
    parts |= {"about": np.array(json.dumps(about)), "params": params}
    parts["cubin"] = np.frombuffer(module.read_bytes(), np.uint8)
    np.savez_compressed(into.with_suffix(".npz"), **parts)
    return True


def _holds(path: Path, kernel: str) -> bool:
    return any(k.name == kernel for k in parse_cubin(path.read_bytes()).kernels)


def kept(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, contents of the file) of each stored launch."""
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as data:
            yield path.stem, json.loads(str(data["about"]))


__all__ = ["kept", "record"]
