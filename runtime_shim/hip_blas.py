"""AMD's hipBLAS for a HIP library: where it is, without loading it.

Cheap to import: a part of every start on a card.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "SASSXLATE_HIPBLAS"
_HIP = re.compile(r"libamdhip64\.so\.(\d+)")
# hipBLAS of ROCm 6 and 7 is linked with that release's HIP; another would be a second one.
_RELEASES = {"6": (2,), "7": (3,)}
_SYSTEM = ("/usr/lib/x86_64-linux-gnu", "/usr/lib64")


def find(hip: str, environ: Mapping[str, str] = os.environ) -> Path | None:
    """The file that $SASSXLATE_HIPBLAS names, or the hipBLAS of the HIP library's release beside
    it, on $LD_LIBRARY_PATH, in a ROCm or among the system's libraries; None if there is none.

    Args:
        hip: the HIP library: a path, or a name that the dynamic linker finds.
        environ: the environment in which the application will run.
    """
    if named := environ.get(VARIABLE):
        return Path(named) if Path(named).is_file() else None
    release = _HIP.match(Path(hip).name)
    numbers = _RELEASES.get(release[1], ()) if release else (3, 2)
    folders = [
        *([str(Path(hip).parent)] if "/" in hip else []),
        *(part for part in environ.get("LD_LIBRARY_PATH", "").split(":") if part),
        *(f"{root}/lib" for root in (environ.get("ROCM_PATH"), "/opt/rocm") if root),
        *_SYSTEM,
    ]
    for folder in folders:
        for number in numbers:
            path = Path(folder, f"libhipblas.so.{number}")
            if path.is_file():
                return path
    return None
