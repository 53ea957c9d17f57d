"""The notebooks of docs/notebooks run, and print what they hold; ``--bless`` writes that anew."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sassxlate.errors import ShimError
from sassxlate.runtime_shim import paths

ROOT = Path(__file__).resolve().parents[3]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
# Each cell in one namespace, as Jupyter runs it; the outputs as a list.
_RUN = """
import contextlib, io, json, sys
space = {"__name__": "__main__"}
out = []
for source in json.load(sys.stdin):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        exec(compile(source, "cell", "exec"), space)
    out.append(text.getvalue())
json.dump(out, sys.stdout)
"""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebook(path: Path, request: pytest.FixtureRequest) -> None:
    try:
        paths.library_dir()
    except ShimError as error:
        pytest.skip(str(error))
    book: dict[str, Any] = json.loads(path.read_text())
    assert book["nbformat"] == 4
    cells = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    environment = {k: v for k, v in os.environ.items() if k != "WHEEL"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", _RUN], cwd=ROOT, text=True, capture_output=True, check=False,
        input=json.dumps(["".join(cell["source"]) for cell in cells]), timeout=120,
        env={**environment, "SASSXLATE_SERVICE_IDLE": "5"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    printed: list[str] = json.loads(done.stdout)
    if request.config.getoption("--bless", default=False):
        for cell, text in zip(cells, printed, strict=True):
            lines = text.splitlines(keepends=True)
            stream = {"name": "stdout", "output_type": "stream", "text": lines}
            cell["outputs"] = [stream] if text else []
        path.write_text(json.dumps(book, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
    for cell, text in zip(cells, printed, strict=True):
        assert "".join(line for o in cell["outputs"] for line in o["text"]) == text


def test_two_notebooks() -> None:
    page = (ROOT / "docs" / "python.md").read_text()
    assert len(NOTEBOOKS) == 2
    assert all(f"notebooks/{path.name}" in page for path in NOTEBOOKS)
