"""The site: every document has a place, links lead somewhere, Sphinx has no warning."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sassxlate import schemas
from sassxlate.cli import SUBCOMMANDS
from sassxlate.errors import catalogue
from tools.site import build, generated, stage

_LINK = re.compile(r"\]\(([^)\s]+)\)")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build.write(folder)
    return folder


def test_every_document_has_one_place() -> None:
    named = [page for section in stage.sections() for page in section.pages]
    assert len(named) == len(set(named))
    documents = {
        str(path.relative_to(stage.ROOT))
        for pattern in ("*.md", "*.ipynb")
        for path in (stage.ROOT / "docs").rglob(pattern)
    }
    assert documents - set(named) == set()
    places = list(stage.places(stage.sections()).values())
    assert len(places) == len(set(places))


def test_generated_pages_have_all() -> None:
    pages = generated.pages()
    commands = {name.split("/")[-1] for name in pages if name.startswith("reference/commands/")}
    for name in SUBCOMMANDS:
        assert any(re.match(rf"{name}[-.]", page) for page in commands), name
    errors = "".join(t for n, t in pages.items() if n.startswith("reference/errors/sx"))
    assert [code for code in catalogue() if f"({code.lower()})=" not in errors] == []
    assert all(f"reference/json/{name}.md" in pages for name in schemas.VERSIONS)
    assert "reference/sass/IADD3.md" in pages


def test_links_lead_to_pages(written: Path) -> None:
    for page in written.rglob("*.md"):
        shown = stage.outside_code(page.read_text(encoding="utf-8"))
        for link in _LINK.findall(shown):
            if re.match(r"[a-z]+:|#", link):
                continue
            target = page.parent / link.partition("#")[0]
            assert target.exists(), f"{page.relative_to(written)} links to {link}"


def test_links_to_sources_become_text(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text(
        "# A\n\n[b](b.md#part), [code](../lowering/pipeline.py), ![p](p.svg), [x](https://x.org)\n"
        "\n```text\n[b](b.md)\n```\n"
    )
    (tmp_path / "docs" / "p.svg").write_text("<svg/>")
    placed = {"docs/a.md": "how-to/a.md", "docs/b.md": "reference/b.md"}
    text = stage.page_text("docs/a.md", placed, tmp_path)
    assert "[b](../reference/b.md#part), code, ![p](../files/p.svg), [x](https://x.org)" in text
    assert "```text\n[b](b.md)\n```" in text
    assert stage.files("docs/a.md", tmp_path) == {"docs/p.svg"}


@pytest.mark.sweep
def test_sphinx_has_no_warning(written: Path, tmp_path: Path) -> None:
    if not build.is_possible():
        pytest.skip("the extra docs is not installed")
    assert build.sphinx(written, tmp_path / "html") == 0
    index = (tmp_path / "html" / "searchindex.js").read_text(encoding="utf-8")
    for page in ("how-to/run-my-program", "reference/sass/IADD3", "reference/errors/sx07"):
        assert f'"{page}"' in index
