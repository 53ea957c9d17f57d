"""The fields of a dataclass, read from its source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

# A default that is made anew, written so that mypyc makes it without a call.
_LITERALS = {"list": "[]", "dict": "{}"}


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: str
    default: str | None = None
    made: str | None = None  # the expression of a default that each object has anew
    compared: bool = True
    given: bool = True  # to __init__


def decorator_name(node: ast.expr) -> str:
    return ast.unparse(node.func if isinstance(node, ast.Call) else node).rpartition(".")[2]


def fields_of(node: ast.ClassDef) -> Iterator[Field]:
    for stated in node.body:
        if not isinstance(stated, ast.AnnAssign) or not isinstance(stated.target, ast.Name):
            continue
        name, kind, value = stated.target.id, ast.unparse(stated.annotation), stated.value
        if kind.startswith(("ClassVar", "InitVar")):
            raise ValueError(f"line {stated.lineno}: {kind}")
        if not isinstance(value, ast.Call) or decorator_name(value) != "field":
            yield Field(name, kind, ast.unparse(value) if value else None)
            continue
        given = {str(keyword.arg): keyword.value for keyword in value.keywords}
        if unknown := given.keys() - {"default", "default_factory", "compare", "init", "repr"}:
            raise ValueError(f"line {stated.lineno}: field with {', '.join(sorted(unknown))}")
        default, factory = given.get("default"), given.get("default_factory")
        yield Field(
            name,
            kind,
            None if default is None else ast.unparse(default),
            None if factory is None else _made(factory),
            "compare" not in given or bool(ast.literal_eval(given["compare"])),
            "init" not in given or bool(ast.literal_eval(given["init"])),
        )


def _made(factory: ast.expr) -> str:
    if isinstance(factory, ast.Lambda):
        return ast.unparse(factory.body)
    text = ast.unparse(factory)
    return _LITERALS.get(text.partition("[")[0], f"{text}()")


def parameter(field: Field) -> str:
    if field.made is not None:
        return f"{field.name}: {field.type} | None = None"
    return f"{field.name}: {field.type}" + ("" if field.default is None else f" = {field.default}")
