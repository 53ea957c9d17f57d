"""Builds the executables and cubins that are kept in ``fixtures``, each with its provenance.

Run after a change of a kept program's source, of a kernel, or of the toolkit.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

from .programs import (
    BASE_FLAGS,
    PROGRAMS,
    ROOT,
    SOURCES,
    Toolkit,
    build_cubin,
    build_program,
    find_toolkit,
    gencode,
    load_programs,
)

KEPT = ("saxpy", "reduction", "collatz")
KERNELS = ROOT / "fixtures" / "kernels"
ARCHS = (80, 90)
KERNEL_ARCHS = (80, 90, 120)  # 120 stands for the encodings of sm_100 and later

# Titles and numbers of the sections, not their text.
LICENCE = """\
[licence]
source = "Apache-2.0, as all of this repository; the terms below are those of the runtime inside"
contains = "libcudart_static.a, the static CUDA runtime of the toolkit named above"
agreement = "License Agreement for NVIDIA Software Development Kits, CUDA Toolkit Supplement"
grant = "1.1.1 License Grant, item 3: distributable portions as incorporated in object code form"
listed_as_distributable = "2.6 Attachment A, CUDA Runtime, Linux: libcudart_static.a"
conditions = ["1.1.2 Distribution Requirements", "1.2 Limitations", "2.1 License Scope"]
note = "The runtime is distributed as linked by nvcc, unmodified, and only as part of this program."
"""


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _version(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[
        0
    ]


def _quoted(items: tuple[str, ...] | list[str]) -> str:
    return "[" + ", ".join(f'"{item}"' for item in items) + "]"


def keep_program(name: str, kit: Toolkit) -> Path:
    """Builds one executable, stripped, with the static runtime, and writes its provenance."""
    program = load_programs()[name]
    path = build_program(program, PROGRAMS / name, ARCHS, strip=True, toolkit=kit)
    flags = [*BASE_FLAGS, *program.flags, *gencode(ARCHS), "-cudart", "static"]
    header = SOURCES / "selfcheck.h"
    (PROGRAMS / f"{name}.provenance.toml").write_text(
        f"# Written by tools/generate/{Path(__file__).name}.\n"
        f'[binary]\nfile = "{name}"\nsha256 = "{_sha256(path)}"\nsize = {path.stat().st_size}\n\n'
        f'[source]\nfile = "src/{program.source.name}"\nsha256 = "{_sha256(program.source)}"\n'
        f'header = "src/{header.name}"\nheader_sha256 = "{_sha256(header)}"\n\n'
        f'[build]\ntoolkit = "CUDA {kit.release}"\nflags = {_quoted(flags)}\n'
        f'sass = {_quoted([f"sm_{arch}" for arch in ARCHS])}\nptx = []\ncudart = "static"\n'
        f'stripped = true\nhost_compiler = "{_version("g++", "--version")}"\n'
        f'strip = "{_version("strip", "--version")}"\n\n{LICENCE}'
    )
    return path


def keep_kernels(kit: Toolkit) -> list[Path]:
    """Builds the cubins of all kernels and writes one provenance file for them."""
    rows: list[str] = []
    kept: list[Path] = []
    for source in sorted(KERNELS.glob("*.cu")):
        for arch in KERNEL_ARCHS:
            cubin = build_cubin(source, KERNELS / f"sm_{arch}" / f"{source.stem}.cubin", arch)
            kept.append(cubin)
            rows.append(
                f'[cubin."sm_{arch}/{cubin.name}"]\nsha256 = "{_sha256(cubin)}"\n'
                f'source = "{source.name}"\nsource_sha256 = "{_sha256(source)}"\n'
            )
    header = (
        f"# Written by tools/generate/{Path(__file__).name}.  The sources are this project's own.\n"
        f'toolkit = "CUDA {kit.release}"\nflags = {_quoted(BASE_FLAGS)}\n'
        f'header = "kernel.h"\nheader_sha256 = "{_sha256(KERNELS / "kernel.h")}"\n'
        f'licence = "Apache-2.0"\n\n'
    )
    (KERNELS / "provenance.toml").write_text(header + "\n".join(rows))
    return kept


def main() -> int:
    """Builds everything that is kept; prints the paths."""
    kit = find_toolkit()
    for path in [*(keep_program(name, kit) for name in KEPT), *keep_kernels(kit)]:
        print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
