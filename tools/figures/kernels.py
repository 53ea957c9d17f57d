"""How many kernels of a library are found again in another build of it, with their names hidden.

::

    python -m tools.figures.kernels A B              # two cubins, or files with one architecture
    python -m tools.figures.kernels --build FOLDER   # builds CUB's device algorithms, then compares

``--build`` compiles ``cub_algorithms.cu`` for sm_80 with the nvcc that is found (CUDA 13.0's of the
test dependencies, and their CCCL), and once more as PTX for another assembler, ``--ptxas``: that of
CUDA 12.9 is ``nvidia/cuda_nvcc/bin/ptxas`` in ``pip download --no-deps
nvidia-cuda-nvcc-cu12==12.9.86``, unpacked.  No wheel has the rest of that nvcc.  ``--nvcc`` is
another whole compiler in its place.  The names of the kernels are the truth.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

from sassxlate.cfg.diff.kernels import KernelShape, by_structure
from sassxlate.cfg.view.picture import Picture
from sassxlate.lowering.report.graphs import graphs
from sassxlate.lowering.report.shapes import kernel_shape

_SOURCE = Path(__file__).with_name("cub_algorithms.cu")
_CCCL = Path(sysconfig.get_paths()["purelib"]) / "nvidia/cu13/include/cccl"


def build(folder: Path, ptxas: Path | None, nvcc: Path | None) -> tuple[Path, Path]:
    """The two builds; RuntimeError without a compiler for the second."""
    one, other = folder / "one.cubin", folder / "other.cubin"
    flags = ["-std=c++17", "-O3", f"-I{_CCCL}", str(_SOURCE)]
    _run("nvcc", "-arch=sm_80", "-cubin", *flags, "-o", str(one))
    if nvcc is not None:
        _run(str(nvcc), "-arch=sm_80", "-cubin", *flags, "-o", str(other))
        return one, other
    if ptxas is None:
        raise RuntimeError("give --ptxas or --nvcc for the second build")
    ptx = folder / "other.ptx"
    _run("nvcc", "-arch=compute_80", "-ptx", *flags, "-o", str(ptx))
    # The code uses nothing that the older assembler does not have; only the version says so.
    ptx.write_text(re.sub(r"(?m)^\.version 9\.\d+", ".version 8.8", ptx.read_text()))
    _run(str(ptxas), "-arch=sm_80", "-O3", str(ptx), "-o", str(other))
    return one, other


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


def shapes(file: Path) -> list[KernelShape]:
    return [kernel_shape(g) for g in graphs(str(file), (), None)]


def figures(left: list[KernelShape], right: list[KernelShape]) -> str:
    """The share that is found by structure alone, and the share of twins among the rest."""
    common = {k.picture.name for k in left} & {k.picture.name for k in right}
    right_ones = twins = 0
    by_name = {k.picture.name: k.picture for k in right}
    pairs = by_structure(left, right)
    for i, j in pairs:
        a, b = left[i].picture, right[j].picture
        if a.name == b.name:
            right_ones += 1
        elif a.name in by_name and _texts(by_name[a.name]) == _texts(b):
            twins += 1
    share = 100 * right_ones / max(1, len(common))
    return (
        f"{len(common)} kernels in both, {len(pairs)} pairs: {right_ones} right ({share:.1f} %), "
        f"{twins} an exact twin of the right one, {len(pairs) - right_ones - twins} wrong"
    )


def _texts(picture: Picture) -> list[list[str]]:
    return [[line.text for line in node.lines] for node in picture.nodes]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("files", nargs="*", type=Path, metavar="A B")
    parser.add_argument("--build", type=Path, metavar="FOLDER")
    parser.add_argument("--ptxas", type=Path)
    parser.add_argument("--nvcc", type=Path)
    options = parser.parse_args()
    if options.build is not None:
        options.build.mkdir(parents=True, exist_ok=True)
        files = build(options.build, options.ptxas, options.nvcc)
    elif len(options.files) == 2:
        files = options.files
    else:
        sys.exit("give two files, or --build FOLDER")
    print(figures(shapes(files[0]), shapes(files[1])))


if __name__ == "__main__":
    main()
