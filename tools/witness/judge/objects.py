"""Which code is judged: kernels of files, by the rules and by the optimising tier."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
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


def all_of(files: Sequence[Path], refused: Callable[[str], None] | None = None) -> Iterator[Made]:
    """Every kernel of files; what is refused is left out, and said to ``refused``."""
    for file in files:
        for name, cubin, kernel in kernels([file]):
            yield from made(name, cubin, kernel, refused)


def sampled(
    files: Sequence[Path],
    count: int,
    seed: int,
    first: int | None = None,
    skip: int = 0,
    refused: Callable[[str], None] | None = None,
) -> Iterator[Made]:
    """A seeded sample of files' kernels, as `tools.kernel_digests` draws it; of its kernels the
    ``first`` ones, without the ``skip`` ones at the beginning.  ``refused`` gets a line for each
    that the rules or the tier do not translate."""
    for name, cubin, kernel in sample(files, count, seed)[:first][skip:]:
        yield from made(name, cubin, kernel, refused)


def made(
    file: str, cubin: Cubin, kernel: str, refused: Callable[[str], None] | None = None
) -> Iterator[Made]:
    """One kernel by both engines; by the rules alone where the tier refuses it, not at all where
    they do."""
    arch = f"sm_{cubin.arch}{cubin.variant}"

    def leave_out(engine: str, error: SassxlateError) -> None:
        if refused is not None:
            refused(f"{file} {arch} {kernel}: the {engine} refuses it: {error}")

    try:
        rules = translate_kernel(cubin, kernel)
    except SassxlateError as error:
        leave_out(RULES, error)
        return
    yield Made(file, arch, kernel, RULES, rules.program.data, rules.code_object)
    try:
        tier = by_tier(rules, DEFAULT)
    except SassxlateError as error:
        leave_out(TIER, error)
        return
    yield Made(file, arch, kernel, TIER, tier.program.data, tier.code_object)
