"""Verdicts on steps on disk, for all processes and later runs, and what they are kept under."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from sassxlate.lowering.verify import Proved, Refuted, Unknown, Verdict

_LOCKED_MS = 3_000  # that a process waits for others to write
_DECIDE = ("gate", "language", "names", "order", "proof", "prompt", "uniform", "words")


def sources_tag() -> str:
    """Changes with the sources here that decide what a proof is of."""
    digest = hashlib.blake2b(digest_size=8)
    for name in _DECIDE:
        digest.update(Path(__file__).with_name(f"{name}.py").read_bytes())
    return digest.hexdigest()


class Proofs:
    """Verdicts on steps on disk, for all processes and later builds.

    Nothing that cannot be made again is here: a file that turns out damaged is removed, and who had
    it open goes on without it.  (SQLite before 3.51.3 may damage it where many processes write at
    once; a build of thirty processes ended with that, under 3.45.)
    """

    def __init__(self, path: Path, tag: str) -> None:
        self._tag = tag.encode()
        self._path = path
        self._new: list[tuple[bytes, str]] = []
        self._db: sqlite3.Connection | None = None
        try:
            self._db = _opened(path)
        except sqlite3.OperationalError:
            return  # locked for a minute, or nowhere to write
        except sqlite3.DatabaseError:
            self._damaged()
            with contextlib.suppress(sqlite3.Error):
                self._db = _opened(path)

    def close(self) -> None:
        """Puts down what is new, and leaves the file to others.  To be said before this process
        forks: a connection must not be in two."""
        self.flush()
        if self._db is not None:
            with contextlib.suppress(sqlite3.Error):
                self._db.close()
        self._db = None

    def _damaged(self) -> None:
        """Removes the file and goes on without: the next process makes another."""
        if self._db is not None:
            with contextlib.suppress(sqlite3.Error):
                self._db.close()
        self._db = None
        for end in ("-wal", "-shm", ""):
            with contextlib.suppress(OSError):
                self._path.with_name(self._path.name + end).unlink()

    def _said(self, question: str, key: bytes | str) -> tuple[object, ...] | None:
        """The row that answers, if there is one."""
        if self._db is None:
            return None
        try:
            found: tuple[object, ...] | None = self._db.execute(question, (key,)).fetchone()
        except sqlite3.OperationalError:
            return None
        except sqlite3.DatabaseError:
            self._damaged()
            return None
        return found

    def _put(self, command: str, rows: Iterable[tuple[object, ...]]) -> bool:
        """Whether it is on disk, or nowhere to be put."""
        if self._db is None:
            return True
        try:
            with self._db:
                self._db.executemany(command, rows)
        except sqlite3.OperationalError:
            return False
        except sqlite3.DatabaseError:
            self._damaged()
        return True

    def forget_asked(self) -> None:
        """At the start of a build, which reads what units asked from their rows."""
        if self._db is not None:
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("PRAGMA busy_timeout=60000")
        self._put("DELETE FROM asked WHERE ?", [(1,)])

    def was_asked(self, split: str, key: str) -> bool:
        """Whether a question was asked by a unit that is done."""
        return self._said("SELECT 1 FROM asked WHERE key = ?", f"{split} {key}") is not None

    def asked(self, split: str, keys: Iterable[str]) -> None:
        """Tells other processes, once the rows are on disk."""
        self._put("INSERT OR IGNORE INTO asked VALUES (?)", [(f"{split} {k}",) for k in keys])

    def _key(self, text: str) -> bytes:
        return hashlib.blake2b(text.encode(), digest_size=16, key=self._tag[:64]).digest()

    def read(self, text: str) -> Verdict | None:
        """The verdict on a step by its key, if it is kept."""
        row = self._said("SELECT verdict FROM proofs WHERE key = ?", self._key(text))
        if row is None:
            return None
        kind, _, rest = str(row[0]).partition(" ")
        if kind == "proved":
            return Proved(tuple(rest.split("; ")) if rest else ())
        return Refuted(defect=rest) if kind == "refuted" else Unknown(rest)

    def write(self, text: str, verdict: Verdict) -> None:
        """Keeps a verdict; on disk it is behind :meth:`flush`."""
        match verdict:
            case Proved():
                said = f"proved {'; '.join(verdict.modulo)}".rstrip()
            case Refuted():
                said = f"refuted {verdict.defect or verdict.where}"
            case Unknown():
                said = f"unknown {verdict.reason}"
        self._new.append((self._key(text), said))

    def flush(self) -> None:
        """Puts down what is new; nothing is lost but time where that fails."""
        if self._put("INSERT OR IGNORE INTO proofs VALUES (?, ?)", self._new):
            self._new.clear()


def _opened(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=60)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=OFF")
    db.execute("PRAGMA wal_autocheckpoint=8000")
    db.execute(
        "CREATE TABLE IF NOT EXISTS proofs (key BLOB PRIMARY KEY, verdict TEXT) WITHOUT ROWID"
    )
    db.execute("CREATE TABLE IF NOT EXISTS asked (key TEXT PRIMARY KEY) WITHOUT ROWID")
    # What cannot be put down soon is put down later: sixty processes had waited a minute each.
    db.execute(f"PRAGMA busy_timeout={_LOCKED_MS}")
    return db


__all__ = ["Proofs", "sources_tag"]
