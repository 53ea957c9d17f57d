"""Frozen dataclasses that share what objects have alike behave as the others."""

from __future__ import annotations

import copy
import pickle
import sys
from dataclasses import FrozenInstanceError, astuple, dataclass, field, fields, replace
from typing import Any

import pytest

from sassxlate.disasm.rdna3.instruction import Inst, InstOrigin, V
from sassxlate.packed import SHARED, packed


@dataclass(frozen=True, slots=True)
class Plain:
    """As dataclasses makes it."""

    op: str
    size: int = 1
    flag: bool = False
    inner: Plain | None = None
    note: str = field(default="", compare=False)
    place: int | None = field(default=None, compare=False)

    def __hash__(self) -> int:
        return hash((self.op, self.size))

    def moved(self, op: str, place: int | None) -> Plain:
        return replace(self, op=op, place=place)


@packed(own=("op", "place"), copy="moved", apart="note")
@dataclass(frozen=True, slots=True)
class Packed:
    """The same, packed."""

    op: str
    size: int = 1
    flag: bool = False
    inner: Packed | None = None
    note: str = field(default="", compare=False)
    place: int | None = field(default=None, compare=False)

    def __hash__(self) -> int:
        return hash((self.op, self.size))

    def moved(self, op: str, place: int | None) -> Packed:
        """Another op at another place."""
        return replace(self, op=op, place=place)


CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    (("a",), {}),
    (("a", 3), {"note": "n"}),
    (("a",), {"flag": True, "place": 9}),
    (("b", 1, False, None, "n", 4), {}),
]


def rest(one: object) -> object:
    return getattr(one, "_rest")  # noqa: B009


def test_as_dataclasses_makes_it() -> None:
    names = [f.name for f in fields(Plain)]
    assert [f.name for f in fields(Packed)] == names
    assert Packed.__match_args__ == Plain.__match_args__
    for given, named in CALLS:
        one, other = Plain(*given, **named), Packed(*given, **named)
        assert astuple(other) == astuple(one)
        assert repr(other) == repr(one).replace("Plain", "Packed")
        assert hash(other) == hash(one)
        for changes in ({"size": 7}, {"op": "z"}, {"flag": True, "place": 1}):
            changed: Any = changes
            assert astuple(replace(other, **changed)) == astuple(replace(one, **changed))
        assert astuple(other.moved("m", 5)) == astuple(one.moved("m", 5))
        for same in (pickle.loads(pickle.dumps(other)), copy.copy(other), copy.deepcopy(other)):
            assert type(same) is Packed
            assert astuple(same) == astuple(other)
        for again in CALLS:
            equal = one == Plain(*again[0], **again[1])
            assert (other == Packed(*again[0], **again[1])) is equal
    assert Packed("a") != Plain("a")
    wrongs: list[dict[str, Any]] = [{}, {"op": "a", "more": 1}]
    for wrong in wrongs:
        with pytest.raises(TypeError):
            Packed(**wrong)


def test_it_stays_frozen() -> None:
    one = Packed("a", 3)
    for name in (*(f.name for f in fields(Packed)), "another"):
        with pytest.raises(FrozenInstanceError):
            setattr(one, name, None)
        with pytest.raises(FrozenInstanceError):
            delattr(one, name)
    assert astuple(one) == astuple(Plain("a", 3))


def test_equal_values_are_one_object() -> None:
    one, other = Packed("a", 3, flag=True), Packed("b", 3, flag=True, place=5)
    assert rest(one) is rest(other)
    assert rest(replace(one, size=4)) is not rest(one)
    assert rest(one.moved("c", None)) is rest(one)


def test_what_is_equal_but_not_the_same_is_kept() -> None:
    """A second half that is another instruction's in what is not compared; a text that is apart;
    numbers for truth values."""
    first, second = Packed("x", note="first"), Packed("x", note="second")
    assert first == second
    assert [Packed("a", inner=one).inner for one in (first, second)] == [first, second]
    assert [getattr(Packed("a", inner=one).inner, "note") for one in (first, second)] == [  # noqa: B009
        "first",
        "second",
    ]
    assert rest(Packed("a", note="n")) is not rest(Packed("a", note="n"))
    wrong: Any = {"size": True, "flag": 1}
    one = Packed("t", **wrong)
    assert (type(one.size), type(one.flag)) == (int, bool)
    assert (type(Packed("t", 1, True).size), type(Packed("t", 1, True).flag)) == (int, bool)


def test_what_is_remembered_is_bounded() -> None:
    first = rest(Packed("a", -5))
    for size in range(10_000, 10_000 + SHARED):
        assert Packed("a", size).size == size
    assert rest(Packed("a", -5)) is not first
    assert Packed("a", -5).size == -5


def test_instructions_are_small() -> None:
    inst = Inst("v_add_f32", (V(1), V(2), V(3)), neg=1, origin=InstOrigin("FADD", 16))
    assert sys.getsizeof(inst) <= 80  # 24 fields would take 200
    moved = inst.with_args((V(4), V(5), V(6)))
    assert astuple(moved) == astuple(replace(inst, args=(V(4), V(5), V(6))))
    assert rest(moved) is rest(inst)
