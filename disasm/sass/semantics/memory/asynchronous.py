"""Barriers in shared memory (PTX's mbarrier): one word of 64 bits, changed as a whole.

    bit 0         not used
    bits 1-20     minus the arrivals that a phase expects
    bits 21-41    minus the bytes still to come
    bit 42        not used
    bits 43-62    minus the arrivals still to come
    bit 63        the phase

On sm_80 to sm_89 there are no bytes; what nvcc stores for ``mbarrier.init`` and adds for
``.noComplete`` and drops tells the fields (no such GPU was here to measure ATOMS.ARRIVE):

    bits 0-29     minus the arrivals that a phase expects
    bits 32-62    minus the arrivals still to come
    bit 63        the phase
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.sass.instruction import Mem, Reg
from sassxlate.disasm.sass.semantics.memory.memory import places
from sassxlate.disasm.sass.semantics.rows import NoSemantics
from sassxlate.disasm.sass.semantics.warp_state import (
    LANES,
    Addresses,
    Bytes,
    Mask,
    SemanticsFault,
    Space,
    WarpMeaning,
    WarpView,
    Windows,
    as_bytes,
    as_words,
)
from sassxlate.domain.interface import Domain
from sassxlate.domain.numpy_lanes import Vec

T = TypeVar("T")
Results: TypeAlias = "Mapping[str, NDArray[Any]]"
_EXPECTED, _BYTES, _PENDING = (1, 20), (21, 21), (43, 20)
# The count of an arrival, and the sign of its change of the bytes to come; None: from the register.
# A0T1 and its counterpart TRANSCNT (ARRIVES) were not measured.
_ACTIONS: Mapping[str, tuple[int | None, int, int | None]] = {
    "A1T0": (1, 0, None), "ART0": (None, 0, None), "": (1, -1, None), "A0TR": (0, -1, None),
    "A0TX": (0, 1, None), "A0T1": (0, -1, 1), "TRANSCNT": (0, 1, 1), "ARVCNT": (1, 0, None),
}  # fmt: skip


def arrived(d: Domain[T], state: T, action: str, count: T, leaves: bool) -> T:
    """The state after an arrival; ``count``: the register, 32 bits.  ``leaves``: one arrival fewer
    is expected from now on."""

    def field(place: tuple[int, int]) -> T:
        return d.extract(state, *place)

    many, sign, moved = _ACTIONS[action]
    one = d.const(many or 0, 20) if many is not None else d.extract(count, 0, 20)
    amount = d.const(moved, 21) if moved is not None else d.extract(count, 0, 21)
    bytes_ = field(_BYTES)
    if sign:
        bytes_ = (d.add if sign > 0 else d.sub)(bytes_, amount)
    pending = d.add(field(_PENDING), one)
    expected = d.add(field(_EXPECTED), one) if leaves else field(_EXPECTED)
    done = d.and_(d.eq(pending, d.const(0, 20)), d.eq(bytes_, d.const(0, 21)))
    phase = d.xor(d.extract(state, 63, 1), done)
    pending = d.select(done, expected, pending)
    low = d.concat(bytes_, d.concat(expected, d.extract(state, 0, 1)))
    high = d.concat(pending, d.extract(state, 42, 1))
    return d.concat(phase, d.concat(high, low))


def arrived80(d: Domain[T], state: T) -> T:
    """The state after one arrival, on sm_80 to sm_89: the phase changes by the carry."""
    expected, high = d.extract(state, 0, 30), d.extract(state, 32, 32)
    left = d.add(high, d.const(1, 32))
    again = d.add(d.zext(expected, 31), d.const(1 << 30, 31))
    done = d.eq(d.extract(left, 0, 31), d.const(0, 31))
    pending = d.select(done, again, d.extract(left, 0, 31))
    return d.concat(d.extract(left, 31, 1), d.concat(pending, d.extract(state, 0, 32)))


Change: TypeAlias = "Callable[[Vec, tuple[NDArray[np.intp], ...]], Vec]"


def _changed(x: WarpView, where: Addresses, mask: Mask, change: Change) -> Bytes:
    """Changes the barriers at addresses, one lane after another; returns their previous states."""
    return _updated_at(x, "shared", where, mask, change)


def _updated_at(x: WarpView, space: Space, where: Addresses, mask: Mask, change: Change) -> Bytes:

    def bytes_(old: Bytes, at: tuple[NDArray[np.intp], ...]) -> Bytes:
        new = change(Vec(np.ascontiguousarray(old).view("<u8")[..., 0], 64), at)
        out: Bytes = new.v.astype("<u8")[:, None].view(np.uint8)
        return out

    return x.warp.update(space, where, 8, mask, bytes_)


def _updated(x: WarpView, change: Change) -> Bytes:
    return _changed(x, places(x, "shared", 8, x.mask), x.mask, change)


def arrive80(x: WarpView) -> Results:
    """ATOMS.ARRIVE.64, of sm_80 to sm_89, and ATOM.ARRIVE.64, whose address is generic.  PTX has
    barriers in shared memory alone, so here a barrier elsewhere has no meaning, nor has ATOM's
    predicate (neither was measured)."""
    if x.ins.mnemonic == "ATOMS":
        return {"Rd": as_words(_updated(x, lambda state, _: arrived80(x.d, state)))}
    if x.wants("Pu"):
        raise NoSemantics("the predicate of ATOM.ARRIVE")
    where = places(x, "generic", 8, x.mask)
    if (
        isinstance(x.warp, Windows)
        and not np.broadcast_to(x.warp.in_shared(where), x.mask.shape)[x.mask].all()
    ):
        raise SemanticsFault("a barrier outside of shared memory")
    before = _updated_at(x, "generic", where, x.mask, lambda state, _: arrived80(x.d, state))
    return {"Rd": as_words(before)}


def copied(x: WarpView) -> Results:
    """ARRIVES.LDGSTSBAR: an arrival once the lane's copies are done; here they always are."""
    if x.ins.arch < 90:
        _updated(x, lambda state, _: arrived80(x.d, state))
        return {}
    action, none = x.one_of(("ARVCNT", "TRANSCNT")), Vec(np.zeros(1, np.uint64), 32)
    _updated(x, lambda state, _: arrived(x.d, state, action, none, False))
    return {}


