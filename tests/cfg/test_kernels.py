"""Kernels found again in another file: by name, by a name with other hashes, by structure."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from click.testing import CliRunner

from sassxlate.cfg.diff.kernels import KernelShape, by_structure, match_kernels
from sassxlate.cfg.diff.library import compare, to_table
from sassxlate.cli.diff import command
from sassxlate.lowering.report.graphs import graphs
from sassxlate.lowering.report.shapes import kernel_shape

from .test_diff import kernel, renamed

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "fixtures" / "kernels"


def own(arch: str) -> list[KernelShape]:
    """Every second kernel of the fixtures."""
    files = sorted((KERNELS / arch).glob("*.cubin"))[::2]
    return [kernel_shape(g) for file in files for g in graphs(str(file), (), None)]


def named(shape: KernelShape, name: str) -> KernelShape:
    return replace(shape, picture=replace(shape.picture, name=name, shown=name))


def test_kernels_of_another_architecture_without_names() -> None:
    left, right = own("sm_80"), own("sm_90")
    assert len(left) > 20
    pairs = by_structure(left, right[::-1])
    found = {left[i].picture.name: right[::-1][j].picture.name for i, j in pairs}
    same = sum(a == b for a, b in found.items())
    assert same / len(left) >= 0.9, found


def test_names_are_not_looked_at() -> None:
    left = [KernelShape(kernel(seed, 9)) for seed in range(6)]
    right = [named(KernelShape(renamed(k.picture, 9)[0]), f"x{n}") for n, k in enumerate(left)]
    assert by_structure(left, right) == [(n, n) for n in range(6)]
    assert by_structure([], right) == by_structure(left, []) == []


def test_names_then_hashes_then_structure() -> None:
    a, b, c = (KernelShape(kernel(seed, 9)) for seed in (1, 2, 3))
    left = [named(a, "same"), named(b, "_INTERNAL_0badf00d_f"), named(c, "old")]
    # The names decide, whatever the code is.
    right = [named(c, "new"), named(a, "_INTERNAL_1234abcd_f"), named(b, "same")]
    found = [(m.left, m.right, m.by) for m in match_kernels(left, right)]
    assert found == [(0, 2, "name"), (1, 1, "name"), (2, 0, "structure")]
    alone = [(m.left, m.right) for m in match_kernels(left, right, names=False)]
    assert alone == [(0, 1), (1, 2), (2, 0)]


def test_unlike_kernels_are_no_pair() -> None:
    other = replace(kernel(1, 3), name="other")
    texts = tuple(
        replace(n, lines=tuple(replace(t, text="MUFU.RSQ R1, R2") for t in n.lines))
        for n in other.nodes
    )
    found = compare([KernelShape(kernel(2, 40))], [KernelShape(replace(other, nodes=texts))])
    assert not found.pairs
    assert "0 pairs of kernels" in to_table(found)
    assert ": only left" in to_table(found)


def test_declared_values_tell_twins_apart() -> None:
    twin = KernelShape(kernel(1, 9), (((0, 8),), 512))
    other = replace(twin, declared=(((0, 8),), 1024))
    left, right = [named(twin, "a"), named(other, "b")], [named(other, "x"), named(twin, "y")]
    assert by_structure(left, right) == [(0, 1), (1, 0)]


def test_command_of_two_files(tmp_path: Path) -> None:
    file = str(ROOT / "fixtures/programs/reduction")
    files = [file, file, "--arch", "sm_80"]
    one, files = files, [*files, "--arch-b", "sm_90"]
    run = CliRunner()
    table = run.invoke(command, files)
    assert table.exit_code == 1
    lines = table.output.splitlines()
    alike = [float(line.split()[0]) for line in lines if line.strip()[:2] in ("0.", "1.")]
    assert len(alike) > 1
    assert alike == sorted(alike)  # the least alike first
    assert "by name" in lines[-1]
    whole = run.invoke(command, [*files, "--whole"])
    assert whole.output.startswith(table.output)
    assert "@@" in whole.output
    data = json.loads(run.invoke(command, [*files, "--format", "json"]).output)
    assert {k["matched"] for k in data["kernels"]} == {"name"}
    assert data["only_left"] == data["only_right"] == []
    page = tmp_path / "page.html"
    assert run.invoke(command, [*files, "-o", str(page)]).exit_code == 1
    assert page.read_text().count("<tr tabindex") == len(alike)
    assert run.invoke(command, one).exit_code == 0
