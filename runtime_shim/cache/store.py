"""The cache on disk: files by content key, a size cap with eviction of the least recently used.

Layout under the directory: ``module/<tag>/`` manifests, section images and cubins,
``kernel/<tag>/`` code objects with their launch text or a refusal, ``host/<tag>/`` machine code of
the emulated device, ``verdict/<tag>/`` verdicts of the verifier, ``run/records/`` which kernels
applications used, ``tmp/`` images on their way to the service.  Every file is written whole and
never changed, so a reader needs no lock; a reader that finds a file gone asks the service again.
The exception is ``host/<tag>/<key>.warm``, to which runs append bytes: only its size matters.

The files are executed: others must not be able to write them (:mod:`.trusted`), and each other
one ends with a seal, a checksum of its name and content, so that a damaged one is made again.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

from sassxlate.errors import ServiceError
from sassxlate.files import replace_file
from sassxlate.runtime_shim import trusted

AREAS = ("module", "kernel", "host", "verdict", "run", "tmp")
DEFAULT_SIZE = 2 << 30
_SUFFIXES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_STALE_TEMPORARY_S = 3600.0
# A file whose process is not visible may belong to another container: it gets time to be renamed.
_ABANDONED_S = 10.0
# Readers renew a file's time at most this often: a warm start should write nothing.
TOUCH_AFTER_S = 3600.0
# Files this young are on their way to a reader; so the cap may be exceeded for half a minute.
_IN_USE_S = 30.0
SEAL_MAGIC = b"SXSEAL01"
SEAL_SIZE = 32
_EVICT_TO = 0.8  # share of the cap, so that not every write evicts


@dataclass(frozen=True, slots=True)
class Usage:
    """Number of files and their bytes in one area of the cache."""

    area: str
    files: int
    bytes: int


def key_of(*parts: bytes) -> str:
    """BLAKE2b-128 in hexadecimal of ``parts`` joined by NUL bytes."""
    return hashlib.blake2b(b"\0".join(parts), digest_size=16).hexdigest()


def name_key(name: str) -> str:
    """:func:`key_of` a kernel's name, which may be any bytes."""
    return key_of(name.encode("utf-8", "surrogateescape"))


def seal(name: str, content: bytes) -> bytes:
    """The bytes of a cache file called ``name``: its content and its seal."""
    return content + _seal_of(name, content)


def unseal(name: str, data: bytes) -> bytes | None:
    """The content of a cache file's bytes; None if they are not what was written."""
    content = data[:-SEAL_SIZE]
    return content if data[-SEAL_SIZE:] == _seal_of(name, content) else None


def _seal_of(name: str, content: bytes) -> bytes:
    digest = hashlib.blake2b(os.fsencode(name) + b"\0", digest_size=16)
    digest.update(content)
    return SEAL_MAGIC + len(content).to_bytes(8, "little") + digest.digest()


def size_cap() -> int:
    """Bytes the cache may hold: SASSXLATE_CACHE_SIZE (``512M``, ``2G``), by default 2 GiB."""
    text = os.environ.get("SASSXLATE_CACHE_SIZE", "").strip().lower().removesuffix("ib")
    if not text:
        return DEFAULT_SIZE
    text = text.removesuffix("b")
    digits = text.rstrip("kmgt")
    unit = _SUFFIXES.get(text[len(digits) :].strip())
    if unit is None or not digits.strip().isdecimal():
        raise ServiceError("SX0910", f"SASSXLATE_CACHE_SIZE is not a size in bytes: {text!r}")
    return int(digits) * unit


class Cache:
    """One cache directory and one tag of the translator in it."""

    def __init__(self, root: Path, tag: str, cap: int = DEFAULT_SIZE) -> None:
        self.root = root
        self.tag = tag
        self.cap = cap
        self._unchecked = cap  # bytes written since the total size was last measured

    def path(self, area: str, name: str) -> Path:
        """The path of the file ``name`` of ``area``, existing or not."""
        return self.root / area / self.tag / name

    def read(self, area: str, name: str) -> bytes | None:
        """:func:`load` of the file ``name`` of ``area``."""
        return load(self.path(area, name))

    def need(self, area: str, name: str) -> bytes:
        """:func:`need` of the file ``name`` of ``area``."""
        return need(self.path(area, name))

    def write(self, area: str, name: str, data: bytes) -> Path:
        """Write the file atomically and sealed; evicts when the cap is exceeded.

        Raises:
            OSError: there is no room, or others can write to the folder (EPERM).
        """
        path = self.path(area, name)
        try:
            trusted.make_folder(path.parent)
        except trusted.UntrustedError as error:
            raise PermissionError(errno.EPERM, str(error), str(path.parent)) from error
        replace_file(path, seal(name, data), 0o600)
        self._unchecked += len(data)
        if self._unchecked > self.cap // 16:
            self._unchecked = 0
            evict(self.root, self.cap)
        return path


