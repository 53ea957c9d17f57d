"""The site's reference pages that are made of the program itself: path on the site -> Markdown."""

from __future__ import annotations

import functools
import inspect
import json
import os
import re
from collections.abc import Iterator
from typing import Any

import click

import sassxlate
from sassxlate import schemas
from sassxlate.cli import cli
from sassxlate.cli.explain import AREAS
from sassxlate.disasm.sass import reference
from sassxlate.errors import UsageError, catalogue, exit_status
from tools.site import stage

# What a page shows as Markdown characters and the text does not mean as such.
_MARKS = "\\*_<["
_DOCUMENT = re.compile(r"\bdocs/[\w/-]+\.md\b")
# Pages that only a table leads to: hundreds of them in the menu of every page are of no use.
_BESIDE_THE_MENU = "---\norphan: true\n---\n\n"
_ROLES = (":func:", ":class:", ":meth:", ":mod:", ":data:", ":attr:", ":exc:")


@functools.cache
def pages() -> dict[str, str]:
    """All of them, in the order of the menu; a folder's ``index.md`` precedes its pages."""
    return {
        **command_pages(),
        "reference/interface.md": interface_page(),
        **error_pages(),
        **schema_pages(),
        **instruction_pages(),
    }


def leaves() -> Iterator[tuple[str, click.Command, click.Context]]:
    """Each command by the words that call it, such as ``verify blocks``, and its context."""
    yield from _leaves(cli, "", click.Context(cli, info_name="sassxlate"))


def _leaves(
    group: click.Group, path: str, context: click.Context
) -> Iterator[tuple[str, click.Command, click.Context]]:
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None, name
        inner = click.Context(found, info_name=name, parent=context)
        if isinstance(found, click.Group):
            yield from _leaves(found, f"{path}{name} ", inner)
        else:
            yield f"{path}{name}", found, inner


def command_pages() -> dict[str, str]:
    """A page per command: what ``--help`` prints, as Markdown."""
    made: dict[str, str] = {}
    rows = [
        "# Every command\n",
        "What `sassxlate COMMAND --help` prints. [What holds for all](../commands.md).\n",
        "| command | |",
        "|---|---|",
    ]
    for words, command, context in leaves():
        name = words.replace(" ", "-")
        made[f"reference/commands/{name}.md"] = _command_page(words, command, context)
        short = _cell(command.get_short_help_str(120))
        rows.append(f"| [`sassxlate {words}`]({name}.md) | {short} |")
    return {"reference/commands/index.md": "\n".join(rows) + "\n", **made}


def _command_page(words: str, command: click.Command, context: click.Context) -> str:
    usage = command.get_usage(context).removeprefix("Usage: ")
    parts = [f"# sassxlate {words}", f"```text\n{usage}\n```"]
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        if paragraph.startswith("\b"):  # click's mark of lines that stay as they are
            parts.append(f"```text\n{paragraph.removeprefix(chr(8)).strip(chr(10))}\n```")
        else:
            parts.append(_escaped(" ".join(paragraph.split())))
    example = getattr(command, "example", "")
    if example:
        parts.append(f"```console\n$ {example}\n```")
    rows = ["| option | |", "|---|---|"]
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            rows.append(f"| `{record[0].replace('|', chr(92) + '|')}` | {_cell(record[1])} |")
    name = words.replace(" ", "-")
    documents = [n for n in schemas.VERSIONS if n == name or n.startswith(f"{name}-")]
    if documents:
        links = ", ".join(f"[{schemas.identifier(n)}](../json/{n}.md)" for n in documents)
        rows.append(f"\nJSON: {links}.")
    return _linked("\n\n".join([*parts, "\n".join(rows)]) + "\n", "reference/commands")


def _linked(text: str, folder: str) -> str:
    """Documents of the repository that a text names become links."""
    placed = stage.places(stage.sections())

    def link(match: re.Match[str]) -> str:
        place = placed.get(match[0])
        return f"[{match[0]}]({os.path.relpath(place, folder)})" if place else match[0]

    return _DOCUMENT.sub(link, text)


def interface_page() -> str:
    """The names of ``import sassxlate``: signatures and docstrings."""
    parts = ["# Python: every name", "With examples: [Python](python.md)."]
    found = {n: getattr(sassxlate, n) for n in dir(sassxlate) if n[0] != "_"}
    ours = {n: v for n, v in found.items() if _is_ours(v)}
    for name in sorted(ours, key=lambda n: (_rank(ours[n]), n.lower())):
        value = ours[name]
        parts += [f"## {name}", _code(_signature(f"sx.{name}", value)), _prose(value)]
        if not inspect.isclass(value) or issubclass(value, BaseException):
            continue
        for member, part in vars(value).items():
            if member[0] == "_" or not (inspect.isfunction(part) or isinstance(part, property)):
                continue
            line = member if isinstance(part, property) else _signature(member, part)
            parts += [f"### {name}.{member}", _code(line), _prose(part)]
    return "\n\n".join(p for p in parts if p) + "\n"


