"""Proofs of whole regions that outlive a process: what was proved once is not proved again.

Kept is Proved alone, with what the proof assumes: a solver that gave up may do better next time,
and a refuted answer is never asked for again.  The key is the whole region's, as of one step: the
canonical question, the answer, and all else that a proof depends on
(:attr:`.prover.ProofStep.key`).  The version of the verifier and the solver is the store's
business: the user's cache has a folder for each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from sassxlate.lowering.verify.verdict import Proved

_PROVED = "proved"


@dataclass(frozen=True, slots=True)
class RegionProofs:
    """``read`` and ``write`` reach the store; its names are 64 hexadecimal digits."""

    read: Callable[[str], bytes | None]
    write: Callable[[str, bytes], None]

    def find(self, key: str) -> Proved | None:
        """The proof of a region; None if none is known."""
        data = self.read(_name(key))
        if data is None:
            return None
        kind, *modulo = data.decode(errors="replace").split("\n")
        return Proved(tuple(modulo)) if kind == _PROVED else None

    def keep(self, key: str, proof: Proved) -> None:
        self.write(_name(key), "\n".join((_PROVED, *proof.modulo)).encode())


def _name(key: str) -> str:
    return hashlib.blake2b(key.encode(), digest_size=32).hexdigest()


__all__ = ["RegionProofs"]
