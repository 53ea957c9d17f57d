"""Frozen dataclasses of many fields that nearly always have their defaults."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from operator import attrgetter
from typing import Any, Final, TypeVar

T = TypeVar("T")

SHARED: Final = 1 << 12  # groups of values that are remembered, for each class


def packed(own: tuple[str, ...], copy: str, apart: str) -> Callable[[type[T]], type[T]]:
    """A frozen dataclass with slots whose objects hold the fields ``own``, and all others in one
    object that they share with those of equal values.

    An RDNA3 instruction has 23 fields, of which a translation of 10,000 SASS instructions holds
    60,000 times the same few dozen groups: with this its objects take a third of the memory.  For
    a user of the class nothing changes: each field is an attribute, ``replace`` and ``fields`` know
    it, and it cannot be set.

    ``copy`` names a method that takes the fields ``own`` in their order and gives an object with
    the others of this one; it is written here, to do that without looking at them.  ``apart`` is a
    field of text whose values are mostly unlike: no group with such a text is remembered, nor one
    with anything but numbers and texts, since what is equal need not be the same.

    Only for classes without subclasses, factories of defaults, and ``__post_init__``, with a hash
    of their own; the fields that are shared have defaults and can be hashed.
    """

    def pack(cls: type[T]) -> type[T]:
        made = fields(cls)  # type: ignore[arg-type]
        shared = [f for f in made if f.name not in own]
        assert not hasattr(cls, "__post_init__")
        assert [f.name for f in made if f.name in own] == [*own]
        assert all(f.default_factory is MISSING and f.init and not f.kw_only for f in made)
        assert all(f.default is not MISSING for f in shared)
        assert cls.__hash__ is not object.__hash__
        given = {name: value for name, value in vars(cls).items() if not _of_slots(cls, name)}
        given |= {f.name: property(attrgetter(f"_rest.{f.name}")) for f in shared}
        frozen: Any = type(cls.__name__, (), given | {"__slots__": (*own, "_rest")})
        space = _space(frozen, made, shared, own, apart)
        methods = ("__init__", "__eq__", "__reduce__", copy)
        exec("\n".join(_source(made, shared, own, copy)), space)  # as dataclasses makes its own
        for name in (*methods, "__setattr__", "__delattr__"):
            method = space[name]
            method.__qualname__ = f"{cls.__qualname__}.{name}"
            method.__module__ = cls.__module__
            method.__doc__ = getattr(cls, name).__doc__
            setattr(frozen, name, method)
        frozen.__init__.__annotations__ = dict(cls.__init__.__annotations__)
        made_class: type[T] = frozen
        return made_class

    return pack


def joined(cls: type[object], rest: type[object], names: tuple[str, ...]) -> None:
    """Lists the fields of two dataclasses, in the order of ``names``, as those of the first: for
    compiled code, where both are written out (``tools/compiled``)."""
    both = {f.name: f for made in (rest, cls) for f in fields(made)}  # type: ignore[arg-type]
    setattr(cls, "__dataclass_fields__", {name: both[name] for name in names})  # noqa: B010
    setattr(cls, "__match_args__", names)  # noqa: B010


def _of_slots(cls: type[object], name: str) -> bool:
    """What belongs to the slots of a class, and not to one with others."""
    return name in ("__slots__", "__getstate__", "__setstate__", "__weakref__", "__dict__") or (
        name in getattr(cls, "__slots__", ())
    )


def _space(
    frozen: type[object],
    made: tuple[Field[Any], ...],
    shared: list[Field[Any]],
    own: tuple[str, ...],
    apart: str,
) -> dict[str, Any]:
    """What the methods' source names."""
    names = [f.name for f in shared]
    known: dict[tuple[Hashable, ...], object] = {}
    text = names.index(apart)
    kinds: list[Any] = [type(f.default) for f in shared]
    rest_class: Any = type(f"_{frozen.__name__}Rest", (), {"__slots__": tuple(names)})

    def remember(key: tuple[Any, ...]) -> object:
        """The object for a group of values, which are of the fields' types where they are equal to
        such: True is 1, and the next who gives 1 shall not find True."""
        rest = rest_class()
        exact = not key[text]
        for f, kind, value in zip(shared, kinds, key, strict=True):
            plain = kind in (int, bool) and type(value) in (int, bool) and kind(value) == value
            setattr(rest, f.name, kind(value) if plain else value)
            exact = exact and (plain or type(value) is str or value in (None, ()))
        if exact:
            if len(known) >= SHARED:
                known.clear()
            known[key] = rest
        return rest

    def __setattr__(self: object, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self: object, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    space: dict[str, Any] = {f"default_{f.name}": f.default for f in made}
    open_class = type(frozen.__name__, (), {"__slots__": (*own, "_rest")})
    return space | {
        "set_class": object.__setattr__,
        "new": object.__new__,
        "Open": open_class,
        "Frozen": frozen,
        "known": known,
        "remember": remember,
        "__setattr__": __setattr__,
        "__delattr__": __delattr__,
    }


def _source(
    made: tuple[Field[Any], ...], shared: list[Field[Any]], own: tuple[str, ...], copy: str
) -> list[str]:
    """The methods: objects are made as by quick_init."""
    given = [f.name if f.default is MISSING else f"{f.name}=default_{f.name}" for f in made]
    compared = [f.name for f in made if f.compare and f.name in own]
    others = [f"a.{f.name} == b.{f.name}" for f in shared if f.compare]
    key = ", ".join(f.name for f in shared)
    assigned = [f"    self.{name} = {name}" for name in own]
    copied = [f"    made.{name} = {name}" for name in own]
    return [
        f"def __init__(self, {', '.join(given)}):",
        "    try:",
        f"        rest = known[{key},]",
        "    except KeyError:",
        f"        rest = remember(({key},))",
        '    set_class(self, "__class__", Open)',
        *assigned,
        "    self._rest = rest",
        "    self.__class__ = Frozen",
        f"def {copy}(self, {', '.join(own)}):",
        "    made = new(Open)",
        *copied,
        "    made._rest = self._rest",
        "    made.__class__ = Frozen",
        "    return made",
        "def __eq__(self, other):",
        "    if self is other:",
        "        return True",
        "    if other.__class__ is not Frozen:",
        "        return NotImplemented",
        f"    if not ({' and '.join(f'self.{name} == other.{name}' for name in compared)}):",
        "        return False",
        "    a, b = self._rest, other._rest",
        f"    return a is b or ({' and '.join(others)})",
        "def __reduce__(self):",
        f"    return Frozen, ({', '.join(f'self.{f.name}' for f in made)},)",
    ]


__all__ = ["SHARED", "joined", "packed"]
