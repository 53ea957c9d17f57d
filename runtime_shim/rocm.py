"""AMD's ROCm userland, as far as a program needs it to run on AMD's HIP library.

Versions that `python -m tools.rocm fetch` made are each in a folder of their own, with the C
library and the dynamic linker that they need: a program is started by that linker.  An installed
ROCm is used as it is.  Cheap to import: a part of every start.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from sassxlate.errors import ShimError
from sassxlate.runtime_shim import hip_probe

LIBRARIES = "usr/lib/x86_64-linux-gnu"
LOADER = f"{LIBRARIES}/ld-linux-x86-64.so.2"
READY = "complete"  # the file that a fetched version gets last
_HIP = re.compile(r"libamdhip64\.so\.(6|7)")
# Whose comgr, Debian's 7.0.2, has one key in its cache for all compressed bundles of a processor: a
# library gets the code objects of another, even of another process ("Cannot find Symbol").
_BUNDLES_MIXED_UP = ("6.4.3",)


def base() -> Path:
    """The folder that holds fetched versions: $SASSXLATE_ROCM_FOLDER, or one in the user's
    cache."""
    named = os.environ.get("SASSXLATE_ROCM_FOLDER")
    if named:
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "sassxlate-rocm"


@dataclass(frozen=True, slots=True)
class Userland:
    """A ROCm userland.

    ``hip``: AMD's HIP library.  ``libraries``: the folder of what it needs, and ``loader`` the
    dynamic linker that starts programs with them; None where the system's own do.
    """

    name: str
    hip: Path
    libraries: Path | None = None
    loader: Path | None = None

    def settings(self) -> dict[str, str]:
        """Variables that AMD's libraries need here; the user's own come first."""
        if self.loader is not None and self.name in _BUNDLES_MIXED_UP:
            return {"AMD_COMGR_CACHE": os.environ.get("AMD_COMGR_CACHE", "0")}
        return {}

    def start(self, app: str, path: Path, search: str) -> tuple[Path, list[str]]:
        """The program to start, and the words before the application's arguments.

        Args:
            app: the name by which the application was called.
            path: its file.
            search: the folders of libraries that come first, as in LD_LIBRARY_PATH.
        """
        if self.loader is None:
            return path, [app]
        folders = f"{search}:{self.libraries}" if search else str(self.libraries)
        # the linker looks a name without a slash up among the libraries, and a Path loses its "./"
        words = [str(self.loader), "--library-path", folders, "--argv0", app, os.path.abspath(path)]
        return self.loader, words


def fetched() -> list[Userland]:
    """The versions that have been fetched, the newest first."""
    try:
        roots = [root for root in base().iterdir() if (root / READY).is_file()]
    except OSError:
        return []
    found = [userland for root in roots if (userland := _in_root(root)) is not None]
    return sorted(found, key=lambda one: [int(n) for n in one.name.split(".") if n.isdigit()])[::-1]


def _in_root(root: Path) -> Userland | None:
    libraries = root / LIBRARIES
    names = [path for path in libraries.glob("libamdhip64.so.*") if _HIP.fullmatch(path.name)]
    if not names:
        return None
    return Userland(root.name, max(names), libraries, root / LOADER)


def find() -> Userland:
    """The userland that $SASSXLATE_ROCM names (a fetched version, or the folder of an installed
    ROCm), otherwise the newest that was fetched, otherwise an installed one.

    Raises:
        ShimError: SX0874, there is none.
    """
    named = os.environ.get("SASSXLATE_ROCM", "")
    here = fetched()
    if named:
        for userland in here:
            if userland.name == named:
                return userland
        for library in sorted(Path(named).glob("lib/libamdhip64.so.*"))[::-1]:
            if _HIP.fullmatch(library.name):
                return Userland(named, library)
        raise ShimError("SX0874", f"SASSXLATE_ROCM={named}: no such version or folder of ROCm")
    if here:
        return here[0]
    for name in hip_probe.candidates():
        if "/" in name and Path(name).is_file():
            return Userland(name, Path(name))
    raise ShimError("SX0874", f"no ROCm was fetched to {base()}, and none is installed")
