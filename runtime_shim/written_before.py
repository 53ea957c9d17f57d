"""The code of an application's own kernels by an engine, written before it starts.  Cheap to
import."""

from __future__ import annotations

import os
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
    try:
        images = list(load(path).cubins())
    except SassxlateError:
        return True  # no device code of its own: not an error here
    there = {module: {c.arch for o, c in images if o.module == module} for module in
             {o.module for o, _ in images}}  # fmt: skip
    kernels: list[tuple[Cubin, str]] = []
    for where, cubin in images:
        archs = there[where.module]
        older = {a for a in archs if a <= device}
        if cubin.arch == (max(older) if older else min(archs)):
            kernels += [(cubin, k.name) for k in cubin.kernels if not engines.done(cubin, k.name)]
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


__all__ = ["mark_of", "write_before"]
