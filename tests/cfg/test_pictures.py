"""Drawings of control-flow graphs: layouts, SVG, pages, data; for any possible graph."""

from __future__ import annotations

import json
import random
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sassxlate.cfg.pages.graph import to_html
from sassxlate.cfg.view.layout import Layout, lay_out
from sassxlate.cfg.view.picture import ARC_KINDS, Arc, Line, Loop, Node, Picture
from sassxlate.cfg.view.svg import DARK, LIGHT, to_svg
from sassxlate.cfg.view.text import to_data, to_dot, to_text
from sassxlate.cli.cfg import command

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).with_name("golden")
SVG = "{http://www.w3.org/2000/svg}"


def drawn(count: int, arcs: Sequence[tuple[int, int]], name: str = "k", lines: int = 2) -> Picture:
    """A graph of ``count`` blocks; an arc to an earlier block closes a loop."""
    nodes = tuple(
        Node(i, 64 * i, tuple(Line(64 * i + 16 * n, f"IADD3 R{n}, R1, R2, RZ", (f"R{n}",), ("R1",))
                              for n in range(lines)))
        for i in range(count)
    )  # fmt: skip
    ways = {a: [b for x, b in arcs if x == a] for a, _ in arcs}
    made = tuple(
        Arc(a, b, "jump" if len(ways[a]) == 1 else "fall" if b == a + 1 else "taken", b <= a)
        for a, b in arcs
    )
    return Picture(name, name, "sm_90", nodes, made)


def random_graph(seed: int, count: int) -> Picture:
    """Any shape: branches forwards and backwards, blocks that nothing reaches."""
    some = random.Random(seed)
    arcs: dict[tuple[int, int], None] = {}
    for a in range(count):
        if a + 1 < count and some.random() < 0.85:
            arcs[a, a + 1] = None
        if some.random() < 0.5:
            arcs[a, some.randrange(count)] = None
    return drawn(count, [*arcs], lines=some.randrange(1, 6))


def sound(picture: Picture, placed: Layout) -> None:
    """Blocks do not overlap, arcs run along axes and cross no block, tracks are separate."""
    gaps, rows, _ = placed.tops()
    boxes = [(b.x, rows[b.row], b.x + b.width, rows[b.row] + b.height) for b in placed.boxes]
    by_row: dict[int, list[tuple[float, float]]] = {}
    for box in placed.boxes:
        by_row.setdefault(box.row, []).append((box.x, box.x + box.width))
    for some in by_row.values():
        assert all(a[1] <= b[0] for a, b in pairwise(sorted(some)))
    for route in placed.routes:
        source, target = boxes[route.arc.src], boxes[route.arc.dst]
        points = [
            (route.points[0][0], source[3]),
            *((x, gaps[g] + y) for x, g, y in route.points[1:-1]),
            (route.points[-1][0], target[1]),
        ]
        assert source[0] < points[0][0] < source[2]
        assert target[0] < points[-1][0] < target[2]
        for (x0, y0), (x1, y1) in pairwise(points):
            assert abs(x0 - x1) < 1e-6 or abs(y0 - y1) < 1e-6
            for left, top, right, bottom in boxes:
                crosses = (
                    max(x0, x1) > left and min(x0, x1) < right
                    and max(y0, y1) > top and min(y0, y1) < bottom
                )  # fmt: skip
                assert not crosses, (route.arc, (left, top, right, bottom))


@pytest.mark.parametrize("seed", range(0, 40, 3))
def test_layouts_of_random_graphs_are_sound(seed: int) -> None:
    picture = random_graph(seed, 1 + seed * 2)
    placed = lay_out(picture)
    sound(picture, placed)
    assert placed == lay_out(picture)
    assert len(placed.routes) == len(picture.arcs)


def test_the_sides_of_a_branch_keep_theirs() -> None:
    picture = drawn(4, [(0, 1), (0, 2), (1, 3), (2, 3)])
    boxes = lay_out(picture).boxes
    assert boxes[1].x < boxes[2].x
    assert [b.row for b in boxes] == [0, 1, 1, 2]
    middle = [b.x + b.width / 2 for b in boxes]
    assert middle[1] < middle[0] < middle[2]


def test_large_graphs_take_little_time() -> None:
    import time

    picture = random_graph(5, 5000)
    begin = time.process_time()
    lay_out(picture)
    assert time.process_time() - begin < 20  # the target is 5 s, on an idle machine


