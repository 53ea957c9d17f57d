"""click options that several commands share."""

from __future__ import annotations

import contextlib
import functools
import io
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from sassxlate.cli.kernel_names import KernelName
from sassxlate.disasm.amdgpu_machines import CODE_FOR, CODE_FOR_TEXT, RDNA3
from sassxlate.llm.engine import choose
from sassxlate.notes import note
from sassxlate.output import write_whole

if TYPE_CHECKING:
    from sassxlate.lowering.engine.report import EngineReport

_F = TypeVar("_F", bound=Callable[..., Any])


if TYPE_CHECKING:
    _Text = click.ParamType[str]
else:
    _Text = click.ParamType  # click 8.1 cannot subscript it


class EngineType(_Text):
    """An engine: one of the names, or a proposer's ``FILE.py:NAME``."""

    name = "engine"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"[{'|'.join(choose.NAMES)}|FILE.py:NAME]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not choose.is_engine(value):
            known = ", ".join(choose.NAMES)
            self.fail(f"{value!r} is not one of {known}, nor FILE.py:NAME.", param, ctx)
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        names = [name for name in choose.NAMES if name.startswith(incomplete)]
        return [CompletionItem(name) for name in names] or [CompletionItem(incomplete, "file")]


def show_defects(report: EngineReport | None, kernel: str, file: str) -> None:
    """Prints the proposer's errors, which do not end a translation."""
    if report is not None:
        for error in report.defects(kernel):
            note(f"warning: {error.at(file=file)}")


def engine_options(function: _F) -> _F:
    """``--engine``, ``--model`` and ``--samples``."""
    function = click.option(
        "--samples",
        type=click.IntRange(1, 64),
        default=1,
        help="Answers to sample from the model for each block.",
    )(function)
    function = click.option(
        "--model",
        metavar="PATH_OR_HUB_ID",
        help="The model: a folder, or a hub id (looked up only with SASSXLATE_ALLOW_HUB=1).",
    )(function)
    return click.option(
        "--engine",
        type=EngineType(),
        help="Writer of blocks: the rules; the search, the model (hybrid) or a proposer in a "
        "Python file if its code is proved and cheaper, otherwise the rules; or the model alone, "
        "refused if a block is not proved.",
    )(function)


def target_option(function: _F) -> _F:
    """``--target``, the AMD processor that code is for."""
    return click.option(
        "--target",
        type=click.Choice(CODE_FOR),
        default=RDNA3[0],
        show_default=True,
        envvar="SASSXLATE_TARGET",
        metavar="PROCESSOR",
        help=f"The AMD processor that code is for: {CODE_FOR_TEXT}.",
    )(function)


def matrix_option(function: _F) -> _F:
    """``--matrix``, how products of matrices are computed."""
    return click.option(
        "--matrix",
        type=click.Choice(["exact", "fast"]),
        default="exact",
        show_default=True,
        envvar="SASSXLATE_MATRIX",
        help="HMMA of halves and bfloat16: NVIDIA's sums bit for bit, or AMD's v_wmma, which "
        "rounds differently (docs/errata.md).",
    )(function)


def emulated_card_option(function: _F) -> _F:
    """``--emulated-card``: AMD's HIP library without a GPU."""
    return click.option(
        "--emulated-card",
        is_flag=True,
        help="Run on AMD's own HIP library without a GPU: the emulated device stands in for the "
        "card's kernel driver (docs/amd-runtime.md).",
    )(function)


def kernel_option(function: _F) -> _F:
    """``-k/--kernel``, which may repeat."""
    return click.option(
        "-k",
        "--kernel",
        "kernels",
        multiple=True,
        type=KernelName(),
        metavar="NAME",
        help="Only kernels with this name (mangled, demangled or a glob); may repeat.",
    )(function)


def one_kernel_option(function: _F) -> _F:
    """``-k/--kernel`` of commands that work on one kernel."""
    return click.option(
        "-k",
        "--kernel",
        required=True,
        type=KernelName(),
        metavar="NAME",
        help="The kernel, by its name (mangled, demangled or a glob).",
    )(function)


def arch_option(function: _F) -> _F:
    """``--arch``, the source architecture."""
    return click.option("--arch", metavar="SM", help="Only this source architecture, like sm_80.")(
        function
    )


def device_arch_option(function: _F) -> _F:
    """``--arch`` of commands that prepare what a program's device will ask for."""
    return click.option(
        "--arch",
        metavar="SM",
        help="The compute capability that the device reports, like sm_80; by default that of "
        "SASSXLATE_CC, or the newest, up to sm_90, that FILE has code for.",
    )(function)


