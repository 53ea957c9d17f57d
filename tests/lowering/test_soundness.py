"""docs/soundness.md names every hand-written sequence: code that narrows EXEC, branches or
calls."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOWERING = ROOT / "lowering"
PAGE = ROOT / "docs" / "soundness.md"
WAYS = ("s_cbranch_", "s_branch", "s_call_", "s_setpc_", "s_swappc_", "v_cmpx_")
# The modules that write code; the optimizer's code is always proved.
WRITERS = ("abi", "builder", "convergence", "passes", "rules", "select")
_NAMED = re.compile(r"`((?:\w+/)+\w+\.[\w.]+)`")


def _strings(node: ast.expr) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value


def _is_exec(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "EXEC"


def _goes_its_own_way(call: ast.Call) -> bool:
    """Whether a call writes a label, a branch, or an instruction whose result is EXEC."""
    to = call.func
    if isinstance(to, ast.Attribute) and isinstance(to.value, ast.Name) and to.value.id == "c":
        if to.attr in ("mark", "branch"):
            return True
        if to.attr != "emit":
            return False
        operands = call.args[1:2]
    elif isinstance(to, ast.Name) and to.id == "Inst" and len(call.args) > 1:
        operands = call.args[1].elts[:1] if isinstance(call.args[1], ast.Tuple) else []
    else:
        return False
    names = [*_strings(call.args[0])]
    if any(name.startswith(WAYS) or "saveexec" in name for name in names):
        return True
    compares = any(name.startswith("s_cmp") for name in names)
    return not compares and any(map(_is_exec, operands))


def _functions(tree: ast.AST, inside: str) -> Iterator[tuple[str, ast.AST]]:
    """Functions and methods with the names that they have in the module."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{inside}{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            yield f"{inside}{node.name}", node


def sequences(source: str, module: str) -> set[str]:
    return {
        f"{module}.{name}"
        for name, function in _functions(ast.parse(source), "")
        if any(isinstance(n, ast.Call) and _goes_its_own_way(n) for n in ast.walk(function))
    }


def _written() -> set[str]:
    files = [f for folder in WRITERS for f in sorted(LOWERING.glob(f"{folder}/**/*.py"))]
    found = (sequences(f.read_text(), str(f.relative_to(LOWERING).with_suffix(""))) for f in files)
    return set[str]().union(*found)


def _rows() -> list[list[str]]:
    """The table's rows, at the bars."""
    section = PAGE.read_text().partition("## Hand-written sequences")[2].partition("\n## ")[0]
    return [line.split("|") for line in section.splitlines() if line.startswith("|")]


def _named() -> list[str]:
    return [name for row in _rows() for name in _NAMED.findall(row[2])]


def test_what_counts() -> None:
    source = """
class Machine:
    def leave(self, c):
        c.raw(Inst("s_mov_b32", (EXEC, ZERO)))
def plain(c):
    c.raw(Inst("s_mov_b32", (save, EXEC)))
    c.raw(Inst("s_cmp_eq_u32", (EXEC, ZERO)))
def loop(c):
    def inner():
        c.mark(again)
def narrowed(c):
    c.emit("s_and_b32", EXEC, EXEC, mask)
def opened(c):
    c.raw(Inst("s_and_not0_saveexec_b32" if inv else "s_and_saveexec_b32", (save, place)))
"""
    assert sequences(source, "m") == {"m.Machine.leave", "m.loop", "m.narrowed", "m.opened"}


def test_every_sequence_is_named() -> None:
    assert sorted(_named()) == sorted(_written())  # each once


def test_every_sequence_has_a_witness() -> None:
    rows = [row for row in _rows() if "`" in row[2]]
    assert rows
    assert all(len(row) == 6 and row[4].strip() for row in rows)
