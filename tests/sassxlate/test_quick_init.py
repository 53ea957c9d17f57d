"""Frozen dataclasses with a quick ``__init__`` behave as the others."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, astuple, dataclass, fields, replace
from typing import Any

import pytest

from sassxlate.disasm.rdna3.instruction import I, Inst, InstOrigin, V
from sassxlate.quick_init import quick_init


@dataclass(frozen=True, slots=True)
class Plain:
    """As dataclasses makes it."""

    op: str
    args: tuple[int, ...] = ()
    imm: int = 7
    note: str = ""


@quick_init
@dataclass(frozen=True, slots=True)
class Quick:
    """The same, quick."""

    op: str
    args: tuple[int, ...] = ()
    imm: int = 7
    note: str = ""


def test_as_dataclasses_makes_it() -> None:
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        (("a",), {}),
        (("a", (1,)), {}),
        (("a", (1,), 2, "b"), {}),
        (("a",), {"imm": 3}),
    ]
    for given, named in calls:
        one, other = Plain(*given, **named), Quick(*given, **named)
        assert type(other) is Quick
        assert astuple(one) == astuple(other)
        assert other == Quick(*given, **named)
        assert hash(one) == hash(other)
        assert repr(other) == repr(one).replace("Plain", "Quick")
    wrongs: list[dict[str, Any]] = [{}, {"op": "a", "more": 1}]
    for wrong in wrongs:
        for kind in (Plain, Quick):
            with pytest.raises(TypeError):
                kind(**wrong)


def test_an_instruction_stays_frozen() -> None:
    inst = Inst("v_add_f32", (V(1), V(2), I(3)), neg=2, origin=InstOrigin("FADD", 16))
    for name in (f.name for f in fields(Inst)):
        with pytest.raises(FrozenInstanceError):
            setattr(inst, name, None)
    with pytest.raises((AttributeError, TypeError)):
        setattr(inst, "another", 1)  # noqa: B010
    same = (pickle.loads(pickle.dumps(inst)), copy.copy(inst), copy.deepcopy(inst), replace(inst))
    assert all(type(one) is Inst and astuple(one) == astuple(inst) for one in same)
    assert replace(inst, op="v_mul_f32").origin == inst.origin
    assert [getattr(Inst("s_nop"), f.name) for f in fields(Inst)][1:] == [
        f.default for f in fields(Inst)
    ][1:]
