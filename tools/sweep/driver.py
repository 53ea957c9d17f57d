"""Runs the kernels of cubins through the CUDA driver library and reports their output.

``python driver.py LIST [SKIP...]``: LIST names a JSON file, an array of ``{"cubin": FILE,
"kernels": [LAUNCH...]}`` (:meth:`.kernel.Kernel.launch`).  One JSON line per kernel: its name, and

* ``d``: CRC-32s of its slots; ``c``: those with all NaNs made one, where slots hold floats;
* ``w``: the words themselves, if the launch has ``keep``;
* ``e``: the driver's error instead.

A line ``{"at": NAME}`` precedes each kernel, so that a hanging one can be identified.
Names in SKIP are left out: kernels that an earlier run completed, and the one that ended it.  After
an error that a context keeps (700 to 719) the process ends with status 4, and the next one
continues.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from .inputs import Words, inputs
from .kernel import BLOCK, GRID

LARGEST = 4 * 80 * 1024  # bytes of a buffer
_GUARD = 64  # guard words after ``out`` that must not be written


class DriverError(Exception):
    """A driver call that failed, with its number."""

    def __init__(self, number: int) -> None:
        super().__init__(f"driver error {number}")
        self.number = number


class Driver:
    """The few calls that a launch needs, with a buffer for what is read and what is written."""

    def __init__(self) -> None:
        self._cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self._size = LARGEST
        self._in, self._out = self._allocate(), self._allocate()

    def call(self, name: str, *arguments: object) -> None:
        status = int(getattr(self._cuda, name)(*arguments))
        if status:
            raise DriverError(status)

    def _allocate(self) -> ctypes.c_uint64:
        made = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(made), ctypes.c_size_t(self._size))
        return made

    def load(self, cubin: bytes) -> ctypes.c_void_p:
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), cubin)
        return module

    def unload(self, module: ctypes.c_void_p) -> None:
        self.call("cuModuleUnload", module)

    def launch(self, module: ctypes.c_void_p, kernel: dict[str, Any]) -> tuple[Words, bytes]:
        """``out`` after the kernel, a row per slot, and what it printed."""
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, kernel["name"].encode())
        grid, block = kernel.get("grid", GRID), kernel.get("block", BLOCK)
        threads = math.prod(grid) * math.prod(block)
        given = np.ascontiguousarray(inputs(kernel["name"], kernel["profiles"], threads))
        rows = len(kernel["slots"])
        words = np.zeros(rows * threads + _GUARD, np.uint32)
        self._copy("cuMemcpyHtoD_v2", self._in, given)
        self._copy("cuMemcpyHtoD_v2", self._out, words)
        if kernel.get("uniform"):
            self._give(module, given)
        number = ctypes.c_uint32(threads)
        arguments = (ctypes.c_void_p * 3)(
            *(ctypes.addressof(a) for a in (self._in, self._out, number))
        )
        name = "cuLaunchCooperativeKernel" if kernel["cooperative"] else "cuLaunchKernel"
        last = (arguments,) if kernel["cooperative"] else (arguments, None)
        with _Caught(kernel["prints"]) as caught:
            self.call(
                name, function, *grid, *block, kernel["shared"], None, *last
            )  # fmt: skip
            self.call("cuCtxSynchronize")
        self.call(
            "cuMemcpyDtoH_v2", words.ctypes.data_as(ctypes.c_void_p), self._out,
            ctypes.c_size_t(words.nbytes),
        )  # fmt: skip
        if words[rows * threads :].any():
            raise DriverError(-1)
        return words[: rows * threads].reshape(rows, threads), caught.text

    def _give(self, module: ctypes.c_void_p, given: Words) -> None:
        """Each block's words, those of its first thread, into the module's constant array."""
        place, size = ctypes.c_uint64(), ctypes.c_size_t()
        self.call("cuModuleGetGlobal_v2", ctypes.byref(place), ctypes.byref(size), module, b"given")
        words = np.zeros(size.value // 4, np.uint32)
        words[: 2 * len(given)] = given[:, :: BLOCK[0]].ravel()
        self._copy("cuMemcpyHtoD_v2", place, words)

    def _copy(self, name: str, to: ctypes.c_uint64, words: Words) -> None:
        data = words.ctypes.data_as(ctypes.c_void_p)
        self.call(name, to, data, ctypes.c_size_t(words.nbytes))


class _Caught:
    """The device's output meanwhile, its lines sorted by text."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self.text = b""

    def __enter__(self) -> _Caught:
        if self._wanted:
            sys.stdout.flush()
            self._file = tempfile.TemporaryFile()
            self._stdout = os.dup(1)
            os.dup2(self._file.fileno(), 1)
        return self

    def __exit__(self, *_: object) -> None:
        if self._wanted:
            ctypes.CDLL(None).fflush(None)
            os.dup2(self._stdout, 1)
            os.close(self._stdout)
            self._file.seek(0)
            self.text = b"\n".join(sorted(self._file.read().split(b"\n")))
            self._file.close()


