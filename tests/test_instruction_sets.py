"""No list of mnemonics outside of what describes instructions: the others read traits."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sassxlate.disasm.sass.tables import ROWS

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("disasm", "cfg", "lowering", "llm", "runtime_shim", "sassxlate")
MNEMONICS = frozenset(row.mnemonic for row in ROWS)
WORD = re.compile(r"\w+")
# What describes instructions, and rules, which are found by mnemonic.
DESCRIBES = (
    "disasm/sass/tables/", "disasm/sass/semantics/",
    "disasm/sass/traits.py", "lowering/rules/",
)  # fmt: skip
# By the name of a collection, or of the function that contains it: the reason why it is allowed.
ALLOWED = {
    "Transfers.transfers": "the meanings of what transfers control: a method for each",
    "KNOWN": "control's own rules, and the modifiers that they know",
    "FORMS": "older forms of the model's language: a function for each, as the model was trained",
    "ScratchNames.step": "the same",
    "VECTOR": "the same: another name for each",
    "USUALLY_FALSE": "the model's language: where it leaves a predicate out, as it was trained",
    "_SAME": "texts of both ISAs and of several compilers, that mean the same in a comparison",
    "_PLAIN": "the same",
    "_TARGETS": "the same",
    "HELPED": "copies that one lane makes for its wave: read by the lane check alone",
    "_vote": "the moves through which a vote's mask reaches BRA.DIV, and their operands' names",
    "_plain": "what a block may end with and bring lanes together",
    "WHOLE": "the tier's operations of matrices, each with a writer of its own",
    "_PASSED": "what a lane passes without a change of its registers and memory",
    "_LOADS": "loads that give all lanes of one address one value: a guess, which code tests",
    "_MOVES": "what may move a float; a test holds it beside the functions that say how",
    "step": "the tier's writers of what sees other lanes: a function for each",
}


def strings(node: ast.AST) -> list[str]:
    """The strings that a collection, or a text to be split, consists of."""
    match node:
        case ast.Set(elts) | ast.Tuple(elts) | ast.List(elts):
            parts: list[ast.AST] = list(elts)
        case ast.Dict(keys):
            parts = [k for k in keys if k is not None]
        case ast.MatchOr(patterns):
            parts = [p.value for p in patterns if isinstance(p, ast.MatchValue)]
        case ast.Constant(str(text)):
            return text.split() if all(w in MNEMONICS for w in text.split()) else []
        case _:
            return []
    return [p.value for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, str)]


def named(tree: ast.AST, name: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Every node with the name of the enclosing assignment, class and function."""
    for node in ast.iter_child_nodes(tree):
        inner = name
        match node:
            case ast.FunctionDef(own) | ast.ClassDef(own):
                inner = f"{name}.{own}".lstrip(".")
            case ast.Assign([ast.Name(own)]) | ast.AnnAssign(ast.Name(own)) if not name:
                inner = own
            case _:
                pass
        yield inner, node
        yield from named(node, inner)


def collections(source: str) -> list[tuple[str, int, list[str]]]:
    """(name, line, mnemonics) of each collection of three or more."""
    out: list[tuple[str, int, list[str]]] = []
    if len(MNEMONICS.intersection(WORD.findall(source))) < 3:
        return out  # which most files have, and are not parsed for
    for name, node in named(ast.parse(source)):
        found = [s for s in strings(node) if s in MNEMONICS]
        if len(set(found)) >= 3:
            out.append((name, getattr(node, "lineno", 0), found))
    return out


def sources() -> list[Path]:
    every = (p for package in PACKAGES for p in (ROOT / package).rglob("*.py"))
    inside = sorted({p.resolve() for p in every})
    return [p for p in inside if not str(p.relative_to(ROOT)).startswith(DESCRIBES)]


def test_there_are_sources() -> None:
    assert len(sources()) > 300
    assert all(map(WORD.fullmatch, MNEMONICS))


def test_no_list_of_mnemonics() -> None:
    """Where one is needed, disasm/sass/traits.py lacks a trait."""
    left: list[str] = []
    used: set[str] = set()
    for path in sources():
        for name, line, found in collections(path.read_text()):
            if name in ALLOWED:
                used.add(name)
            else:
                left.append(f"{path.relative_to(ROOT)}:{line}: {name}: {' '.join(found)}")
    assert not left, "\n".join(left)
    assert ALLOWED.keys() - used == set()


@pytest.mark.parametrize(
    "source", [
        'A = {"LDG", "STG", "LDS"}', 'A = ("LDG", "STG", "LDS", 1)', 'A = ["LDG", "STG", "LDS"]',
        'A = {"LDG": 1, "STG": 2, "LDS": 3}', 'A = frozenset("LDG STG LDS".split())',
        'def f(x):\n    return x in ("LDG", "STG", "LDS", "other")',
        'def f(x):\n    match x:\n        case "LDG" | "STG" | "LDS":\n            return 1',
    ],
)  # fmt: skip
def test_a_list_is_found(source: str) -> None:
    (one,) = collections(source)
    assert one[2] == ["LDG", "STG", "LDS"]


@pytest.mark.parametrize(
    "source", ['A = {"LDG", "STG"}', 'A = "a text that names LDG, STG and LDS"',
               'A = ("FTZ", "SAT", "RM", "RP")', 'A = {"LDG", "STG", "LDG"}'],
)  # fmt: skip
def test_what_is_none(source: str) -> None:
    assert collections(source) == []
