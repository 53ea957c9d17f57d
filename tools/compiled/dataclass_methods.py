"""Writes out the methods that ``dataclass`` makes of a class, so that mypyc compiles them.

mypyc compiles a dataclass's own methods and its attributes, but ``dataclass`` makes ``__init__``,
``__eq__`` and ``__hash__`` at run time, which are interpreted: making an object takes 25 times as
long.  The copy of a module that is compiled has them as text.  Everything else of the class
(``__repr__``, ``__match_args__``, ``fields``, ``replace``, that it is frozen) is still made by
``dataclass``.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from tools.compiled.dataclass_fields import Field, decorator_name, fields_of, parameter
from tools.compiled.packed_classes import packing


@dataclass(frozen=True, slots=True)
class Expanded:
    """A module's text, and for each of its lines the line of the original (from 1 on)."""

    text: str
    lines: tuple[int, ...]
    acyclic: int = 0  # classes whose objects the collector does not know


@dataclass(frozen=True, slots=True)
class _Kept:
    """A ``cached_property``, which mypyc takes for a property, since its objects have no
    dictionary."""

    name: str
    type: str
    line: int  # of the decorator

    @property
    def maker(self) -> str:
        return f"_made_{self.name}"

    @property
    def place(self) -> str:
        return f"_kept_{self.name}"

    def lines(self) -> Iterator[str]:
        options = "default=None, init=False, repr=False, compare=False"
        yield f"{self.place}: {self.type} | None = _field({options})"
        yield "@property"
        yield f"def {self.name}(self) -> {self.type}:"
        yield f"    if self.{self.place} is None:"
        yield f"        self.{self.place} = self.{self.maker}()  # type: ignore[misc]"
        yield f"    return self.{self.place}"


_IMPORTS = (
    "from dataclasses import dataclass, field as _field",
    "from typing import TYPE_CHECKING as _TYPE_CHECKING, final as _final",
    "if _TYPE_CHECKING:",  # mypyc reads the decorator, and nothing calls it
    "    from mypy_extensions import mypyc_attr as _mypyc_attr",
)
_PACKED_IMPORTS = (
    "from typing import Final as _Final",
    "from sassxlate.packed import SHARED as _SHARED, joined as _joined",
)


def expand(text: str, values: Collection[str] = (), acyclic: Collection[str] = ()) -> Expanded:
    """The module with its dataclasses' methods; ValueError for a form that is not known.

    ``values``: its NamedTuples that become frozen dataclasses, whose attributes are faster.  mypy
    finds what takes one apart.  ``acyclic``: its frozen classes whose objects are in no cycle, so
    that CPython's collector need not know them: they are made and freed in less time, and smaller.
    """
    text = _without_unions(text)
    lines = list(enumerate(text.split("\n"), 1))
    classes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)]
    if unknown := {*acyclic} - {node.name for node in classes}:
        raise ValueError(f"no class {', '.join(sorted(unknown))}")
    found, count = False, 0
    imports: list[str] = [*_IMPORTS]
    for node in sorted(classes, key=lambda node: -node.lineno):
        call = next((d for d in node.decorator_list if decorator_name(d) == "dataclass"), None)
        if call is None and node.name in values:
            line = lines[node.lineno - 1][1]
            if "(NamedTuple):" not in line:
                raise ValueError(f"line {node.lineno}: no NamedTuple")
            lines[node.lineno - 1] = node.lineno, line.replace("(NamedTuple)", "")
        elif call is None:
            continue
        elif node.bases or node.keywords:
            raise ValueError(f"line {node.lineno}: a dataclass with bases")
        found = True
        indent = " " * node.body[0].col_offset
        end = node.end_lineno or node.lineno
        options = {"frozen": True} if call is None else _options(call, node.lineno)
        kept = list(_kept(node))
        pack = packing(node)
        if pack is not None:
            lines[end:end] = [(end, line) for line in pack.after()]
        methods = [
            *(_methods(node, options, kept) if pack is None else pack.methods()),
            *(line for one in kept for line in one.lines()),
        ]
        lines[end:end] = [(end, indent + line) for line in methods]
        for at in () if pack is None else pack.left_out():
            lines[at - 1] = at, ""
        for one in kept:  # its decorator's line is used for nothing
            lines[one.line - 1 : one.line + 1] = [
                (one.line, ""),
                (one.line + 1, f"{indent}def {one.maker}(self) -> {one.type}:"),
            ]
        first = min(d.lineno for d in (node, *node.decorator_list)) - 1
        place = " " * node.col_offset
        frozen = options.get("frozen", False)
        decorators = [
            f"{place}@_final",
            f"{place}@dataclass(frozen={frozen}, init=False, eq=False)",
        ]
        if node.name in acyclic:
            if not frozen or kept:
                raise ValueError(f"line {node.lineno}: {node.name} may be in a cycle")
            decorators.insert(0, f"{place}@_mypyc_attr(acyclic=True)")
            count += 1 if pack is None else 2
        lines[first : node.lineno - 1] = [(node.lineno, decorator) for decorator in decorators]
        if pack is not None:
            imports += _PACKED_IMPORTS
            before = [*decorators, *pack.before()]
            lines[first:first] = [(node.lineno, line) for line in before]
    if found:
        future = [at for at, (_, line) in enumerate(lines) if line.startswith("from __future__")]
        if not future:
            raise ValueError("no `from __future__ import annotations`")
        at = future[-1] + 1
        lines[at:at] = [(at, line) for line in imports]
    written = "\n".join(line for _, line in lines)
    return Expanded(written, tuple(number for number, _ in lines), count)


