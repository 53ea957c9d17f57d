"""Binary searches whose loop was unrolled: what is carried along beside the place looked at.

Each turn of a search adds one number or another to its place, and keeps the place before as the
lower or the upper end of what is left.  Unrolled, each end is a choice in each turn, though both
are the place and a number, or at least another number where the search began at an end.  And if the
places address memory, each is shifted: here the sums are those of shifted numbers.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sassxlate.lowering.tier.compiler.search_words import load, words
from sassxlate.lowering.tier.compiler.ssa import Function, Value, changed

_CHOICE: Final = re.compile(r" = select i1 [^\s,]+, i32 -?\d+, i32 -?\d+")
_GREATEST: Final = "declare i32 @llvm.smax.i32(i32, i32)"
_TURNS: Final = 3  # choices in a row from which it pays
_SMALL: Final = 1 << 24  # sums of numbers below it do not overflow


@dataclass(frozen=True, slots=True)
class _Turn:
    """A place: ``base`` (empty for none) and ``then`` or ``other``, by a condition, of which
    ``step`` is the choice; ``low`` and ``high`` are its bounds, if they are known."""

    name: str
    value: Value
    test: str
    base: str
    then: int
    other: int
    low: int | None
    high: int | None
    step: str


@dataclass(frozen=True, slots=True)
class _Form:
    """A base and a number, at least ``floor``; and how many choices it takes in SSA."""

    base: str
    number: int
    floor: int | None = None
    turns: int = 0


def _number(text: str) -> int | None:
    return int(text) if text.lstrip("-").isdigit() else None


def _numbers(value: Value | None) -> tuple[int, int] | None:
    """The two numbers that are chosen from."""
    if value is None or value.op != "select" or value.type != "i32":
        return None
    then, other = map(_number, value.args[1:])
    return None if then is None or other is None else (then, other)


def _turns(function: Function) -> dict[str, _Turn]:
    """The places of all searches, in the lines' order."""
    values, uses = function.values, function.uses
    found: dict[str, _Turn] = {}

    def begun(name: str) -> _Turn | None:
        if name not in found and (numbers := _numbers(values.get(name))):
            value = values[name]
            low, high = min(numbers), max(numbers)
            if max(abs(low), abs(high)) < _SMALL:
                found[name] = _Turn(name, value, value.args[0], "", *numbers, low, high, name)
        return found.get(name)

    for name, value in values.items():
        if value.op != "add" or value.type != "i32":
            continue
        # If both are choices, the other one is the place.
        pairs = sorted((value.args, value.args[::-1]), key=lambda pair: len(uses.get(pair[1], ())))
        for base, step in pairs:
            numbers = _numbers(choice := values.get(step))
            if numbers is None or choice is None or not base.startswith("%"):
                continue
            before = begun(base)
            low = high = None
            if before is not None and before.low is not None and before.high is not None:
                low, high = before.low + min(numbers), before.high + max(numbers)
                if max(abs(low), abs(high)) >= _SMALL:
                    low = high = None
            found[name] = _Turn(name, value, choice.args[0], base, *numbers, low, high, step)
            break
    return dict(sorted(found.items(), key=lambda item: item[1].value.at))


def _of(forms: Mapping[str, _Form], name: str) -> _Form:
    number = _number(name)
    return forms.get(name, _Form(name, 0) if number is None else _Form("", number))


def _carried(turn: _Turn, low: int | None, a: _Form, b: _Form) -> _Form | None:
    """The choice between two forms as one of a turn, if it is one; ``low`` bounds its base."""
    if a.base != turn.base or b.base != turn.base:
        return None
    da, db = a.number - turn.then, b.number - turn.other
    turns = 1 + max(a.turns, b.turns)
    if max(abs(da), abs(db)) >= _SMALL:
        return None
    if da == db:
        if a.floor == b.floor:
            return _Form(turn.name, da, a.floor, turns)
        floor = a.floor if b.floor is None else b.floor
        free = b if b.floor is None else a
        if floor is None or (a.floor is not None and b.floor is not None) or low is None:
            return None
        return _Form(turn.name, da, floor, turns) if low + free.number >= floor else None
    if turn.base or max(abs(a.number), abs(b.number)) >= _SMALL:
        return None
    if turn.other + da < b.number <= a.number:
        return _Form(turn.name, da, b.number, turns)
    if turn.then + db < a.number <= b.number:
        return _Form(turn.name, db, a.number, turns)
    return None


def _forms(function: Function, turns: Mapping[str, _Turn]) -> dict[str, _Form]:
    """The choices that are a place and a number."""
    tests: dict[str, list[_Turn]] = defaultdict(list)
    for turn in turns.values():
        tests[turn.test].append(turn)
    forms: dict[str, _Form] = {}
    for name, value in function.values.items():
        if value.op != "select" or value.type != "i32" or name in turns:
            continue
        test, then, other = value.args
        for turn in tests.get(test, ()):
            base = turns.get(turn.base)
            low = base.low if base is not None else None
            made = _carried(turn, low, _of(forms, then), _of(forms, other))
            if made is not None and (made.floor is None or turn.low is not None):
                forms[name] = made
                break
    return forms


