"""Execution counts: of launches, in files, and on pictures."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from sassxlate.cfg.view.picture import Line, Node, Picture, with_runs
from sassxlate.cfg.view.svg import DARK, LIGHT, to_svg, warmth
from sassxlate.cfg.view.text import to_dot, to_text
from sassxlate.cli import cfg as cli_cfg
from sassxlate.cli import trace as cli_trace
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.disasm.sass.interpreter import Group, run
from sassxlate.errors import SassxlateError, exit_status
from sassxlate.lowering.emulate import counts
from sassxlate.lowering.trace.subject import Subject
from sassxlate.runtime_shim.replay.trace_subject import by_hand, count
from tests.lowering.trace import wrong

BUFFERS = ("buf:16k:random", "buf:16k:count", "buf:64k", "i32:64")
LOOP = str(wrong.KERNELS / "sm_80" / "uniform_loop.cubin")


def subject(kernel: str) -> Subject:
    file = str(wrong.KERNELS / "sm_80" / f"{kernel}.cubin")
    return by_hand(file, kernel, None, ((2, 1, 1), (64, 1, 1)), BUFFERS, 1024, 0)


@pytest.mark.parametrize("kernel", ["uniform_loop", "barrier_reduce", "vote_forms", "byte_lanes"])
def test_counts_are_the_interpreters(kernel: str) -> None:
    """For kernels whose warps do not diverge, and all lanes of an EXIT leave together."""
    one = subject(kernel)
    runs, stopped = count(one, give_up=100_000)
    assert stopped is None
    graph = one.translated.cfg
    seen: dict[int, int] = {}

    def see(ins: Instruction, group: Group, _lanes: NDArray[np.bool_]) -> None:
        if ins.offset in graph.by_start:
            seen[ins.offset] = seen.get(ins.offset, 0) + group.count

    run(one.launch(), None, see)
    found = counts.sass_blocks(runs.sass, graph)
    assert {start: times for start, times in found.items() if times} == seen
    assert runs.waves == 4


def test_a_file_is_what_was_counted() -> None:
    runs, _ = count(subject("nested_break"), give_up=100_000)
    data = json.loads(json.dumps(counts.to_data([runs])))
    assert counts.from_data(data) == [runs]
    twice = runs.plus(runs)
    assert twice.launches == 2
    assert twice.at(0) == 2 * runs.at(0) == 8
    assert runs.at(1 << 20) == 0
    other, _ = count(subject("byte_lanes"), give_up=100_000)
    with pytest.raises(SassxlateError) as caught:
        runs.plus(other)
    assert caught.value.code == "SX0833"


def _file(path: Path) -> str:
    options = ["-k", "uniform_loop", "--grid", "2", "--block", "64"]
    options += [part for form in BUFFERS for part in ("--arg", form)]
    done = CliRunner().invoke(
        cli_trace.command, [LOOP, *options, "--counts", str(path), "--limit", "1"]
    )
    assert done.exit_code == 0, (done.output, done.exception)
    return str(path)


def _cfg(*options: str) -> str:
    done = CliRunner().invoke(cli_cfg.command, list(options))
    assert done.exit_code == 0, (done.output[:500], done.exception)
    return done.output


def _refused(*options: str) -> SassxlateError:
    done = CliRunner().invoke(cli_cfg.command, list(options))
    assert isinstance(done.exception, SassxlateError), (done.output[:500], done.exception)
    assert exit_status(done.exception) == 2
    return done.exception


def test_counts_on_all_pictures(tmp_path: Path) -> None:
    file = _file(tmp_path / "c.json")
    drawn = {
        form: _cfg(LOOP, "-k", "*", "--counts", file, "--format", form)
        for form in ("text", "dot", "json", "svg", "html")
    }
    blocks: list[Any] = json.loads(drawn["json"])["kernels"][0]["blocks"]
    assert [b["runs"] for b in blocks if b["start"] == 0] == [4]
    hottest = max(b["runs"] for b in blocks)
    assert hottest > 4
    for form in ("text", "dot", "svg", "html"):
        assert f"ran {hottest:,}" in drawn[form], form
    assert drawn["svg"].count('class="warm"') == sum(b["runs"] > 0 for b in blocks)
    assert re.search(r"ran \d+, \d+\.\d %", drawn["text"])
    # The code object that was counted, as well.
    code = tmp_path / "k.hsaco"
    code.write_bytes(wrong.translated("uniform_loop").code_object)
    rdna = json.loads(_cfg(str(code), "-k", "*", "--counts", file, "--format", "json"))
    runs = [b["runs"] for b in rdna["kernels"][0]["blocks"]]
    assert max(runs) == hottest


_HEAD = '{"kind": "sassxlate-counts", "schema": 1, "kernels": ['
BAD = (
    "null", "[]", "{}", '{"kind": "sassxlate-counts"}',
    '{"kind": "sassxlate-counts", "schema": 2}', _HEAD + "{}]}",
    *(
        _HEAD + '{"target": "", ' + row + "}]}"
        for row in (
            '"kernel": 1, "launches": 1, "waves": 1, "sass": [], "rdna3": []',
            '"kernel": "k", "launches": 1, "waves": -1, "sass": [], "rdna3": []',
            '"kernel": "k", "launches": 1, "waves": 1, "sass": [[0]], "rdna3": []',
            '"kernel": "k", "launches": 1, "waves": 1, "sass": [[0, 1.5]], "rdna3": []',
            '"kernel": "k", "launches": true, "waves": 1, "sass": [], "rdna3": 7',
        )
    ),
)  # fmt: skip


def test_files_that_hold_no_counts(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    for value in BAD:
        path.write_text(value)
        assert _refused(LOOP, "-k", "*", "--counts", str(path)).code == "SX0834", value
    for raw in (b"", b"\xff\xfe", b"[" * 100_000, b'{"kind": NaN}'):
        path.write_bytes(raw)
        assert _refused(LOOP, "-k", "*", "--counts", str(path)).code == "SX0834"
    assert _refused(LOOP, "-k", "*", "--counts", str(tmp_path / "none")).code == "SX0834"
    assert _refused(LOOP, "-k", "*", "--counts", str(path), "--run").code == "SX0836"
    assert _refused(LOOP, "-k", "*", "x").code == "SX0836"


def test_counts_of_something_else(tmp_path: Path) -> None:
    file = Path(_file(tmp_path / "c.json"))
    data = json.loads(file.read_text())
    kernel = data["kernels"][0]
    strange = kernel | {"sass": [*kernel["sass"], [8, 1]]}
    file.write_text(json.dumps(data | {"kernels": [strange]}))
    assert _refused(LOOP, "-k", "*", "--counts", str(file)).code == "SX0833"
    for row in ({"target": "sm_90"}, {"kernel": "<b>&"}):
        file.write_text(json.dumps(data | {"kernels": [kernel | row]}))
        assert _refused(LOOP, "-k", "*", "--counts", str(file)).code == "SX0837"


def test_heat_is_readable() -> None:
    """Text on the darkest head, light and dark: WCAG AA; and it grows with executions."""

    def light(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    most = warmth(10**9, 10**9)
    for colours in (LIGHT, DARK):
        mixed = "#" + "".join(
            f"{round(int(colours['warm'][i : i + 2], 16) * most + int(colours['block'][i : i + 2], 16) * (1 - most)):02x}"  # noqa: E501
            for i in (1, 3, 5)
        )
        high, low = sorted((light(colours["ink"]), light(mixed)), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5
    steps = [warmth(n, 1000) for n in (0, 1, 10, 100, 1000)]
    assert steps == sorted(steps)
    assert steps[0] == 0


def test_pictures_with_counts_of_no_size() -> None:
    nodes = tuple(Node(i, 16 * i, (Line(16 * i, "NOP"),)) for i in range(3))
    picture = Picture("k", "k", "sm_80", nodes, ())
    drawn = with_runs(picture, {0: 0, 16: 0})
    assert [n.runs for n in drawn.nodes] == [0, 0, None]
    assert [n.note for n in drawn.nodes] == ["", "", "ran ?"]
    for text in (to_svg(drawn), to_text(drawn), to_dot(drawn)):
        assert "ran ?" in text or "ran 0" in text
    huge = with_runs(picture, {0: 1 << 62, 16: 1, 32: 0})
    assert "ran 4,611,686,018,427,387,904" in to_svg(huge)
    assert huge.nodes[1].note == "<0.1 %"
    assert with_runs(Picture("k", "k", "sm_80", (), ()), {}).nodes == ()
