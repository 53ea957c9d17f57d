"""What `sassxlate translate` makes of each kernel, in one process or in several."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import click

from sassxlate.cli.groups import groups
from sassxlate.errors import SassxlateError, UsageError
from sassxlate.notes import quiet, shows_progress
from sassxlate.processes import cores, processes_for

if TYPE_CHECKING:
    from sassxlate.disasm.containers import Cubin, Kernel, Origin
    from sassxlate.lowering.codeobject.debug_lines import CubinLines
    from sassxlate.lowering.engine.report import EngineReport
    from sassxlate.lowering.report.judged import Judged
    from sassxlate.lowering.report.pages import Pages
    from sassxlate.lowering.report.report import KernelEntry
    from sassxlate.lowering.select.translated import Translated
    from sassxlate.runtime_shim.writer import Writer

_PART = 64 * 1024  # bytes of SASS for which another process pays where -j asks for none
_TOGETHER = 256  # kernels per process that are read before they are translated
_QUIET_S = 2.0  # seconds before progress is shown


@dataclass(frozen=True, slots=True)
class Chosen:
    """A kernel to translate: ``stem`` of its files, its cubin with the line table."""

    stem: str
    where: Origin
    cubin: Cubin
    kernel: Kernel
    lines: CubinLines


@dataclass(frozen=True, slots=True)
class Terms:
    """How kernels are translated.  ``shown``: the passes whose values are printed; ``pages`` takes
    a report of each kernel; ``writes``: whether files are wanted."""

    file: str
    engines: Writer
    verify: bool
    shown: frozenset[str]
    pages: Pages | None
    writes: bool


@dataclass(slots=True)
class Made:
    """What became of a kernel: its entry in report.json; its files' contents by suffix; blocks by
    verdict; what is printed, and whether on standard error; its part of the report."""

    entry: dict[str, Any]
    stem: str
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    verdicts: Counter[str] = field(default_factory=Counter[str])
    said: list[tuple[str, bool]] = field(default_factory=list[tuple[str, bool]])
    pages: list[KernelEntry] = field(default_factory=list["KernelEntry"])
    refused: bool = False


def translate(terms: Terms, chosen: Iterable[Chosen], jobs: int) -> Iterator[Made]:
    """What became of each kernel, in order; ``jobs`` processes, 0: one per core, but fewer where
    there is little to do.

    An engine that asks for several kernels at once (a model), or is a proposer from a file, which
    may have a state of its own, translates them one after the other in this process.

    Raises:
        UsageError: SX0888, the process that translated a kernel died, again when it was alone.
        SassxlateError: what the proposer's ``ahead`` raises.
    """
    many = (jobs or cores()) if terms.engines.splits else 1
    if many == 1:
        for one in terms.engines.asked(chosen, lambda c: (c.cubin, c.kernel.name), terms.file):
            yield _made(terms, one, _print)
        return
    for group in groups(chosen, _TOGETHER * many):
        size = sum(len(c.kernel.code) for c in group)
        yield from _many(terms, group, processes_for(jobs, len(group), size, _PART))


def _many(terms: Terms, group: list[Chosen], jobs: int) -> Iterator[Made]:
    if jobs == 1:
        yield from (_made(terms, one, _print) for one in group)
        return
    import sassxlate.lowering.pipeline  # noqa: F401  # pyright: ignore[reportUnusedImport]
    from sassxlate.executors import Begin, Place, in_order

    # Forked processes find the kernels in memory; only a kernel's number is sent to them.
    begin = Begin(_take, (terms, group))
    lost = UsageError("SX0888", "the process that translated a kernel died")
    work = in_order(Place(jobs), _numbered, range(len(group)), lost=lost, begin=begin)
    started, visible = time.monotonic(), False
    with contextlib.closing(work):
        for done, made in enumerate(work):
            if visible:
                click.echo("\r\x1b[K", err=True, nl=False)
            for text, err in made.said:
                click.echo(text, err=err)
            yield made
            if shows_progress() and time.monotonic() - started > _QUIET_S:
                visible = True
                click.echo(f"\r{done + 1} of {len(group)} kernels", err=True, nl=False)
        if visible:
            click.echo("\r\x1b[K", err=True, nl=False)


@dataclass(slots=True)
class _Shared:
    """State that forked processes inherit."""

    terms: Terms | None = None
    group: list[Chosen] = field(default_factory=list[Chosen])


_shared = _Shared()


def _take(terms: Terms, group: list[Chosen]) -> None:
    terms.engines.tells = False  # several at once would write over each other
    _shared.terms, _shared.group = terms, group


def _numbered(number: int) -> Made:
    assert _shared.terms is not None
    said: list[tuple[str, bool]] = []
    made = _made(_shared.terms, _shared.group[number], lambda text, err: said.append((text, err)))
    made.said = said
    return made


Say = Callable[[str, bool], None]


def _print(text: str, err: bool) -> None:
    click.echo(text, err=err)


def _made(terms: Terms, chosen: Chosen, say: Say) -> Made:
    kernel = chosen.kernel
    entry: dict[str, Any] = {
        "kernel": kernel.name,
        "demangled": kernel.demangled,
        "arch": f"sm_{chosen.cubin.arch}",
        "where": str(chosen.where),
    }
    made = Made(entry, chosen.stem)
    after = _printer(kernel, terms.shown, say) if terms.shown else None
    try:
        done, answers = terms.engines.translate(chosen.cubin, kernel.name, after)
    except SassxlateError as error:
        located = error.at(file=terms.file, kernel=kernel.name)
        made.refused = True
        entry["refused"] = {"code": error.code, "message": str(located)}
        say(str(located), True)
        if terms.pages is not None:
            terms.pages.refused(kernel, entry["arch"], str(chosen.where), located)
    else:
        _take_in(terms, chosen, made, done, answers, say)
    if terms.pages is not None:
        made.pages = terms.pages.report.take()
    return made


def _take_in(
    terms: Terms,
    chosen: Chosen,
    made: Made,
    done: Translated,
    answers: EngineReport | None,
    say: Say,
) -> None:
    """Verdicts, files and report of a translated kernel."""
    kernel, entry = chosen.kernel, made.entry
    # Blocks are judged by the rules' registers, which code of whole kernels has not.
    whole = answers is not None and any(
        b.engine == "llvm" and b.outcome == "accepted" for b in answers.blocks
    )
    judged = _verified(done, say) if terms.verify and not whole else None
    if terms.verify and whole:
        say(f"{kernel.name}: by LLVM as a whole: no blocks to prove", True)
    made.verdicts = Counter(type(j.verdict).__name__ for j in judged or ())
    said = None if answers is None else answers.as_dict()
    entry["report"] = asdict(done.report)
    if answers is not None:
        for error in answers.defects(kernel.name):
            if not quiet():
                say(f"sassxlate: warning: {error.at(file=terms.file)}", True)
        entry["engine"] = said
    if judged is not None:
        entry["verdicts"] = {name.lower(): n for name, n in made.verdicts.items()}
    if terms.writes and not made.verdicts["Refuted"]:
        made.files = {
            ".s": done.assembly.encode(),
            ".hsaco": chosen.lines.added_to(done.code_object),
            ".launch": str(done.launch).encode(),
        }
        entry["files"] = chosen.stem
    if terms.pages is not None:
        terms.pages.translated(done, str(chosen.where), judged, answers=said)


def _printer(kernel: Kernel, shown: frozenset[str], say: Say) -> Callable[[str, object], None]:
    from sassxlate.lowering.report.dump import dump

    def show(name: str, value: object) -> None:
        if name in shown:
            say(f"// {kernel.name} sm_{kernel.arch} after {name}\n{dump(value)}", False)

    return show


def _verified(done: Translated, say: Say) -> list[Judged]:
    """The blocks' verdicts; refuted ones are printed."""
    from sassxlate.cli.verdicts import verdict_text
    from sassxlate.lowering.report.judged import ProofSettings
    from sassxlate.lowering.report.proofs import judge_kernel
    from sassxlate.runtime_shim.cache.verdicts import verdicts

    found: list[Judged] = []
    for judged in judge_kernel(done, ProofSettings(), verdicts()):
        found.append(judged)
        if type(judged.verdict).__name__ == "Refuted":
            say(f"{done.kernel.name}:\n{verdict_text(judged)}", True)
    return found


__all__ = ["Chosen", "Made", "Terms", "translate"]
