"""The stored part of a measurement: a digest of each word's first warps, and some words'
results."""

from __future__ import annotations

from hashlib import blake2b
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.sass.semantics.warp_state import Bytes
from sassxlate.disasm.sass.semantics.warp_state import Words as Lanes

from .state import untouched
from .words import Word

Arrays: TypeAlias = "dict[str, NDArray[np.generic]]"
WARPS = 16  # in the digest
SHOWN = (1, 2, 8, 10, 13)  # whose results are kept


def digest(word: Word, results: Lanes, memory: Bytes) -> str:
    """Of the lanes' results and of all memory; of memory alone where the order of lanes decides
    what they get.  Empty for what may differ from run to run."""
    if "CAST" in word.text:
        return ""
    out = blake2b(digest_size=8)
    if not word.kind.startswith("collide"):
        out.update(np.ascontiguousarray(results[:WARPS], dtype="<u4").tobytes())
    out.update(np.ascontiguousarray(memory[:WARPS]).tobytes())
    return out.hexdigest()


def shown(name: str, records: Lanes, memory: Bytes, results: Lanes, after: Bytes) -> Arrays:
    """The changes of some warps: of results as an exclusive or, of memory as places and bytes."""
    some = list(SHOWN)
    out: Arrays = {name: results[some] ^ untouched(records[some])}
    at = np.flatnonzero(after[some] != memory[some])
    if at.size:
        out[f"{name}.at"] = at.astype(np.uint16)
        out[f"{name}.byte"] = after[some].reshape(-1)[at]
    return out
