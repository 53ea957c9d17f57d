"""The corpus that the fuzzers of runtime_shim/native/fuzz begin with, made from the fixtures.

``python -m tools.generate.fuzz_seeds FOLDER`` writes FOLDER/TARGET/*: each of the fixtures'
programs is run
into an empty cache, whose files are what the native libraries read.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sassxlate.runtime_shim.cache import store

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "fixtures" / "programs"
SMALL = 1 << 16  # bytes: a fuzzer is quick with these
NOTE_OWNERS = (b"AMDGPU\0", b"SASSXLATE\0")
PT_NOTE = 4

MESSAGES: tuple[dict[str, object], ...] = (
    {"ok": True, "tag": "0123456789abcdef", "restart": False},
    {
        "ok": False,
        "code": "SX0411",
        "cuda_error": 801,
        "line": 'SX0411: k: \u00e9\U0001f600 "q" \\',
    },
    {"ok": True, "key": "k" * 32, "manifest": "/tmp/x.txt", "n": [1, -2, 3.5e10, None, True, {}]},
    {"restart": True},
)


def programs() -> list[Path]:
    """The fixtures' executables."""
    return sorted(p for p in PROGRAMS.iterdir() if p.is_file() and os.access(p, os.X_OK))


def fatbins(program: bytes) -> Iterator[bytes]:
    """The containers of device code in a program, by their magic number."""
    at = program.find(b"\x50\xed\x55\xba")
    while at >= 0:
        header, size = struct.unpack_from("<HQ", program, at + 6)
        if header == 16 and size < len(program) - at - 16:
            yield program[at : at + 16 + size]
        at = program.find(b"\x50\xed\x55\xba", at + 8)


def notes(image: bytes) -> Iterator[bytes]:
    """The descriptors of a code object's notes: its metadata, and what we write."""
    offset, size, count = struct.unpack_from("<Q14xHH", image, 32)
    for index in range(count):
        kind, _, start, _, _, length = struct.unpack_from("<IIQQQQ", image, offset + index * size)
        if kind != PT_NOTE:
            continue
        at = start
        while at + 12 <= start + length:
            name, desc, _ = struct.unpack_from("<III", image, at)
            body = at + 12 + (name + 3 & ~3)
            if image[at + 12 : at + 12 + name] in NOTE_OWNERS:
                yield image[body : body + desc]
            at = body + (desc + 3 & ~3)


def small_program() -> bytes:
    """An ELF file with the sections that programs with device code and a static runtime have."""
    names = b"\0.symtab\0.strtab\0.shstrtab\0.nvFatBinSegment\0.dynsym\0"
    functions = [
        b"cudaMalloc",
        b"libcudart_static_0123",
        b"cudaLogsCurrent",
        b"main",
        b"__cudaInit",
    ]
    strings = b"\0" + b"".join(name + b"\0" for name in functions)
    symbols = bytes(24) + b"".join(
        struct.pack("<IBBHQQ", strings.index(name), 0x12, 0, 1, 0x1000 + 64 * n, 64)
        for n, name in enumerate(functions)
    )
    parts = [symbols, strings, names]
    starts = [64, 64 + len(symbols), 64 + len(symbols) + len(strings)]
    table = (starts[2] + len(names) + 7) & ~7
    rows = [(0, 0, 0, 0, 0), (1, 2, starts[0], len(symbols), 2), (9, 3, starts[1], len(strings), 0)]
    rows += [
        (17, 3, starts[2], len(names), 0),
        (27, 1, 64, 24, 0),
        (44, 11, starts[0], len(symbols), 2),
    ]
    header = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, table, 0, 64, 56, 0, 64, len(rows), 3)
    sections = b"".join(
        struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, offset, size, link, 0, 8, 24)
        for name, kind, offset, size, link in rows
    )
    return (header + b"".join(parts)).ljust(table, b"\0") + sections


def seeds() -> Iterator[tuple[str, bytes]]:
    """Each seed with its fuzzer's name."""
    for message in MESSAGES:
        text = json.dumps(message, ensure_ascii=len(message) % 2 == 0).encode()
        yield "json", text
        yield "message", struct.pack("<I", len(text)) + text
    with tempfile.TemporaryDirectory(prefix="sassxlate-seeds-") as folder:
        environment = {**os.environ, "SASSXLATE_CACHE_DIR": folder, "SASSXLATE_SERVICE_IDLE": "5"}
        for program in programs():
            command = [sys.executable, "-P", "-m", "sassxlate", "run", "--", program]
            subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        cached = sorted(p for p in Path(folder).rglob("*") if p.is_file())
        for path in cached:
            whole = path.read_bytes()
            data = store.unseal(path.name, whole)
            if data is None:
                continue  # the service's own
            yield "seal", whole  # the parsers get what is before the seal
            if path.suffix in (".txt", ".launch"):
                yield "manifest", data
            elif path.suffix == ".hsaco":
                for target in ("code_object", "elf"):
                    yield target, data
                for note in notes(data):
                    yield "msgpack", note
            elif path.suffix == ".cubin":
                yield "image", data
                yield "elf", data
    for program in programs():
        data = program.read_bytes()
        for container in fatbins(data):
            yield "image", container
        yield "symbols", data
        yield "signature", data
    yield "symbols", small_program()
    yield "signature", small_program()
    yield "image", b".version 8.0\n.target sm_80\n.address_size 64\n\0"


def main(folder: Path) -> None:
    """Writes the seeds, and prints their number."""
    count = 0
    for target, data in seeds():
        place = folder / target
        place.mkdir(parents=True, exist_ok=True)
        if len(data) <= SMALL or target in ("symbols", "signature"):
            (place / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
            count += 1
    print(f"{count} seeds in {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
