"""The repository's documents as pages of the site: their places, and links between them."""

from __future__ import annotations

import json
import os
import re
import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FRONT = "README.md"

_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_ELSEWHERE = re.compile(r"[a-z]+:|#")


@dataclass(frozen=True, slots=True)
class Section:
    """One of the kinds of documentation; ``pages`` are paths in the repository."""

    name: str
    title: str
    intro: str
    pages: tuple[str, ...]


def sections() -> tuple[Section, ...]:
    """What ``pages.toml`` says, in its order."""
    table = tomllib.loads(Path(__file__).with_name("pages.toml").read_text(encoding="utf-8"))
    return tuple(Section(n, s["title"], s["intro"], tuple(s["pages"])) for n, s in table.items())


def places(found: tuple[Section, ...]) -> dict[str, str]:
    """Path in the repository -> path on the site."""
    placed = {FRONT: "index.md"}
    for section in found:
        for page in section.pages:
            path = PurePosixPath(page)
            # Two pages of one name: README.md of two folders.
            name = path.parent.name if path.name == FRONT else path.stem.lower()
            placed[page] = f"{section.name}/{name}.md"
    return placed


def page_text(page: str, placed: dict[str, str], root: Path = ROOT) -> str:
    """A document as the site's Markdown; links lead to the site's pages.

    A link to a file that is not on the site, such as a source, becomes its text.  Pictures and
    files of ``docs`` stay links, relative to the page, which :func:`files` says what to copy for.
    """
    path = root / page
    text = path.read_text(encoding="utf-8")
    lines = _notebook(json.loads(text)) if path.suffix == ".ipynb" else text.splitlines()
    shown: list[str] = []
    for line, is_code in _with_code(lines):
        shown.append(line if is_code else _LINK.sub(lambda m: _link(m, page, placed, root), line))
    return "\n".join(shown) + "\n"


def outside_code(text: str) -> str:
    """Markdown without its blocks of code."""
    return "\n".join(line for line, is_code in _with_code(text.splitlines()) if not is_code)


def files(page: str, root: Path = ROOT) -> set[str]:
    """Pictures and other files of ``docs`` that a document links to, by path in the repository."""
    path = root / page
    if path.suffix != ".md":
        return set()
    found: set[str] = set()
    for line, is_code in _with_code(path.read_text(encoding="utf-8").splitlines()):
        for match in () if is_code else _LINK.finditer(line):
            target = _target(match[3], page)
            if target and _is_file_of_docs(target, root):
                found.add(target)
    return found


def stage(folder: Path, root: Path = ROOT) -> None:
    """Writes all documents and the files that they show to ``folder``."""
    placed = places(sections())
    for page, place in placed.items():
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page_text(page, placed, root), encoding="utf-8")
        for file in files(page, root):
            copy = folder / "files" / PurePosixPath(file).name
            copy.parent.mkdir(exist_ok=True)
            shutil.copyfile(root / file, copy)


def _with_code(lines: list[str]) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it belongs to a block of code."""
    fence = ""
    for line in lines:
        mark = re.match(r"\s*(`{3,})", line)
        if fence:
            yield line, True
            if mark and mark[1] >= fence and line.strip() == mark[1]:
                fence = ""
        else:
            fence = mark[1] if mark else ""
            yield line, bool(mark)


def _target(link: str, page: str) -> str:
    """The path in the repository; "" for other sites and for places of the same page."""
    if _ELSEWHERE.match(link):
        return ""
    return os.path.normpath(PurePosixPath(page).parent / link.partition("#")[0])


def _is_file_of_docs(target: str, root: Path) -> bool:
    return (
        target.startswith("docs/")
        and not target.endswith((".md", ".ipynb"))
        and (root / target).is_file()
    )


def _link(match: re.Match[str], page: str, placed: dict[str, str], root: Path) -> str:
    mark, shown, link = match.groups()
    target = _target(link, page)
    here = PurePosixPath(placed[page]).parent
    if not target:
        return match[0]
    if target in placed:
        anchor = link.partition("#")[2]
        return f"{mark}[{shown}]({os.path.relpath(placed[target], here)}{anchor and '#' + anchor})"
    if _is_file_of_docs(target, root):
        return f"{mark}[{shown}]({os.path.relpath('files/' + PurePosixPath(target).name, here)})"
    return shown


def _notebook(book: dict[str, Any]) -> list[str]:
    """A notebook's cells: text, code, and what the code printed."""
    shown: list[str] = []
    for cell in book["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            shown += [*source.splitlines(), ""]
            continue
        shown += ["```python", *source.splitlines(), "```", ""]
        for output in cell["outputs"]:
            text = output.get("text") or output.get("data", {}).get("text/plain", [])
            shown += ["```text", *"".join(text).splitlines(), "```", ""]
    return shown


__all__ = [
    "FRONT",
    "ROOT",
    "Section",
    "files",
    "outside_code",
    "page_text",
    "places",
    "sections",
    "stage",
]
