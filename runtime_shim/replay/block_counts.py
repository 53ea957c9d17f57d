"""Execution counts for pictures: from a file, or of a program that is run now."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sassxlate.errors import UsageError, Where

if TYPE_CHECKING:
    from sassxlate.lowering.emulate.counts import Runs
    from sassxlate.lowering.report.graphs import Graph

_LONGEST = 400


def read(path: str) -> list[Runs]:
    """The counts in a file.  UsageError SX0834."""
    from sassxlate.lowering.emulate.counts import from_data

    try:
        data = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise UsageError("SX0834", error.strerror or str(error), Where(path)) from None
    except (ValueError, RecursionError) as error:
        raise UsageError("SX0834", f"not JSON: {error}"[:200], Where(path)) from None
    return from_data(data, path)


def capability(arch: str | None) -> dict[str, str]:
    """The setting that gives the emulated device one of this architecture's compute capability, so
    that a program's code for it runs."""
    from sassxlate.disasm.inputs import parse_arch

    if arch is None or not arch.startswith("sm_"):
        return {}
    major, minor = divmod(parse_arch(arch)[0], 10)
    return {"SASSXLATE_CC": f"{major}.{minor}"}


def of_program(program: str, args: tuple[str, ...], arch: str | None = None) -> list[Runs]:
    """Runs a program on the emulated device; returns the counts of all kernels that it launched."""
    from sassxlate.disasm.containers import parse_cubin
    from sassxlate.lowering.emulate.counts import of_code_object
    from sassxlate.runtime_shim import paths
    from sassxlate.runtime_shim.cache.keys import host_key
    from sassxlate.runtime_shim.cache.store import load, name_key, need
    from sassxlate.runtime_shim.replay import counting

    out: list[Runs] = []
    with tempfile.TemporaryDirectory(prefix="sassxlate-counts-") as folder:
        cache = paths.cache_dir() if paths.usable(paths.cache_dir()) else Path(folder) / "cache"
        counted = Path(folder) / "counts"
        counted.mkdir()
        command = [sys.executable, "-P", "-m", "sassxlate", "run", "--keep-status"]
        command += ["--device", "emulator", "--", program, *args]
        settings = {"SASSXLATE_COUNTS": str(counted), "SASSXLATE_CACHE_DIR": str(cache)}
        settings |= capability(arch)
        done = subprocess.run(
            command, env={**os.environ, **settings}, stdout=sys.stderr.fileno(), check=False
        )
        if done.returncode:
            text = f"sassxlate: {Path(program).name} ended with status {done.returncode}"
            click.echo(text, err=True)
        for key, found in sorted(counting.read(counted).items()):
            pattern = f"kernel/*/*-{name_key(found.kernel)}.hsaco"
            for path in sorted(cache.glob(pattern)):
                code = load(path)
                if code is None or host_key(code, found.kernel, False, counts=True) != key:
                    continue
                module = cache / "module" / path.parent.name / f"{path.stem.split('-')[0]}.cubin"
                target = f"sm_{parse_cubin(need(module)).arch}"
                runs = of_code_object(
                    code, found.kernel, found.blocks, launches=found.launches,
                    waves=found.waves, target=target,
                )  # fmt: skip
                out.append(runs)
                break
    return out


def with_counts(
    graphs: Sequence[Graph], counts: Sequence[Runs], file: str, *, every: bool
) -> list[Graph]:
    """The graphs with the execution counts of their blocks; ``every``: also those of kernels that
    were not counted, unchanged.

    Raises:
        UsageError: SX0833, counts of other code; SX0837, of none of these kernels.
    """
    from sassxlate.cfg.view.picture import with_runs
    from sassxlate.lowering.emulate.counts import sass_blocks

    out: list[Graph] = []
    met = False
    for graph in graphs:
        picture = graph.picture
        mine = [r for r in counts if r.kernel == picture.name]
        if graph.cfg is not None:
            mine = [r for r in mine if r.sass and r.target in ("", picture.target)]
        if not mine or (graph.cfg is None and picture.target.startswith("sm_")):
            out += [graph] * every
            continue
        total = mine[0]
        for other in mine[1:]:
            total = total.plus(other)
        if graph.cfg is not None:
            runs = sass_blocks(total.sass, graph.cfg)
        else:
            last = picture.nodes[-1].lines[-1].offset if picture.nodes else 0
            if any(end > last + 64 for _, end, _ in total.rdna3):
                text = "the counts are of other code, which is longer"
                raise UsageError("SX0833", text, Where(file, picture.name))
            runs = {n.start: total.at(n.start) for n in picture.nodes}
        met = True
        shown = f"{total.launches} launches, {total.waves} warps"
        if total.launches == 1:
            shown = shown.replace("launches", "launch")
        drawn = with_runs(picture, runs)
        out.append(replace(graph, picture=replace(drawn, notes=(*drawn.notes, shown))))
    if not met:
        told = ", ".join(f"{r.kernel} {r.target}".strip() for r in counts)[:_LONGEST] or "none"
        what = ", ".join(f"{g.picture.name} {g.picture.target}" for g in graphs)[:_LONGEST]
        raise UsageError("SX0837", f"no counts of {what}; there are: {told}", Where(file))
    return out
