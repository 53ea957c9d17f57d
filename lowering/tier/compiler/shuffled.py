"""Takes the choice of the lane out of shuffles whose result matters only where it is another one.

SHFL gives a lane its own value if the other lane is not in its segment.  Where a lane's code looks
at the result only if it is, as reductions of a warp do, the address needs no choice: it is the
lane's number and a constant, which ds_bpermute_b32 adds itself.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sassxlate.lowering.tier.compiler.ssa import Function, Value, changed

_SHUFFLE: Final = "call @llvm.amdgcn.ds.bpermute"
_LANE: Final = "call @llvm.amdgcn.mbcnt.lo"
_LANES: Final = 32
_MASK: Final = 0xFFFFFFFF
_LEAST: Final = "declare i32 @llvm.smin.i32(i32, i32)"
# The lane's number anew: LLVM would compute its sums before a loop, which the instruction adds for
# nothing.  Code generation sees that it is the same.
_AGAIN: Final = "call i32 @llvm.amdgcn.mbcnt.lo(i32 -1, i32 0) convergent"
_PURE: Final = frozenset(
    ("bitcast", "add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr", "fadd", "fsub",
     "fmul", "call @llvm.canonicalize.f32", "call @llvm.maximumnum.f32",
     "call @llvm.minimumnum.f32", "call @llvm.amdgcn.sad.u8")
)  # fmt: skip
# Comparisons that do not hold of a value and itself.
_STRICT: Final = frozenset(
    f"{kind} {test}" for kind, tests in (("fcmp", ("olt", "ogt", "one")),
                                         ("icmp", ("slt", "sgt", "ult", "ugt", "ne")))
    for test in tests
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A shuffle: its line and name, what is shuffled, the line of the address, the other lane's
    number, and the condition (with what it is then) under which it is the other one's."""

    at: int
    name: str
    value: str
    place: int
    other: str
    inside: str
    holds: bool


def _signed(word: int) -> int:
    return word - (1 << 32) if word & 1 << 31 else word


class _Lanes:
    """What a function's values are for each lane, as far as they follow from its number."""

    def __init__(self, values: dict[str, Value]) -> None:
        self.values = values
        self.known: dict[tuple[str, int], int | None] = {}

    def of(self, name: str, lane: int) -> int | None:
        """A value of 32 bits or of one; None if it is not known."""
        if name in ("true", "false"):
            return int(name == "true")
        if name.lstrip("-").isdigit():
            return int(name) & _MASK
        if (name, lane) not in self.known:
            self.known[name, lane] = None  # of a cycle
            found = self.values.get(name)
            self.known[name, lane] = None if found is None else self._computed(found, lane)
        return self.known[name, lane]

    def _computed(self, value: Value, lane: int) -> int | None:
        if value.op == _LANE:
            return lane if value.args == ("-1", "0") else None
        if value.type not in ("i1", "i32"):
            return None
        if value.op == "select":
            test = self.of(value.args[0], lane)
            if test is None:
                return None
            return self.of(value.args[1 if test else 2], lane)
        if len(value.args) != 2:
            return None
        a, b = (self.of(arg, lane) for arg in value.args)
        if value.op == "and" and 0 in (a, b):
            return 0
        if a is None or b is None:
            return None
        if value.type == "i1":
            a, b = a & 1, b & 1
        return self._result(value, a, b)

    def _result(self, value: Value, a: int, b: int) -> int | None:
        match value.op:
            case "add":
                return (a + b) & _MASK
            case "sub":
                return (a - b) & _MASK
            case "and":
                return a & b
            case "or":
                return a | b
            case "xor":
                return a ^ b
            case "icmp slt":
                return int(_signed(a) < _signed(b))
            case "icmp sgt":
                return int(_signed(a) > _signed(b))
            case "icmp sle":
                return int(_signed(a) <= _signed(b))
            case "icmp sge":
                return int(_signed(a) >= _signed(b))
            case "icmp ult":
                return int(a < b)
            case "icmp ugt":
                return int(a > b)
            case "icmp eq":
                return int(a == b)
            case "icmp ne":
                return int(a != b)
            case _:
                return None


def _shuffles(function: Function) -> Iterator[_Chosen]:
    values = function.values
    for name, value in values.items():
        if value.op != _SHUFFLE or (shift := values.get(value.args[0])) is None:
            continue
        choice = values.get(shift.args[0]) if shift.op == "shl" and shift.args[1] == "2" else None
        if choice is None or choice.op != "select" or not choice.args:
            continue
        test, a, b = choice.args
        for other, own, holds in ((a, b, True), (b, a, False)):
            if (mine := values.get(own)) and mine.op == _LANE:
                yield _Chosen(value.at, name, value.args[1], shift.at, other, test, holds)
                break


