"""Which kernels an application used: a small file for each application.

A later version of a library has other code under other keys, but mostly the same kernels: with the
record they are prepared at the application's next start, all at once, before it asks.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, cast

from sassxlate.errors import ServiceError, Where
from sassxlate.runtime_shim import trusted
from sassxlate.runtime_shim.cache.store import SEAL_MAGIC, SEAL_SIZE, Cache, key_of, unseal

AREA = "run"
TAG = "records"  # the same for all versions of the translator
SCHEMA = 1
MOST_KERNELS = 4096  # of an application
MOST_BYTES = 1 << 20  # of a record
MOST_RECORDS = 256
_MOST_NUMBER = (1 << 63) - 1  # of a size or time
_MOST_CC = 999


@dataclass(frozen=True, slots=True)
class Used:
    """What was used of a program or library: the file with its size and time, the capability of
    the device that its code was for, and the kernels, the latest first."""

    file: str
    size: int
    modified_ns: int
    cc: int
    kernels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """The kernels of an application; ``tag`` is the cache's at its last run, ``compiled`` whether
    it ran LLVM's host code."""

    application: tuple[str, ...]
    tag: str
    compiled: bool
    used: tuple[Used, ...]

    def names(self) -> frozenset[str]:
        """All kernels."""
        return frozenset(name for one in self.used for name in one.kernels)

    def outdated(self, tag: str) -> tuple[Used, ...]:
        """The files whose kernels may be missing in the cache of ``tag``."""
        return tuple(
            u for u in self.used if tag != self.tag or _status(u.file) != (u.size, u.modified_ns)
        )


def _status(file: str) -> tuple[int, int]:
    try:
        status = os.stat(file)
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns


def application(path: Path, arguments: Sequence[str]) -> tuple[str, ...]:
    """What an application is called by: its program, and the first argument that is no option, as
    an interpreter's script."""
    first = next((a for a in arguments if not a.startswith("-")), None)
    script = () if first is None else (os.path.realpath(first) if os.path.isfile(first) else first,)
    return (os.path.realpath(path), *script)


def key(name: Sequence[str]) -> str:
    """The key of an application's record."""
    return key_of(*(os.fsencode(part) for part in name))


def record_path(root: Path, key: str) -> Path:
    """Where the record of a key is."""
    return Cache(root, TAG).path(AREA, f"{key}.json")


def read(path: Path) -> Record:
    """A record of the user's: one copied from the cache.

    Raises:
        ServiceError: SX0917, it is none.
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:
        return _record(path, _bytes(path, file))


def read_own(path: Path) -> Record:
    """A record of the cache, which names files that will be opened.

    Raises:
        UntrustedError: SX0912, others can write to it or to a folder on the way.
        ServiceError: SX0917, it is none.
        OSError: it cannot be read.
    """
    with trusted.opened(path) as file:
        return _record(path, _bytes(path, file))


def _bytes(path: Path, file: IO[bytes]) -> bytes:
    """No more than a record has: a file may be of any size, or without an end."""
    data = b""
    while len(data) <= MOST_BYTES + SEAL_SIZE and (part := file.read(MOST_BYTES)):
        data += part
    if len(data) > MOST_BYTES + SEAL_SIZE:
        raise ServiceError("SX0917", "no record of a run: too large", Where(str(path)))
    return data


def _record(path: Path, data: bytes) -> Record:
    content = unseal(path.name, data)
    if content is None:  # a copy, perhaps: the seal is of the name, too
        content = data[:-SEAL_SIZE] if data[-SEAL_SIZE:].startswith(SEAL_MAGIC) else data
    try:
        made: Any = json.loads(content)
        if made["schema"] != SCHEMA:
            raise ValueError
        used = tuple(
            Used(_name(u["file"]), _number(u["size"], _MOST_NUMBER),
                 _number(u["modified_ns"], _MOST_NUMBER), _number(u["cc"], _MOST_CC),
                 tuple(map(_name, cast("list[object]", u["kernels"]))))
            for u in made["used"]
        )  # fmt: skip
        name = tuple(map(_name, made["application"]))
        return Record(name, str(made["tag"]), bool(made["compiled"]), used)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ServiceError("SX0917", "no record of a run", Where(str(path))) from None


def _name(value: object) -> str:
    """Of a file, a kernel, an argument; ValueError if it cannot be one."""
    if not isinstance(value, str) or "\0" in value:
        raise ValueError
    os.fsencode(value)  # UnicodeEncodeError is a ValueError
    return value


def _number(value: object, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError
    return value


def find(root: Path, name: Sequence[str]) -> Record | None:
    """The record of an application; None if there is none."""
    try:
        return read_own(record_path(root, key(name)))
    except (OSError, ServiceError):
        return None


def keep(
    cache: Cache,
    name: Sequence[str],
    compiled: bool,
    used: Iterable[tuple[str, int, Sequence[str]]],
) -> None:
    """Record a run: files, capabilities and kernels, in addition to what earlier runs used.

    Raises:
        OSError: there is no room, or others can write to the cache.
    """
    before = find(cache.root, name)
    names: dict[tuple[str, int], dict[str, None]] = {}
    for file, cc, kernels in used:
        names.setdefault((file, cc), {}).update(dict.fromkeys(kernels))
    for one in () if before is None else before.used:
        names.setdefault((one.file, one.cc), {}).update(dict.fromkeys(one.kernels))
    made: list[Used] = []
    left, room = MOST_KERNELS, MOST_BYTES // 2
    for (file, cc), wanted in names.items():
        taken: list[str] = []
        for kernel in wanted:
            room -= len(kernel) + 8
            if left <= 0 or room <= 0:
                break
            left -= 1
            taken.append(kernel)
        made.append(Used(file, *_status(file), cc, tuple(taken)))
    record = Record(tuple(name), cache.tag, compiled, tuple(made))
    if before == record:
        return
    store = Cache(cache.root, TAG, cache.cap)
    store.write(
        AREA, f"{key(name)}.json", json.dumps({"schema": SCHEMA, **asdict(record)}).encode()
    )
    _bound(store.path(AREA, ""))


def copy(cache: Cache, path: Path, key: str) -> None:
    """Put a record into the cache under another key.  OSError."""
    made = {"schema": SCHEMA, **asdict(read(path))}
    Cache(cache.root, TAG, cache.cap).write(AREA, f"{key}.json", json.dumps(made).encode())


def _bound(folder: Path) -> None:
    """Leaves the records that were written last."""
    found = listed(folder.parent.parent)
    for path in found[MOST_RECORDS:]:
        with suppress(OSError):
            path.unlink()


def listed(root: Path) -> list[Path]:
    """The records, the latest first."""
    times: list[tuple[int, Path]] = []
    for path in (root / AREA / TAG).glob("*.json"):
        with suppress(OSError):
            times.append((path.stat().st_mtime_ns, path))
    return [path for _, path in sorted(times, reverse=True)]


__all__ = [
    "Record",
    "Used",
    "application",
    "find",
    "keep",
    "key",
    "listed",
    "read",
    "read_own",
    "record_path",
]
