"""Damaged files end every reading subcommand in success or in a typed error with its place.

The work is chain.py's, in processes of its own with bounded memory: a crash or a hang there is one
failed test here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypedDict

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "disasm" / "containers" / "data"
PROGRAMS = [ROOT / "fixtures" / "programs" / name for name in ("saxpy", "reduction", "collatz")]
KERNELS = sorted((ROOT / "fixtures" / "kernels").glob("sm_*/*.cubin"))
CUBINS = [*KERNELS, *sorted(DATA.glob("*.cubin"))]
FATBINS = sorted(DATA.glob("*.fatbin"))
SEEDS_EACH = 100  # at least, where there are several processes
BATCH_S = 600  # of one process; each command has ten seconds, chain.py sees to that

Check = Callable[..., "Counter[str]"]


class Answer(TypedDict):
    """What chain.py prints."""

    ends: dict[str, int]
    faults: list[str]


# Reading alone costs a tenth of the whole way, so that more of it can be tried.
READ = "ls,extract,disasm"
ALL = "ls,extract,disasm,cfg,translate"


def batch(
    damage: str,
    files: Sequence[Path],
    seeds: range,
    commands: str,
    folder: Path,
    engine: str = "rules",
) -> Answer:
    """What chain.py says about these seeds."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SASSXLATE_")}
    # The default, the search, is given seconds a kernel: over the limit for files of several.
    environment["SASSXLATE_ENGINE"] = engine
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.mutations.chain", damage, *map(str, files)),
            *(f"--commands={commands}", f"--first={seeds.start}", f"--count={len(seeds)}"),
        ],
        env={**environment, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=BATCH_S,
        check=False,
    )
    assert done.returncode == 0, f"{damage} {seeds}: {done.returncode} {done.stderr[-2000:]}"
    answer: Answer = json.loads(done.stdout)
    assert not any(folder.glob("sassxlate-mutations-*")), "a batch left its folder"
    return answer


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """Damages files in so many ways and fails on any fault; the counts of ends."""

    def go(damage: str, files: Sequence[Path], seeds: range, commands: str = ALL) -> Counter[str]:
        assert files
        # A process costs as much as twenty seeds.
        workers = min(4, len(os.sched_getaffinity(0)), 1 + len(seeds) // SEEDS_EACH)
        each = -(-len(seeds) // workers)

        def part(number: int) -> Answer:
            folder = tmp_path / str(number)
            folder.mkdir(exist_ok=True)
            mine = seeds[number * each : (number + 1) * each]
            return batch(damage, files, mine, commands, folder)

        with ThreadPoolExecutor(workers) as pool:
            answers = list(pool.map(part, range(workers)))
        ends: Counter[str] = Counter()
        faults: list[str] = []
        for answer in answers:
            ends.update(answer["ends"])
            faults += answer["faults"]
        assert not faults, "\n".join(faults[:20])
        return ends

    return go


# A twentieth of the seeds; all of them in the sweep, and millions in sweep.py.
SHARES = pytest.mark.parametrize("share", [20, pytest.param(1, marks=pytest.mark.sweep)])


def some(first: int, end: int, share: int) -> range:
    """The first of these seeds: one in ``share``."""
    return range(first, first + (end - first) // share)


@SHARES
def test_cubins(check: Check, share: int) -> None:
    """Anywhere in a cubin, or cut off."""
    check("file", CUBINS, some(0, 1400, share), READ)
    ends = check("file", CUBINS, some(1400, 2000, share))
    assert ends["translate 0"] > 50 // share  # a flipped immediate is still a program
    assert ends["translate 3"] > 50 // share  # and a flipped operation is often none
    assert ends["translate 2"] > 50 // share


def test_a_cubin_by_the_search(tmp_path: Path) -> None:
    """What `translate` does by default: a file of one small kernel."""
    pytest.importorskip("z3", reason="the search proves what it finds")
    smallest = min(KERNELS, key=lambda path: path.stat().st_size)
    answer = batch("file", [smallest], range(3000, 3015), "translate", tmp_path, "search")
    assert not answer["faults"], answer["faults"]
    assert answer["ends"]["translate 0"]
    assert sum(answer["ends"].values()) == 15


@SHARES
def test_fatbins(check: Check, share: int) -> None:
    """Containers: compressed and not, with names, with PTX, linked."""
    check("file", FATBINS, some(0, 1750, share), READ)
    ends = check("file", FATBINS, some(1750, 2000, share))
    assert ends["ls 0"] > 30 // share
    assert ends["ls 2"] > 30 // share


@SHARES
def test_executables(check: Check, share: int) -> None:
    """Anywhere in an executable: most bytes are not ours, and change nothing."""
    check("file", PROGRAMS, some(0, 800, share), READ)
    ends = check("file", PROGRAMS[:1], some(800, 1000, share))
    assert ends["translate 0"] > 50 // share
    assert ends["ls 2"] > 20 // share


@SHARES
def test_containers_in_executables(check: Check, share: int) -> None:
    """Inside the executable's containers."""
    check("fatbin", PROGRAMS, some(0, 600, share), READ)
    ends = check("fatbin", PROGRAMS, some(600, 1000, share))
    assert ends["translate 0"] > 50 // share
    assert ends["translate 3"] > 20 // share
    assert ends["ls 2"] > 30 // share


@SHARES
def test_instructions(check: Check, share: int) -> None:
    """Instructions alone: what decodes goes through control flow, selection and encoding."""
    ends = check("code", CUBINS, some(0, 600, share))
    assert ends["ls 0"] == 600 // share
    assert ends["translate 3"] > 50 // share


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("damage", "files"),
    [
        ("file", CUBINS),
        ("file", FATBINS),
        ("file", PROGRAMS),
        ("fatbin", PROGRAMS),
        ("code", CUBINS),
    ],
)
def test_many(check: Check, damage: str, files: Sequence[Path]) -> None:
    """Five thousand seeds more of each."""
    check(damage, files, range(10_000, 15_000))
