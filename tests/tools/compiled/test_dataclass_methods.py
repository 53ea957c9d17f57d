"""The methods written out for mypyc are those that ``dataclass`` makes."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from types import ModuleType
from typing import Any

import pytest

from sassxlate import compiled
from tools.compiled.dataclass_methods import expand

SOURCE = '''"""A module."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from sassxlate.packed import packed


@packed(own=("op", "place"), copy="moved", apart="note")
@dataclass(frozen=True, slots=True)
class Wide:
    """Its objects hold what differs."""

    op: str
    size: int = 7  # a comment
    flag: bool = False
    inner: Wide | None = None
    more: tuple[str, ...] = ()
    note: str = field(default="", compare=False)
    place: int = field(default=-1, compare=False)

    def __hash__(self) -> int:
        return hash(self.op)

    def moved(self, op: str, place: int) -> Wide:
        """Another op at another place."""
        raise NotImplementedError

    def area(self) -> int:
        return self.size * self.size


@dataclass(frozen=True, slots=True)
class Point:
    """A frozen one."""

    x: int
    y: int = 2
    note: str = field(default="", compare=False)
    more: tuple[int, ...] = ()

    def sum(self) -> int:
        return self.x + self.y


@dataclass(slots=True)
class Box:
    inside: list[int] = field(default_factory=list[int])
    by_name: dict[str, int] = field(default_factory=dict)
    lazy: list[int] = field(default_factory=lambda: [1, 2])
    kind: str = field(default="box", init=False)

    def __post_init__(self) -> None:
        self.kind += "!"


@dataclass(frozen=True)
class Alone:
    only: int = 5

    @cached_property
    def halves(self) -> list[int]:
        """Made once."""
        return [self.only, self.only]


LAST = 1
'''


def _module(name: str, text: str) -> Any:
    module = ModuleType(name)
    module.__dict__["__name__"] = name
    sys.modules[name] = module  # dataclasses and pickle look for it there
    exec(compile(text, name, "exec"), module.__dict__)
    return module


@pytest.fixture
def both() -> Iterator[tuple[Any, Any]]:
    """The module, and what is compiled of it: objects of frozen classes are made in C there, so
    here they are not frozen."""
    names = "expanded_plain", "expanded_written"
    written = expand(SOURCE).text.replace("frozen=True", "frozen=False")
    yield _module(names[0], SOURCE), _module(names[1], written)
    for name in names:
        del sys.modules[name]


def test_frozen_values(both: tuple[Any, Any]) -> None:
    plain, written = both
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((1,), {}),
        ((1, 3), {"note": "a"}),
        ((), {"x": 4, "more": (1,)}),
    ]
    for given, named in calls:
        one, other = plain.Point(*given, **named), written.Point(*given, **named)
        assert repr(other) == repr(one)
        assert hash(other) == hash(one)
        assert other == written.Point(*given, **named)
        assert repr(replace(other, y=7)) == repr(replace(one, y=7))
        assert pickle.loads(pickle.dumps(other)) == other
        assert other.sum() == one.sum()
    assert written.Point(1) != written.Point(2)
    assert written.Point(1) == written.Point(1, note="not compared")
    assert written.Point(1) != plain.Point(1)
    for module in both:
        alone = module.Alone()
        assert hash(alone) == hash(plain.Alone())
        assert alone.halves == [5, 5]
        assert alone.halves is alone.halves
        assert alone == module.Alone()
        assert repr(alone) == "Alone(only=5)"
    with pytest.raises(TypeError):
        written.Point()


def test_packed_values(both: tuple[Any, Any]) -> None:
    plain, written = both
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        (("a",), {}),
        (("a", 3), {"note": "n"}),
        (("b",), {"flag": True, "more": ("m",), "place": 4}),
        (("b", 7, True), {}),
    ]
    for given, named in calls:
        one, other = plain.Wide(*given, **named), written.Wide(*given, **named)
        assert repr(other) == repr(one)
        assert hash(other) == hash(one)
        assert [f.name for f in fields(other)] == [f.name for f in fields(one)]
        assert [f.compare for f in fields(other)] == [f.compare for f in fields(one)]
        assert written.Wide.__match_args__ == plain.Wide.__match_args__
        assert repr(replace(other, size=2, op="c")) == repr(replace(one, size=2, op="c"))
        assert repr(other.moved("m", 5)) == repr(one.moved("m", 5))
        assert repr(pickle.loads(pickle.dumps(other))) == repr(other)
        assert other.area() == one.area()
        for again, more in calls:
            same = one == plain.Wide(*again, **more)
            assert (other == written.Wide(*again, **more)) is same
    notes = [written.Wide("x", note=text) for text in ("first", "second")]
    assert [written.Wide("a", inner=one).inner.note for one in notes] == ["first", "second"]
    one, other = written.Wide("a", 3, True), written.Wide("b", 3, True, place=5)
    assert one._rest is other._rest
    assert one.moved("c", 1)._rest is one._rest
    assert written.Wide("a")._rest is written.Wide("b", place=2)._rest


def test_objects_that_the_collector_does_not_know_are_counted() -> None:
    """A packed class is two."""
    assert expand(SOURCE, acyclic=("Point", "Wide")).acyclic == 3


def test_defaults_are_made_anew(both: tuple[Any, Any]) -> None:
    plain, written = both
    for module in (plain, written):
        one, other = module.Box(), module.Box(by_name={"a": 1})
        one.inside.append(1)
        assert (other.inside, other.by_name, other.lazy, other.kind) == (
            [],
            {"a": 1},
            [1, 2],
            "box!",
        )
        assert [f.name for f in fields(one)] == ["inside", "by_name", "lazy", "kind"]
        assert one != other


def test_lines_are_the_originals() -> None:
    expanded = expand(SOURCE)
    lines, old = expanded.text.split("\n"), SOURCE.split("\n")
    assert len(lines) == len(expanded.lines)
    places = {line: number for line, number in zip(lines, expanded.lines, strict=True)}
    for line in ("    def sum(self) -> int:", "LAST = 1", "class Alone:"):
        assert places[line] == old.index(line) + 1


@pytest.mark.parametrize(
    "text",
    [
        "@dataclass(order=True)\nclass A:\n    x: int",
        "@dataclass\nclass A(B):\n    x: int",
        "@dataclass\nclass A:\n    x: int = field(kw_only=True)",
        "@dataclass\nclass A:\n    x: ClassVar[int] = 1",
        "@dataclass\nclass A:\n    def __init__(self): pass",
    ],
)
def test_an_unknown_form_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="line"):
        expand(f"from __future__ import annotations\n{text}\n")


@pytest.mark.parametrize("name", compiled.names())
def test_every_module_can_be_expanded(name: str) -> None:
    """What mypyc refuses is seen when the library is built."""
    made = expand(compiled.source(name).read_text("utf-8"))
    compile(made.text, name, "exec")
    assert "@cached_property" not in made.text  # mypyc takes it for a property


def test_a_union_of_types_is_a_tuple() -> None:
    """mypyc would make the union's object at each call."""
    text = "é = isinstance(a, A | B), isinstance(b, C)\nassert isinstance(a, A | B)\nc = A | B\n"
    written = "é = isinstance(a, (A, B)), isinstance(b, C)\nassert isinstance(a, (A, B))\n"
    assert expand(text).text == f"{written}c = A | B\n"
