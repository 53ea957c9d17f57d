"""The emulated device of `bench engines`: replays a program's recorded launches with several codes.

``python -m sassxlate.bench.engines_child SPEC`` under `sassxlate run`.  SPEC is a file of JSON:
``record``, a record of launches (:mod:`sassxlate.lowering.trace.recording`), and ``codes``, for
each kernel's key the code objects to compare.  The answer is a line of JSON, a row for each launch
that was replayed: its ``kernel``, how many launches it stands for (``weight``), the processor
``seconds`` of each code (the lower quartile of the ``replays``), and the ``words`` of memory that
differed from the record after each.

The codes take turns, in one process: where memory and code lie changes a kernel's time by several
per cent, from process to process.  Before each replay memory is what it was when recorded.
"""

from __future__ import annotations

import ctypes
import json
import math
import mmap
import os
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sassxlate.errors import SassxlateError, UsageError
from sassxlate.lowering.codeobject.code_object import read as read_code_object
from sassxlate.lowering.trace import recording
from sassxlate.lowering.trace.recording import Bytes, Recorded

ENOUGH_S = 0.03  # of processor time that the replays of one launch by one code take, or more
FEWEST, MOST = 7, 200  # replays of a launch by one code
PICKED = 12  # launches of a kernel that are replayed: spread evenly over all of them
_PAGE = 4096
_FILLER = 1023 << 10  # bytes: below 1 MiB the device puts one beside the other, without holes
_ARENA = 1 << 44  # more than the arena, less than what is between it and the host's own memory
_NORESERVE, _FIXED_NOREPLACE = 0x4000, 0x100000  # from <sys/mman.h>


