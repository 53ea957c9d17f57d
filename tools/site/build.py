"""The site from its parts: documents, generated pages, the menu; then Sphinx over them."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

from tools.site import generated, stage

HERE = Path(__file__).resolve().parent

# Generated pages that the menu of the reference names; a folder's index names the others.
_GENERATED = (
    "commands/index",
    "interface",
    "errors/index",
    "json/index",
    "sass/index",
)


def is_possible() -> bool:
    """Whether the extra ``docs`` is installed."""
    return all(importlib.util.find_spec(name) for name in ("sphinx", "myst_parser", "furo"))


def write(folder: Path, root: Path = stage.ROOT) -> None:
    """Writes what Sphinx reads to ``folder``: Markdown, pictures, settings."""
    stage.stage(folder, root)
    made = generated.pages()
    for name, text in made.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        folder_of = f"{Path(name).parent}/"
        below = [
            n for n, t in made.items() if n.startswith(folder_of) and n != name and not _apart(t)
        ]
        menu = _menu([Path(n).stem for n in below]) if below and path.name == "index.md" else ""
        path.write_text(text + menu, encoding="utf-8")
    sections = stage.sections()
    placed = stage.places(sections)
    for section in sections:
        names = [Path(placed[page]).stem for page in section.pages]
        if section.name == "reference":
            names += _GENERATED
        text = f"# {section.title}\n\n{section.intro}\n{_menu(names, hidden=False)}"
        (folder / section.name / "index.md").write_text(text, encoding="utf-8")
    front = folder / "index.md"
    front.write_text(_front(front.read_text(encoding="utf-8"), sections), encoding="utf-8")
    shutil.copyfile(HERE / "conf.py", folder / "conf.py")
    shutil.copytree(HERE / "static", folder / "static", dirs_exist_ok=True)


def _apart(text: str) -> bool:
    return text.startswith("---\norphan: true")


def sphinx(source: Path, target: Path) -> int:
    """Runs Sphinx, for which a warning is an error; its exit status."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    return subprocess.run(
        [*command, "-d", str(source / ".doctrees"), str(source), str(target)],
        check=False,
        cwd=stage.ROOT,
    ).returncode


def _front(readme: str, sections: tuple[stage.Section, ...]) -> str:
    """The README, with the kinds of pages after its first paragraph, and the menu."""
    title, first, rest = readme.split("\n\n", 2)
    rows = [f"| [{s.title}]({s.name}/index.md) | {s.intro} |" for s in sections]
    table = "\n".join(["| | |", "|---|---|", *rows])
    return "\n\n".join([title, first, table, rest]) + _menu([f"{s.name}/index" for s in sections])


def _menu(names: list[str], hidden: bool = True) -> str:
    options = ":hidden:\n" if hidden else ":maxdepth: 1\n"
    return "\n```{toctree}\n" + options + "\n" + "\n".join(names) + "\n```\n"


__all__ = ["is_possible", "sphinx", "write"]
