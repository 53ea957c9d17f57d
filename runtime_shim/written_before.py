"""The code of an application's own kernels by an engine, written before it starts.  Cheap to
import."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sassxlate.errors import SassxlateError
from sassxlate.notes import note
from sassxlate.runtime_shim.cache.hybrid import AREA
from sassxlate.runtime_shim.cache.store import Cache, key_of

if TYPE_CHECKING:
    from sassxlate.disasm.containers import Cubin
    from sassxlate.runtime_shim.writer import Writer

_REFUSED = "SX04"  # codes of the translator's refusals, which the next start would see again


def mark_of(path: Path) -> str:
    """The key of a file as it is now: its path, size and time of change."""
    status = path.stat()
    what = f"{path.resolve()}\0{status.st_size}\0{status.st_mtime_ns}"
    return key_of(os.fsencode(what))


def write_before(path: Path, engines: Writer, capability: str, cache: Cache) -> None:
    """Translates the application's own kernels by an engine: those of the architecture that will
    be selected; a kernel that it refuses falls to the rules.

    What was written is noted in the cache, under the file, the engine and the capability, so that
    the next start only looks whether it is there.
    """
    told = capability or os.environ.get("SASSXLATE_CC", "")
    asked = "".join(c for c in told if c.isdigit())
    noted = f"{mark_of(path)}-{engines.key}-{asked or 'any'}.written"
    if _all_there(cache, noted):
        return
    if _write(path, engines, asked):
        with suppress(OSError):
            cache.write("module", noted, "\n".join(sorted(engines.entries)).encode())


def _all_there(cache: Cache, noted: str) -> bool:
    names = cache.read("module", noted)
    if names is None:
        return False
    return all(cache.path(AREA, name).is_file() for name in names.decode().split())


def _write(path: Path, engines: Writer, asked: str) -> bool:
    """Whether the next start would get the same."""
    from sassxlate.disasm.containers import load
    from sassxlate.runtime_shim.service.early.library import NEWEST

    device = int(asked) if asked else NEWEST
    there: dict[int, set[int]] = {}
    kernels: list[tuple[Cubin, str]] = []
    try:
        loaded = load(path)
        for where, entry in loaded.entries():
            if entry.kind == "elf":
                there.setdefault(where.module, set()).add(entry.arch)
        taken = {module: _selected(archs, device) for module, archs in there.items()}
        for arch in sorted({*taken.values()}):  # a library's other cubins are not unpacked
            for where, cubin in loaded.cubins(arch=arch):
                if taken[where.module] == arch:
                    names = (k.name for k in cubin.kernels)
                    kernels += [(cubin, name) for name in names if not engines.done(cubin, name)]
    except SassxlateError:
        return True  # no device code of its own: not an error here
    same = True
    for cubin, name in engines.asked(kernels, lambda k: k, path.name):
        try:
            _, report = engines.translate(cubin, name)
            for defect in report.defects(name) if report is not None else ():
                note(f"warning: {defect.at(file=str(path))}")
        except SassxlateError as error:
            same = same and error.code.startswith(_REFUSED)
            click.echo(f"sassxlate: {error.at(file=str(path))}", err=True)
    return same


def _selected(archs: Collection[int], device: int) -> int:
    """The architecture of a module that a device takes: the newest that is not newer."""
    return max((a for a in archs if a <= device), default=min(archs))


__all__ = ["mark_of", "write_before"]