def arches_option(function: _F) -> _F:
    """``--arch`` of commands that take several."""
    return click.option(
        "--arch",
        "arches",
        multiple=True,
        metavar="SM",
        help="Only this source architecture, like sm_80; may repeat.",
    )(function)


def jobs_option(default: int = 0) -> Callable[[_F], _F]:
    """``-j/--jobs``, the number of processes; 0 is one per core."""
    return click.option(
        "-j",
        "--jobs",
        type=click.IntRange(0, 1024),
        default=default,
        metavar="N",
        show_default=bool(default),
        help=f"Processes at a time{'; 0:' if default else ' (default:'} one per core"
        f"{'' if default else ')'}.",
    )


def cluster_option(function: _F) -> _F:
    """``--cluster``, a Dask scheduler that hands the work to its workers."""
    return click.option(
        "--cluster",
        metavar="tcp://HOST:PORT",
        help="Work on the workers of this Dask scheduler, not in processes here: docs/how-to/"
        "use-a-cluster.md.",
    )(function)


def proof_options(function: _F) -> _F:
    """``--timeout`` and ``--vectors`` of commands that prove a block."""
    function = click.option(
        "--vectors",
        type=int,
        default=4096,
        show_default=True,
        help="Random inputs to try if the solver cannot decide.",
    )(function)
    return click.option(
        "--timeout",
        type=float,
        default=10.0,
        show_default=True,
        help="Time limit of the solver per block, in seconds.",
    )(function)


_SUFFIXES = {".dot": "dot", ".gv": "dot", ".json": "json", ".svg": "svg", ".html": "html",
             ".htm": "html", ".md": "markdown", ".graphml": "graphml"}  # fmt: skip
# Suffixes of what no command writes.
_NO_FORMATS = (".csv", ".jpeg", ".jpg", ".pdf", ".png", ".xml", ".yaml", ".yml")


def format_option(*more: str, by_suffix: bool = False) -> Callable[[_F], _F]:
    """``--format text|json`` and further formats; without it text, or ``by_suffix``, as
    :func:`format_of` says."""
    default = "by the suffix of -o, else text" if by_suffix else "text"
    return click.option(
        "--format",
        "form",
        type=click.Choice(["text", "json", *more]),
        help=f"Output format (default: {default}).",
    )


def format_of(context: click.Context) -> str:
    """The format that is asked for: by ``--format``, else by the suffix of ``-o``, else text."""
    form, output = context.params.get("form"), context.params.get("output")
    if form is not None:
        return str(form)
    (option,) = (p for p in context.command.params if p.name == "form")
    kinds: Any = getattr(option.type, "choices", ())
    if not isinstance(output, Path):
        return "text"
    suffix = output.suffix.lower()
    found = _SUFFIXES.get(suffix, "text")
    if found in kinds and suffix not in _NO_FORMATS:
        return found
    note(f"{output} is text: the formats of this command are {', '.join(kinds)}")
    return "text"


def _standard_output(
    context: click.Context, parameter: click.Parameter, value: Path | None
) -> Path | None:
    del context, parameter
    return None if value == Path("-") else value


def output_path_option(function: _F) -> _F:
    """``-o/--output FILE``, which the command itself writes to."""
    return click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path),
        metavar="FILE",
        callback=_standard_output,
        help="Write to this file, which appears when it is complete; - is standard output.",
    )(function)


def printing_options(*more: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """``--format`` and ``-o`` of a command that prints: the function gets ``form``, never None, and
    what it prints goes to the file."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def wrapped(*arguments: Any, **options: Any) -> None:
            output: Path | None = options.pop("output")
            options["form"] = format_of(click.get_current_context())
            if output is None:
                function(*arguments, **options)
                return
            with _into(output):
                function(*arguments, **options)

        return format_option(*more, by_suffix=True)(output_path_option(wrapped))

    return decorate


@contextlib.contextmanager
def _into(output: Path) -> Generator[None, None, None]:
    """What is printed goes to the file, at the end; after a typed error there is none."""
    data = io.BytesIO()
    text = io.TextIOWrapper(data, encoding="utf-8", errors="surrogateescape", write_through=True)
    try:
        with contextlib.redirect_stdout(text):
            yield
    except (SystemExit, click.exceptions.Exit):  # a status that the results have
        write_whole(output, data.getvalue())
        raise
    write_whole(output, data.getvalue())


def report_options(function: _F) -> _F:
    """``--report PATH`` and ``--report-format html|json``."""
    function = click.option(
        "--report-format",
        type=click.Choice(["html", "json"]),
        help="The format of --report (default: by its suffix).",
    )(function)
    return click.option(
        "--report",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Write a report on each kernel: FILE.html or FILE.json.",
    )(function)
