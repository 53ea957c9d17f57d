"""`sassxlate translate --dump-after`."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sassxlate.cli.translate import command
from sassxlate.lowering.pipeline import PASSES
from sassxlate.lowering.report.dump import read_items

KERNEL = Path(__file__).resolve().parents[3] / "fixtures/kernels/sm_90/divergent_if.cubin"


def _run(*args: str) -> Result:
    return CliRunner().invoke(command, [str(KERNEL), "--engine", "rules", *args])


def _headings(output: str) -> list[str]:
    return [line.rpartition(" ")[2] for line in output.splitlines() if line.startswith("// div")]


def test_a_list_of_instructions_reads_back() -> None:
    done = _run("--dump-after", "insert_waitcnt")
    assert done.exit_code == 0
    assert _headings(done.output) == ["insert_waitcnt"]
    assert len(read_items(done.output)) > 20


def test_passes_are_shown_in_their_order() -> None:
    done = _run("--dump-after", "encode", "--dump-after", "plan_convergence")
    assert _headings(done.output) == ["plan_convergence", "encode"]


def test_all() -> None:
    assert _headings(_run("--dump-after", "all").output) == [step.name for step in PASSES]


def test_files_are_written_too(tmp_path: Path) -> None:
    assert _run("--dump-after", "write", "-o", str(tmp_path)).exit_code == 0
    assert (tmp_path / "divergent_if.sm_90.hsaco").is_file()


@pytest.mark.parametrize("name", ["", "waits", "ALL"])
def test_an_unknown_pass_is_a_usage_error_that_lists_them(name: str) -> None:
    done = _run("--dump-after", name)
    assert done.exit_code == 2
    assert all(step.name in done.output for step in PASSES)


def test_json_and_dumps_do_not_mix() -> None:
    assert _run("--dump-after", "all", "--format", "json").exit_code == 2