def _token(x: WarpView, before: Bytes) -> Results:
    """The state before, of which only the high register is written."""
    words = as_words(before).copy()
    if x.wants("Rd"):
        words[..., 0] = x.words("Rd")[..., 0]
    return {"Rd": words}


def _arrive(x: WarpView) -> Results:
    action = x.one_of(("A1T0", "ART0", "A0T1", "A0TR", "A0TX"))
    count = x.lanes("Rb")

    def change(state: Vec, at: tuple[NDArray[np.intp], ...]) -> Vec:
        return arrived(x.d, state, action, Vec(count[at], 32), x.has("OPTOUT"))

    return _token(x, _updated(x, change))


def _check(x: WarpView) -> Results:
    """Whether the phase of Rb's sign is over; .TRYWAIT may wait for it first."""
    where = places(x, "shared", 8, x.mask)
    state = as_words(x.warp.load("shared", where, 8, x.mask))[..., 1]
    return {"Pu": (state >> np.uint32(31)) != (x.lanes("Rb") >> np.uint64(31)).astype(np.uint32)}


def _exchange(x: WarpView) -> Results:
    """Once per warp."""
    data = x.words("Rb")
    where = places(x, "shared", 8, x.mask)
    mask: Mask = x.mask & np.equal(np.arange(LANES, dtype=np.intp), x.leader)
    before = x.warp.load("shared", where, 8, mask)
    x.warp.store("shared", where, as_bytes(data), mask)
    reg = x.operand("Rd")
    old = as_words(before)
    if isinstance(reg, Reg) and reg.file == "UR":
        old = np.take_along_axis(old, x.leader[..., None], -2)
    return {"Rd": old}


