"""The library of compiled modules is used where it fits, and does what the sources do."""

from __future__ import annotations

import ast
import functools
import importlib.machinery
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sassxlate import compiled

KERNELS = sorted((Path(__file__).parents[2] / "fixtures" / "kernels").rglob("*.cubin"))
SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]

_DIGESTS = """
import hashlib, json, sys
from pathlib import Path
from sassxlate import compiled
from sassxlate.disasm.containers import load
from sassxlate.errors import SassxlateError
from sassxlate.lowering.pipeline import translate_kernel
made = {}
for path in sys.argv[1:]:
    for _, cubin in load(Path(path)).cubins():
        for kernel in cubin.kernels:
            try:
                code = translate_kernel(cubin, kernel.name).code_object
                made[f"{path} {kernel.name}"] = hashlib.sha256(code).hexdigest()
            except SassxlateError as error:
                made[f"{path} {kernel.name}"] = str(error)
print(json.dumps([compiled.state(), made]))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with one module that is compiled, and a place for its library."""
    root = tmp_path / "sassxlate"
    (root / "runtime_shim" / "lib").mkdir(parents=True)
    (root / "cfg").mkdir()
    (root / "compiled_modules.txt").write_text("# some\nsassxlate.cfg.graph\n")
    (root / "cfg" / "graph.py").write_text("A = 1\n")
    monkeypatch.setattr(compiled, "ROOT", root)
    monkeypatch.setattr(compiled.digest, "__defaults__", (root,))
    monkeypatch.setattr(compiled.names, "__defaults__", (root,))
    monkeypatch.setattr(compiled.constants, "__defaults__", (root,))
    monkeypatch.setattr(compiled.source, "__defaults__", (root,))
    monkeypatch.delenv(compiled.PURE, raising=False)
    compiled.library.cache_clear()
    monkeypatch.setattr(compiled, "library", compiled.library.__wrapped__)
    return root


def _library(root: Path, name: str) -> Path:
    path = root / "runtime_shim" / "lib" / name
    path.write_bytes(b"")
    return path


def test_the_library_of_these_sources_is_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert compiled.state() == "absent"
    assert compiled.Finder().find_spec("sassxlate.cfg.graph") is None
    made = _library(folder, f"translator-{compiled.digest()}-mypy1{SUFFIX}")
    assert compiled.library() == made
    assert compiled.state() == "used"
    spec = compiled.Finder().find_spec("sassxlate.cfg.graph")
    assert spec is not None
    assert spec.origin == str(folder / "cfg" / "graph.py")
    assert compiled.Finder().find_spec("sassxlate.cfg.build") is None
    assert compiled.Finder().find_spec("json.decoder") is None
    monkeypatch.setenv(compiled.PURE, "1")
    assert compiled.state() == "pure"


def test_one_of_other_sources_is_not(folder: Path) -> None:
    _library(folder, f"translator-{compiled.digest()}-mypy1{SUFFIX}")
    (folder / "cfg" / "graph.py").write_text("A = 2\n")
    assert compiled.library() is None
    assert compiled.state() == "other sources"
    assert compiled.Finder().find_spec("sassxlate.cfg.graph") is None


def test_one_of_other_constants_is_not(folder: Path) -> None:
    """mypyc copies literals that are Final into compiled code, from modules that stay Python."""
    listed = folder / "compiled_modules.txt"
    listed.write_text(listed.read_text() + "constants of sassxlate.cfg.limits\n")
    (folder / "cfg" / "limits.py").write_text("MOST: Final = 1\n")
    _library(folder, f"translator-{compiled.digest()}-mypy1{SUFFIX}")
    assert compiled.state() == "used"
    assert compiled.names() == ("sassxlate.cfg.graph",)
    (folder / "cfg" / "limits.py").write_text("MOST: Final = 2\n")
    assert compiled.state() == "other sources"


def test_every_module_whose_constants_are_compiled_is_listed() -> None:
    modules = set(compiled.names())
    used = {
        home
        for name in modules
        for module, names in _imported(_tree(name))
        for home in _homes(module, names)
        if home not in modules
    }
    assert used
    assert used <= set(compiled.constants())


@functools.cache
def _tree(name: str) -> ast.Module:
    path = compiled.source(name)
    if not path.exists():
        path = path.with_suffix("") / "__init__.py"
    return ast.parse(path.read_text("utf-8") if path.exists() else "")


def _imported(tree: ast.Module) -> Iterator[tuple[str, frozenset[str]]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sassxlate"):
            yield str(node.module), frozenset(alias.name for alias in node.names)


def _homes(module: str, names: frozenset[str]) -> Iterator[str]:
    """The modules of the literals that importing these names lets the importer use."""
    tree = _tree(module)
    body = [
        stated
        for node in tree.body
        for stated in (
            node.body if isinstance(node, ast.ClassDef) and node.name in names else [node]
        )
    ]
    within = {id(s) for node in tree.body if isinstance(node, ast.ClassDef) for s in node.body}
    if any(_literal(s) and (id(s) in within or _target(s) in names) for s in body):
        yield module
    for inner, given in _imported(tree):  # passed on
        if shared := given & names:
            yield from _homes(inner, shared)
    for name in names:  # a module, of which any constant may be used
        if any(_literal(stated) for stated in _tree(f"{module}.{name}").body):
            yield f"{module}.{name}"


def _literal(node: ast.stmt) -> bool:
    if not isinstance(node, ast.AnnAssign) or "Final" not in ast.unparse(node.annotation):
        return False
    value = node.value.operand if isinstance(node.value, ast.UnaryOp) else node.value
    return isinstance(value, ast.Constant)


def _target(node: ast.stmt) -> str:
    return ast.unparse(node.target) if isinstance(node, ast.AnnAssign) else ""


def test_one_of_another_python_is_not(folder: Path) -> None:
    _library(folder, f"translator-{compiled.digest()}-mypy1.cpython-39-x86_64-linux-gnu.so")
    assert compiled.library() is None
    assert compiled.state() == "absent"


def test_pure_by_the_environment() -> None:
    code = "import sys, sassxlate.cfg.graph; print('sassxlate_translator__mypyc' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], env={**os.environ, compiled.PURE: "1"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["False"]


@pytest.mark.skipif(compiled.library() is None, reason="no compiled modules are installed")
def test_the_same_bytes() -> None:
    """Every kernel of the fixtures, translated by both; errors have the same text and place."""
    made: list[tuple[str, dict[str, str]]] = []
    for pure in ("", "1"):
        done = subprocess.run(
            [sys.executable, "-P", "-c", _DIGESTS, *map(str, KERNELS)],
            env={**os.environ, compiled.PURE: pure}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        made.append(json.loads(done.stdout))
    assert [state for state, _ in made] == ["used", "pure"]
    assert made[0][1] == made[1][1]
    assert len(made[0][1]) >= 100
