"""Declarations of applications: a TOML file each, with a script of ours beside it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from sassxlate.errors import UsageError, Where

Elsewhere = Literal["cpu", "gpu"]
_PIN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(\[[A-Za-z0-9._, -]+\])?==([A-Za-z0-9.!+_-]+)")
_PYTHON = re.compile(r"3\.\d{1,2}")
_NEEDED = ("application", "what", "packages", "python", "script", "prints", "tolerance")
_OPTIONAL = ("also", "timeout", "environment")


@dataclass(frozen=True, slots=True)
class Declaration:
    """What is run of an application; ``name`` is the file's, without its suffix."""

    name: str
    application: str
    what: str  # in a few words, for the table
    packages: tuple[str, ...]  # NAME==VERSION, the application's own first; may be empty
    python: str  # 3.11
    script: Path
    prints: tuple[str, ...]  # regular expressions: each must match in the output (MULTILINE)
    tolerance: str  # of the comparisons in the script, for the table
    also: tuple[Elsewhere, ...] = ()  # where else the script can run
    timeout: float = 0.0  # seconds for one run; 0: the command's
    environment: tuple[tuple[str, str], ...] = ()

    @property
    def version(self) -> str:
        """The application's package and version; empty if it has no package."""
        if not self.packages:
            return ""
        found = cast(re.Match[str], _PIN.fullmatch(self.packages[0]))
        return f"{found[1]} {found[3]}"


def load(folder: Path, names: Sequence[str] = (), only: str = "") -> list[Declaration]:
    """The declarations in ``folder``: those of these names, or all; of these, those whose name or
    application matches the regular expression ``only``.

    Raises:
        UsageError: SX0842 no such declaration, SX0839 a broken one, SX0843 its script is missing.
    """
    files = {file.stem: file for file in sorted(folder.glob("*.toml"))}
    if not files:
        raise UsageError("SX0842", "no declarations (*.toml)", Where(str(folder)))
    for name in names:
        if name not in files:
            known = ", ".join(files)
            raise UsageError("SX0842", f"no declaration {name}; there are {known}")
    wanted = [files[name] for name in dict.fromkeys(names)] or list(files.values())
    found = [read(file) for file in wanted]
    try:
        pattern = re.compile(only, re.IGNORECASE)
    except re.error as error:
        raise UsageError("SX0842", f"--only {only}: {error}") from None
    chosen = [d for d in found if pattern.search(d.name) or pattern.search(d.application)]
    if not chosen:
        raise UsageError("SX0842", f"no declaration matches {only}")
    return chosen


def read(file: Path) -> Declaration:
    """One declaration; UsageError SX0839 if it is broken, SX0843 if its script is missing."""
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise _broken(file, error.strerror or str(error)) from None
    except ValueError as error:  # broken TOML, and text that is not UTF-8
        raise _broken(file, str(error)) from None
    unknown = sorted(set(table) - {*_NEEDED, *_OPTIONAL})
    if unknown:
        raise _broken(file, f"unknown keys: {', '.join(unknown)}")
    missing = [key for key in _NEEDED if key not in table]
    if missing:
        raise _broken(file, f"missing keys: {', '.join(missing)}")
    packages = _texts(file, table, "packages")
    for package in packages:
        if not _PIN.fullmatch(package):
            raise _broken(file, f"packages: {package!r} is not NAME==VERSION")
    python = _text(file, table, "python")
    if not _PYTHON.fullmatch(python):
        raise _broken(file, f"python: {python!r} is not a version like 3.11")
    prints = _texts(file, table, "prints")
    if not prints:
        raise _broken(file, "prints: nothing would be checked")
    for pattern in prints:
        try:
            re.compile(pattern, re.MULTILINE)
        except re.error as error:
            raise _broken(file, f"prints: {pattern!r}: {error}") from None
    also = _texts(file, table, "also") if "also" in table else ()
    for place in also:
        if place not in ("cpu", "gpu"):
            raise _broken(file, f"also: {place!r} is neither cpu nor gpu")
    script = _text(file, table, "script")
    if Path(script).name != script:
        raise _broken(file, f"script: {script!r} is not the name of a file beside the declaration")
    path = file.parent / script
    if not path.is_file():
        raise UsageError("SX0843", f"no script {script} beside the declaration", Where(str(file)))
    return Declaration(
        file.stem,
        _text(file, table, "application"),
        _text(file, table, "what"),
        packages,
        python,
        path.absolute(),
        prints,
        _text(file, table, "tolerance"),
        cast(tuple[Elsewhere, ...], also),
        _seconds(file, table),
        _variables(file, table),
    )


def _broken(file: Path, text: str) -> UsageError:
    return UsageError("SX0839", text, Where(str(file)))


def _text(file: Path, table: dict[str, Any], key: str) -> str:
    value = table[key]
    if not isinstance(value, str) or not value.strip() or "\n" in value:
        raise _broken(file, f"{key}: not a line of text")
    return value


def _texts(file: Path, table: dict[str, Any], key: str) -> tuple[str, ...]:
    value = table[key]
    if not isinstance(value, list):
        raise _broken(file, f"{key}: not a list")
    items = cast(list[object], value)
    if not all(isinstance(item, str) and item for item in items):
        raise _broken(file, f"{key}: not a list of texts")
    return tuple(cast(list[str], items))


def _seconds(file: Path, table: dict[str, Any]) -> float:
    value = table.get("timeout", 0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e6:
        raise _broken(file, "timeout: not a number of seconds")
    return float(value)


def _variables(file: Path, table: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    value = table.get("environment", {})
    if not isinstance(value, dict):
        raise _broken(file, "environment: not a table")
    items = cast(dict[str, object], value)
    for key, text in items.items():
        if not isinstance(text, str):
            raise _broken(file, f"environment: {key} is not a text")
    return tuple(cast(dict[str, str], items).items())


__all__ = ["Declaration", "Elsewhere", "load", "read"]
