"""Host images from waves.cpp, and a service that hands them out."""

from __future__ import annotations

import json
import re
import socket
import struct
import subprocess
import threading
from pathlib import Path
from typing import Any

from sassxlate.lowering.emulate.image.abi import FLAG_RUNS, IMAGE_MAGIC, IMAGE_VERSION
from sassxlate.runtime_shim.cache.store import seal

HERE = Path(__file__).resolve().parent
NATIVE = HERE.parents[3] / "runtime_shim" / "native"
HEADER_SIZE = 4096


def compile_waves(directory: Path) -> tuple[bytes, dict[str, int]]:
    """The flat code of waves.cpp and the offsets of its functions."""
    elf, flat = directory / "waves.elf", directory / "waves.bin"
    subprocess.run(
        [
            "g++",
            "-std=gnu++17",
            "-O2",
            "-mavx2",
            "-fPIE",
            "-fno-stack-protector",
            "-fcf-protection=none",
            "-fno-exceptions",
            "-ffreestanding",
            "-Wall",
            "-Wextra",
            "-nostdlib",
            "-static",
            f"-I{NATIVE}",
            str(HERE / "waves.cpp"),
            "-o",
            str(elf),
            f"-Wl,-T,{HERE / 'waves.ld'}",
            "-Wl,--build-id=none",
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    subprocess.run(["objcopy", "-O", "binary", str(elf), str(flat)], check=True)
    symbols = subprocess.run(["nm", str(elf)], check=True, capture_output=True, text=True).stdout
    offsets = {m[2]: int(m[1], 16) for m in re.finditer(r"^(\w+) T (\w+)$", symbols, re.M)}
    return flat.read_bytes(), offsets


def image(code: bytes, entry: int, kernel: str, *, strict: bool = False, isa: int = 0) -> bytes:
    """An image file as the compiler writes it (abi.h, SxImageHeader); by their names, kernels run
    the waves that follow."""
    header = struct.pack(
        "<IIQQQQII256s",
        IMAGE_MAGIC,
        IMAGE_VERSION,
        HEADER_SIZE,
        len(code),
        entry,
        int(strict) | FLAG_RUNS * kernel.startswith("run_"),
        isa,
        0,
        kernel.encode(),
    )
    return header + bytes(HEADER_SIZE - len(header)) + code


class StubService:
    """Answers the library's requests from prepared images, in a thread of the test's process."""

    def __init__(self, directory: Path, code: bytes, offsets: dict[str, int]) -> None:
        self.directory = directory
        self.path = directory / "service.sock"
        self.requests: list[dict[str, Any]] = []
        self._code, self._offsets = code, offsets
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rwb") as file:
            while head := file.read(4):
                request = json.loads(file.read(struct.unpack("<I", head)[0]))
                self.requests.append(request)
                body = json.dumps(self._answer(request)).encode()
                file.write(struct.pack("<I", len(body)) + body)
                file.flush()

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["op"] == "tag":
            return {"ok": True, "tag": "stub"}
        if request["op"] == "stencils":  # all code is waves.cpp's
            return {"ok": False, "line": "no stencils \u2014 test"}
        kernel, strict = request["kernel"], request["strict"]
        if kernel not in self._offsets:
            return {
                "ok": False,
                "code": "SX0602",
                "cuda_error": 801,
                "line": f'SX0602: {kernel}: "refused" \u2014 test',
            }
        path = self.directory / f"{kernel}-{strict}.sxh"
        made = image(self._code, self._offsets[kernel], kernel, strict=strict)
        path.write_bytes(seal(path.name, made))
        return {"ok": True, "image": str(path)}