def one_nan(words: Words, slots: str) -> Words:
    """The words with each NaN of a float slot made the same one."""
    out = words.copy()
    for k, kind in enumerate(slots):
        row = out[k]
        if kind == "f":
            row[(row & 0x7FFFFFFF) > 0x7F800000] = 0x7FFFFFFF
        elif kind in "EB":
            top = 0x7C00 if kind == "E" else 0x7F80
            for shift in (0, 16):
                bits = (row >> shift) & 0x7FFF
                row[bits > top] |= np.uint32(0xFFFF << shift)
        elif kind == "d" and k + 1 < len(slots):
            high = out[k + 1]
            size = high & 0x7FFFFFFF
            nan = (size > 0x7FF00000) | ((size == 0x7FF00000) & (row != 0))
            row[nan], high[nan] = 0xFFFFFFFF, 0x7FFFFFFF
    return out


def digests(words: Words) -> str:
    """CRC-32s of the rows, eight hexadecimal digits each."""
    return "".join(f"{zlib.crc32(np.ascontiguousarray(row).tobytes()):08x}" for row in words)


def said(kernel: dict[str, Any], words: Words, text: bytes, *, whole: bool) -> dict[str, Any]:
    """The line of a kernel that ended."""
    slots = kernel["slots"]
    line: dict[str, Any] = {"k": kernel["name"], "d": digests(words)}
    if kernel["prints"]:
        line["d"] += f"{zlib.crc32(text):08x}"
    canonical = digests(one_nan(words, slots))
    if canonical != line["d"][: len(canonical)]:
        line["c"] = canonical + line["d"][len(canonical) :]
    if kernel["keep"] or whole:
        line["w"] = words.tobytes().hex()
        if whole and kernel["prints"]:
            line["text"] = text.decode("latin-1")
    return line


def main(arguments: list[str]) -> int:
    whole = "--whole" in arguments
    names = [a for a in arguments if a != "--whole"]
    groups: list[dict[str, Any]] = json.loads(Path(names[0]).read_text())
    skipped = set(names[1:])

    def tell(line: dict[str, Any]) -> None:
        print(json.dumps(line, separators=(",", ":")), flush=True)

    driver = Driver()
    for group in groups:
        todo = [k for k in group["kernels"] if k["name"] not in skipped]
        if not todo:
            continue
        try:
            tell({"at": todo[0]["name"]})
            module = driver.load(Path(group["cubin"]).read_bytes())
        except (DriverError, OSError) as error:
            number = error.number if isinstance(error, DriverError) else -2
            for kernel in todo:
                tell({"k": kernel["name"], "e": number})
            if 700 <= number < 720:
                return 4
            continue
        for kernel in todo:
            tell({"at": kernel["name"]})
            try:
                words, text = driver.launch(module, kernel)
            except DriverError as error:
                tell({"k": kernel["name"], "e": error.number})
                if 700 <= error.number < 720:
                    return 4
                continue
            tell(said(kernel, words, text, whole=whole))
        driver.unload(module)
    tell({"end": True})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
