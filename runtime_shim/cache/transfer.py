"""The cache as one file, for another machine of the same kind: `sassxlate cache export`, `import`.

An archive is the line ``sassxlate-cache 1``; the length of the head as eight bytes (all numbers are
little-endian); the head (JSON: tag, version, target, host, number of files and their bytes); each
file as the length of its name (two bytes), ``area/name``, its size and its compressed size (eight
bytes each), a BLAKE2b-128 of name, NUL and content, and the content (zstd); and a BLAKE2b-256 of
all that.  There are no folders, links or modes in it.

What is imported is executed later, so the archive follows the rules of the cache's own files
(:mod:`sassxlate.runtime_shim.trusted`), and nothing is written before all of it was checked.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import zstandard

from sassxlate import __version__
from sassxlate.errors import ServiceError
from sassxlate.runtime_shim import trusted
from sassxlate.runtime_shim.cache.store import Cache

MAGIC = b"sassxlate-cache 1\n"
_NAMES = {
    "module": re.compile(r"[0-9a-f]{32}\.(txt|cubin|ptxas|linked|s[0-9]{1,6})"),
    "kernel": re.compile(
        r"[0-9a-f]{32}-[0-9a-f]{32}\.(hsaco|launch|refused)|[0-9a-f]{32}(-[0-9a-f]{16})?\.hybrid"
    ),
    "host": re.compile(r"[0-9a-f]{32}\.(sxh|o|slow|hot)|stencils(-[0-9a-f]{32})?\.sxs"),
}
# Who finds the launch text finds the code object, and who finds a manifest the files that it names.
_LAST = (".launch", ".txt")
_HEAD_MAX = 1 << 16
_NAME_MAX = 128
_FILE_MAX = 1 << 30
_LEVEL = 3  # of zstd


@dataclass(frozen=True, slots=True)
class Moved:
    """What an export or import moved: files, and the bytes of their contents."""

    files: int
    bytes: int


def _host() -> str:
    """The processor's name, for messages: the tag decides."""
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return os.uname().machine
    names = (line.partition(":")[2].strip() for line in text.splitlines() if "model name" in line)
    return next(names, os.uname().machine)


def _digest(name: bytes, content: bytes) -> bytes:
    return hashlib.blake2b(name + b"\0" + content, digest_size=16).digest()


def export(cache: Cache, target: str, path: Path) -> Moved:
    """Write the files of the cache's tag to an archive, readable by this user alone.

    Raises:
        OSError: the archive cannot be written.
    """
    names = [
        (area, name)
        for area, pattern in _NAMES.items()
        for name in sorted(_listed(cache.path(area, "")), key=lambda n: (n.endswith(_LAST), n))
        if pattern.fullmatch(name)
    ]
    files = size = 0
    compressor = zstandard.ZstdCompressor(level=_LEVEL)
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    body = temporary.with_name(temporary.name + "-body")
    try:
        with open(body, "xb", opener=_private) as file:
            for area, name in names:
                content = cache.read(area, name)
                if content is None:
                    continue  # evicted meanwhile, or damaged
                file.write(_record(f"{area}/{name}".encode(), content, compressor))
                files += 1
                size += len(content)
        whole = hashlib.blake2b(digest_size=32)
        with open(temporary, "xb", opener=_private) as made, open(body, "rb") as file:
            about = {"tag": cache.tag, "version": __version__, "target": target, "host": _host()}
            text = json.dumps({**about, "files": files, "bytes": size}).encode()
            start = MAGIC + len(text).to_bytes(8, "little") + text
            whole.update(start)
            made.write(start)
            while part := file.read(1 << 20):
                whole.update(part)
                made.write(part)
            made.write(whole.digest())
        os.replace(temporary, path)
    finally:
        for left in (temporary, body):
            left.unlink(missing_ok=True)
    return Moved(files, size)


