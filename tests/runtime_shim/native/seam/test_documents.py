"""The documents show the commands' actual output, and the things that they name exist.

A fenced block that begins with ```` ```console ```` holds commands after ``$``; each must succeed.
Where ``stable`` follows, what it prints must be what the block shows.  ``--bless`` writes what
the commands print into all of these blocks.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sassxlate.cli import SUBCOMMANDS
from sassxlate.errors import catalogue

from .conftest import ROOT

SHOWN = (
    "README.md", "docs/life-of-a-kernel.md", "docs/tutorial.md", "docs/trace.md",
    "docs/how-to/add-an-instruction.md", "docs/how-to/carry-a-translation.md",
    "docs/how-to/run-my-program.md", "docs/how-to/load-into-ghidra.md", "docs/commands.md",
)  # fmt: skip
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
_BLOCK = re.compile(r"^```console( stable)?\n(.*?)^```$", re.M | re.S)
# Backticked words that look like a path of the repository.
_FOLDERS = "disasm|cfg|lowering|runtime_shim|tests|tools|fixtures|docs|sassxlate"
_PATH = re.compile(rf"`((?:{_FOLDERS})/[\w./*-]+)`")
# What a build makes.
_MADE = ("runtime_shim/lib",)


@dataclass(frozen=True, slots=True)
class Step:
    """A command and its output in the document."""

    command: str
    output: str


def steps(block: str) -> Iterator[Step]:
    """The commands of a block."""
    for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
        command, _, output = part.partition("\n")
        yield Step(command, output)


@pytest.fixture(scope="session")
def workplace(tmp_path_factory: pytest.TempPathFactory, libraries: Path) -> tuple[Path, Path]:
    """A directory with the fixtures, and one with a `sassxlate` for the PATH."""
    assert libraries
    work, tools = tmp_path_factory.mktemp("documents"), tmp_path_factory.mktemp("bin")
    (work / "fixtures").symlink_to(ROOT / "fixtures")
    program = tools / "sassxlate"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m sassxlate "$@"\n')
    program.chmod(0o755)
    return work, tools


@pytest.mark.parametrize("name", SHOWN)
def test_commands(
    name: str, workplace: tuple[Path, Path], cache: Path, request: pytest.FixtureRequest
) -> None:
    work, tools = workplace
    environment = {
        **os.environ,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "SASSXLATE_CACHE_DIR": str(cache),
        "SASSXLATE_SERVICE_IDLE": "20",
    }
    bless = bool(request.config.getoption("--bless", default=False))

    def shown(match: re.Match[str]) -> str:
        text = ""
        for step in steps(match[2]):
            done = subprocess.run(
                ["bash", "-c", step.command],
                cwd=work,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=600,
                check=False,
            )
            assert done.returncode == 0, f"{step.command}: {done.stderr}"
            printed = "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())
            if match[1] and not bless:
                assert printed == step.output, f"{step.command}; --bless updates {name}"
            text += f"$ {step.command}\n{printed}"
        return f"```console{match[1] or ''}\n{text}```"

    path = ROOT / name
    before = path.read_text()
    after = _BLOCK.sub(shown, before)
    assert _BLOCK.search(before)
    if bless:
        path.write_text(after)
    for made in sorted((work / "pictures").glob("*.svg")) if "tutorial" in name else ():
        kept = ROOT / "docs" / "pictures" / made.name
        if bless:
            kept.write_bytes(made.read_bytes())
        assert made.read_bytes() == kept.read_bytes(), f"{kept.name}; --bless draws it anew"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_what_is_named_is_there(path: Path) -> None:
    text = path.read_text()
    for name in _PATH.findall(text):
        found = any(ROOT.glob(name.rstrip("/.")))
        assert found or name.startswith(_MADE), f"{path.name} names {name}"
    unknown = set(re.findall(r"\bSX\d{4}\b", text)) - set(catalogue())
    assert not unknown, path.name
    for target in re.findall(r"\]\((?!http)([^)#]+)", text):
        assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_every_document_is_named_in_the_readme() -> None:
    text = (ROOT / "README.md").read_text()
    for path in (ROOT / "docs").rglob("*.md"):
        assert f"({path.relative_to(ROOT)})" in text, path.name


def test_every_command_is_in_the_readme() -> None:
    text = (ROOT / "README.md").read_text()
    assert [name for name in SUBCOMMANDS if f"`sassxlate {name}" not in text] == []


def test_every_variable_is_documented() -> None:
    found: set[str] = set()
    for folder in ("runtime_shim", "lowering", "sassxlate/cli", "sassxlate"):
        for pattern in ("*.py", "native/**/*.cpp", "native/**/*.h"):
            for path in (ROOT / folder).glob(pattern):
                found |= set(re.findall(r"\bSASSXLATE_[A-Z][A-Z_]+", path.read_text()))
    shown = "".join(path.read_text() for path in DOCUMENTS)
    assert {name for name in found if name not in shown} == set()
