"""Verdicts on steps on disk, for all processes and later runs, and what they are kept under."""

from __future__ import annotations

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
    """Verdicts on steps on disk, for all processes and later builds."""

    def __init__(self, path: Path, tag: str) -> None:
        self._tag = tag.encode()
        self._new: list[tuple[bytes, str]] = []
        self._db = sqlite3.connect(path, timeout=60)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=OFF")
        self._db.execute("PRAGMA wal_autocheckpoint=8000")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS proofs (key BLOB PRIMARY KEY, verdict TEXT) WITHOUT ROWID"
        )
        self._db.execute("CREATE TABLE IF NOT EXISTS asked (key TEXT PRIMARY KEY) WITHOUT ROWID")
        # What cannot be put down soon is put down later: sixty processes had waited a minute each.
        self._db.execute(f"PRAGMA busy_timeout={_LOCKED_MS}")

    def forget_asked(self) -> None:
        """At the start of a build, which reads what units asked from their rows."""
        self._db.execute("PRAGMA busy_timeout=60000")
        with self._db:
            self._db.execute("DELETE FROM asked")

    def was_asked(self, split: str, key: str) -> bool:
        """Whether a question was asked by a unit that is done."""
        name = f"{split} {key}"
        found = self._db.execute("SELECT 1 FROM asked WHERE key = ?", (name,)).fetchone()
        return found is not None

    def asked(self, split: str, keys: Iterable[str]) -> None:
        """Tells other processes, once the rows are on disk."""
        try:
            with self._db:
                self._db.executemany(
                    "INSERT OR IGNORE INTO asked VALUES (?)", [(f"{split} {k}",) for k in keys]
                )
        except sqlite3.Error:
            return

    def _key(self, text: str) -> bytes:
        return hashlib.blake2b(text.encode(), digest_size=16, key=self._tag[:64]).digest()

    def read(self, text: str) -> Verdict | None:
        """The verdict on a step by its key, if it is kept."""
        row = self._db.execute(
            "SELECT verdict FROM proofs WHERE key = ?", (self._key(text),)
        ).fetchone()
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
        try:
            with self._db:
                self._db.executemany("INSERT OR IGNORE INTO proofs VALUES (?, ?)", self._new)
        except sqlite3.Error:
            return
        self._new.clear()


__all__ = ["Proofs", "sources_tag"]