def _without_unions(text: str) -> str:
    """``isinstance(x, A | B)`` as ``isinstance(x, (A, B))``: mypyc compares types with a tuple's,
    and would make a union's object each time."""
    lines = text.split("\n")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
            asked = node.args[1]
            if isinstance(asked, ast.BinOp) and asked.lineno == asked.end_lineno:
                line = lines[asked.lineno - 1].encode()  # columns count bytes
                first, end = asked.col_offset, asked.end_col_offset
                types = line[first:end].replace(b" | ", b", ")
                lines[asked.lineno - 1] = (line[:first] + b"(" + types + b")" + line[end:]).decode()
    return "\n".join(lines)


def _kept(node: ast.ClassDef) -> Iterator[_Kept]:
    for stated in node.body:
        if not isinstance(stated, ast.FunctionDef) or not stated.decorator_list:
            continue
        decorators = [decorator_name(decorator) for decorator in stated.decorator_list]
        if "cached_property" not in decorators:
            continue
        if (
            len(decorators) > 1
            or stated.returns is None
            or stated.body[0].lineno != stated.lineno + 1
        ):
            raise ValueError(f"line {stated.lineno}: a form of cached_property")
        yield _Kept(stated.name, ast.unparse(stated.returns), stated.decorator_list[0].lineno)


def _options(call: ast.expr, line: int) -> dict[str, bool]:
    keywords = call.keywords if isinstance(call, ast.Call) else []
    options = {str(keyword.arg): bool(ast.literal_eval(keyword.value)) for keyword in keywords}
    if unknown := options.keys() - {"frozen", "slots", "eq"}:
        raise ValueError(f"line {line}: dataclass with {', '.join(sorted(unknown))}")
    return options


def _methods(node: ast.ClassDef, options: dict[str, bool], kept: Sequence[_Kept]) -> Iterator[str]:
    have = {stated.name for stated in node.body if isinstance(stated, ast.FunctionDef)}
    fields = list(fields_of(node))
    frozen, eq = options.get("frozen", False), options.get("eq", True)
    if "__init__" in have:
        raise ValueError(f"line {node.lineno}: a dataclass with an __init__")
    parameters = ["self", *(parameter(field) for field in fields if field.given)]
    yield f"def __init__({', '.join(parameters)}) -> None:"
    for field in fields:
        ignore = "  # type: ignore[misc]" if frozen else ""
        yield f"    self.{field.name} = {_value(field)}{ignore}"
    for one in kept:
        yield f"    self.{one.place} = None" + ("  # type: ignore[misc]" if frozen else "")
    if "__post_init__" in have:
        yield "    self.__post_init__()"
    compared = [field.name for field in fields if field.compared]
    if eq and "__eq__" not in have:
        yield "def __eq__(self, other: object) -> bool:"
        yield "    if self is other:"
        yield "        return True"
        yield f"    if not isinstance(other, {node.name}):"
        yield "        return NotImplemented"
        yield f"    return {' and '.join(f'self.{n} == other.{n}' for n in compared) or 'True'}"
    if eq and frozen and "__hash__" not in have:
        yield "def __hash__(self) -> int:"
        yield f"    return hash(({''.join(f'self.{n}, ' for n in compared)}))"
    if all(field.given for field in fields) and "__reduce__" not in have:
        yield "def __reduce__(self) -> tuple[object, ...]:"  # mypyc's own assigns, if frozen too
        yield f"    return {node.name}, ({''.join(f'self.{f.name}, ' for f in fields)})"


def _value(field: Field) -> str:
    if not field.given:
        return field.default if field.default is not None else str(field.made)
    return f"{field.made} if {field.name} is None else {field.name}" if field.made else field.name
