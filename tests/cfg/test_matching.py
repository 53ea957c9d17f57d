"""Blocks of two architectures matched, against pairs from a manual reading (``blocks.toml``), and
in mutants, whose pairs are known."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from sassxlate.cfg.diff.align import align
from sassxlate.cfg.diff.text import same, to_text

ROOT = Path(__file__).resolve().parents[2]
ENOUGH = 0.95
PROGRAMS = os.environ.get("SASSXLATE_PROGRAMS", "")


def _tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "diff_figure", ROOT / "tools" / "figures" / "diff.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look up their module
    spec.loader.exec_module(module)
    return module


figure: Any = _tool()


@pytest.fixture(scope="module")
def known() -> dict[tuple[Path, str], Any]:
    return {
        (left, name): pair
        for left, right in figure.own_files()
        for name, pair in figure.pictures(left, right).items()
    }


@pytest.mark.parametrize(("draw", "kernels", "blocks"), [(1, 7, 141), (2, 2, 49)])
def test_pairs_that_a_person_read(
    draw: int, kernels: int, blocks: int, known: dict[tuple[Path, str], Any]
) -> None:
    read = [one for one in figure.truth([], known) if one[1].draw == draw]
    assert len(read) == kernels
    total = hit = wrong = found = 0
    for (left, right), truth in read:
        got = figure.pairs(align(left, right))
        total += len(truth.same)
        hit += len(got & truth.same)
        wrong += len(got - truth.same - truth.unsure)
        found += len(got - truth.unsure)
    assert total == blocks
    assert hit >= ENOUGH * total
    assert wrong <= (1 - ENOUGH) * found


def test_kernels_do_not_differ_from_themselves(known: dict[tuple[Path, str], Any]) -> None:
    for kernel in known.values():
        for side in kernel:
            found = align(side, side)
            assert same(side, side, found)
            assert "@@" not in to_text(side, side, found)


@pytest.mark.parametrize("kind", figure.KINDS)
def test_mutants(kind: str, known: dict[tuple[Path, str], Any]) -> None:
    blocks = right = 0
    for kernel, _ in known.values():
        other, place = figure.mutant(kernel, kind, 1)
        found = figure.pairs(align(kernel, other))
        blocks += len(kernel.nodes)
        right += sum((i, place[i]) in found for i in range(len(kernel.nodes)))
    assert right >= ENOUGH * blocks


def test_a_mutant_differs_and_says_where() -> None:
    left, right = next(figure.own_files())
    kernel, _ = next(iter(figure.pictures(left, right).values()))
    other, _ = figure.mutant(kernel, "registers", 3)
    found = align(kernel, other)
    assert not same(kernel, other, found)
    assert " 0 changed" in to_text(kernel, other, found)


@pytest.mark.sweep
def test_programs(known: dict[tuple[Path, str], Any]) -> None:
    """SASSXLATE_PROGRAMS names a folder with programs for both architectures (X.sm_80, X.sm_90)."""
    folder = Path(PROGRAMS)
    files = [*figure.folder_files(folder)] if PROGRAMS else []
    if len(files) < 100:
        pytest.skip("SASSXLATE_PROGRAMS names no folder with 100 programs for both architectures")
    known = known | {
        (left, name): pair
        for left, right in files
        for name, pair in figure.pictures(left, right).items()
    }
    lines = [
        *figure.hand_checked([*figure.truth([folder], known)]),
        *figure.paired([*known.values()]),
    ]
    print("\n".join(lines))
    assert len(known) >= 100
    assert f"{2 * len(known)} differences are empty" in lines[-1]
