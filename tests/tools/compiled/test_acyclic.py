"""Objects that are made without a header of CPython's collector are in no cycle."""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import gc
import importlib
import types
import typing
from functools import cache
from typing import Any

import pytest

from sassxlate import compiled
from sassxlate.disasm.rdna3.instruction import Inst, V
from tools.compiled.__main__ import ACYCLIC
from tools.compiled.dataclass_methods import expand

_PLAIN = (int, bool, str, float, bytes, type(None))
# What cannot be changed, or whose elements are of the types that it says.
_HOLDERS = (tuple, frozenset, collections.abc.Mapping)


def _class(path: str, name: str) -> type:
    module = importlib.import_module("sassxlate." + path.removesuffix(".py").replace("/", "."))
    return typing.cast(type, getattr(module, name))


CLASSES = [_class(path, name) for path, names in ACYCLIC.items() for name in names]


@cache
def _names(cls: type) -> dict[str, Any]:
    """The types of its attributes.  Names in annotations are those of its module, also of what is
    imported for types alone."""
    module = importlib.import_module(cls.__module__)
    return typing.get_type_hints(cls, {**vars(typing), **vars(module)})


def problem(cls: Any, above: tuple[Any, ...] = ()) -> str:
    """Why an object of a type may hold one that holds it; empty if it cannot."""
    origin = typing.get_origin(cls)
    if cls in _PLAIN or origin is typing.Literal or cls is Ellipsis or cls in above:
        return ""
    if origin in (typing.Union, types.UnionType) or origin in _HOLDERS:
        found = (problem(arg, above) for arg in typing.get_args(cls))
        return next((one for one in found if one), "")
    if isinstance(cls, type) and issubclass(cls, enum.Enum):
        return ""
    if isinstance(cls, type) and hasattr(cls, "_fields"):
        found = (problem(kind, (*above, cls)) for kind in _names(cls).values())
        return next((one for one in found if one), "")
    if not dataclasses.is_dataclass(cls) or not isinstance(cls, type):
        return f"{cls}"
    if not getattr(cls, "__dataclass_params__").frozen:  # noqa: B009
        return f"{cls} is not frozen"
    for kind in _names(cls).values():
        if found := problem(kind, (*above, cls)):
            return f"{cls.__name__}: {found}"
    return ""


@pytest.mark.skipif(
    compiled.state() == "used", reason="compiled classes say tuple where theirs say what is in it"
)
@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_no_type_leads_back(cls: type) -> None:
    assert problem(cls) == ""


@dataclasses.dataclass(frozen=True)
class _Holder:
    inside: tuple[list[int], ...]


@dataclasses.dataclass
class _Changed:
    other: _Changed | None


@pytest.mark.parametrize("cls", [_Holder, _Changed])
def test_what_may_be_in_a_cycle_is_found(cls: type) -> None:
    assert problem(cls)


def test_only_frozen_classes_are_taken() -> None:
    head = "from __future__ import annotations\n"
    for text in ("@dataclass\nclass A:\n    x: int", "@dataclass(frozen=True)\nclass B: pass"):
        with pytest.raises(ValueError, match="A"):
            expand(f"{head}{text}\n", acyclic=["A"])


@pytest.mark.skipif(compiled.state() != "used", reason="the modules run from their sources")
def test_the_collector_does_not_know_them() -> None:
    assert not gc.is_tracked(V(1))
    assert not gc.is_tracked(Inst("v_nop"))
