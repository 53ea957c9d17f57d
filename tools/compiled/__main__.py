"""Writes C for the modules of ``sassxlate/compiled_modules.txt``, and how CMake builds it.

    python -m tools.compiled FOLDER

FOLDER gets ``c/*.c`` and ``sources.cmake``, which sets SX_COMPILED_NAME (the library's, without
suffix), SX_COMPILED_SOURCES and SX_COMPILED_INCLUDE.  Needs mypy (with mypyc, as its wheels have
it) and setuptools.  CMake runs it where SX_COMPILED is on: see ``runtime_shim/native/translator``.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from sassxlate import compiled
from tools.compiled.dataclass_methods import expand

# NamedTuples that no module takes apart.
_VALUES = {
    "cfg/uniformity.py": ("_Step",),
    "disasm/rdna3/reads_writes.py": ("_Form",),
    "disasm/sass/codec/decode.py": ("_Guard",),
    "disasm/sass/codec/row_compiler.py": ("Value",),
    "lowering/nans/steps.py": ("Value", "Step"),
}
_SUFFIXES = (".py", ".pyi", ".typed")
_CONFIG = "[mypy]\npython_version = 3.11\nignore_missing_imports = True\n"
# A place in a module's text, of what adds a line to a traceback.
_PLACE = re.compile(r'(CPy_\w+\("(sassxlate/[^"]+\.py)", "[^"]*", )(\d+)(?=[,)])')
_FILE_SUFFIX = re.compile(r'(ext_suffix = PyUnicode_FromString\()"[^"]*"')


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(arguments[0]).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    digest = compiled.digest()
    lines = _copy(compiled.ROOT, folder / "src" / "sassxlate")
    sources, include = _translate(folder, lines)
    _glue(folder / "c" / "modules.c")
    name = f"translator-{digest}-mypy{version('mypy')}"
    listed = "\n  ".join(f'"{path}"' for path in (*sources, folder / "c" / "modules.c"))
    (folder / "sources.cmake").write_text(
        f'set(SX_COMPILED_NAME "{name}")\nset(SX_COMPILED_INCLUDE "{include}" "{folder / "c"}")\n'
        f"set(SX_COMPILED_SOURCES\n  {listed})\n",
        "utf-8",
    )
    return 0


def _copy(root: Path, target: Path) -> dict[str, tuple[int, ...]]:
    """The package's modules in another folder, those to compile with the methods of their
    dataclasses; of each of these, by its path, the lines of the original."""
    wanted = {compiled.source(name, root) for name in compiled.names(root)}
    places: dict[str, tuple[int, ...]] = {}
    for package in (root, *(p for p in sorted(root.iterdir()) if p.is_dir())):
        found = package.glob("*") if package == root else package.rglob("*")
        for path in found:
            if path.suffix not in _SUFFIXES or not path.is_file():
                continue
            relative = path.relative_to(root)
            copy = target / relative
            copy.parent.mkdir(parents=True, exist_ok=True)
            text = path.read_text("utf-8")
            if path in wanted:
                expanded = expand(text, _VALUES.get(str(relative), ()))
                text = expanded.text
                places[f"sassxlate/{relative}"] = expanded.lines
            copy.write_text(text, "utf-8")
    return places


def _translate(folder: Path, lines: dict[str, tuple[int, ...]]) -> tuple[list[Path], Path]:
    """The C files of all modules, with their lines as places, and the folder of mypyc's header."""
    from mypyc.build import mypycify

    config = folder / "mypy.ini"
    config.write_text(_CONFIG, "utf-8")
    made = folder / "c"
    with contextlib.chdir(folder / "src"):
        extensions = mypycify(
            ["--config-file", str(config), "--cache-dir", str(folder / "mypy"), *sorted(lines)],
            multi_file=True,
            target_dir=str(made),
            group_name=compiled.GROUP,
        )
    group = next(one for one in extensions if one.name == f"{compiled.GROUP}__mypyc")
    sources = [(folder / "src" / source).resolve() for source in group.sources]

    def original(match: re.Match[str]) -> str:
        return f"{match[1]}{lines[match[2]][int(match[3]) - 1]}"

    for path in sources:
        text = path.read_text("utf-8")
        text = _FILE_SUFFIX.sub(r'\1".py"', _PLACE.sub(original, text))
        path.write_text(text, "utf-8")
    import mypyc

    return sources, Path(mypyc.__file__).with_name("lib-rt")


def _glue(path: Path) -> None:
    """What makes each module, by a name of its own: those of two packages may be the same."""
    group = f"{compiled.GROUP}__mypyc"
    lines = ["#include <Python.h>"]
    for name in compiled.names():
        mangled = name.replace(".", "___")
        lines += [
            f"extern PyObject *CPyInit_{mangled}(void);",
            f"PyMODINIT_FUNC PyInit_{mangled}(void) {{ return CPyInit_{mangled}(); }}",
        ]
    path.write_text("\n".join([f"// Of {group}: every module of the library.", *lines, ""]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
