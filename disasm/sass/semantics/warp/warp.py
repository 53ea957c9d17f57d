"""Communication between lanes of a warp, and special registers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.sass.instruction import Special
from sassxlate.disasm.sass.semantics.rows import NoSemantics
from sassxlate.disasm.sass.semantics.warp_state import LANES, Fn, Mask, WarpMeaning, WarpView, Words

Results: TypeAlias = "Mapping[str, NDArray[Any]]"
_LANE = np.arange(LANES, dtype=np.int64)
_BIT = np.uint32(1) << _LANE.astype(np.uint32)


def ballot(mask: Mask) -> Words:
    """A mask of lanes as a word: (..., 32) -> (..., 1)."""
    out: Words = np.where(mask, _BIT, np.uint32(0)).sum(-1, dtype=np.uint32)[..., None]
    return out


def _all(mask: Mask) -> Mask:
    out: Mask = np.asarray(mask.all(axis=-1, keepdims=True))
    return out


def _lanes(x: WarpView, value: NDArray[Any]) -> NDArray[Any]:
    return np.broadcast_to(value, x.mask.shape)


# --- shuffles ----------------------------------------------------------------------------------


def shfl(x: WarpView) -> Results:
    """Rc: the segment mask in bits 12:8, the clamp in bits 4:0 (PTX manual, shfl.sync).

    Reading from a lane that does not execute it gives 0.
    """
    step = (x.lanes("Rb") & np.uint64(31)).astype(np.int64)
    control = x.lanes("Rc").astype(np.int64)
    clamp, segment = control & 31, control >> 8 & 31
    first = _LANE & segment
    limit = first | clamp & ~segment
    mode = x.one_of(("IDX", "UP", "DOWN", "BFLY"))
    if mode == "UP":
        source = _LANE - step
        inside = source >= limit
    else:
        source = {
            "DOWN": _LANE + step, "BFLY": _LANE ^ step, "IDX": first | step & ~segment,
        }[mode]  # fmt: skip
        inside = source <= limit
    source = np.where(inside, source, _LANE)
    value = np.where(x.mask, x.lanes("Ra"), np.uint64(0)).astype(np.uint32)
    return {"Rd": np.take_along_axis(value, source, -1), "Pu": inside}


# --- votes -------------------------------------------------------------------------------------


def vote(x: WarpView) -> Results:
    """Rd: the lanes for which Pp holds; Pu: whether all, any, or all or none of them do."""
    voters = x.truth("Pp") & x.mask
    every, none = _all(voters | ~x.mask), _all(~voters)
    mode = x.one_of(("ALL", "ANY", "EQ"))
    told = {"ALL": every, "ANY": ~none, "EQ": every | none}[mode]
    if x.ins.mnemonic == "VOTEU":
        return {"Rd": ballot(voters), "Pu": told}
    return {"Rd": _lanes(x, ballot(voters)), "Pu": _lanes(x, told)}


def match(x: WarpView) -> Results:
    """.ANY: the lanes with this lane's value.  .ALL: all lanes if all values are equal."""
    value = x.lanes("Ra", 64 if x.has("U64") else 32)
    same = (value[..., :, None] == value[..., None, :]) & x.mask[..., None, :]
    if x.has("ANY"):
        return {"Rd": ballot(same)[..., 0]}
    leader = np.take_along_axis(value, x.leader, -1)
    one = _all((value == leader) | ~x.mask)
    return {"Rd": _lanes(x, np.where(one, ballot(x.mask), np.uint32(0))), "Pu": _lanes(x, one)}


_REDUX: Mapping[tuple[str, bool], tuple[Callable[..., Any], int]] = {
    ("SUM", False): (np.add.reduce, 0),
    ("", False): (np.bitwise_and.reduce, 0xFFFFFFFF),
    ("OR", False): (np.bitwise_or.reduce, 0),
    ("XOR", False): (np.bitwise_xor.reduce, 0),
    ("MIN", False): (np.minimum.reduce, 0xFFFFFFFF),
    ("MAX", False): (np.maximum.reduce, 0),
    ("MIN", True): (np.minimum.reduce, 0x7FFFFFFF),
    ("MAX", True): (np.maximum.reduce, 0x80000000),
}


def redux(x: WarpView) -> Results:
    op = x.one_of(("SUM", "OR", "XOR", "MIN", "MAX"))
    signed = x.has("S32") and op in ("MIN", "MAX")
    reduce, identity = _REDUX[op, signed]
    value = np.where(x.mask, x.lanes("Ra").astype(np.uint32), np.uint32(identity))
    if signed:
        value = value.view(np.int32)
    out = np.asarray(reduce(value, axis=-1, keepdims=True))
    return {"Rd": out.astype(np.uint32)}


def elect(x: WarpView) -> Results:
    """The first of the lanes for which Pp holds: Pu in that lane, Rd its number, or -1."""
    voters = x.truth("Pp") & x.mask
    first = np.where(voters.any(axis=-1), np.argmax(voters, axis=-1), -1)[..., None]
    return {"Pu": voters & (first == _LANE), "Rd": first.astype(np.uint32)}


def r2ur(x: WarpView) -> Results:
    """The first lane's value; Pu: this lane's value differs, or, with .OR, Pu held before."""
    value = x.lanes("Ra").astype(np.uint32)
    first = np.take_along_axis(value, x.leader, -1)
    other = value != first
    if x.has("OR") and x.wants("Pu"):
        other = other | x.truth("Pu")
    return {"Rd": first, "Pu": other}


# --- special registers -------------------------------------------------------------------------


# Per-lane registers; read as a uniform value, they are not an active lane's.
_OF_LANES = frozenset(
    "SR_LANEID SR_EQMASK SR_LTMASK SR_LEMASK SR_GTMASK SR_GEMASK SR_TID SR_TID.X SR_TID.Y "
    "SR_TID.Z".split()
)


def s2ur(x: WarpView) -> Results:
    special = x.operand("sr")
    if not isinstance(special, Special):
        raise NoSemantics("no special register")
    if special.name in _OF_LANES:
        raise NoSemantics(f"{special.name} of a warp")
    if special.name == "SRZ":
        return {"Rd": np.zeros((*x.mask.shape[:-1], 1), dtype=np.uint32)}
    value = _lanes(x, x.warp.special(special))
    return {"Rd": value[..., :1]}


def _row(mnemonic: str, fn: Fn, mods: str = "") -> WarpMeaning:
    return WarpMeaning(mnemonic, fn, frozenset(mods.split()))


def rows() -> list[WarpMeaning]:
    return [
        _row("SHFL", shfl, "IDX UP DOWN BFLY"),
        _row("VOTE", vote, "ALL ANY EQ"),
        _row("VOTEU", vote, "ALL ANY EQ"),
        _row("MATCH", match, "ANY ALL U64"),
        _row("REDUX", redux, "SUM OR XOR MIN MAX S32"),
        _row("ELECT", elect),
        _row("R2UR", r2ur, "OR"),
        _row("S2UR", s2ur),
    ]