ODD = {
    "nothing": drawn(0, []),
    "one": drawn(1, []),
    "itself": drawn(1, [(0, 0)]),
    "apart": drawn(4, [(0, 1), (2, 3)]),
    "irreducible": drawn(4, [(0, 1), (0, 2), (1, 2), (2, 1), (1, 3)]),
    "twice": drawn(2, [(0, 1), (0, 1)]),
    "html": drawn(2, [(0, 1)], "</script><b onload='x'>&amp;\"]]>"),
    "long": drawn(2, [(0, 1)], "_Z" + "x" * 4000),
    "control": drawn(1, [], "a\x00\x1b[31m\ufffe\ud800"),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_graphs(name: str) -> None:
    picture = ODD[name]
    sound(picture, lay_out(picture))
    svg = to_svg(picture).encode("utf-8", "replace").decode()
    root = ET.fromstring(svg)
    assert len(root.findall(f"{SVG}g")) == len(picture.nodes)
    assert len(root.findall(f"{SVG}polyline")) == len(picture.arcs)
    page = to_html(picture)
    assert "<b onload" not in page
    data = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    assert len(json.loads(data[1])["nodes"]) == len(picture.nodes)
    assert to_dot(picture).count("->") == len(picture.arcs)
    assert to_text(picture).count("\nblock ") == len(picture.nodes)
    json.dumps(to_data(picture))


def test_nothing_is_loaded_from_elsewhere() -> None:
    page = to_html(drawn(3, [(0, 1), (1, 2)]))
    urls = set(re.findall(r"https?://[^\"' )<]+", page))
    assert urls == {"http://www.w3.org/2000/svg"}  # a namespace, not an address
    assert "default-src 'none'" in page
    assert not re.search(r"<link|<img|@import|fetch\(|XMLHttpRequest|\bsrc=", page)


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2.2 defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_contrast_is_that_of_wcag_aa(colours: dict[str, str]) -> None:
    css = (ROOT / "cfg" / "pages" / "graph.css").read_text()
    which = css.split("data-theme=dark]{--found")[0 if colours is LIGHT else 1]
    marks = dict(re.findall(r"--(found|use|def):(#\w+)", css))
    if colours is DARK:
        marks = dict(re.findall(r"--(found|use|def):(#\w+)", "--found" + which))
    else:
        first = re.search(r":root\{--found:(#\w+);--use:(#\w+);--def:(#\w+)\}", css)
        assert first is not None
        marks = dict(zip(("found", "use", "def"), first.groups(), strict=True))
    full = {k: v if len(v) == 7 else "#" + "".join(2 * c for c in v[1:]) for k, v in marks.items()}
    for back in ("paper", "block", "lost", "loop"):
        for text in ("ink", "faint"):
            assert contrast(colours[text], colours[back]) >= 4.5, (text, back)
    for name, back_ in full.items():
        assert contrast(colours["ink"], back_) >= 4.5, name
    for kind in (*ARC_KINDS, "rim", "diverge", "heat"):
        for back in ("paper", "loop"):
            assert contrast(colours[kind], colours[back]) >= 3, (kind, back)
    for letter in ("taken", "fall"):
        assert contrast(colours[letter], colours["paper"]) >= 4.5


def test_golden_layout(request: pytest.FixtureRequest) -> None:
    """A real kernel with two loops: any change of the layout must be reviewed."""
    got = CliRunner().invoke(
        command,
        [str(ROOT / "fixtures/programs/collatz"), "-k", "*", "--arch", "sm_90", "--format", "svg"],
    )
    assert got.exit_code == 0, got.output
    path = GOLDEN / "collatz.sm_90.svg"
    if request.config.getoption("--bless", default=False):
        path.parent.mkdir(exist_ok=True)
        path.write_text(got.output)
    assert got.output == path.read_text()


@pytest.mark.parametrize("kind", ["text", "dot", "json", "svg", "html"])
def test_command(kind: str, tmp_path: Path) -> None:
    out = tmp_path / f"out.{kind}"
    run = CliRunner().invoke(
        command,
        [str(ROOT / "fixtures/programs/collatz"), "-k", "*", "--arch", "sm_80", "-o", str(out)],
    )
    assert run.exit_code == 0, run.output
    text = out.read_text()
    assert "IMAD" in text
    if kind == "json":
        data = json.loads(text)
        assert data["schema"] == "sassxlate.cfg/1"
        blocks = data["kernels"][0]["blocks"]
        assert [b["index"] for b in blocks] == [*range(len(blocks))]
        assert len(data["kernels"][0]["loops"]) == 2


def test_loops_are_shaded_and_joins_said() -> None:
    node = Node(0, 0, (Line(0, "NOP"),), divergent=True, joins=("B0",), loops=(0,), runs=5)
    picture = Picture("k", "k", "sm_90", (node,), (Arc(0, 0, "taken", True),),
                      (Loop(0, frozenset({0})),))  # fmt: skip
    svg = to_svg(picture)
    assert svg.count('class="halo"') == 1
    for said in ("joins B0", "ran 5", 'class="bar"', 'class="heat"', "taken back"):
        assert said in svg


def test_graphml_is_read_back() -> None:
    """By NetworkX: the blocks, their instructions and the edges of the JSON, parallel ones too."""
    import networkx as nx

    file = str(ROOT / "fixtures" / "programs" / "collatz")
    options = [file, "-k", "*collatz*", "--arch", "sm_80", "--format"]
    (known,) = json.loads(CliRunner().invoke(command, [*options, "json"]).stdout)["kernels"]
    text = CliRunner().invoke(command, [*options, "graphml"]).stdout
    read: Any = nx
    graph: Any = read.parse_graphml(text, node_type=int, force_multigraph=True)
    assert graph.graph["target"] == "sm_80"
    for block in known["blocks"]:
        found = graph.nodes[block["index"]]
        assert found["instructions"].split("\n") == [i["text"] for i in block["instructions"]]
        assert (found["start"], found["divergent"]) == (block["start"], block["divergent"])
    edges: list[Any] = [(a, b, data["kind"], data["back"]) for a, b, data in graph.edges(data=True)]
    assert sorted(edges) == sorted(
        (e["from"], e["to"], e["kind"], e["back"]) for e in known["edges"]
    )


def test_graphml_of_a_name_that_xml_cannot_hold() -> None:
    from sassxlate.cfg.view.exchange import to_graphml
    from sassxlate.cfg.view.picture import Line, Node, Picture

    drawn = Picture("k\x01\udcff", "\ufffe<&>", "sm_80", (Node(0, 0, (Line(0, "NOP\0"),)),), ())
    text = to_graphml(drawn)
    assert "k??" in text
    assert "?&lt;&amp;&gt;" in text
    assert "NOP?" in text
