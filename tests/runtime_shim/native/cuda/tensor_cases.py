"""What an H100 answered to copies by tensor maps, and ours beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from .conftest import HERE, Run
from .driver_program import Tool

_REFUSED, _TRAP, _ILLEGAL = 801, 719, 715

Bytes = npt.NDArray[np.uint8]


class Case:
    """A line of numbers for the program; what the card answered, and the bytes that it left."""

    def __init__(self, numbers: list[int], head: list[int], left: Bytes) -> None:
        self.numbers, self.left = numbers, left
        self.encoder, self.error, self.arrived = head

    def fits(self, encoder: int, error: int, left: Bytes) -> str:
        """What is wrong with ours, or nothing."""
        if encoder == _REFUSED and not self.encoder:
            return ""
        if encoder != self.encoder:
            return f"the encoder said {encoder}, not {self.encoder}"
        if error != {_ILLEGAL: _TRAP}.get(self.error, self.error):
            return f"error {error}, not {self.error}"
        same = error or bool((left == self.left).all())
        return "" if same else f"{(left != self.left).sum()} bytes differ"


def cases_of(name: str, size: int) -> list[Case]:
    """The cases of fixtures/silicon/sm_90/NAME.npz; ``size``: the column of how many bytes each
    leaves."""
    with np.load(HERE.parents[3] / "fixtures" / "silicon" / "sm_90" / f"{name}.npz") as truth:
        rows, heads, data = truth["cases"].tolist(), truth["heads"].tolist(), truth["data"]
    ends = np.cumsum([row[size] for row in rows])[:-1]
    return list(map(Case, rows, heads, np.split(data, ends)))


def program_of(name: str, nvcc: Tool, folder: Path) -> Path:
    """programs/NAME.cu, compiled."""
    code = ("-gencode", "arch=compute_90a,code=sm_90a")
    nvcc(*code, "-std=c++17", HERE / "programs" / f"{name}.cu", "-o", folder / name)
    return folder / name


def check(program: Path, run: Run, folder: Path, cases: list[Case]) -> int:
    """How many were not refused.  A case that fails is the last of its process."""
    given, found = folder / "cases.txt", folder / "found.bin"
    given.write_text("".join(" ".join(map(str, case.numbers)) + "\n" for case in cases))
    done = run(program, str(given), str(found))
    data = np.frombuffer(found.read_bytes(), np.uint8)
    at = ran = 0
    for case in cases:
        encoder, error = data[at : at + 8].view(np.int32).tolist()
        at += 8 + len(case.left)
        wrong = case.fits(encoder, error, data[at - len(case.left) : at])
        assert not wrong, (wrong, case.numbers, done.stderr)
        ran += encoder != _REFUSED
    assert at == len(data)
    return ran