def bulk(x: WarpView) -> Results:
    """UBLKCP: once per warp, in units of 16 bytes, as if at once; copies to shared memory
    arrive at the barrier beside the address.  As PTX describes it, not measured."""
    way = [m for m in x.ins.modifiers if m in ("S", "G")]  # .S.G: to shared memory, from global
    inwards = way == ["S", "G"]
    if not inwards and way != ["G", "S"]:
        raise NoSemantics("a copy within one memory")
    mask: Mask = x.mask & np.equal(np.arange(LANES, dtype=np.intp), x.leader)
    to, source_ = x.words("dst").astype(np.uint64), x.words("src").astype(np.uint64)
    near, far = (to, source_) if inwards else (source_, to)
    where, units = far[..., 0] | far[..., 1] << np.uint64(32), x.lanes("size")
    spaces: tuple[Space, Space] = ("global", "shared") if inwards else ("shared", "global")
    for unit in range(int(units[mask].max(initial=0))):
        step, now = np.uint64(16 * unit), mask & (units > unit)
        places_ = (where + step, near[..., 0] + step)
        source, target = places_ if inwards else places_[::-1]
        data = x.warp.load(spaces[0], source, 16, now)
        x.warp.store(spaces[1], target, data, now)
    if inwards:
        count = units << np.uint64(4)

        def change(state: Vec, at: tuple[NDArray[np.intp], ...]) -> Vec:
            return arrived(x.d, state, "A0TX", Vec(count[at], 32), False)

        _changed(x, near[..., 1], mask, change)
    return {}


def store_and_arrive(x: WarpView) -> Results:
    """STAS, in a cluster of one block: the base is a pair, the address and its barrier, which
    counts each lane's bytes."""
    mem = x.operand("mem")
    if not isinstance(mem, Mem) or mem.base is None or mem.base.width != 2 or mem.offset:
        raise NoSemantics("this address of STAS")
    if mem.ureg is not None and not mem.ureg.is_zero:
        raise NoSemantics("this address of STAS")
    size = int(x.one_of(("64", "128"), "32")) // 8
    words = [x.warp.reg("R", mem.base.index + i) for i in (0, 1)]
    where, barrier = (np.broadcast_to(w, x.mask.shape).astype(np.uint64) for w in words)
    if (where[x.mask] & np.uint64(size - 1)).any():
        raise SemanticsFault(f"an address of STAS is not aligned to {size} bytes")
    x.warp.store("shared", where, as_bytes(x.words("Rb"))[..., :size], x.mask)
    count = Vec(np.full(1, size, np.uint64), 32)
    _changed(x, barrier, x.mask, lambda state, _: arrived(x.d, state, "A0TX", count, False))
    return {}


def nothing(x: WarpView) -> Results:
    """USETSHMSZ: the shared memory that a block gives back is not counted here."""
    del x
    return {}


def syncs(x: WarpView) -> Results:
    if x.has("PHASECHK"):
        return _check(x)
    if x.has("EXCH"):
        return _exchange(x)
    if x.has("CCTL", "FLUSH"):
        return {}
    if x.has("LD"):
        where = places(x, "shared", 8, x.mask)
        return {"Rd": as_words(x.warp.load("shared", where, 8, x.mask))}
    if x.has("ARRIVE") and not x.has("TMASK"):
        return _arrive(x)
    raise NoSemantics("this form of SYNCS")


def rows() -> list[WarpMeaning]:
    mods = (
        "ARRIVE TRANS64 RED OPTOUT A1T0 ART0 A0T1 A0TR A0TX PHASECHK TRYWAIT EXCH LD 64 "
        "CCTL IV WB IVALL WBALL FLUSH"
    )
    return [
        WarpMeaning("SYNCS", syncs, frozenset(mods.split())),
        WarpMeaning("UBLKCP", bulk, frozenset("S G LTC64B LTC128B LTC256B".split())),
        WarpMeaning("STAS", store_and_arrive, frozenset(("64", "128"))),
        WarpMeaning("USETSHMSZ", nothing, frozenset(("FLUSH",))),
        WarpMeaning("ARRIVES", copied, frozenset("LDGSTSBAR 64 ARVCNT TRANSCNT".split())),
    ]