class _Uses:
    """Whether a shuffle's result matters where the other lane is not inside."""

    def __init__(self, function: Function, shuffle: _Chosen) -> None:
        self.function, self.shuffle = function, shuffle
        self.lanes = _Lanes(function.values)

    def never(self, test: str, holds: bool) -> bool:
        """Whether a condition is the opposite of ``holds`` where the other lane is not inside."""
        if test == self.shuffle.inside:
            return holds == self.shuffle.holds
        found = self.function.values.get(test)
        if found is not None and found.type == "i1":
            if found.op == ("and" if holds else "or"):
                return any(self.never(arg, holds) for arg in found.args)
            if found.op == "select" and found.args[2 if holds else 1] == (
                "false" if holds else "true"
            ):
                return self.never(found.args[0], holds) or self.never(
                    found.args[1 if holds else 2], holds
                )
            if found.op == "xor" and found.args[1] == "true":
                return self.never(found.args[0], not holds)
        for lane in range(_LANES):
            inside = self.lanes.of(self.shuffle.inside, lane)
            if inside is not None and bool(inside) == self.shuffle.holds:
                continue
            given = self.lanes.of(test, lane)
            if given is None or bool(given) == holds:
                return False
        return True

    def free(self, name: str, depth: int = 8) -> bool:
        """Whether no use of a value, which comes from the shuffle, matters there."""
        return depth > 0 and all(
            self._free_at(name, at, depth) for at in self.function.uses.get(name, ())
        )

    def _free_at(self, name: str, at: int, depth: int) -> bool:
        result = self.function.result(at)
        value = self.function.values.get(result)
        if value is None or value.at != at:
            return False
        if value.op == "select":
            if not value.args:  # of vectors
                return False
            test, then, other = value.args
            if name == self.shuffle.name and test == self.shuffle.inside:
                return True  # as _owned leaves it
            if name != test and (
                (name != other and self.never(test, True))
                or (name != then and self.never(test, False))
            ):
                return True
            return self.free(result, depth - 1)
        if value.type == "i1" and value.op in ("and", "or"):
            holds = value.op == "and"
            if any(self.never(arg, holds) for arg in value.args if arg != name):
                return True
            return self.free(result, depth - 1)
        if value.op in _PURE or value.op.startswith(("icmp ", "fcmp ")):
            return self.free(result, depth - 1)
        return False


class _Merged:
    """Whether a shuffle's result replaces the lane's own value only where it is less, or greater.
    Where the other lane is not inside, both are the same, and the lane keeps its own, too."""

    def __init__(self, function: Function, shuffle: _Chosen) -> None:
        self.function, self.shuffle = function, shuffle
        self.own = self.root(shuffle.value)

    def root(self, name: str) -> str:
        """A value without changes of its type alone."""
        while (found := self.function.values.get(name)) and found.op == "bitcast" and found.args:
            (name,) = found.args
        return name

    def users(self, name: str) -> Iterator[tuple[str, Value | None]]:
        """What uses a value, by name; under a name without a value, something else does."""
        for at in self.function.uses.get(name, ()):
            result = self.function.result(at)
            value = self.function.values.get(result)
            if value is not None and value.op == "bitcast":
                yield from self.users(result)
            else:
                yield result, value

    def tests(self) -> list[Value]:
        """The conjunctions under which it does; empty if it may matter otherwise."""
        found: list[Value] = []
        chosen: set[str] = set()
        for name, value in self.users(self.shuffle.name):
            if value is None:
                return []
            if value.op == "select":
                if not self._replaces(value):
                    return []
                chosen.add(value.args[0])
            elif value.op in _STRICT and self.own in map(self.root, value.args):
                for _, both in self.users(name):
                    if both is None or both.op != "and" or both.type != "i1":
                        return []
                    found.append(both)
            else:
                return []
        known = {self.function.result(both.at) for both in found}
        return found if chosen <= known and all(self._guards(both) for both in found) else []

    def _replaces(self, choice: Value) -> bool:
        if not choice.args:  # of vectors
            return False
        test, then, other = choice.args
        return (
            test != then and self.root(then) == self.shuffle.name and self.root(other) == self.own
        )

    def _guards(self, both: Value) -> bool:
        name = self.function.result(both.at)
        return all(
            value is not None and value.op == "select" and value.args[:1] == (name,)
            and self._replaces(value) for _, value in self.users(name)
        )  # fmt: skip


