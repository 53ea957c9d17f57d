"""The corpus that the translator is measured on: 1,000 kernels of public wheels, drawn by a seed.

``fixtures/bench/corpus.tsv`` names them, one a line: wheel and version, file in it, architecture,
the fat binary's module and entry, and the kernel.  Nothing of the wheels is in the repository.

    python -m tools.corpus FOLDER           # downloads the wheels (800 MB), unpacks the files
    python -m tools.kernel_digests --corpus FOLDER [--out made.tsv] [--against other.tsv]
    python -m tools.corpus FOLDER --draw    # writes the file of names anew, from unpacked wheels
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sassxlate.disasm.containers import Cubin, LoadedFile, load, parse_cubin
from sassxlate.errors import UsageError, Where

NAMES = Path(__file__).parents[1] / "fixtures" / "bench" / "corpus.tsv"
SEED = 20
ARCHITECTURES = frozenset({"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"})
_PLATFORMS = ("manylinux_2_28", "manylinux_2_24", "manylinux_2_17", "manylinux2014")


@dataclass(frozen=True, slots=True)
class Source:
    """``count`` kernels of one ``file`` in a wheel, of those whose mangled name has ``part``."""

    wheel: str
    file: str
    count: int
    part: str = ""


_CUPY, _TORCH = "cupy-cuda13x==14.2.0", "torch==2.15.0"
_SUFFIX = "cpython-311-x86_64-linux-gnu.so"
SOURCES = (
    Source("bitsandbytes==0.50.2", "bitsandbytes/libbitsandbytes_cuda130.so", 200),
    Source(_CUPY, f"cupy/cuda/cub.{_SUFFIX}", 200, "cub"),
    Source(_CUPY, f"cupy/cuda/thrust.{_SUFFIX}", 200, "cub"),
    Source(_TORCH, "torch/lib/libtorch_cuda.so", 200, "elementwise_kernel"),
    Source(_TORCH, "torch/lib/libtorch_cuda.so", 200, "reduce_kernel"),
)


@dataclass(frozen=True, slots=True)
class Named:
    """A kernel of the corpus; ``module`` and ``entry`` are its place in the file's fat binaries."""

    wheel: str
    file: str
    arch: str
    module: int
    entry: int
    kernel: str

    def line(self) -> str:
        """The row as text."""
        place = str(self.module), str(self.entry)
        return "\t".join((self.wheel, self.file, self.arch, *place, self.kernel))


def read(path: Path = NAMES) -> list[Named]:
    """The corpus, in the order in which it is measured."""
    found: list[Named] = []
    for line in path.read_text("utf-8").splitlines():
        wheel, file, arch, module, entry, kernel = line.split("\t")
        found.append(Named(wheel, file, arch, int(module), int(entry), kernel))
    return found


def fetch(folder: Path) -> None:
    """Downloads the wheels with pip into ``folder/wheels`` and unpacks the files that have
    kernels.  Raises CalledProcessError if pip fails."""
    wheels = folder / "wheels"
    for name in sorted({source.wheel for source in SOURCES}):
        pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
        pip += ["--python-version", "3.11", "--implementation", "cp", "-d", str(wheels)]
        pip += [word for one in _PLATFORMS for word in ("--platform", f"{one}_x86_64")]
        subprocess.run([*pip, name], check=True)
        project, _, version = name.partition("==")
        (wheel,) = wheels.glob(f"{project.replace('-', '_')}-{version}-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for file in sorted({s.file for s in SOURCES if s.wheel == name}):
                archive.extract(file, folder)


def draw(folder: Path, sources: Sequence[Source] = SOURCES, seed: int = SEED) -> list[Named]:
    """The corpus, drawn anew from the unpacked files: of each source its count, each kernel of a
    file and an architecture with the same chance; all in one order that mixes the sources."""
    random_of = random.Random(seed)
    drawn: list[Named] = []
    for source in sources:
        found = list(_kernels(source, load(folder / source.file)))
        drawn += random_of.sample(found, source.count)
    random_of.shuffle(drawn)
    return drawn


def _kernels(source: Source, loaded: LoadedFile) -> Iterator[Named]:
    """Of the copies of a kernel for an architecture in a file, the first."""
    seen: set[tuple[str, str]] = set()
    for where, cubin in loaded.cubins(named=lambda name: source.part in name):
        arch = f"sm_{cubin.arch}{cubin.variant}"
        for kernel in cubin.kernels if arch in ARCHITECTURES else ():
            key = arch, kernel.name
            if source.part in kernel.name and key not in seen:
                seen.add(key)
                place = where.module, where.entry
                yield Named(source.wheel, source.file, arch, *place, kernel.name)


def kernels(folder: Path, names: Sequence[Named]) -> list[tuple[str, Cubin, str]]:
    """Each kernel's file name, cubin and name, in the order of ``names``; a cubin is read once.

    Raises UsageError SX0802 for a kernel that is not in its place: another version of the wheel.
    """
    cubins: dict[tuple[str, int, int], Cubin] = {}
    for file in {name.file for name in names}:
        wanted = {(name.module, name.entry) for name in names if name.file == file}
        for where, entry in load(folder / file).entries():
            if (where.module, where.entry) in wanted:
                cubins[file, where.module, where.entry] = parse_cubin(entry.payload)
    found: list[tuple[str, Cubin, str]] = []
    for name in names:
        cubin = cubins.get((name.file, name.module, name.entry))
        if cubin is None or all(k.name != name.kernel for k in cubin.kernels):
            text = f"no kernel {name.kernel} in module {name.module} entry {name.entry}"
            raise UsageError("SX0802", f"{text} ({name.wheel})", Where(str(folder / name.file)))
        found.append((Path(name.file).name, cubin, name.kernel))
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """0, or an exception."""
    parser = argparse.ArgumentParser(prog="tools.corpus", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--draw", action="store_true", help=f"write {NAMES.name} anew")
    given = parser.parse_args(argv)
    if given.draw:
        lines = [f"{name.line()}\n" for name in draw(given.folder)]
        NAMES.write_text("".join(lines), "utf-8")
    else:
        fetch(given.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