def _is_ours(value: Any) -> bool:
    module: str = getattr(value, "__module__", "")
    return not inspect.ismodule(value) and module.partition(".")[0] == "sassxlate"


def _rank(value: Any) -> int:
    """Functions, then classes, then exceptions."""
    if inspect.isclass(value):
        return 2 if issubclass(value, BaseException) else 1
    return 0


def _signature(name: str, value: Any) -> str:
    if inspect.isclass(value) and issubclass(value, BaseException):
        return f"{name}({value.__mro__[1].__name__})"
    found = inspect.signature(value)
    bare = [p.replace(annotation=_bare(p.annotation)) for p in found.parameters.values()]
    return f"{name}{inspect.Signature(bare, return_annotation=_bare(found.return_annotation))}"


class _Text(str):
    """An annotation as it is written, without quotes."""

    def __repr__(self) -> str:
        return str(self)


def _bare(annotation: Any) -> Any:
    return _Text(annotation) if isinstance(annotation, str) else annotation


def _prose(value: Any) -> str:
    """A docstring, whose reStructuredText is double backquotes and roles only."""
    lines: list[str] = []
    for line in (inspect.getdoc(value) or "").splitlines():
        for role in _ROLES:
            line = line.replace(role, "")
        if line.rstrip() in ("Raises:", "Args:", "Returns:"):
            lines += [f"*{line.rstrip()}*", ""]
        elif line.startswith("    ") and line[4] != " ":
            lines.append(f"- {line.strip()}")
        else:
            lines.append(line.strip())
    return _escaped("\n".join(lines).replace("``", "`"), marks="\\_<[")


def error_pages() -> dict[str, str]:
    """A page per area of error codes, each code a section."""
    made: dict[str, str] = {}
    entries = catalogue()
    rows = ["# Error codes\n", "What `sassxlate explain CODE` prints.\n", "| code | |", "|---|---|"]
    for prefix, area in AREAS.items():
        parts = [f"# {prefix}xx: {area}"]
        for code in sorted(c for c in entries if c.startswith(prefix)):
            entry = entries[code]
            title = f"{code}: {_escaped(entry['title'])}"
            rows.append(
                f"| [{code}]({prefix.lower()}.md#{code.lower()}) | {_cell(entry['title'])} |"
            )
            parts += [f"({code.lower()})=", f"## {title}", _escaped(entry["text"].strip())]
            parts.append(f"Exit status: {exit_status(UsageError(code, ''))}.")
        made[f"reference/errors/{prefix.lower()}.md"] = "\n\n".join(parts) + "\n"
    return {"reference/errors/index.md": "\n".join(rows) + "\n", **made}


def schema_pages() -> dict[str, str]:
    """A page per JSON document."""
    made: dict[str, str] = {}
    rows = [
        "# JSON documents\n",
        "The JSON Schema (draft 2020-12) of what `--format json` prints;",
        "`sassxlate schema COMMAND` prints it. Within a version fields are only added.\n",
        "| document | |",
        "|---|---|",
    ]
    for name in schemas.VERSIONS:
        found = schemas.schema(name)
        rows.append(f"| [{schemas.identifier(name)}]({name}.md) | {_cell(found['title'])} |")
        text = json.dumps(found, indent=2, ensure_ascii=False)
        parts = (
            f"{_BESIDE_THE_MENU}# {schemas.identifier(name)}",
            _escaped(found["title"]),
            f"```json\n{text}\n```",
        )
        made[f"reference/json/{name}.md"] = "\n\n".join(parts) + "\n"
    return {"reference/json/index.md": "\n".join(rows) + "\n", **made}


def instruction_pages() -> dict[str, str]:
    """What ``sassxlate isa`` writes."""
    written = {n: t.replace("](README.md", "](index.md") for n, t in reference.all_pages().items()}
    index = written.pop("README.md")
    named = {"index.md": index, **{n: _BESIDE_THE_MENU + t for n, t in written.items()}}
    return {f"reference/sass/{name}": text for name, text in named.items()}


def _code(text: str) -> str:
    return f"```python\n{text}\n```"


def _cell(text: str) -> str:
    return _escaped(" ".join(text.split())).replace("|", r"\|")


def _escaped(text: str, marks: str = _MARKS) -> str:
    """Plain text as Markdown; what stands between backquotes stays."""
    parts = text.split("`")
    for i in range(0, len(parts), 2):
        for mark in marks:
            parts[i] = parts[i].replace(mark, "\\" + mark)
    return "`".join(parts)


__all__ = [
    "command_pages",
    "error_pages",
    "instruction_pages",
    "interface_page",
    "leaves",
    "pages",
    "schema_pages",
]
