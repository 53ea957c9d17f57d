"""Verdicts on steps on disk, for all processes and later runs, and the tag that they depend on."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from sassxlate.lowering.verify import Proved, Refuted, Unknown, Verdict

_LOCKED_MS = 3_000  # lock timeout of a process
PATIENCE_MS = 60_000  # and of one that begins a build
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_DECIDE = (
    "sassxlate.lowering.engine.gate",
    "sassxlate.lowering.region.numbers",
    "sassxlate.lowering.region.places",
    "sassxlate.lowering.region.subset",
    "sassxlate.lowering.region.text",
    "sassxlate.lowering.region.uniform",
    "sassxlate.lowering.verify.steps.framing",
    "sassxlate.lowering.verify.steps.prover",
    "sassxlate.lowering.verify.steps.reorder",
)


def sources_tag() -> str:
    """A tag that changes with the source code that decides what is proved."""
    digest = hashlib.blake2b(digest_size=8)
    for name in _DECIDE:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(name)
        digest.update(Path(spec.origin).read_bytes())
    return digest.hexdigest()


class VerdictStore:
    """Verdicts on steps on disk, for all processes and later builds.

    Everything here can be computed again: a damaged file is removed, and a new one
    begun.  (SQLite before 3.51.3 may damage it if many processes write at once; a build of
    thirty processes ended with that, under 3.45.)
    """

    def __init__(self, path: Path, tag: str) -> None:
        self._tag = tag.encode()
        self._path = path
        self._new: list[tuple[bytes, str]] = []
        self._db: sqlite3.Connection | None = None
        self._file: int | None = None
        self._open()

    def _open(self) -> None:
        """Opens the file; a damaged one is replaced.  The database stays None if it is locked for a
        minute or cannot be opened."""
        for _ in range(2):
            self._file = _number(self._path)
            try:
                self._db = _opened(self._path)
                self._file = _number(self._path)
                return
            except sqlite3.DatabaseError as error:
                if not _is_damage(error):
                    return
                self._remove()

    def _remove(self) -> None:
        """Removes the opened file, but not another one that has replaced it."""
        if self._file is None or _number(self._path) != self._file:
            return
        for end in ("-wal", "-shm", ""):
            with contextlib.suppress(OSError):
                self._path.with_name(self._path.name + end).unlink()

    def close(self) -> None:
        """Writes new entries and closes the file.  Call it before this process
        forks: a connection must not be shared."""
        self.flush()
        if self._db is not None:
            with contextlib.suppress(sqlite3.Error):
                self._db.close()
        self._db = None

    def _failed(self, error: sqlite3.DatabaseError) -> None:
        """Begins a new file if this one is damaged; a lock is ignored."""
        if _is_damage(error):
            if self._db is not None:
                with contextlib.suppress(sqlite3.Error):
                    self._db.close()
            self._db = None
            self._remove()
            self._open()
        elif not isinstance(error, sqlite3.OperationalError):
            raise error

    def _said(self, question: str, key: bytes | str) -> tuple[object, ...] | None:
        """The row for a key, if there is one."""
        if self._db is None:
            return None
        try:
            found: tuple[object, ...] | None = self._db.execute(question, (key,)).fetchone()
        except sqlite3.DatabaseError as error:
            self._failed(error)
            return None
        return found

    def _put(self, command: str, rows: Iterable[tuple[object, ...]]) -> bool:
        """Writes rows; returns whether they are on disk."""
        if self._db is None:
            return False
        try:
            with self._db:
                self._db.executemany(command, rows)
        except sqlite3.DatabaseError as error:
            self._failed(error)
            return False
        return True

    def _key(self, text: str) -> bytes:
        return hashlib.blake2b(text.encode(), digest_size=16, key=self._tag[:64]).digest()

    def read(self, text: str) -> Verdict | None:
        """The stored verdict on a step, by its key, if there is one."""
        row = self._said("SELECT verdict FROM proofs WHERE key = ?", self._key(text))
        if row is None:
            return None
        kind, _, rest = str(row[0]).partition(" ")
        if kind == "proved":
            return Proved(tuple(rest.split("; ")) if rest else ())
        return Refuted(defect=rest) if kind == "refuted" else Unknown(rest)

    def write(self, text: str, verdict: Verdict) -> None:
        """Stores a verdict; it is on disk after :meth:`flush`."""
        match verdict:
            case Proved():
                said = f"proved {'; '.join(verdict.modulo)}".rstrip()
            case Refuted():
                said = f"refuted {verdict.defect or verdict.where}"
            case Unknown():
                said = f"unknown {verdict.reason}"
        self._new.append((self._key(text), said))

    def flush(self) -> None:
        """Writes new entries to disk; a failure only costs time."""
        if self._put("INSERT OR IGNORE INTO proofs VALUES (?, ?)", self._new) or not self._db:
            self._new.clear()


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


def _number(path: Path) -> int | None:
    """The inode number, which differs for another file in its place."""
    try:
        return path.stat().st_ino
    except OSError:
        return None


def _opened(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=60)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=OFF")
    db.execute("PRAGMA wal_autocheckpoint=8000")
    db.execute(
        "CREATE TABLE IF NOT EXISTS proofs (key BLOB PRIMARY KEY, verdict TEXT) WITHOUT ROWID"
    )
    # Entries that cannot be written soon are written later: sixty processes had waited a minute
    # each.
    db.execute(f"PRAGMA busy_timeout={_LOCKED_MS}")
    return db


__all__ = ["VerdictStore", "sources_tag"]
