"""tools.long_kernels: kernels by length, their time and memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import long_kernels

KERNELS = Path(__file__).parents[2] / "fixtures" / "kernels" / "sm_80"


def test_the_longest(capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(KERNELS / f"{name}.cubin") for name in ("uniform_loop", "double_math")]
    assert long_kernels.main(["--least", "150", "--most", "2", *files]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["SASS", "RDNA3", "us", "bytes", "kernel"]
    assert [row.split()[4] for row in rows] == ["uniform_loop", "double_math"]
    for row in rows:
        sass, rdna3, us, held = (int(word) for word in row.split()[:4])
        assert 150 <= sass < rdna3
        assert us > 0
        assert 200 < held < 100_000  # fewer where earlier translations left equal objects
    assert long_kernels.main(["--least", "5000", *files]) == 1


def test_a_sample(capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(KERNELS / f"{name}.cubin") for name in ("uniform_loop", "double_math")]
    drawn: set[str] = set()
    for seed in range(4):
        arguments = ["--least", "150", "--most", "1", "--seed", str(seed), *files]
        assert long_kernels.main(arguments) == 0
        _, row = capsys.readouterr().out.splitlines()
        drawn.add(row.split()[4])
    assert drawn == {"uniform_loop", "double_math"}
