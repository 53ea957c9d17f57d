"""Builds the self-checking programs of ``fixtures/programs`` with nvcc.

The executables hold SASS alone, no PTX, so that what runs is what NVIDIA's compiler made for the
named architectures.  Used by the end-to-end tests, and from the command line::

    python -m tools.generate.programs -o DIR [NAME...] [--arch 80,90] [--cudart shared] [--strip]
    python -m tools.generate.kept_binaries       # those that are kept in fixtures
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "fixtures" / "programs"
SOURCES = PROGRAMS / "src"
BASE_FLAGS = ("-O3", "-std=c++17")
ARCHS = (75, 80, 86, 89, 90, 100, 120)


@dataclass(frozen=True, slots=True)
class Program:
    """One row of ``programs.toml``; ``sizes`` maps a size's name to the program's arguments."""

    name: str
    source: Path
    flags: tuple[str, ...]
    sizes: dict[str, tuple[str, ...]]
    about: str


@dataclass(frozen=True, slots=True)
class Toolkit:
    """An nvcc, its release (``13.0.88``) and, in NVIDIA's wheels, where its libraries are."""

    nvcc: Path
    release: str
    libraries: Path | None


class BuildError(Exception):
    """nvcc is absent or refused a source; the message is its output."""


def load_programs(table: Path = SOURCES / "programs.toml") -> dict[str, Program]:
    """The programs by name, in the order of the table."""
    rows = tomllib.loads(table.read_text())["program"]
    return {
        name: Program(
            name=name,
            source=SOURCES / row["source"],
            flags=tuple(row.get("flags", ())),
            sizes={size: tuple(args) for size, args in row["sizes"].items()},
            about=row["about"],
        )
        for name, row in rows.items()
    }


def _wheel_candidates() -> list[Path]:
    """The places of nvcc in NVIDIA's wheels: ``nvidia/cu13/bin`` (13), ``nvidia/cuda_nvcc/bin``
    (12)."""
    found: list[Path] = []
    for entry in sys.path:
        base = Path(entry) / "nvidia"
        found += [base / "cu13" / "bin" / "nvcc", base / "cuda_nvcc" / "bin" / "nvcc"]
    return found


def find_toolkit() -> Toolkit:
    """nvcc from ``SASSXLATE_NVCC``, PATH or NVIDIA's wheels.  Raises BuildError without one."""
    named = os.environ.get("SASSXLATE_NVCC") or shutil.which("nvcc")
    candidates = [Path(named)] if named else _wheel_candidates()
    for nvcc in candidates:
        if not nvcc.is_file():
            continue
        answer = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=False)
        if answer.returncode != 0 or ", V" not in answer.stdout:
            continue
        release = answer.stdout.split(", V")[1].split()[0]
        # The wheels keep libcudart in lib, where their nvcc does not look.
        lib = nvcc.resolve().parent.parent / "lib"
        in_wheel = (lib / "libcudart_static.a").is_file()
        return Toolkit(nvcc, release, lib if in_wheel else None)
    raise BuildError("no nvcc on PATH, in SASSXLATE_NVCC or in NVIDIA's wheels")


def gencode(archs: Sequence[int]) -> list[str]:
    """Flags for SASS of each architecture and no PTX."""
    flags: list[str] = []
    for arch in archs:
        flags += ["-gencode", f"arch=compute_{arch},code=sm_{arch}"]
    return flags


def _run(command: Sequence[str | Path]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        shown = " ".join(str(part) for part in command)
        raise BuildError(f"{shown}\n{done.stdout}{done.stderr}")


def build_program(
    program: Program,
    out: Path,
    archs: Sequence[int] = (80, 90),
    *,
    cudart: str = "static",
    strip: bool = False,
    toolkit: Toolkit | None = None,
) -> Path:
    """Compiles and links ``program`` to the file ``out``.  Raises BuildError with nvcc's words."""
    kit = toolkit or find_toolkit()
    out.parent.mkdir(parents=True, exist_ok=True)
    command: list[str | Path] = [kit.nvcc, *BASE_FLAGS, *program.flags, *gencode(archs)]
    command += ["-cudart", cudart, program.source, "-o", out]
    with tempfile.TemporaryDirectory() as links:
        if kit.libraries:
            # The wheels have libcudart.so.13 but not the name that the linker looks for.
            for library in kit.libraries.glob("libcudart.so.*"):
                (Path(links) / "libcudart.so").symlink_to(library)
            command += [f"-L{kit.libraries}", f"-L{links}"]
        _run(command)
    if strip:
        _run(["strip", out])
    return out


def build_cubin(
    source: Path, out: Path, arch: int, flags: Sequence[str] = (), toolkit: Toolkit | None = None
) -> Path:
    """Compiles one kernel file to a cubin.  Raises BuildError with nvcc's words."""
    kit = toolkit or find_toolkit()
    out.parent.mkdir(parents=True, exist_ok=True)
    _run([kit.nvcc, *BASE_FLAGS, *flags, f"-arch=sm_{arch}", "-cubin", source, "-o", out])
    return out


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; prints one line per executable."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help="programs; all of them by default")
    parser.add_argument("-o", "--out", type=Path, default=ROOT / "build" / "programs")
    parser.add_argument("--arch", default="80,90", help="architectures, separated by commas")
    parser.add_argument("--cudart", choices=["static", "shared"], default="static")
    parser.add_argument("--strip", action="store_true")
    options = parser.parse_args(arguments)
    programs = load_programs()
    try:
        kit = find_toolkit()
        for name in options.names or programs:
            if name not in programs:
                raise BuildError(f"no program {name}; there are {', '.join(programs)}")
            path = build_program(
                programs[name],
                options.out / name,
                [int(arch) for arch in options.arch.split(",")],
                cudart=options.cudart,
                strip=options.strip,
                toolkit=kit,
            )
            print(f"{path} ({path.stat().st_size} bytes, nvcc {kit.release})")
    except BuildError as error:
        print(f"build_programs: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
