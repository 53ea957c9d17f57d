"""`run` puts our cuFFT in place of NVIDIA's, however a program finds that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sassxlate.errors import UsageError
from sassxlate.runtime_shim import application

from .cufft_api import library_folder

Tool = Callable[..., str]
HERE = Path(__file__).parent


@pytest.fixture
def stage(tmp_path: Path, gxx: Tool) -> Path:
    """A library in place of NVIDIA's, a program that opens it, and one that is linked with it."""
    if not (library_folder() / "cufft" / "libcufft.so.12").is_file():
        pytest.skip("libcufft.so.12 is not built (runtime_shim/native/build.sh)")
    theirs = tmp_path / "nvidia" / "libcufft.so.12"
    theirs.parent.mkdir()
    make_theirs(gxx, theirs)
    gxx("-xc", HERE / "program.c", "-o", tmp_path / "opens", "-ldl")
    # An RPATH, as wheels have: it goes before LD_LIBRARY_PATH.
    for name, tag in (("rpath", "--disable-new-dtags"), ("runpath", "--enable-new-dtags")):
        gxx("-xc", "-DLINKED", HERE / "program.c", "-xnone", theirs, "-o", tmp_path / name, "-ldl",
            f"-Wl,-rpath,{theirs.parent}", f"-Wl,{tag}")  # fmt: skip
    return tmp_path


def make_theirs(gxx: Tool, path: Path, level: str = "-O2") -> None:
    """The library in place of NVIDIA's; at -O1 its functions are not aligned.

    Ubuntu's compiler begins each with an endbr64, which would leave room for a jump.
    """
    gxx("-xc", level, "-fcf-protection=none", "-shared", "-fPIC", "-Wl,-soname,libcufft.so.12",
        HERE / "theirs.c", "-o", path)  # fmt: skip


def run(stage: Path, *command: str, options: tuple[str, ...] = ()) -> tuple[str, int, str]:
    """Standard output, status and messages of a program under `run`."""
    done = subprocess.run(
        [sys.executable, "-m", "sassxlate", "run", *options, "--", *command],
        env={**os.environ, "SASSXLATE_PRELOAD_TRACE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        cwd=stage,
    )
    return done.stdout, done.returncode, done.stderr


def test_opened_by_its_path(stage: Path) -> None:
    theirs = str(stage / "nvidia" / "libcufft.so.12")
    out, status, messages = run(stage, "./opens", theirs)
    assert out == "plan 0 version 0 12500 helper 2\n"  # what is not cuFFT's stays theirs
    assert status == 0
    assert f"{theirs}: replaced, 3 functions redirected" in messages


@pytest.mark.parametrize("program", ["rpath", "runpath"])
def test_linked(stage: Path, program: str) -> None:
    out, status, _ = run(stage, f"./{program}")
    assert out == "plan 0 version 0 12500\n"
    assert status == 0


def test_by_its_name_alone(stage: Path) -> None:
    out, status, _ = run(stage, "./opens", "libcufft.so.12")
    assert out == "plan 0 version 0 12500 helper -1\n"
    assert status == 0


def test_left_in_its_place(stage: Path) -> None:
    none = ("--replace", "none")
    out, _, _ = run(stage, "./opens", str(stage / "nvidia" / "libcufft.so.12"), options=none)
    assert out == "plan 5 version 0 1 helper 2\n"
    out, _, _ = run(stage, "./rpath", options=none)
    assert out == "plan 5 version 0 1\n"


def test_functions_too_short_for_a_jump(stage: Path, gxx: Tool) -> None:
    """A jump of five bytes would reach into the next function: nothing is changed, it is said."""
    theirs = stage / "nvidia" / "libcufft.so.12"
    make_theirs(gxx, theirs, "-O1")
    out, status, messages = run(stage, "./opens", str(theirs), "more")
    assert out == "plan 5 version 0 1 helper 2\ntomorrow 101\n"
    assert status == 3
    assert "SX0783" in messages


def test_a_function_that_ours_lacks(stage: Path) -> None:
    out, status, messages = run(stage, "./opens", str(stage / "nvidia" / "libcufft.so.12"), "more")
    assert "tomorrow" not in out
    assert status == 3
    assert "SX0764" in messages
    assert "cufftOfTomorrow has no counterpart in our cufft/libcufft.so.12" in messages


def test_the_report_says_it(stage: Path) -> None:
    page = stage / "report.json"
    options = ("--report", str(page), "--report-format", "json")
    run(stage, "./opens", "libcufft.so.12", options=options)
    assert (
        "cufft was replaced by sassxlate's own: the host." in json.loads(page.read_text())["notes"]
    )
    run(stage, "./opens", "libcufft.so.12", options=(*options, "--replace", "none"))
    assert not any("replaced" in note for note in json.loads(page.read_text())["notes"])


@pytest.mark.parametrize(
    ("text", "words"),
    [("cufft", ("cufft",)), ("none", ()), ("", ()), (" cufft , cufft,", ("cufft",))],
)
def test_words(text: str, words: tuple[str, ...]) -> None:
    assert application.replacements(text) == words


@pytest.mark.parametrize("text", ["cuftt", "cufft,none", "CUFFT", "../x"])
def test_words_that_are_none(text: str) -> None:
    with pytest.raises(UsageError) as error:
        application.replacements(text)
    assert error.value.code == "SX0719"