def _within(function: Function, shuffle: _Chosen, number: int) -> bool:
    """Puts the test that the other lane is inside into what guards its use, where one comparison
    does both.  Whether that could be done."""
    values = function.values
    inside = values.get(shuffle.inside)
    if inside is None or (inside.op, shuffle.holds) != ("icmp slt", False):
        return False
    limit, other = inside.args
    tests = _Merged(function, shuffle).tests()
    if other != shuffle.other or not tests:
        return False
    guards: list[tuple[Value, str, str]] = []
    for both in tests:
        for arg in both.args:
            if bound := _bound(values, arg, other):
                guards.append((both, arg, bound))
                break
        else:
            return False
    for count, (both, arg, bound) in enumerate(guards):
        name = f"%inside.{number}.{count}"
        function.insert(
            both.at,
            f"{name}.l = call i32 @llvm.smin.i32(i32 {limit}, i32 {bound})",
            f"{name} = icmp sge i32 {name}.l, {other}",
        )
        rest = next(a for a in both.args if a != arg)
        function.replace(both.at, f"and i1 {rest}, {name}")
    return True


def _bound(values: dict[str, Value], test: str, other: str) -> str:
    """What a lane's number must not be over for a condition to hold; empty if it is none such."""
    found, sum_ = values.get(test), values.get(other)
    if found is None or found.type != "i32":
        return ""
    if found.op == "icmp sge" and found.args[1] == other:
        return found.args[0]
    if found.op == "icmp sle" and found.args[0] == other:
        return found.args[1]
    if sum_ is None or sum_.op != "add" or sum_.args[1] != "1":
        return ""
    mine = values.get(sum_.args[0])
    if mine is None or mine.op != _LANE:  # of which the next is greater
        return ""
    if found.op == "icmp slt" and found.args[0] == sum_.args[0]:
        return found.args[1]
    return found.args[0] if found.op == "icmp sgt" and found.args[1] == sum_.args[0] else ""


def _plain(function: Function, some: list[_Chosen]) -> None:
    """The addresses without the choice."""
    starts, bases = function.starts(), dict[int, str]()
    for number, shuffle in enumerate(some):
        name, block = f"%lane.{number}", bisect_right(starts, shuffle.at)
        step = _step(function.values, shuffle.other)
        if step is None:
            function.insert(shuffle.place, f"{name} = shl i32 {shuffle.other}, 2")
        else:
            if block not in bases:
                bases[block] = f"{name}.b"
                function.insert(
                    shuffle.at, f"{name}.n = {_AGAIN}", f"{name}.b = shl i32 {name}.n, 2"
                )
            function.insert(shuffle.at, f"{name} = add i32 {bases[block]}, {4 * (step % _LANES)}")
        called = f"call i32 @llvm.amdgcn.ds.bpermute(i32 {name}, i32 {shuffle.value})"
        function.replace(shuffle.at, called)


def _owned(function: Function, shuffle: _Chosen) -> None:
    """Choices of the result where the other lane is not inside become ones of the lane's own."""
    for at in function.uses.get(shuffle.name, ()):
        name = function.result(at)
        value = function.values.get(name)
        if value is None or value.op != "select" or value.args[:1] != (shuffle.inside,):
            continue
        test, *arms = value.args
        arms[int(shuffle.holds)] = _other(arms[int(shuffle.holds)], shuffle)
        function.replace(at, f"select i1 {test}, i32 {arms[0]}, i32 {arms[1]}")


def _other(arm: str, shuffle: _Chosen) -> str:
    return shuffle.value if arm == shuffle.name else arm


def _step(values: dict[str, Value], other: str) -> int | None:
    """How far from a lane the other one is, if that is a number."""
    sum_ = values.get(other)
    if sum_ is None or sum_.op != "add" or not sum_.args[1].lstrip("-").isdigit():
        return None
    mine = values.get(sum_.args[0])
    return int(sum_.args[1]) if mine is not None and mine.op == _LANE else None


def _function(function: Function) -> list[str]:
    some: list[_Chosen] = []
    declared: list[str] = []
    for number, shuffle in enumerate(_shuffles(function)):
        if _Uses(function, shuffle).free(shuffle.name):
            _owned(function, shuffle)
            some.append(shuffle)
        elif _within(function, shuffle, number):
            some.append(shuffle)
            declared.append(_LEAST)
    _plain(function, some)
    return declared


def unchosen(text: str) -> str:
    """A module as LLVM prints it after its passes, with such shuffles' addresses plain."""
    return changed(text, _function) if "@llvm.amdgcn.ds.bpermute(" in text else text


__all__ = ["unchosen"]
