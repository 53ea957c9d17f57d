"""Several processes write what one writes, byte for byte."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner

from sassxlate.cli import cli

ROOT = Path(__file__).resolve().parents[3]
REDUCTION = ROOT / "fixtures" / "programs" / "reduction"
DIFF = ("diff", REDUCTION, REDUCTION, "--arch", "sm_80", "--arch-b", "sm_90")

TIMES = ("seconds", "asking_s", "judging_s")


def call(*words: str | Path) -> tuple[int, str, str]:
    done = CliRunner().invoke(cli, [*map(str, words)])
    return done.exit_code, done.stdout, done.stderr


def timeless(value: Any) -> Any:
    """A document without times."""
    if isinstance(value, dict):
        some = cast("dict[str, Any]", value)
        return {k: timeless(v) for k, v in some.items() if k not in TIMES}
    return [timeless(v) for v in cast("list[Any]", value)] if isinstance(value, list) else value


def translated(out: Path, *words: str) -> tuple[tuple[int, str, str], dict[str, bytes], list[Any]]:
    said = call("translate", REDUCTION, "-o", out, "--report", out / "pages.json", *words)
    files = {p.name: p.read_bytes() for p in sorted(out.iterdir()) if p.suffix != ".json"}
    reports = [json.loads((out / n).read_text()) for n in ("report.json", "pages.json")]
    return said, files, [timeless(r) for r in reports]


def test_translate(tmp_path: Path) -> None:
    """Files, reports and what is printed, with a pass that is shown."""
    words = ("--engine", "rules", "--dump-after", "select")
    one = translated(tmp_path / "one", *words, "-j", "1")
    two = translated(tmp_path / "two", *words, "-j", "2")
    assert one == two
    assert len(one[1]) >= 6
    assert one[0][1].count("after select") >= 2


def test_translate_says_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused kernel does not end the others, and is named in its place."""
    from sassxlate.errors import LoweringError
    from sassxlate.lowering import pipeline

    original: Callable[..., Any] = pipeline.translate_kernel

    def translate_kernel(cubin: Any, name: str, *rest: Any, **more: Any) -> Any:
        if "floats" in name:
            raise LoweringError("SX0710", "not today")
        return original(cubin, name, *rest, **more)

    monkeypatch.setattr(pipeline, "translate_kernel", translate_kernel)
    one = translated(tmp_path / "one", "--engine", "rules", "-j", "1")
    two = translated(tmp_path / "two", "--engine", "rules", "-j", "2")
    assert one == two
    assert one[0][0] == 3
    assert "SX0710" in one[0][2]


def test_a_process_that_dies_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sassxlate.lowering import pipeline

    here = os.getpid()

    def dies(*_: Any, **__: Any) -> Any:
        assert os.getpid() != here
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(pipeline, "translate_kernel", dies)
    words = ("translate", REDUCTION, "-o", tmp_path, "--engine", "rules", "-j", "2")
    status, _, err = call(*words)
    assert (status, err) == (2, "sassxlate: SX0888: the process that translated a kernel died\n")


@pytest.mark.parametrize("form", ["text", "json", "html"])
def test_diff_of_libraries(form: str) -> None:
    one = call(*DIFF, "--format", form, "-j", "1")
    two = call(*DIFF, "--format", form, "-j", "2")
    assert one == two
    assert one[0] == 1


@pytest.mark.parametrize(
    "words",
    [
        (), ("--encoding", "--control", "--source"), ("--format", "json"), ("--count",),
        ("--find", "*ADD*"), ("--find", "*ADD*", "--format", "json"), ("-k", "*floats*"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_disasm(words: tuple[str, ...]) -> None:
    one = call("disasm", REDUCTION, *words, "-j", "1")
    two = call("disasm", REDUCTION, *words, "-j", "2")
    assert one == two
    assert one[0] == 0
    assert "sm_80" in one[1]
    assert "sm_90" in one[1]


@pytest.mark.parametrize("code", ["SX0204", "SX0129"])
def test_disasm_says_what_cannot_be_read(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An architecture that is not known ends its cubin, a damaged table all, after what was
    printed before."""
    from sassxlate.disasm.listing.cubin import Document
    from sassxlate.errors import ContainerError, DecodeError

    begin, lines = Document.__init__, Document.lines

    def unknown(self: Any, data: Any, options: Any, cubin: Any) -> None:
        if cubin.arch == 80:
            raise DecodeError("SX0204", "not today")
        begin(self, data, options, cubin)

    def damaged(self: Any) -> Any:
        yield from [*lines(self)][:10]
        raise ContainerError("SX0129", "not today")

    if code == "SX0204":
        monkeypatch.setattr(Document, "__init__", unknown)
    else:
        monkeypatch.setattr(Document, "lines", damaged)
    one = call("disasm", REDUCTION, "-j", "1")
    two = call("disasm", REDUCTION, "-j", "2")
    assert one == two
    status, out, err = one
    assert (status, err.count(code)) == (3 if code == "SX0204" else 2, 1)
    assert (out.count("// ") > 0, "sm_90" in out) == (True, code == "SX0204")


def test_a_listing_whose_process_dies(monkeypatch: pytest.MonkeyPatch) -> None:
    from sassxlate.disasm.listing.cubin import Document

    here = os.getpid()

    def dies(*_: Any, **__: Any) -> Any:
        assert os.getpid() != here
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(Document, "__init__", dies)
    status, _, err = call("disasm", REDUCTION, "-j", "2")
    assert (status, err) == (2, "sassxlate: SX0888: the process that read a cubin died\n")


def test_few_kernels_are_done_in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting processes costs more than a few kernels do."""
    from sassxlate import executors

    def never(*_: object, **__: object) -> None:
        raise AssertionError("started processes")

    monkeypatch.setattr(executors, "in_order", never)
    assert call(*DIFF)[0] == 1
    assert call("disasm", REDUCTION)[0] == 0
    with pytest.raises(AssertionError, match="started"):
        CliRunner().invoke(cli, [*map(str, DIFF), "-j", "2"], catch_exceptions=False)
