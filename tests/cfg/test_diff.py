"""Differences of graphs: blocks found again under other names, in another order."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sassxlate.cfg.diff.align import align
from sassxlate.cfg.diff.fingerprint import normal_form
from sassxlate.cfg.diff.text import moved, same, status, to_text
from sassxlate.cfg.pages.diff import to_html
from sassxlate.cfg.view.picture import Arc, Line, Node, Picture
from sassxlate.cli.cfg import command as cfg_command
from sassxlate.cli.diff import command

from .test_pictures import ODD, random_graph

ROOT = Path(__file__).resolve().parents[2]
COLLATZ = str(ROOT / "fixtures/programs/collatz")
OPS = ("IADD3", "IMAD", "LOP3.LUT", "SHF.R.U32.HI", "FFMA", "LDG.E", "STG.E", "ISETP.GE.AND")


def kernel(seed: int, count: int) -> Picture:
    """A graph whose blocks differ from each other, as those of real kernels do."""
    some = random.Random(seed)
    base = random_graph(seed, count)
    nodes = tuple(
        replace(
            node,
            lines=tuple(
                Line(node.start + 16 * n, f"{some.choice(OPS)} R{some.randrange(40)}, "
                     f"R{some.randrange(40)}, {some.choice(['R4', 'c[0x0][0x160]', '0x10'])}")
                for n in range(some.randrange(3, 12))
            ),
        )
        for node in base.nodes
    )  # fmt: skip
    return replace(base, nodes=nodes)


def renamed(picture: Picture, seed: int) -> tuple[Picture, list[int]]:
    """The same kernel with other registers and constants, its blocks in another order; and the new
    place of each block."""
    some = random.Random(seed)
    order = [*range(1, len(picture.nodes))]
    some.shuffle(order)
    order = [0, *order]
    place = [order.index(i) for i in range(len(order))]
    names = [f"R{i}" for i in some.sample(range(60), 40)]

    def text(old: str) -> str:
        parts = old.replace("0x160", "0x210").replace("0x10", "0x24").split(" ")
        return " ".join(
            names[int(p[1:].rstrip(","))] + "," * p.endswith(",")
            if p[1:].rstrip(",").isdigit() and p[0] == "R"
            else p
            for p in parts
        )

    nodes = tuple(
        replace(
            picture.nodes[old], index=new, start=4096 * new,
            lines=tuple(replace(t, text=text(t.text)) for t in picture.nodes[old].lines),
        )
        for new, old in enumerate(order)
    )  # fmt: skip
    arcs = tuple(replace(a, src=place[a.src], dst=place[a.dst]) for a in picture.arcs)
    return replace(picture, nodes=nodes, arcs=arcs), place


@pytest.mark.parametrize("seed", range(12))
def test_blocks_are_found_again(seed: int) -> None:
    picture = kernel(seed, 10 + 8 * seed)
    other, place = renamed(picture, seed)
    found = align(picture, other)
    right = sum(place[p.left] == p.right for p in found.pairs)
    assert right >= 0.95 * len(picture.nodes)
    assert all(p.alike == 1 for p in found.pairs if place[p.left] == p.right)
    assert moved(found)
    assert not same(picture, other, found)


@pytest.mark.parametrize("name", ODD)
def test_nothing_differs_from_itself(name: str) -> None:
    picture = ODD[name]
    found = align(picture, picture)
    assert same(picture, picture, found)
    assert found.alike == 1
    assert "@@" not in to_text(picture, picture, found)
    assert all(status(picture, picture, p) == "same" for p in found.pairs)


@pytest.mark.parametrize("seed", range(4))
def test_a_graph_and_itself(seed: int) -> None:
    picture = random_graph(seed, 60)  # with many equal blocks
    assert same(picture, picture, align(picture, picture))


def test_what_is_added_and_what_is_gone() -> None:
    left = kernel(3, 12)
    extra = Node(12, 9999, tuple(Line(9999 + n, f"MUFU.RSQ R{n}, R9") for n in range(5)))
    right = replace(left, nodes=(*left.nodes, extra), arcs=(*left.arcs, Arc(11, 12, "jump")))
    found = align(left, right)
    assert found.only_left == ()
    assert found.only_right == (12,)
    assert found.alike < 1
    text = to_text(left, right, found)
    assert "+ MUFU.RSQ R0, R9" in text
    assert "0 only left, 1 only right" in text
    back = align(right, left)
    assert (back.only_left, back.only_right) == ((12,), ())


def test_a_changed_line() -> None:
    left = kernel(5, 8)
    node = left.nodes[3]
    lines = list(node.lines)
    lines[1] = replace(lines[1], text="POPC R1, R2")
    right = replace(
        left, nodes=(*left.nodes[:3], replace(node, lines=tuple(lines)), *left.nodes[4:])
    )
    found = align(left, right)
    assert not found.only_left
    assert [status(left, right, p) for p in found.pairs].count("changed") == 1
    text = to_text(left, right, found)
    assert "+ POPC R1, R2" in text
    assert f"- {node.lines[1].text}" in text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("@!P0 IADD3 R4, P1, R6.reuse, 0x10, RZ", "@!P3 IADD3 R9, P0, R2, -0x20, RZ"),
        ("IMAD.MOV.U32 R5, RZ, RZ, R3", "IMAD.MOV.U32 R6, RZ, RZ, R1"),
        ("LDG.E R2, desc[UR4][R2.64+0x8]", "LDG.E R7, desc[UR6][R4.64+0x10]"),
        ("LDG.E R2, [R2.64+0x8]", "LDG.E R7, desc[UR6][R4.64+0x10]"),
        ("LDS R2, [R17+0x4]", "LDS R3, [R9+0x8]"),
        ("STS [R11.X4+-0x100], R5", "STS [R2.X4+-0x80], R6"),
        ("FMUL R1, R2, 1.5", "FMUL R3, R4, 0.25"),
        ("v_add_f32_e32 v1, v2, v3", "v_add_f32_e32 v9, v8, v7"),
        ("global_load_b64 v[2:3], v[4:5], off", "global_load_b64 v[8:9], v[0:1], off"),
    ],
)
def test_names_and_values_do_not_count(one: str, other: str) -> None:
    assert normal_form(one) == normal_form(other)


def test_operations_count() -> None:
    assert normal_form("IADD3 R4, R5, R6, RZ") != normal_form("IADD3.X R4, R5, R6, RZ")
    assert normal_form("IADD3 R4, R5, R6, RZ") != normal_form("IADD3 R4, R5, c[0x0][0x160], RZ")
    assert normal_form("@P0 EXIT") != normal_form("EXIT")
    assert normal_form("@P0 EXIT") != normal_form("@!P0 EXIT")
    compare = "ISETP.GE{}.AND P0, PT, R1, R2, PT"
    assert normal_form(compare.format("")) != normal_form(compare.format(".U32"))
    assert normal_form("IADD3 R4, R5, R6, RZ") != normal_form("IADD3 R4, R5, -R6, RZ")
    assert normal_form("IADD3 R4, R5, R6, RZ") != normal_form("IADD3 R4, R5, R6, R7")
    table = "LOP3.LUT R4, R5, R6, RZ, {}, !PT"
    assert normal_form(table.format("0xc0")) != normal_form(table.format("0xfc"))
    assert normal_form(f"@!P1 {table.format('0xc0')}") != normal_form(
        f"@!P1 {table.format('0xfc')}"
    )
    assert normal_form("MOV R1, c[0x0][0x28]") != normal_form("LDC R1, c[0x0][0x28]")


def test_command() -> None:
    run = CliRunner()
    args = [COLLATZ, COLLATZ, "--arch", "sm_80"]
    equal = run.invoke(command, [*args, "--arch-b", "sm_80"])
    assert equal.exit_code == 0
    assert "0 changed" in equal.output
    differs = run.invoke(command, [*args, "--arch-b", "sm_90"])
    assert differs.exit_code == 1
    data = json.loads(run.invoke(command, [*args, "--arch-b", "sm_90", "--format", "json"]).output)
    assert data["schema"] == "sassxlate.diff/1"
    one = data["kernels"][0]
    assert one["left"]["blocks"] == one["right"]["blocks"] == 16
    assert len(one["pairs"]) >= 15
    keys = {"left", "right", "same", "alike", "pairs", "only_left", "only_right", "matched"}
    assert set(one) == keys
    assert set(one["left"]) == {"name", "target", "blocks", "starts", "notes"}
    assert one["left"]["starts"][:3] == [0, 0x90, 0xA0]
    for pair in one["pairs"]:
        assert set(pair) - {"lines"} == {"left", "right", "status", "alike", "moved"}
        assert ("lines" in pair) == (pair["status"] == "changed")
    assert run.invoke(command, args).output == equal.output  # B defaults to A's kernel
    assert run.invoke(command, [*args, "--arch-b", "sm_75"]).exit_code != 0
    both = run.invoke(command, [COLLATZ, COLLATZ])
    assert both.exit_code != 0  # two architectures have the kernel: so it is ambiguous?


@pytest.mark.parametrize("name", ODD)
def test_pages_of_odd_graphs(name: str) -> None:
    picture = ODD[name]
    page = to_html(picture, picture, align(picture, picture))
    assert '<span id="facts" class="facts">nothing differs' in page
    assert page.count("<b onload") == 0
    data = page_data(page)
    assert not any(group["d"] for group in data["groups"])
    assert [*map(len, data["kinds"])] == [len(picture.nodes)] * 2


def page_data(page: str) -> dict[str, Any]:
    """The graphs in a page, as its script reads them."""
    found = re.search(r'<script type="application/json" id="k0">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_page_of_what_differs(tmp_path: Path) -> None:
    left = kernel(3, 12)
    extra = Node(12, 9999, tuple(Line(9999 + n, f"MUFU.RSQ R{n}, R9") for n in range(5)))
    right = replace(left, nodes=(*left.nodes, extra), arcs=(*left.arcs, Arc(11, 12, "jump")))
    for a, b, side in ((left, right, "right"), (right, left, "left")):
        data = page_data(to_html(a, b, align(a, b)))
        alone = [g for g in data["groups"] if not (g["l"] and g["r"])]
        assert [g["h"] for g in alone] == [f"270f  only {side}"]
        assert alone[0]["d"] == 1
        assert len(data["groups"]) == 13
    out = tmp_path / "out.html"
    args = [COLLATZ, COLLATZ, "--arch", "sm_80", "--arch-b", "sm_90", "-o", str(out)]
    assert CliRunner().invoke(command, args).exit_code == 1
    page = out.read_text()
    data = page_data(page)
    assert len(data["groups"]) == 16
    assert all(g["l"] and g["r"] for g in data["groups"])
    # Lines of a changed pair: each of both sides once.
    changed = next(g for g in data["groups"] if g["s"] == "changed")
    for side, name in enumerate("lr"):
        block = changed[name][0]
        lines = [row[side][1] for row in changed["rows"] if row[side]]
        assert lines == [*range(len(data["sides"][side]["nodes"][block]["L"]))]
    assert page.count("http") == page.count("http-equiv") + page.count("http://www.w3.org/2000/svg")


def test_one_picture_a_file() -> None:
    run = CliRunner().invoke(cfg_command, [COLLATZ, "-k", "*", "--format", "svg"])
    assert run.exception is not None
    assert "SX0828" in str(run.exception)