def _written(function: Function, turns: Mapping[str, _Turn], forms: dict[str, _Form]) -> bool:
    """Writes the choices as sums.  Whether one has a floor."""
    starts = function.starts()

    def block(at: int) -> int:
        return bisect_right(starts, at)

    def place(name: str) -> int:
        return max(function.values[name].at, turns[forms[name].base].value.at)

    new = {name for name, form in forms.items()
           if block(function.values[name].at) == block(turns[form.base].value.at)}  # fmt: skip

    def elsewhere(name: str) -> list[int]:
        return [at for at in function.uses.get(name, ()) if function.result(at) not in new]

    def stays(name: str) -> bool:
        """Whether it is needed before its place is there, or is not worth a sum."""
        late, used = place(name), elsewhere(name)
        return bool(used) and (
            forms[name].turns < _TURNS
            or any(at <= late and block(at) == block(late) for at in used)
        )

    while some := {name for name in new if stays(name)}:
        new -= some
    needed = [name for name in new if elsewhere(name)]
    notes = {name: function.note(function.values[name].at) for name in new}
    for name in new:
        function.lines[function.values[name].at] = ""
    floors = False
    for name in sorted(needed, key=lambda name: function.values[name].at):
        form, at = forms[name], place(name)
        note = notes[name]
        sum_ = name if form.floor is None else f"%end.{function.values[name].at}"
        lines = [f"  {sum_} = add i32 {form.base}, {form.number}{note}"]
        if form.floor is not None:
            floors = True
            given = f"i32 {sum_}, i32 {form.floor}"
            lines.append(f"  {name} = call i32 @llvm.smax.i32({given}){note}")
        function.lines[at] += "\n" + "\n".join(lines)
    return floors


def _function(function: Function) -> list[str]:
    turns = _turns(function)
    if len(turns) < _TURNS:
        return []
    forms, declared = _forms(function, turns), list[str]()
    for word in words(function):
        form = forms.get(word.end)
        if form is not None and turns[form.base].value.at < word.at:
            load(function, word, form.base, form.number, form.floor)
            declared.append(_GREATEST)
    return [_GREATEST] if _written(function, turns, forms) else declared


def _scaled(function: Function) -> list[str]:
    """Sums of places that are shifted to the left become those of shifted numbers; what else needs
    a place shifts it back."""
    shifts: dict[int, dict[str, str]] = defaultdict(dict)  # by count and place
    for name, value in function.values.items():
        if value.op == "shl" and value.type == "i32" and (count := _number(value.args[1])):
            shifts[count].setdefault(value.args[0], name)
    turns, done = _turns(function), set[str]()
    for count, some in shifts.items():
        chains: dict[str, list[_Turn]] = {}  # by each place, all of its search
        for turn in turns.values():
            if turn.low is None or turn.high is None or turn.low < 0 or count > 7:
                continue  # high is under 2^24
            if not turn.base or turn.base in chains:
                chains[turn.name] = chains.get(turn.base, [])
                chains[turn.name].append(turn)
        for number, turn in enumerate(turns.values()):
            chain = () if turn.base or turn.name in done else chains.get(turn.name, ())
            if chain and _scale(function, chain, some, count, f"%scaled.{number}"):
                done.add(turn.name)
    return []


def _scale(
    function: Function, chain: Sequence[_Turn], shifts: Mapping[str, str], count: int, prefix: str
) -> bool:
    """Scales a search, if that pays; whether it did."""
    own = {turn.value.at for turn in chain}
    others: dict[str, bool] = {}  # whether a place has other uses than those that are scaled, too
    for turn in chain:
        shift = function.values[shifts[turn.name]].at if turn.name in shifts else None
        others[turn.name] = any(
            at not in own and at != shift for at in function.uses.get(turn.name, ())
        )
    if sum(turn.name in shifts for turn in chain) < _TURNS + sum(others.values()):
        return False
    scaled: dict[str, str] = {}
    for number, turn in enumerate(chain):
        name = scaled[turn.name] = shifts.get(turn.name, f"{prefix}.{number}")
        at, note = turn.value.at, function.note(turn.value.at)
        then, other = turn.then << count, turn.other << count
        chosen = f"select i1 {turn.test}, i32 {then}, i32 {other}"
        if turn.base:
            step = f"{prefix}.{number}.by"
            function.insert(at, f"{step} = {chosen}")
            if len(function.uses[turn.step]) == 1:
                function.lines[function.values[turn.step].at] = ""
            function.insert(at, f"{name} = add i32 {scaled[turn.base]}, {step}")
        else:
            function.insert(at, f"{name} = {chosen}")
        if turn.name in shifts:
            function.lines[function.values[name].at] = ""
        if not others[turn.name]:
            function.lines[at] = ""
        elif turn.base:
            function.lines[at] = f"  {turn.name} = lshr exact i32 {name}, {count}{note}"
    return True


def searched(text: str) -> str:
    """A module as LLVM prints it after its passes, with the ends of such searches as sums."""
    if len(_CHOICE.findall(text)) < _TURNS:
        return text
    return changed(changed(text, _function), _scaled)


__all__ = ["searched"]
