"""Kernels of the baseline tier for tests: what the library and the service do together."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from sassxlate.errors import ShimError
from sassxlate.lowering.codeobject.code_object import read
from sassxlate.lowering.emulate.options import CompileOptions, Isa, host_isa
from sassxlate.lowering.emulate.runner import (
    BaselineKernel,
    EmulatedDevice,
    LoadedPack,
    run_image,
    setup_of,
)
from sassxlate.lowering.emulate.stencils import known, pack
from sassxlate.lowering.emulate.stencils.stencil import UNALIGNED
from sassxlate.runtime_shim import paths
from sassxlate.runtime_shim.service import prebuilt

ISAS: list[Isa] = ["avx512", "avx2"] if host_isa() == "avx512" else ["avx2"]


def each_with_an_isa(
    rows: Iterable[tuple[Any, ...]], isas: Sequence[Isa | None] = ISAS
) -> list[Any]:
    """Parameters: each row with one ISA of the host's, in turn; the sweep has the others."""
    return [
        pytest.param(*row, isa, marks=[] if i % len(isas) == j else [pytest.mark.sweep])
        for i, row in enumerate(rows)
        for j, isa in enumerate(isas)
    ]


@functools.cache
def first_pack(isa: Isa) -> LoadedPack:
    """The pack of the known shapes: that of the build, if it is of these very sources."""
    with contextlib.suppress(ShimError):
        built = prebuilt.read(paths.library_dir(), isa)
        if built is not None:
            return LoadedPack(built)
    return LoadedPack(pack.make(known.known_shapes(), isa).data)


def mode_of(options: CompileOptions) -> int:
    """MODE, and bit 16 for accesses at any byte."""
    mode = options.float_mode | options.dx10_clamp << 8 | options.ieee << 9
    return mode | (UNALIGNED if options.align == "unaligned" else 0)


def baseline(code: bytes, options: CompileOptions, entry: int = 0) -> BaselineKernel:
    """The kernel, for which stencils are made that the first pack lacks."""
    isa = options.isa or host_isa()
    packs = [first_pack(isa)]
    built = BaselineKernel(packs, code, entry, mode_of(options), options.counts)
    if built.missing:
        packs.append(LoadedPack(pack.make(built.missing, isa, tables=False).data))
        built = BaselineKernel(packs, code, entry, mode_of(options), options.counts)
    assert built.entry is not None, (built.why, built.missing)
    return built


def run_stencils(
    data: bytes, kernel: str, grid: int, block: int, kernarg: bytes, device: EmulatedDevice
) -> None:
    """As ``runner.run_code_object``, by the baseline tier."""
    found = (code_object := read(data)).kernel(kernel)
    options = CompileOptions(
        float_mode=found.descriptor.float_mode,
        ieee=found.descriptor.ieee_mode,
        dx10_clamp=found.descriptor.dx10_clamp,
    )
    built = baseline(code_object.text, options, found.entry)
    run_image(built, setup_of(found.descriptor), grid, block, kernarg, device)