class Device:
    """The emulated device by HIP's interface, with memory wherever launches had it."""

    def __init__(self, pieces: set[tuple[int, int]]) -> None:
        """``pieces``: addresses and sizes of recorded memory."""
        self.library = ctypes.CDLL(os.environ["SASSXLATE_HIP"])
        self.call("hipInit", 0)
        tally = os.open(os.environ["SASSXLATE_CPU_TIME"], os.O_RDWR | os.O_CREAT, 0o600)
        os.ftruncate(tally, 8)
        self._tally = mmap.mmap(tally, 8)
        os.close(tally)
        self._claim(pieces)
        self._functions: dict[tuple[bytes, str], ctypes.c_void_p] = {}

    def call(self, name: str, *arguments: Any) -> None:
        """One call of HIP.  UsageError SX0831 unless it succeeds."""
        status = int(getattr(self.library, name)(*arguments))
        if status:
            raise UsageError("SX0831", f"{name}: error {status}")

    def _claim(self, pieces: set[tuple[int, int]]) -> None:
        """Makes the recorded memory usable at its addresses: of the device all below its end, of
        the host what the program had registered."""
        first = last = self._filler()
        near = [(base, size) for base, size in pieces if abs(base - first) < _ARENA]
        if any(base < first for base, _ in near):
            raise UsageError("SX0831", "the device's memory begins elsewhere than when recorded")
        end = max((base + size for base, size in near), default=0)
        while last + _FILLER < end:
            last = self._filler()
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE | _FIXED_NOREPLACE
        for base, size in sorted(pieces - set(near)):
            low = base & -mmap.PAGESIZE
            got = libc.mmap(low, base + size - low, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
            if got != low:
                raise UsageError("SX0831", f"the recorded memory at {low:#x} is not free here")
            self.call("hipHostRegister", ctypes.c_void_p(base), ctypes.c_size_t(size), 0)

    def _filler(self) -> int:
        address = ctypes.c_uint64()
        self.call("hipMalloc", ctypes.byref(address), ctypes.c_size_t(_FILLER))
        return address.value

    def function(self, code: bytes, name: str) -> ctypes.c_void_p:
        """A kernel of a code object."""
        if (code, name) not in self._functions:
            module, function = ctypes.c_void_p(), ctypes.c_void_p()
            self.call("hipModuleLoadData", ctypes.byref(module), code)
            self.call("hipModuleGetFunction", ctypes.byref(function), module, name.encode())
            self._functions[code, name] = function
        return self._functions[code, name]

    def seconds(self, launch: Callable[[], None]) -> float:
        """Processor time of the device in a launch."""
        before = int.from_bytes(self._tally[:8], "little")
        launch()
        self.call("hipDeviceSynchronize")
        return (int.from_bytes(self._tally[:8], "little") - before) / 1e9

    def launcher(self, code: bytes, one: Recorded) -> Callable[[], None]:
        """What repeats a launch with another code object of its kernel."""
        function = self.function(code, one.kernel)
        segment = ctypes.create_string_buffer(one.kernarg, len(one.kernarg))
        where = ctypes.addressof(segment)
        row: Any = read_code_object(code).kernel(one.kernel).metadata
        places = [
            where + int(a[".offset"])
            for a in row[".args"]
            if not str(a[".value_kind"]).startswith("hidden")
        ]
        params = (ctypes.c_void_p * max(len(places), 1))(*places)
        shape = [ctypes.c_uint(n) for n in (*one.grid, *one.block, one.shared)]
        name = "hipModuleLaunchCooperativeKernel" if one.cooperative else "hipModuleLaunchKernel"
        last = () if one.cooperative else (None,)

        def launch() -> None:
            assert segment  # the arguments' bytes, which live as long as this
            self.call(name, function, *shape, None, params, *last)

        return launch


class State:
    """The memory of a launch: what it was, and the pages that the launch's codes changed."""

    def __init__(self, one: Recorded) -> None:
        self._one = one
        self._before = {base: np.ascontiguousarray(data) for base, data in one.before.items()}
        self._pages: dict[int, set[int]] = {base: set() for base in self._before}
        for base, data in self._before.items():
            _copy(base, data, 0, len(data))

    def differing(self) -> int:
        """The words of memory that are not what the launch left when it was recorded.  Notes the
        pages that differ from what it began with."""
        words = 0
        for base, before in self._before.items():
            here = np.frombuffer(ctypes.string_at(base, len(before)), np.uint8)
            self._pages[base].update(map(int, np.unique(np.flatnonzero(here != before) // _PAGE)))
            after = self._one.after.get(base)
            if after is not None and len(after) == len(here):
                words += len(np.unique(np.flatnonzero(here != after) // 4))
        return words

    def restore(self) -> None:
        """Memory as it was before the launch."""
        for base, pages in self._pages.items():
            data = self._before[base]
            for page in pages:
                at = page * _PAGE
                _copy(base, data, at, min(_PAGE, len(data) - at))


def _copy(base: int, data: Bytes, at: int, size: int) -> None:
    if size:
        ctypes.memmove(base + at, data.ctypes.data + at, size)


def replayed(device: Device, one: Recorded, codes: Sequence[bytes]) -> dict[str, Any]:
    """The row of a launch."""
    launches = [device.launcher(code, one) for code in codes]
    state = State(one)
    words: list[int] = []
    for launch in launches:  # host code is made now
        device.seconds(launch)
        words.append(state.differing())
        state.restore()
    times: list[list[float]] = [[] for _ in codes]
    order = list(range(len(codes)))
    while not _enough(times):
        for n in order:
            times[n].append(device.seconds(launches[n]))
            state.restore()
        order.reverse()
    quartiles = [sorted(t)[len(t) // 4] for t in times]
    return {"kernel": one.kernel, "seconds": quartiles, "words": words, "replays": len(times[0])}


def _enough(times: Sequence[Sequence[float]]) -> bool:
    done = len(times[0])
    return done >= MOST or (done >= FEWEST and min(map(math.fsum, times)) >= ENOUGH_S)


def picked(total: int) -> list[int]:
    """Which of a kernel's launches stand for all of them."""
    count = min(total, PICKED)
    return [n * total // count for n in range(count)]


class Launches:
    """The launches of a record that are replayed: some of each kernel in ``keys``."""

    def __init__(self, record: Path, keys: Collection[str]) -> None:
        self._record = record
        self._numbers: Counter[str] = Counter()

        def count(_: str, key: str) -> bool:
            self._numbers[key] += 1
            return False

        for _ in recording.read(record, count):
            pass
        self._picked = {k: set(picked(n)) for k, n in self._numbers.items() if k in keys}

    def __iter__(self) -> Iterator[Recorded]:
        """One after the other: each has its own copy of all memory."""
        seen: Counter[str] = Counter()

        def wanted(_: str, key: str) -> bool:
            seen[key] += 1
            return seen[key] - 1 in self._picked.get(key, ())

        return (one for one in recording.read(self._record, wanted) if not one.fault)

    def weight(self, one: Recorded) -> float:
        """How many of the program's launches this one stands for."""
        return self._numbers[one.key] / len(self._picked[one.key])


def main() -> None:
    """Reads the file of the first argument, and prints the rows or an error."""
    asked = json.loads(Path(sys.argv[1]).read_text())
    codes = {key: [Path(p).read_bytes() for p in paths] for key, paths in asked["codes"].items()}
    try:
        launches = Launches(Path(asked["record"]), codes)
        device = Device({(at, len(data)) for one in launches for at, data in one.before.items()})
        rows = [
            {**replayed(device, one, codes[one.key]), "weight": launches.weight(one)}
            for one in launches
        ]
    except SassxlateError as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return
    print(json.dumps({"rows": rows}), flush=True)


if __name__ == "__main__":
    main()
