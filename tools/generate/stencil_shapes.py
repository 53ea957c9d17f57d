"""Writes ``lowering/emulate/stencils/shapes.txt``: the shapes of the instructions that translated
kernels have, of which the first pack of stencils is made.

    python -m tools.generate.stencil_shapes [FILES...]

takes the kernels of ``fixtures`` and those of FILES (executables or cubins, such as the programs of
``fixtures/programs/src`` built by nvcc for several architectures; code objects, ``*.hsaco``, such
as those that an application's run leaves in the cache), and keeps the shapes that the list has
already.  A kernel that cannot be translated is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from sassxlate.disasm.containers import load
from sassxlate.errors import SassxlateError
from sassxlate.lowering.codeobject.code_object import read
from sassxlate.lowering.emulate.options import host_isa
from sassxlate.lowering.emulate.runner import BaselineKernel, LoadedPack
from sassxlate.lowering.emulate.stencils import known, pack
from sassxlate.lowering.emulate.stencils.stencil import Shape
from sassxlate.lowering.pipeline import translate_kernel

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


def _code_objects(files: Sequence[Path]) -> Iterator[bytes]:
    for file in files:
        if file.suffix == ".hsaco":
            yield file.read_bytes()
            continue
        for _, cubin in load(file).cubins():
            for kernel in cubin.kernels:
                try:
                    yield translate_kernel(cubin, kernel.name).code_object
                except SassxlateError as error:
                    print(f"{file}: {error}", file=sys.stderr)


def shapes(files: Sequence[Path]) -> set[Shape]:
    """The shapes of all kernels of some files."""
    empty = LoadedPack(pack.make((), host_isa()).data)  # which lacks every shape
    found: set[Shape] = set()
    for data in _code_objects(files):
        code = read(data)
        for kernel in code.kernels:
            kd = kernel.descriptor
            mode = kd.float_mode | kd.dx10_clamp << 8 | kd.ieee_mode << 9
            found.update(BaselineKernel([empty], code.text, kernel.entry, mode).missing)
    return {s for s in found if s.word >> 32 != 0xFFFFFFFF}  # not the glue's


def main(arguments: Sequence[str]) -> None:
    files = [
        *sorted(FIXTURES.glob("kernels/sm_*/*.cubin")),
        *sorted(FIXTURES.glob("silicon/**/*.cubin")),
        *(p for p in sorted(FIXTURES.glob("programs/*")) if p.is_file() and not p.suffix),
        *map(Path, arguments),
    ]
    found = shapes(files) | set(known.known_shapes())
    known.PATH.write_text(known.write(found), encoding="ascii")


if __name__ == "__main__":
    main(sys.argv[1:])
