"""Loops that retry a compare-and-swap: no lane waits in them for another lane's store.

``do { e = old; old = CAS(at, e, f(e)); } while (old != e);`` comes back to its head only if the
memory was changed between the read of ``e`` and the exchange.  The one that changed it has left its
loop, so in each turn of a warp's lanes one of them leaves, whatever other lanes do: no lane that
has left must run for it.  A lock differs in what it expects: a number of its own, not what memory
had last.

ATOMS.CAST.SPIN tells, instead of what memory had, whether it stored: the loop reads memory again in
each turn, and goes on if it did not store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from sassxlate.cfg import Cfg
from sassxlate.cfg.build import conditions
from sassxlate.cfg.graph import Block
from sassxlate.disasm.sass.instruction import Imm, Instruction, Mem, Pred, Reg, RegRef
from sassxlate.disasm.sass.traits import traits

# Which registers have which word of what memory had at the exchange's address.
_Words = Mapping[RegRef, int]
# The space, offset and scale, and registers of an address.
_Address = tuple[str, tuple[int, int], frozenset[RegRef]]
_TRUE = Pred("P", 7)


def retries(cfg: Cfg, part: Set[int], head: int, after: Sequence[Sequence[int]]) -> bool:
    """Whether a loop with this head is such a loop.  ``after``: the successors of each block."""
    latches = [n for n in part if head in after[n]]
    if len(latches) != 1 or any(e.kind == "call" for n in part for e in cfg.successors[n]):
        return False
    latch = cfg.blocks[latches[0]]
    places = [n for n, i in enumerate(latch.instructions) if _exchanges(i)]
    if len(places) != 1:
        return False
    exchange, rest = latch.instructions[places[0]], latch.instructions[places[0] + 1 :]
    written = {r for n in part for i in cfg.blocks[n].instructions for r in i.writes}
    address = _copied_from(_address(exchange), latch.instructions[: places[0]], written)
    if address is None or written & address[2]:
        return False
    back = _back_if_told if exchange.has("CAST") else _back_if_it_failed
    if not back(cfg, latch, head, exchange, rest):
        return False
    expected = _expected(exchange)
    known = _before(cfg, part, head, latch, (exchange, address), after)
    return known is not None and all(known.get(r) == n for n, r in enumerate(expected))


def _exchanges(ins: Instruction) -> bool:
    if not ins.guard.is_true or not isinstance(ins.get("Rb"), Reg):
        return False
    if ins.mnemonic == "ATOMS" and ins.has("CAST"):
        return isinstance(ins.get("Rd"), Reg) or isinstance(ins.get("Pu"), Pred)
    plain = ins.mnemonic in ("ATOMG", "ATOMS") and ins.has("CAS")
    return plain and isinstance(ins.get("Rd"), Reg)


def _count(ins: Instruction) -> int:
    return 2 if ins.has("64") else 1


def _registers(ins: Instruction, role: str) -> tuple[RegRef, ...]:
    reg = ins.get(role)
    assert isinstance(reg, Reg)
    return tuple(RegRef(reg.file, reg.index + n) for n in range(_count(ins)))


def _expected(ins: Instruction) -> tuple[RegRef, ...]:
    return _registers(ins, "Rb")


def _address(ins: Instruction) -> _Address | None:
    """The space, offset and scale, and registers of an address; None if it is of another form."""
    mem = ins.get("mem")
    if not isinstance(mem, Mem):
        return None
    space = "shared" if ins.mnemonic in ("ATOMS", "LDS") else "global"
    named = [r for r in (mem.base, mem.ureg) if r is not None and not r.is_zero]
    refs = frozenset(RegRef(r.file, r.index + n) for r in named for n in range(max(r.width, 1)))
    return space, (mem.offset, mem.scale), refs


def _copied_from(
    address: _Address | None, before: Sequence[Instruction], written: Set[RegRef]
) -> _Address | None:
    """The address by the registers that it was copied from in this turn, before the exchange."""
    if address is None:
        return None
    refs: set[RegRef] = set()
    for ref in address[2]:
        last = next((i for i in reversed(before) if ref in i.writes), None)
        source = None if last is None or len(last.writes) > 1 else _copied(last)
        refs.add(ref if ref not in written or source is None else source)
    return (*address[:2], frozenset(refs))


def _back_if_it_failed(
    cfg: Cfg, latch: Block, head: int, exchange: Instruction, rest: Sequence[Instruction]
) -> bool:
    """Whether the loop goes on only if the exchange returned another value than it expected."""
    decides = _decides(cfg, latch, head)
    if decides is None:
        return False
    bare, stays = decides
    wanted = "NE" if stays else "EQ"
    pairs = list(zip(_registers(exchange, "Rd"), _same(latch, exchange), strict=True))
    predicate: Pred = _TRUE
    changed: set[RegRef] = set()
    for ins in rest[:-1]:
        first = len(pairs) == _count(exchange)
        if pairs and _compares(ins, wanted, pairs[0], changed, predicate, first=first):
            target = ins.get("Pu")
            assert isinstance(target, Pred)
            predicate = Pred(target.file, target.index)
            pairs.pop(0)
            continue
        if RegRef(predicate.file, predicate.index) in ins.writes:
            return False
        changed |= ins.writes
    return not pairs and bare == predicate


def _decides(cfg: Cfg, latch: Block, head: int) -> tuple[Pred, bool] | None:
    """The predicate that decides whether a lane goes back to the head, and whether it holds in
    those that do."""
    last = latch.last
    needed = [p for p in conditions(last) if not p.is_true]
    if traits(last).transfer != "jump" or len(needed) != 1:
        return None
    kinds = {e.kind for e in cfg.successors[latch.index] if e.dst == head}
    if kinds not in ({"taken"}, {"fall"}):
        return None
    bare = Pred(needed[0].file, needed[0].index)
    return bare, needed[0].inv == ("fall" in kinds)


def _back_if_told(
    cfg: Cfg, latch: Block, head: int, exchange: Instruction, rest: Sequence[Instruction]
) -> bool:
    """Whether the loop goes on only if the exchange told that it did not store."""
    decides = _decides(cfg, latch, head)
    if decides is None:
        return False
    bare, stays = decides
    told = exchange.get("Pu")
    if isinstance(told, Pred) and told == bare and not stays:  # from sm_100 on
        return not any(RegRef(bare.file, bare.index) in i.writes for i in rest[:-1])
    wanted = "NE" if stays else "EQ"
    left = list(zip(_registers(exchange, "Rd"), (1, 0), strict=False))
    predicate, changed = _TRUE, set[RegRef]()
    for ins in rest[:-1]:
        if left and _is_number(ins, wanted, *left[0], predicate):
            target = ins.get("Pu")
            assert isinstance(target, Pred)
            if left.pop(0)[0] in changed:
                return False
            predicate = Pred(target.file, target.index)
        elif RegRef(predicate.file, predicate.index) in ins.writes:
            return False
        changed |= ins.writes
    return not left and predicate == bare


def _is_number(ins: Instruction, wanted: str, where: RegRef, number: int, so_far: Pred) -> bool:
    """Whether it compares a word of what the exchange told with a number, and, for the second
    word, takes the first comparison into account."""
    if ins.mnemonic != "ISETP" or not ins.guard.is_true or not (ins.has("AND") and ins.has(wanted)):
        return False
    given = [p for r in ("Pp", "Pq") if isinstance(p := ins.get(r), Pred) and not p.is_true]
    if given != ([] if number else [so_far]) or ins.has("EX") != (not number):
        return False
    a, b = ins.get("Ra"), ins.get("Rb")
    if not isinstance(a, Reg) or RegRef(a.file, a.index) != where:
        return False
    if any(getattr(a, sign, False) for sign in ("neg", "abs", "inv")):
        return False
    is_zero = isinstance(b, Reg) and b.is_zero
    same = is_zero if number == 0 else isinstance(b, Imm) and b.value == number
    return same and isinstance(ins.get("Pu"), Pred)


def _same(latch: Block, exchange: Instruction) -> list[frozenset[RegRef]]:
    """For each word that it expects, the registers that have it, too."""
    values: dict[RegRef, object] = {}
    for ins in latch.instructions:
        if ins is exchange:
            break
        source = _copied(ins)
        for ref in ins.writes:
            values[ref] = object()
        if source is not None and len(ins.writes) == 1:
            values[next(iter(ins.writes))] = values.get(source, source)
    out: list[frozenset[RegRef]] = []
    for ref in _expected(exchange):
        value = values.get(ref, ref)
        others = {r for r in (*values, value) if isinstance(r, RegRef)}
        found = {r for r in others if values.get(r, r) == value}
        out.append(frozenset({ref, *found}) - exchange.writes)
    return out


def _compares(
    ins: Instruction,
    wanted: str,
    pair: tuple[RegRef, frozenset[RegRef]],
    changed: Set[RegRef],
    so_far: Pred,
    *,
    first: bool,
) -> bool:
    """Whether it compares a word of the result with what was expected, and, for the second word,
    takes the first comparison into account.  ``changed``: registers written since the exchange."""
    if ins.mnemonic != "ISETP" or not ins.guard.is_true or not ins.has(wanted):
        return False
    a, b = ins.get("Ra"), ins.get("Rb")
    if not isinstance(a, Reg) or not isinstance(b, Reg) or not ins.has("AND"):
        return False
    if any(getattr(r, sign, False) for r in (a, b) for sign in ("neg", "abs", "inv")):
        return False
    named = [RegRef(r.file, r.index) for r in (a, b)]
    given = [p for role in ("Pp", "Pq") if isinstance(p := ins.get(role), Pred)]
    result, expected = pair[0], pair[1] - changed
    told = any(result == x and y in expected for x, y in (named, reversed(named)))
    if result in changed or not told or not isinstance(ins.get("Pu"), Pred):
        return False
    if first:
        return not ins.has("EX") and all(p.is_true for p in given)
    others = [p for p in given if not p.is_true]
    return ins.has("EX") and others == [so_far]


def _before(
    cfg: Cfg,
    part: Set[int],
    head: int,
    latch: Block,
    at: tuple[Instruction, _Address],
    after: Sequence[Sequence[int]],
) -> _Words | None:
    """What is known at the exchange ``at`` an address on every way to it from the head; None
    without such a way."""
    exchange = at[0]
    mine: dict[RegRef, int] = {}
    seen = False
    for ins in latch.instructions:
        if ins is exchange:
            seen = True
            if not ins.has("CAST"):
                mine = {r: n for n, r in enumerate(_registers(ins, "Rd"))}
        elif seen:
            mine = _through(ins, mine, at)
    into: dict[int, dict[RegRef, int]] = {head: mine}
    work = [head]
    while work:
        n = work.pop()
        now = dict(into[n])
        for ins in cfg.blocks[n].instructions:
            if ins is exchange:
                break
            now = _through(ins, now, at)
        if n == latch.index:
            continue
        for m in after[n]:
            if m not in part or m == head:
                continue
            old = into.get(m)
            both = now if old is None else {r: k for r, k in old.items() if now.get(r) == k}
            if both != old:
                into[m] = both
                work.append(m)
    if latch.index not in into:
        return None
    out = dict(into[latch.index])
    for ins in latch.instructions:
        if ins is exchange:
            return out
        out = _through(ins, out, at)
    return None


def _through(
    ins: Instruction, words: dict[RegRef, int], at: tuple[Instruction, _Address]
) -> dict[RegRef, int]:
    """What is known after an instruction."""
    exchange, address = at
    source = _copied(ins)
    found = words.get(source) if source is not None else None
    out = {r: n for r, n in words.items() if r not in ins.writes}
    if found is not None and len(ins.writes) == 1:
        out[next(iter(ins.writes))] = found
    load = ins.mnemonic in ("LDG", "LDS") and ins.guard.is_true and _plain(ins)
    same = load and _address(ins) == address and ins.has("64") == exchange.has("64")
    if same and isinstance(ins.get("Rd"), Reg):
        out |= {r: n for n, r in enumerate(_registers(ins, "Rd"))}
    return out


def _plain(ins: Instruction) -> bool:
    """A load of one or two whole words."""
    narrow = ("U8", "S8", "U16", "S16", "128", "ZD")
    told = ins.get("Pp")
    return not any(ins.has(m) for m in narrow) and (not isinstance(told, Pred) or told.is_true)


def _copied(ins: Instruction) -> RegRef | None:
    """The register that an instruction copies."""
    if not ins.guard.is_true:
        return None
    if ins.mnemonic == "MOV":
        source = ins.get("Rb")
        mask = ins.get("mask")
        if isinstance(mask, Imm) and mask.value & 0xF != 0xF:
            return None
    elif ins.mnemonic == "IMAD" and ins.has("MOV"):
        source = ins.get("Rc")
    else:
        return None
    if not isinstance(source, Reg) or source.is_zero:
        return None
    if any(getattr(source, sign, False) for sign in ("neg", "abs", "inv")):
        return None
    return RegRef(source.file, source.index)


__all__ = ["retries"]
