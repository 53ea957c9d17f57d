"""``sassxlate run --report``: the report on the kernels that a program used."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sassxlate.errors import SassxlateError
from sassxlate.lowering.report.pages import wrote
from sassxlate.lowering.report.report import Ran, RefusedBy
from sassxlate.notes import shows_progress
from sassxlate.runtime_shim.application import LoadedKernel, RunReport

if TYPE_CHECKING:
    from sassxlate.disasm.containers import Cubin
    from sassxlate.lowering.report.pages import Pages
    from sassxlate.runtime_shim.replay.counting import Executions

_QUIET_S = 2.0  # seconds before progress is shown
ANOTHER = "a model wrote part of the code that ran; registers are those of the rules' code."
ON_A_CARD = "The kernels ran on an AMD GPU, which counts no executions."


def write(
    pages: Pages, report: RunReport, cache: Path, tag: str, counts: Path | None, strict: bool
) -> None:
    """Translates the used kernels again, and writes the report.

    ``counts`` is the folder of the emulated device's counts; None: another device ran.
    """
    from sassxlate.runtime_shim.replay import counting

    counted = {} if counts is None else counting.read(counts)
    if counts is None:
        pages.notes.append(ON_A_CARD)
    for replaced in report.replaced:
        pages.notes.append(f"{replaced.library} was replaced by sassxlate's own: {replaced.by}.")
    if not report.kernels and not report.refusals:
        pages.notes.append("The program used no kernel.")
    cubins: dict[str, Cubin] = {}
    started = time.monotonic()
    visible = False
    for n, kernel in enumerate(report.kernels):
        if shows_progress() and time.monotonic() - started > _QUIET_S:
            visible = True
            text = f"\rreport: {n} of {len(report.kernels)} kernels"
            click.echo(text, err=True, nl=False)
        _used(pages, kernel, cache, tag, counted, strict, cubins)
    if visible:
        click.echo("\r\x1b[K", err=True, nl=False)
    pages.notes.extend((*report.warned, *report.forgiven))
    for refusal in report.refusals:
        why = RefusedBy(refusal.code, refusal.line)
        name = refusal.kernel or "(no kernel)"
        pages.report.refused(name, _shown(name), "", "", why)
    pages.write()


def _used(
    pages: Pages,
    kernel: LoadedKernel,
    cache: Path,
    tag: str,
    counted: Mapping[str, Executions],
    strict: bool,
    cubins: dict[str, Cubin],
) -> None:
    from sassxlate.disasm.containers import parse_cubin
    from sassxlate.lowering.emulate.counts import of_code_object
    from sassxlate.lowering.pipeline import translate_kernel
    from sassxlate.lowering.report import side_by_side
    from sassxlate.lowering.target import target_named
    from sassxlate.runtime_shim.cache import hybrid
    from sassxlate.runtime_shim.cache.keys import host_key
    from sassxlate.runtime_shim.cache.store import Cache

    module = kernel.module_key
    where = f"module {module[:8]}"
    store = Cache(cache, tag)
    try:
        if module not in cubins:
            cubins[module] = parse_cubin(store.need("module", f"{module}.cubin"))
        done = translate_kernel(cubins[module], kernel.name, target=target_named(pages.target))
        code = store.need("kernel", f"{module}-{kernel.kernel_key}.hsaco")
        keys = (host_key(code, kernel.name, strict, counts=True, turns=t) for t in (False, True))
        found = next((counted[key] for key in keys if key in counted), None)
        runs, ran = None, None
        if found is not None:
            runs = of_code_object(
                code, kernel.name, found.blocks, launches=found.launches, waves=found.waves,
                target=f"sm_{done.kernel.arch}",
            )  # fmt: skip
            ran = Ran(found.launches, found.workgroups, found.waves, found.threads, found.shared)
        kept = hybrid.find(store, done.code_object, str(done.launch))
        answers = kept.report if kept is not None and kept.code == code else None
        if code == done.code_object:
            pages.translated(done, where, None, ran, runs, answers)
            return
        engines = None if answers is None else wrote(answers["blocks"])
        (mine,) = (k for k in cubins[module].kernels if k.name == kernel.name)
        beside = side_by_side.of_code_object(cubins[module], mine, code, "", runs, engines)
        pages.report.translated(done, beside, where, None, ran, answers)
        if answers is None:
            pages.notes.append(f"{beside.shown[:200]}: {ANOTHER}")
    except OSError as error:
        pages.notes.append(f"{kernel.name[:200]}: no longer in the cache ({error.strerror})")
    except SassxlateError as error:
        why = RefusedBy.of(error)
        pages.report.refused(kernel.name, _shown(kernel.name), "", where, why)


def _shown(name: str) -> str:
    from sassxlate.disasm.containers import demangle

    return demangle(name)


__all__ = ["write"]
