"""The translator's modules as machine code, where a library of them is installed and fits.

mypyc compiles the modules that ``compiled_modules.txt`` names into one library for a version of
Python (``tools/compiled``, ``runtime_shim/native/translator``).  The library's name has a digest of
the sources that it was made of, and of modules whose constants it has inside: with any other
sources, with another Python, or if ``SASSXLATE_PURE`` is set, the same modules are imported from
their sources.  Both do the same.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import os
import sys
from collections.abc import Sequence
from functools import cache
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from importlib.abc import Loader as _Loader
else:  # that module takes a millisecond
    _Loader = object

ROOT = Path(__file__).parent
PURE = "SASSXLATE_PURE"
GROUP = "sassxlate_translator"  # of modules that call each other as C functions
_CONSTANTS = "constants of "
_SHARED = f"{GROUP}__mypyc"  # mypyc's own module of a group

State = Literal["used", "pure", "absent", "other sources"]


def names(root: Path = ROOT) -> tuple[str, ...]:
    """The modules that are compiled, as they are imported; ``root``: the package's folder."""
    return tuple(line for line in _lines(root) if not line.startswith(_CONSTANTS))


def constants(root: Path = ROOT) -> tuple[str, ...]:
    """Modules that run as Python, but have literals declared ``Final`` that compiled modules use:
    mypyc writes these into their code."""
    return tuple(
        line.removeprefix(_CONSTANTS) for line in _lines(root) if line.startswith(_CONSTANTS)
    )


def _lines(root: Path) -> list[str]:
    lines = (root / "compiled_modules.txt").read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def source(name: str, root: Path = ROOT) -> Path:
    """A module's source."""
    return root.joinpath(*name.split(".")[1:]).with_suffix(".py")


def digest(root: Path = ROOT) -> str:
    """16 hexadecimal digits for the sources of all modules that are compiled, and of
    :func:`constants`."""
    found = hashlib.blake2b(digest_size=8)
    for name in (*names(root), *constants(root)):
        data = source(name, root).read_bytes()
        found.update(f"{name} {len(data)} ".encode() + data)
    return found.hexdigest()


def _made() -> list[Path]:
    """The libraries for this Python, of whatever sources."""
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    return sorted((ROOT / "runtime_shim" / "lib").glob(f"translator-*{suffix}"))


@cache
def library() -> Path | None:
    """The library that fits the sources and this Python; None if there is none."""
    made = _made()
    if not made:
        return None  # and no source has to be read
    head = f"translator-{digest()}-"
    return next((path for path in made if path.name.startswith(head)), None)


def _pure() -> bool:
    """Whether ``SASSXLATE_PURE`` is set, to anything but an empty value, 0, false, no or off."""
    return os.environ.get(PURE, "").strip().lower() not in ("", "0", "false", "no", "off")


def state() -> State:
    """What runs: the library, or Python's code and why."""
    if _pure():
        return "pure"
    if library() is not None:
        return "used"
    return "other sources" if _made() else "absent"


class Finder(_Loader):
    """Finds the modules of :func:`names` in the library, and makes them: an ``importlib`` finder
    and loader in one."""

    def __init__(self) -> None:
        self._names: frozenset[str] | None = None

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not name.startswith("sassxlate.") or name.count(".") < 2:
            return None
        if self._names is None:
            self._names = frozenset(() if library() is None else names())
        if name not in self._names:
            return None
        spec = ModuleSpec(name, self, origin=str(source(name)))
        spec.has_location = True
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        if _SHARED not in sys.modules:
            shared = _from_library(_SHARED)
            # Beside the package: mypyc derives each module's __file__ from it.
            shared.__file__ = str(ROOT.with_name(f"{_SHARED}.py"))
            sys.modules[_SHARED] = shared
        try:
            return _from_library(spec.name.replace(".", "___"))
        finally:
            sys.modules.pop(spec.name.replace(".", "___"), None)

    def exec_module(self, module: ModuleType) -> None:
        """Making a module ran it; then CPython set its file to the library."""
        module.__file__ = str(source(module.__name__))


def _from_library(name: str) -> ModuleType:
    path = str(library())
    loader = ExtensionFileLoader(name, path)
    return loader.create_module(ModuleSpec(name, loader, origin=path))


@cache
def install() -> Finder | None:
    """Lets the library's modules be imported, unless ``SASSXLATE_PURE`` is set."""
    if _pure():
        return None
    finder = Finder()
    sys.meta_path.insert(0, finder)
    return finder
