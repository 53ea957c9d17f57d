"""The page of a graph in a real browser: it pans, zooms, searches, folds, follows registers."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sassxlate.cfg.page import to_html

from .test_pictures import random_graph

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
# Does what a user does, by events alone, and writes down what came of it.
SCRIPT = """
const said = {};
const $ = (s) => document.querySelector(s), all = (s) => document.querySelectorAll(s);
const key = (k, more) => document.dispatchEvent(
  new KeyboardEvent("keydown", { key: k, bubbles: true, ...more }));
const camera = () => $("#graph > g").getAttribute("transform");
const frame = () => new Promise((done) => setTimeout(done, 60));
const height = (b) => +b.querySelector("rect.r").getAttribute("height");
const play = async () => {
  const svg = $("#graph"), box = svg.getBoundingClientRect();
  said.ready = document.documentElement.dataset.ready;
  said.milliseconds = performance.now();
  await frame();
  said.blocks = all(".b").length; said.arcs = all("polyline.e").length;
  said.texts = all(".b text").length;
  let before = camera();
  svg.dispatchEvent(new WheelEvent("wheel", { deltaY: -300, clientX: box.width / 2,
    clientY: box.top + 200, bubbles: true, cancelable: true }));
  await frame(); said.zoomed = camera() !== before; before = camera();
  const drag = (type, x, y) => svg.dispatchEvent(new PointerEvent(type,
    { clientX: x, clientY: y, pointerId: 1, bubbles: true }));
  svg.setPointerCapture = () => {};
  drag("pointerdown", 300, 300); drag("pointermove", 340, 350); drag("pointerup", 340, 350);
  await frame(); said.panned = camera() !== before; before = camera();
  key("ArrowLeft", { shiftKey: true }); await frame(); said.pannedByKey = camera() !== before;
  const find = $("#find");
  find.value = "IADD3 R1,"; find.dispatchEvent(new Event("input")); await frame();
  said.found = $("#count").textContent;
  said.marked = all("rect.line.found, rect.line.at").length;
  find.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true })); await frame();
  said.second = $("#count").textContent;
  find.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
  key("Home"); await frame();
  said.on = $(".b.on").id; said.said = $("#said").textContent;
  const first = $("#b0"), tall = height(first);
  key("Enter"); await frame(); said.folded = height(first) < tall;
  key("Enter"); await frame(); said.unfolded = height(first) === tall;
  key("j"); await frame(); key("r"); await frame();
  said.register = $("#said").textContent;
  said.lines = all("rect.line.def, rect.line.use").length;
  key("Escape"); await frame(); said.left = all("rect.line.def, rect.line.use").length;
  const reg = $(".b .reg");
  reg.dispatchEvent(new PointerEvent("pointerover", { bubbles: true })); await frame();
  said.hovered = all("rect.line.def, rect.line.use").length;
  svg.dispatchEvent(new PointerEvent("pointerover", { bubbles: true })); await frame();
  const sum = () => [...all(".b")].reduce((s, b) => s + height(b), 0);
  const full = sum();
  key("c"); await frame(); said.chains = sum() < full;
  key("c"); await frame(); said.whole = sum() === full;
  key("0"); await frame(); said.fit = camera();
  key("?"); said.help = $("#help").open; $("#help").close();
  key("t"); said.theme = document.documentElement.dataset.theme;
  key("ArrowDown"); await frame(); said.next = $(".b.on").id;
  said.loaded = performance.getEntriesByType("resource").length;
};
play().catch((e) => { said.error = e.stack; }).finally(() => {
  const pre = document.createElement("pre");
  pre.id = "result"; pre.textContent = JSON.stringify(said);
  document.body.append(pre);
});
"""


@pytest.fixture(scope="session")
def browser() -> str:
    for name in BROWSERS:
        found = shutil.which(name)
        if found:
            return found
    pytest.skip("no browser: install Debian's chromium to run the pages' tests")


def played(browser: str, page: str, folder: Path, script: str) -> dict[str, Any]:
    """What a script that was put into the page wrote into #result."""
    file = folder / "page.html"
    # A browser that is asked for the document alone draws no frames.
    frames = "<script>requestAnimationFrame = (f) => setTimeout(f, 16);</script></head>"
    page = page.replace("</head>", frames, 1)
    file.write_text(page.replace("</body>", f"<script>{script}</script></body>"))
    run = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1300,900",
         f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=20000", "--dump-dom",
         file.as_uri()],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    found = re.search(r'<pre id="result">(.*?)</pre>', run.stdout, re.DOTALL)
    assert found is not None, run.stderr[-2000:]
    answer: dict[str, Any] = json.loads(html.unescape(found[1]))
    return answer


def test_page_in_a_browser(browser: str, tmp_path: Path) -> None:
    picture = random_graph(7, 400)
    said = played(browser, to_html(picture), tmp_path, SCRIPT)
    assert "error" not in said, said
    assert said["ready"] == "1"
    assert said["blocks"] == 400
    assert said["arcs"] == len(picture.arcs)
    assert 0 < said["texts"] < 400 * 3  # of what is in view alone
    for done in ("zoomed", "panned", "pannedByKey", "folded", "unfolded", "chains", "whole"):
        assert said[done] is True, (done, said)
    hits = sum("IADD3 R1," in line.text for node in picture.nodes for line in node.lines)
    assert said["found"] == f"1 of {hits}"
    assert said["second"] == f"2 of {hits}"
    assert said["marked"] >= 1
    assert said["on"] == "b0"
    assert said["said"].startswith("block 0000")
    assert said["register"].startswith("R0: written by")
    assert said["lines"] > 0
    assert said["left"] == 0
    assert said["hovered"] > 0
    assert said["help"] is True
    assert said["theme"] in ("light", "dark")
    assert said["next"] != "b0"
    assert said["loaded"] == 0


@pytest.mark.sweep
def test_a_page_of_5000_blocks_is_there_at_once(browser: str, tmp_path: Path) -> None:
    """Two seconds is the aim, on a machine that does nothing else."""
    said = played(browser, to_html(random_graph(5, 5000)), tmp_path, SCRIPT)
    print(f"ready after {said['milliseconds']:.0f} ms")
    assert said["blocks"] == 5000
