"""Writes C for the modules of ``sassxlate/compiled_modules.txt``; CMake builds a library of it.

    python -m tools.compiled FOLDER     # FOLDER/c/unit0.c and so on, headers in FOLDER/include
    python -m tools.compiled --name     # prints the library's name, without suffix

The files' names do not depend on the modules, so that CMake knows them before they are written:
``runtime_shim/native/translator``.  Needs mypy (with mypyc, as its wheels have it) and setuptools.
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
from tools.compiled.dataclass_methods import Expanded, expand

# NamedTuples that no module takes apart.
_VALUES = {
    "cfg/uniformity.py": ("_Step",),
    "disasm/rdna3/reads_writes.py": ("_Form",),
    "disasm/sass/codec/decode.py": ("_Guard",),
    "disasm/sass/codec/row_compiler.py": ("Value",),
    "lowering/nans/steps.py": ("Value", "Step"),
}
# Frozen classes with many objects, of types that cannot lead back to them: a test follows those.
ACYCLIC = {
    "cfg/graph.py": ("Edge", "Block"),
    "cfg/uniformity.py": ("_Step",),
    "disasm/rdna3/instruction.py": ("V", "S", "Sp", "I", "LabelRef", "InstOrigin", "Inst", "Label"),
    "disasm/rdna3/reads_writes.py": ("Effects", "_Form"),
    "disasm/sass/codec/decode.py": ("_Guard",),
    "disasm/sass/codec/row_compiler.py": ("Value",),
    "disasm/sass/instruction.py": (
        *("Reg", "Pred", "Imm", "Const", "Mem", "Label", "Special", "BReg", "Name", "Scoreboard"),
        *("Control", "RegRef", "Instruction"),
    ),
    "lowering/lane_checks/handwritten.py": ("_Lane", "_Step"),
    "lowering/nans/steps.py": ("Value", "Step"),
    "lowering/region/region.py": ("BlockBody",),
    "lowering/regalloc/register_map.py": ("LaneSlot",),
    "lowering/rules/memory/memory.py": ("Address",),
}
_SUFFIXES = (".py", ".pyi", ".typed")
# Errors of the modules that stay Python are not reported: they are checked as they are written, and
# here ``replace`` does not know the fields of a packed class.
_CONFIG = """\
[mypy]
python_version = 3.11
ignore_missing_imports = True
follow_imports = silent
"""
# A place in a module's text, of what adds a line to a traceback.
_PLACE = re.compile(r'(CPy_\w+\("(sassxlate/[^"]+\.py)", "[^"]*", )(\d+)(?=[,)])')
_FILE_SUFFIX = re.compile(r'(ext_suffix = PyUnicode_FromString\()"[^"]*"')


# A compiler reads 40,000 lines of headers for each file, so that modules share a file; with more
# files more processors work at once.  translator/CMakeLists.txt names them.
UNITS = 8
_ONCE = """\
#if defined(__clang__)
#define SX_ONCE __attribute__((optnone, noinline))
#else
#define SX_ONCE __attribute__((optimize("O0")))
#endif
"""
# How objects that the collector does not know are freed: CPython's trashcan, which limits how deep
# one such call is in another, takes a collector's header for granted.
_TRASHCAN = re.compile(
    r"^\{\n    CPy_TRASHCAN_BEGIN\(.*\)\n((?:.*\n){2})    CPy_TRASHCAN_END\(self\)$", re.M
)
# The code that runs when a module is imported.
_TOP = re.compile(r"^(char CPyDef_\w+top_level__\(void\)) \{", re.M)


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    if arguments[0] == "--name":
        print(f"translator-{compiled.digest()}-mypy{version('mypy')}")
        return 0
    folder = Path(arguments[0]).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _translate(folder, _copy(compiled.ROOT, folder / "src" / "sassxlate"))
    _glue(folder / "c" / "modules.c")
    return 0


def _copy(root: Path, target: Path) -> dict[str, Expanded]:
    """The package's modules in another folder, those to compile with the methods of their
    dataclasses; each of these by its path."""
    wanted = {compiled.source(name, root) for name in compiled.names(root)}
    made: dict[str, Expanded] = {}
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
                expanded = expand(
                    text, _VALUES.get(str(relative), ()), ACYCLIC.get(str(relative), ())
                )
                text = expanded.text
                made[f"sassxlate/{relative}"] = expanded
            copy.write_text(text, "utf-8")
    return made


def _translate(folder: Path, texts: dict[str, Expanded]) -> None:
    """Writes the C of all modules, with their lines as places, and of mypyc's run time."""
    import mypyc
    from mypyc.build import mypycify

    config = folder / "mypy.ini"
    config.write_text(_CONFIG, "utf-8")
    made = folder / "c"
    with contextlib.chdir(folder / "src"):
        extensions = mypycify(
            ["--config-file", str(config), "--cache-dir", str(folder / "mypy"), *sorted(texts)],
            multi_file=True,
            target_dir=str(made),
            group_name=compiled.GROUP,
        )
    group = next(one for one in extensions if one.name == f"{compiled.GROUP}__mypyc")
    sources = [(folder / "src" / source).resolve() for source in group.sources]

    def original(match: re.Match[str]) -> str:
        return f"{match[1]}{texts[match[2]].lines[int(match[3]) - 1]}"

    freed = 0
    modules: list[Path] = []
    others: list[Path] = []
    for path in sources:
        text = path.read_text("utf-8")
        text, tops = _TOP.subn(r"SX_ONCE \1 {", text)
        text, count = _TRASHCAN.subn(r"{\n\1", text)
        freed += count
        text = _FILE_SUFFIX.sub(r'\1".py"', _PLACE.sub(original, text))
        path.write_text(text, "utf-8")
        (modules if tops else others).append(path)
    if len(modules) != len(texts):
        raise ValueError(f"{len(texts)} modules, {len(modules)} files that begin one")
    if freed != sum(text.acyclic for text in texts.values()):
        raise ValueError(f"{freed} classes of objects without a collector's header")
    for number, unit in enumerate(units([(path, path.stat().st_size) for path in modules])):
        _include(made / f"unit{number}.c", unit)
    _include(made / "runtime.c", [path for path in others if not path.name.startswith("__native")])
    _include(made / "group.c", [path for path in others if path.name.startswith("__native")])
    # Headers, and what C files include, are copied: mypy may be in a folder of this build alone.
    headers = Path(mypyc.__file__).with_name("lib-rt")
    for header in (*headers.rglob("*.h"), *headers.rglob("*.c")):
        copy = folder / "include" / header.relative_to(headers)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(header.read_bytes())


def units(sizes: Sequence[tuple[Path, int]]) -> list[list[Path]]:
    """Deals the files to :data:`UNITS` lists of about the same size, each in the files' order."""
    dealt: list[tuple[int, int, list[Path]]] = [(0, number, []) for number in range(UNITS)]
    for path, size in sorted(sizes, key=lambda one: (-one[1], one[0])):
        least, number, paths = min(dealt, key=lambda one: one[:2])
        dealt[number] = (least + size, number, [*paths, path])
    return [sorted(paths) for _, _, paths in dealt]


def _include(path: Path, files: Sequence[Path]) -> None:
    path.write_text(_ONCE + "".join(f'#include "{file.name}"\n' for file in files), "utf-8")


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
