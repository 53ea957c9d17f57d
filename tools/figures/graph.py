"""Times a large kernel's graph: its layout, its page, and the browser's response.

::

    python -m tools.figures.graph [BLOCKS] [--runs N]

The kernel is random: blocks of a few instructions, half of them with a branch to anywhere, as
no compiler would make it; real kernels of that size have shorter arcs.  Where the machine does
other work, too, seconds of the processor say more than the clock's.  The browser is Debian's
chromium, without a window; it is ready when the page's script has run, and answers when a frame
was drawn after a turn of the wheel.  The difference is of two kernels with two fifths of the blocks
each, and "both" the page that shows these side by side.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sassxlate.cfg.diff.align import align
from sassxlate.cfg.pages.diff import to_html as difference_to_html
from sassxlate.cfg.pages.graph import to_html
from sassxlate.cfg.view.layout import lay_out
from sassxlate.cfg.view.picture import Arc, Line, Node, Picture

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_SCRIPT = """<script>(() => {
const frame = (f) => requestAnimationFrame(() => setTimeout(f));
const begin = () => {
  if (document.documentElement.dataset.ready !== "1") { setTimeout(begin, 1); return; }
  const ready = performance.now();
  frame(() => measure(ready));
};
const measure = (ready) => {
  const drawn = performance.now(), svg = document.querySelector("#graph, #left");
  svg.dispatchEvent(new WheelEvent("wheel", { deltaY: -300, clientX: 600, clientY: 400,
    bubbles: true, cancelable: true }));
  frame(() => console.log("FIGURE " + JSON.stringify([ready, drawn, performance.now()])));
};
begin();
})();</script></body>"""
_T = TypeVar("_T")


def large(count: int, seed: int = 5) -> Picture:
    """A graph of ``count`` blocks with branches to anywhere."""
    some = random.Random(seed)
    nodes = tuple(
        Node(i, 128 * i, tuple(
            Line(128 * i + 16 * n, f"IADD3 R{n}, R{some.randrange(90)}, R2, RZ", (f"R{n}",))
            for n in range(some.randrange(2, 8))
        ))
        for i in range(count)
    )  # fmt: skip
    arcs: list[Arc] = []
    for i in range(count):
        both = some.random() < 0.5
        if i + 1 < count:
            arcs.append(Arc(i, i + 1, "fall" if both else "jump"))
        if both:
            to = some.randrange(count)
            arcs.append(Arc(i, to, "taken", to <= i))
    return Picture("large", "large", "sm_90", nodes, tuple(arcs))


def timed(work: Callable[[], _T], runs: int) -> tuple[_T, float, float]:
    """(result, least seconds of the processor, least seconds of the clock)."""
    cpu: list[float] = []
    clock: list[float] = []
    while True:
        begin = time.process_time(), time.perf_counter()
        result = work()
        cpu.append(time.process_time() - begin[0])
        clock.append(time.perf_counter() - begin[1])
        if len(cpu) >= runs:
            return result, min(cpu), min(clock)


def opened(browser: str, page: str) -> list[float]:
    """Opens a page once; the milliseconds until it was ready, drawn, and answered."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        file = Path(folder) / "page.html"
        file.write_text(page.replace("</body>", _SCRIPT))
        run = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1300,900",
             "--enable-logging=stderr", f"--user-data-dir={folder}/profile", "--timeout=30000",
             f"--screenshot={folder}/shot.png", file.as_uri()],
            capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
    found = re.search(r"FIGURE (\[[^\]]*\])", run.stderr)
    if found is None:
        raise RuntimeError(f"the browser said nothing: {run.stderr[-800:]}")
    times: list[float] = json.loads(found[1])
    return times


def figures(count: int, runs: int) -> dict[str, float]:
    """All of it, seconds; of the browser where there is one."""
    picture = large(count)
    placed, cpu, clock = timed(lambda: lay_out(picture), runs)
    out = {"layout, processor": cpu, "layout, clock": clock}
    page, cpu, clock = timed(lambda: to_html(picture, placed), runs)
    out |= {"page, processor": cpu, "page, clock": clock, "page, megabytes": len(page) / 1e6}
    left, right = large(count * 2 // 5), large(count * 2 // 5, 6)
    found, cpu, clock = timed(lambda: align(left, right), 1)
    out |= {"difference from another, processor": cpu, "difference from another, clock": clock}
    both, cpu, clock = timed(lambda: difference_to_html(left, right, found), 1)
    out |= {"page of both, processor": cpu, "page of both, clock": clock}
    browser = next((b for b in map(shutil.which, BROWSERS) if b), None)
    if browser is None:
        print("no browser: install Debian's chromium", file=sys.stderr)
        return out
    for title, shown in (("browser", page), ("browser, both", both)):
        seen = [opened(browser, shown) for _ in range(runs)]
        for place, name in enumerate(("ready", "drawn", "answers")):
            out[f"{title}, {name}"] = min(times[place] for times in seen) / 1000
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("blocks", nargs="?", type=int, default=5000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    print(f"{options.blocks} blocks, the least of {options.runs} runs, seconds:")
    for name, value in figures(options.blocks, options.runs).items():
        print(f"  {name:44} {value:6.2f}")


if __name__ == "__main__":
    main()
