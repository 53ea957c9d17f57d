"""Which code is judged: kernels of files, by the rules and by the optimising tier."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sassxlate.disasm.containers import Cubin
from sassxlate.errors import SassxlateError
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.target import DEFAULT
from sassxlate.lowering.tier.translate import by_tier
from tools.kernel_digests import kernels, sample

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
RULES, TIER = "rules", "llvm"


@dataclass(frozen=True, slots=True)
class Made:
    """A kernel's code: of which file, for which architecture ("sm_80"), by which engine."""

    file: str
    arch: str
    kernel: str
    engine: str
    code: bytes
    code_object: bytes

    def __str__(self) -> str:
        return f"{self.file} {self.arch} {self.kernel} {self.engine}"


def fixtures() -> list[Path]:
    """The files with kernels among the fixtures."""
    programs = (p for p in (FIXTURES / "programs").iterdir() if p.is_file())
    return sorted([*FIXTURES.rglob("*.cubin"), *(p for p in programs if os.access(p, os.X_OK))])


def all_of(files: Sequence[Path]) -> Iterator[Made]:
    """Every kernel of files; what is refused is left out."""
    for file in files:
        for name, cubin, kernel in kernels([file]):
            yield from made(name, cubin, kernel)


def sampled(
    files: Sequence[Path], count: int, seed: int, first: int | None = None
) -> Iterator[Made]:
    """A seeded sample of files' kernels, as `tools.kernel_digests` draws it; of its kernels the
    ``first`` ones."""
    for name, cubin, kernel in sample(files, count, seed)[:first]:
        yield from made(name, cubin, kernel)


def made(file: str, cubin: Cubin, kernel: str) -> Iterator[Made]:
    """One kernel by both engines; by the rules alone where the tier refuses it, not at all where
    they do."""
    arch = f"sm_{cubin.arch}{cubin.variant}"
    try:
        rules = translate_kernel(cubin, kernel)
    except SassxlateError:
        return
    yield Made(file, arch, kernel, RULES, rules.program.data, rules.code_object)
    try:
        tier = by_tier(rules, DEFAULT)
    except SassxlateError:
        return
    yield Made(file, arch, kernel, TIER, tier.program.data, tier.code_object)
