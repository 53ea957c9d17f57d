"""tools.kernel_digests: the sample by architecture, the lines, and what was refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tools import kernel_digests
from tools.kernel_digests import Row, reasons, rows_of, sample

KERNELS = Path(__file__).parents[2] / "fixtures" / "kernels"
FILES = (
    sorted((KERNELS / "sm_80").glob("*.cubin"))[:2]
    + sorted((KERNELS / "sm_90").glob("*.cubin"))[:3]
)


def test_only_an_architectures_kernels_are_drawn() -> None:
    drawn = sample(FILES, 100, 1, 90)
    assert drawn
    assert {cubin.arch for _, cubin, _ in drawn} == {90}
    assert {cubin.arch for _, cubin, _ in sample(FILES, 100, 1)} == {80, 90}


def test_processes_make_the_same_rows() -> None:
    drawn = sample(FILES, 3, 1)
    alone, together = ([replace(row, cpu=0.0) for row in rows_of(drawn, jobs)] for jobs in (1, 2))
    assert alone == together
    assert all(row.sass for row in alone)


def test_a_row_is_read_as_written(tmp_path: Path) -> None:
    row = Row("a.so", "sm_90a", "kernel", 0, 0, "SX0403", 0.5, "STAS: no rule for STAS")
    file = tmp_path / "made.tsv"
    file.write_text(f"{row.line()}\n{row.line().rsplit(chr(9), 1)[0]}\n")
    assert kernel_digests.read(file) == [row, replace(row, why="")]


def test_refused_kernels_are_counted_by_code() -> None:
    refused = Row("a.so", "sm_90", "k", 0, 0, "SX0403", 0.0, "STAS: no rule for STAS")
    done = Row("a.so", "sm_90", "m", 4, 9, "00", 0.0)
    other = replace(refused, digest="SX0404", why="DMMA: modifier")
    assert reasons([refused, done, other, refused]) == [
        "     2 SX0403 STAS: no rule for STAS",
        "     1 SX0404 DMMA: modifier",
    ]
