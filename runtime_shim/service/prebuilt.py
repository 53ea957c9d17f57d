"""The baseline tier's first pack, made where the native libraries are built, so that no run waits
for it.

``python -m sassxlate.runtime_shim.service.prebuilt`` writes one for each instruction set beside the
libraries.  A pack of other sources is not used: it has the digest of all that stencils depend on.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sassxlate.errors import ShimError
from sassxlate.files import replace_file
from sassxlate.runtime_shim import paths, trusted
from sassxlate.runtime_shim.cache.store import seal, unseal

if TYPE_CHECKING:
    from sassxlate.lowering.emulate.options import Isa

_SOURCES: Final = ("disasm/rdna3", "domain", "lowering/emulate", "lowering/llvm", "cfg")
_SUFFIXES: Final = (".py", ".json", ".txt")


def digest() -> bytes:
    """What stencils are made of and by: our sources and tables, and LLVM's version."""
    made = hashlib.blake2b(digest_size=16)
    root = paths.package_root()
    for folder in _SOURCES:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in _SUFFIXES:
                data = path.read_bytes()
                made.update(f"{path.relative_to(root)} {len(data)}\0".encode() + data)
    spec = importlib.util.find_spec("llvmlite")
    if spec is not None and spec.origin is not None:
        made.update(Path(spec.origin).with_name("_version.py").read_bytes())
    return made.digest()


def name_of(isa: Isa) -> str:
    return f"stencils-{isa}.sxs"


def read(folder: Path, isa: Isa) -> bytes | None:
    """The pack in a folder; None if there is none, or one that is damaged or of other sources, or
    that others can write to.  The package's own folder is trusted as its Python code is, which
    comes from there, too: a umask of 002 makes both writable for the user's group."""
    path = folder / name_of(isa)
    try:
        own = "SASSXLATE_LIB" not in os.environ and folder == paths.library_dir()
        data = path.read_bytes() if own else trusted.read(path)[0]
    except (OSError, ShimError, trusted.UntrustedError):
        return None
    content = unseal(name_of(isa), data)
    ours = digest()
    return content[len(ours) :] if content is not None and content.startswith(ours) else None


def write(folder: Path) -> None:
    """Makes the packs of both instruction sets."""
    from sassxlate.lowering.emulate.stencils import known, pack

    for isa in ("avx512", "avx2"):
        name = name_of(isa)
        data = digest() + pack.make(known.known_shapes(), isa).data
        replace_file(folder / name, seal(name, data), 0o644)


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else paths.library_dir())
