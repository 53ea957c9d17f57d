"""Writes out what ``sassxlate.packed`` makes of a dataclass: its objects hold a few fields, and the
others in one object that they share."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tools.compiled.dataclass_fields import Field, decorator_name, fields_of, parameter


@dataclass(frozen=True, slots=True)
class Packing:
    """A class ``cls`` with the fields ``fields``, of which objects hold ``own``; ``node`` is its
    source."""

    node: ast.ClassDef
    fields: tuple[Field, ...]
    own: tuple[str, ...]
    copy: str
    apart: str

    @property
    def cls(self) -> str:
        return self.node.name

    @property
    def rest(self) -> str:
        """The name of the class of what is shared."""
        return f"_{self.cls}Rest"

    @property
    def maker(self) -> str:
        """The function that gives the object for a group of values."""
        return f"_{self.cls.lower()}_rest"

    @property
    def plain(self) -> str:
        """The object for defaults alone, which most have."""
        return f"_{self.cls.upper()}_PLAIN"

    @property
    def shared(self) -> tuple[Field, ...]:
        return tuple(field for field in self.fields if field.name not in self.own)

    def _names(self) -> str:
        return ", ".join(field.name for field in self.shared)

    def before(self) -> Iterator[str]:
        """The class of what is shared, after its decorators, and the function that gives it."""
        given = [f"{field.name}: {field.type}" for field in self.shared]
        yield f"class {self.rest}:"
        for field in self.shared:
            options = "" if field.compared else ", compare=False"
            yield f"    {field.name}: {field.type} = _field(default={field.default}{options})"
        yield f"    def __init__(self, {', '.join(given)}) -> None:"
        for field in self.shared:
            yield f"        self.{field.name} = {field.name}  # type: ignore[misc]"
        types = ", ".join(field.type for field in self.shared)
        table = f"{self.maker}s"
        yield f"{table}: dict[tuple[{types}], {self.rest}] = {{}}"
        yield f"def {self.maker}({', '.join(given)}) -> {self.rest}:"
        yield f"    key = ({self._names()},)"
        yield f"    rest = {table}.get(key)"
        yield "    if rest is None:"
        yield f"        rest = {self.rest}({self._names()})"
        unlike = [field for field in self.shared if field.type not in ("int", "bool", "str")]
        exact = [_default(field) for field in unlike] + [f"not {self.apart}"]
        yield f"        if {' and '.join(exact)}:"
        yield f"            if len({table}) >= _SHARED:"
        yield f"                {table}.clear()"
        yield f"            {table}[key] = rest"
        yield "    return rest"

    def left_out(self) -> Iterator[int]:
        """The lines of the class whose text is written anew."""
        for stated in self.node.body:
            name = getattr(stated, "name", None)
            if isinstance(stated, ast.AnnAssign) and isinstance(stated.target, ast.Name):
                name = stated.target.id
                if name in self.own:
                    continue
            elif name != self.copy:
                continue
            yield from range(stated.lineno, (stated.end_lineno or stated.lineno) + 1)

    def methods(self) -> Iterator[str]:
        """The class's further attribute, properties and methods."""
        own = [field for field in self.fields if field.name in self.own]
        yield f"_rest: {self.rest} = _field(init=False, repr=False, compare=False)"
        for field in self.shared:
            yield "@property"
            yield f"def {field.name}(self) -> {field.type}:"
            yield f"    return self._rest.{field.name}"
        given = ["self", *map(parameter, self.fields), f"_rest: {self.rest} | None = None"]
        yield f"def __init__({', '.join(given)}) -> None:"
        for field in own:
            yield f"    self.{field.name} = {field.name}  # type: ignore[misc]"
        yield "    if _rest is None:"
        yield f"        if {' and '.join(map(_default, self.shared))}:"
        yield f"            _rest = {self.plain}"
        yield "        else:"
        yield f"            _rest = {self.maker}({self._names()})"
        yield "    self._rest = _rest  # type: ignore[misc]"
        yield f"def {self.copy}({', '.join(['self', *map(_given, own)])}) -> {self.cls}:"
        copied = [f"{field.name}={field.name}" for field in own]
        yield f"    return {self.cls}({', '.join(copied)}, _rest=self._rest)"
        yield "def __eq__(self, other: object) -> bool:"
        yield "    if self is other:"
        yield "        return True"
        yield f"    if not isinstance(other, {self.cls}):"
        yield "        return NotImplemented"
        compared = [field.name for field in own if field.compared]
        yield f"    if not ({' and '.join(f'self.{n} == other.{n}' for n in compared)}):"
        yield "        return False"
        yield "    a, b = self._rest, other._rest"
        others = [f"a.{field.name} == b.{field.name}" for field in self.shared if field.compared]
        yield f"    return a is b or ({' and '.join(others)})"
        yield "def __repr__(self) -> str:"
        shown = ", ".join(f"{field.name}={{self.{field.name}!r}}" for field in self.fields)
        yield f'    return f"{self.cls}({shown})"'
        yield "def __reduce__(self) -> tuple[object, ...]:"
        yield f"    return {self.cls}, ({''.join(f'self.{f.name}, ' for f in self.fields)})"

    def after(self) -> Iterator[str]:
        """What follows the class."""
        defaults = ", ".join(str(field.default) for field in self.shared)
        yield f"{self.plain}: _Final = {self.maker}({defaults})"
        names = "".join(f'"{field.name}", ' for field in self.fields)
        yield f"_joined({self.cls}, {self.rest}, ({names}))"


def packing(node: ast.ClassDef) -> Packing | None:
    """How a class is packed; None if it is not."""
    call = next((d for d in node.decorator_list if decorator_name(d) == "packed"), None)
    if call is None:
        return None
    assert isinstance(call, ast.Call)
    given = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    fields = tuple(fields_of(node))
    if any(field.made or not field.given for field in fields):
        raise ValueError(f"line {node.lineno}: a packed class with defaults that are made")
    return Packing(node, fields, given["own"], given["copy"], given["apart"])


def _given(field: Field) -> str:
    return f"{field.name}: {field.type}"


def _default(field: Field) -> str:
    """Whether a field's name has its default, as an expression."""
    name, default = field.name, field.default
    if default == "None":
        return f"{name} is None"
    if default in ("False", "()", "''"):
        return f"not {name}"
    return f"{name} == {default}"
