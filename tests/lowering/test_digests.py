"""The code objects of the fixtures' cubins, byte by byte: a digest a kernel.

A change that is only to make the translator faster leaves all as they are.  One that changes code
runs ``--bless``, and the lines that differ say whose.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from sassxlate.disasm.containers import load
from sassxlate.errors import SassxlateError
from sassxlate.lowering.pipeline import translate_kernel

FIXTURES = Path(__file__).parents[2] / "fixtures"
GOLDEN = Path(__file__).parent / "golden" / "digests.txt"


def digests(path: Path) -> list[str]:
    """A line for each kernel of a file: the file, the kernel, and the first 16 digits of its
    code object's SHA-256, or the code of its error."""
    out: list[str] = []
    for _, cubin in load(path).cubins():
        for kernel in cubin.kernels:
            try:
                made = hashlib.sha256(translate_kernel(cubin, kernel.name).code_object)
                digest = made.hexdigest()[:16]
            except SassxlateError as error:
                digest = error.code
            out.append(f"{path.relative_to(FIXTURES)} {kernel.name} {digest}")
    return out


def test_code_objects_are_the_same_bytes(request: pytest.FixtureRequest) -> None:
    made = [line for path in sorted(FIXTURES.rglob("*.cubin")) for line in digests(path)]
    assert len(made) >= 146
    if request.config.getoption("--bless", default=False):
        GOLDEN.write_text("".join(f"{line}\n" for line in made))
        return
    known = GOLDEN.read_text().splitlines()
    assert [line for line in made if line not in set(known)] == []
    assert len(known) == len(made)