def _inform(message: str, about: object) -> None:
    import logging  # which every start of an application would take milliseconds to import

    logging.getLogger("sassxlate.service").info(message, about)


def load(path: Path) -> bytes | None:
    """The content of a cache file, marked as used now; None if there is no usable one.

    A damaged one is deleted; one that others can write to is left, and logged.
    """
    try:
        data, used = trusted.read(path)
    except trusted.UntrustedError as error:
        _inform("%s", error)
        return None
    except OSError:
        return None
    content = unseal(path.name, data)
    if content is None:
        _inform("%s is damaged", path)
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    if time.time() - used > TOUCH_AFTER_S:
        with contextlib.suppress(OSError):
            os.utime(path)
    return content


def need(path: Path) -> bytes:
    """:func:`load`; FileNotFoundError if there is no usable one."""
    content = load(path)
    if content is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    return content


def _files(root: Path) -> Iterator[tuple[str, Path, os.stat_result]]:
    """Every file of the cache as (area, path, status); files that vanish meanwhile are left out."""
    for area in AREAS:
        if (root / area).is_symlink():
            continue  # not ours: its target must not be counted or deleted
        for base, _, names in os.walk(root / area):
            for name in names:
                path = Path(base, name)
                with contextlib.suppress(OSError):
                    yield area, path, path.lstat()


def usage(root: Path) -> tuple[Usage, ...]:
    """Files and bytes of each area."""
    counts: dict[str, tuple[int, int]] = dict.fromkeys(AREAS, (0, 0))
    for area, _, status in _files(root):
        files, size = counts[area]
        counts[area] = (files + 1, size + status.st_size)
    return tuple(Usage(area, *counts[area]) for area in AREAS)


@contextlib.contextmanager
def _eviction_lock(root: Path) -> Generator[bool, None, None]:
    """Yields False if another process is evicting: then it need not be done twice."""
    try:
        with open(root / ".evict.lock", "ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True
    except OSError:
        yield False


def evict(root: Path, cap: int) -> int:
    """Delete the least recently used files until the cache is well under ``cap``; the bytes
    freed."""
    with _eviction_lock(root) as mine:
        if not mine:
            return 0
        now = time.time()
        freed = 0
        kept: list[tuple[float, int, Path]] = []
        for area, path, status in _files(root):
            passing = area == "tmp" or path.name.startswith(".tmp-")
            if not passing:
                kept.append((status.st_mtime, status.st_size, path))
            elif now - status.st_mtime > _STALE_TEMPORARY_S:
                freed += _unlink(path, status.st_size)
        total = sum(size for _, size, _ in kept)
        if total <= cap:
            return freed
        for used, size, path in sorted(kept, key=lambda k: k[0]):
            if total <= cap * _EVICT_TO or used > now - _IN_USE_S:
                break
            total -= size
            freed += _unlink(path, size)
        return freed


def remove_abandoned(root: Path, tag: str, pid: int | None = None) -> int:
    """Delete the half-written files and tools' folders of process ``pid``, or of all that have
    ended; their number."""
    found = 0
    for directory in (root / "tmp", *(root / area / tag for area in AREAS)):
        with contextlib.suppress(OSError), os.scandir(directory) as entries:
            for entry in entries:
                writer = _writer(entry.name)
                if writer is None:
                    continue
                with contextlib.suppress(OSError):
                    if pid is None:
                        gone = not _lives(writer)
                        gone = gone and time.time() - entry.stat().st_mtime > _ABANDONED_S
                    else:
                        gone = writer == pid
                    if gone and entry.is_dir(follow_symlinks=False):  # of a tool
                        shutil.rmtree(entry.path, ignore_errors=True)
                        found += 1
                    elif gone:
                        os.unlink(entry.path)
                        found += 1
    return found


def _writer(name: str) -> int | None:
    """The process that writes the temporary file: ``.tmp-PID-...``, ``image-PID-...``."""
    parts = name.split("-")
    if len(parts) != 3 or parts[0] not in (".tmp", "image", "object") or not parts[1].isdecimal():
        return None
    return int(parts[1])


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def clean(root: Path) -> int:
    """Delete every file of the cache; the bytes freed.  Other files are kept.

    UntrustedError SX0912 if others can write to it: they would decide what is deleted.
    """
    trusted.check_folder(root)
    freed = 0
    for _, path, status in _files(root):
        freed += _unlink(path, status.st_size)
    for area in AREAS:
        for base, dirs, _ in os.walk(root / area, topdown=False):
            for name in dirs:
                with contextlib.suppress(OSError):
                    os.rmdir(Path(base, name))
    return freed


def _unlink(path: Path, size: int) -> int:
    try:
        path.unlink()
    except OSError:
        return 0
    return size