def _listed(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _record(name: bytes, content: bytes, compressor: zstandard.ZstdCompressor) -> bytes:
    packed = compressor.compress(content)
    sizes = len(content).to_bytes(8, "little") + len(packed).to_bytes(8, "little")
    return len(name).to_bytes(2, "little") + name + sizes + _digest(name, content) + packed


def import_(cache: Cache, path: Path) -> Moved:
    """Put the files of an archive into the cache; those that it has stay.

    Raises:
        UntrustedError: SX0912, others can write to the archive, or to the cache.
        ServiceError: SX0918 of another kind, SX0915 damaged or no archive, SX0916 too large.
        OSError: it cannot be read, or the cache cannot be written.
    """
    with trusted.opened(path) as file:
        for _ in _files(file, cache, path):  # all is checked before anything is written
            pass
        file.seek(0)
        moved = Moved(0, 0)
        for area, name, content in _files(file, cache, path):
            if cache.read(area, name) is None:
                cache.write(area, name, content)
                moved = Moved(moved.files + 1, moved.bytes + len(content))
    return moved


def _files(file: IO[bytes], cache: Cache, path: Path) -> Iterator[tuple[str, str, bytes]]:
    """Area, name and content of each file; raises at the first thing that is wrong."""

    def wrong(what: str) -> ServiceError:
        return ServiceError("SX0915", f"{path}: {what}")

    whole = hashlib.blake2b(digest_size=32)

    def take(size: int, hashed: bool = True) -> bytes:
        data = file.read(size)
        if len(data) != size:
            raise wrong("the archive ends too early")
        if hashed:
            whole.update(data)
        return data

    if take(len(MAGIC)) != MAGIC:
        raise wrong("no archive of a cache, or one of another format")
    size = int.from_bytes(take(8), "little")
    if size > _HEAD_MAX:
        raise wrong(f"a head of {size} bytes")
    head = _head(take(size))
    if head is None:
        raise wrong("its head cannot be read")
    if head["tag"] != cache.tag:
        made = f"sassxlate {head['version']}, {head['target']}, {head['host']}"
        raise ServiceError(
            "SX0918",
            f"{path} is of another kind: made by {made}, tag {head['tag']}, not {cache.tag}",
        )
    if head["bytes"] > cache.cap:
        text = f"{path} has {head['bytes']} bytes, and the cache may hold {cache.cap}"
        raise ServiceError("SX0916", text)
    decompressor = zstandard.ZstdDecompressor()
    left, seen = int(head["bytes"]), set[bytes]()
    for _ in range(head["files"]):
        length = int.from_bytes(take(2), "little")
        name = take(length) if 0 < length <= _NAME_MAX else b""
        area, _, plain = name.decode("ascii", "replace").partition("/")
        if area not in _NAMES or not _NAMES[area].fullmatch(plain) or name in seen:
            raise wrong(f"no name of a file of the cache: {ascii(name)[:_NAME_MAX]}")
        seen.add(name)
        size, packed = (int.from_bytes(take(8), "little") for _ in range(2))
        if size > min(left, _FILE_MAX) or packed > size + (size >> 6) + 1024:
            raise wrong(f"{plain} has {size} bytes, {packed} compressed")
        left -= size
        digest = take(16)
        content = _unpacked(decompressor, take(packed), size)
        if content is None or _digest(name, content) != digest:
            raise wrong(f"{plain} is damaged")
        yield area, plain, content
    if left or whole.digest() != take(32, hashed=False) or file.read(1):
        raise wrong("the archive is damaged")


def _head(data: bytes) -> dict[str, Any] | None:
    try:
        made: object = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(made, dict):
        return None
    head = cast("dict[str, Any]", made)
    texts, numbers = ("tag", "version", "target", "host"), ("files", "bytes")
    good = all(isinstance(head.get(n), str) for n in texts)
    if not good or not all(type(head.get(n)) is int and head[n] >= 0 for n in numbers):
        return None
    return {n: head[n] if n in numbers else ascii(head[n])[1:-1][:64] for n in texts + numbers}


def _unpacked(decompressor: zstandard.ZstdDecompressor, packed: bytes, size: int) -> bytes | None:
    try:
        if zstandard.get_frame_parameters(packed).content_size != size:
            return None
        return decompressor.decompress(packed, max_output_size=size, allow_extra_data=False)
    except zstandard.ZstdError:
        return None


__all__ = ["MAGIC", "Moved", "export", "import_"]
