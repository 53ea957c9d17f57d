"""The command line: one module a subcommand, imported only when it is called.

Each module ``sassxlate/cli/<name>.py`` holds a click command called ``command``.  Errors of type
:class:`SassxlateError` print as one line on stderr; the exit status is 0 for done, 1 for a
negative answer, 2 for usage errors and bad input, 3 for unsupported, 130 for interrupted, 141 if
the reader of the output went away.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import gc
import importlib
import io
import os
import sys
from collections.abc import Generator, Sequence
from typing import Any, cast

import click

from sassxlate import __version__
from sassxlate.cli.grammar import Group
from sassxlate.errors import SassxlateError, UsageError, Where, exit_status
from sassxlate.notes import note, verbose

# The order of `--help`: inspect, translate, run, then the tool itself.  The short texts are
# here so that `--help` need not import every subcommand.
SUBCOMMANDS: dict[str, str] = {
    "ls": "List what a fat binary holds: architectures, kernels, sizes.",
    "extract": "Write the entries of a fat binary to files.",
    "disasm": "Print SASS as nvdisasm does.",
    "asm": "Assemble SASS text.",
    "isa": "Describe a SASS instruction: forms, bits, operands, modifiers.",
    "cfg": "Print or draw a kernel's control flow graph.",
    "diff": "Show what differs between two kernels' graphs.",
    "callgraph": "Print which functions call which.",
    "listing": "Print SASS as Ghidra and Binary Ninja can load it.",
    "translate": "Translate kernels to RDNA3 assembly and code objects.",
    "verify": "Prove translations of blocks, rules and launches, or find where they are wrong.",
    "interpret": "Run a kernel's SASS in the reference interpreter.",
    "trace": "Run a kernel step by step: SASS, its RDNA3, and registers on both sides.",
    "run": "Run a CUDA application on the emulated device or on HIP.",
    "train": "Train a model that proposes blocks.",
    "eval": "Measure a model on programs held out of training.",
    "doctor": "Check what is installed, what is missing and how to get it.",
    "explain": "Explain an error code.",
    "embed": "Write a program that carries its translation.",
    "unembed": "Give back the program that was embedded.",
    "warm": "Translate and compile kernels before a program runs.",
    "service": "Show what the translation service does, or end it.",
    "cache": "Show, measure, empty or move the cache.",
    "bench": "Measure the emulator, the translator and the disassembler.",
    "dataset": "Build the dataset of proved pairs that the model learns from.",
    "selftest": "Run the fixtures on a device and write a report.",
    "schema": "Print the JSON Schema of a command's output.",
    "completion": "Print the script that completes commands and kernel names in a shell.",
}
# A shell's statuses for SIGINT and SIGPIPE; click's own 1 would mean "differs".
EXIT_INTERRUPTED = 130
EXIT_CLOSED = 141


@contextlib.contextmanager
def _without_collection() -> Generator[None, None, None]:
    """Imports make long-lived objects: the collector walks them neither now nor later."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collecting:
            gc.enable()


@contextlib.contextmanager
def _closed_pipe() -> Generator[None, None, None]:
    """Ends the process quietly if the reader of its output went away; click's status would be 1."""
    try:
        yield
    except BrokenPipeError:
        _abandon_output()
        raise SystemExit(EXIT_CLOSED) from None


class LazyGroup(Group):
    """A group that imports a subcommand's module when the subcommand is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The subcommands in the order of the table."""
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command object of ``sassxlate.cli.<cmd_name>``; None if there is no such command."""
        if cmd_name not in SUBCOMMANDS:
            return None
        with _without_collection():
            module = importlib.import_module(f"{__name__}.{cmd_name}")
        return cast(click.Command, module.command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of subcommands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(SUBCOMMANDS.items()))

    def make_context(self, *arguments: Any, **settings: Any) -> click.Context:
        """As click does; `--help` and `--version` print here."""
        with _closed_pipe():
            return super().make_context(*arguments, **settings)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand; a typed error becomes one line on stderr and an exit status."""
        try:
            with _closed_pipe():
                return super().invoke(ctx)
        except SassxlateError as error:
            click.echo(f"sassxlate: {error}", err=True)
            if verbose():
                _explain(error)
            ctx.exit(exit_status(error))
        except KeyboardInterrupt:
            _abandon_output()
            with contextlib.suppress(OSError):
                click.echo("sassxlate: interrupted", err=True)
            ctx.exit(EXIT_INTERRUPTED)


def _explain(error: SassxlateError) -> None:
    """What `sassxlate explain` says about an error."""
    from sassxlate.errors import catalogue

    entry = catalogue().get(error.code)
    if entry is not None:
        note(f"{error.code} is: {entry['title']}")
        click.echo(entry["text"].strip(), err=True)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "SASSXLATE"},
)
@click.version_option(__version__, "-V", "--version", prog_name="sassxlate")
def cli() -> None:
    """Translate NVIDIA SASS to AMD RDNA3 and run CUDA programs on it."""


def main(args: Sequence[str] | None = None) -> None:
    """Entry point of the ``sassxlate`` program; ends the process with the exit status.

    Whatever happens ends in one line on stderr; SASSXLATE_TRACEBACK=1 shows where it came from.
    """
    _hold_closed_streams()
    _write_any_name()
    # Statuses of click itself (usage: 2) and of the subcommands pass through.
    with _one_line(), contextlib.suppress(BrokenPipeError):
        try:
            cli.main(args=args, prog_name="sassxlate")
        finally:
            sys.stdout.flush()
    # The reader of our output went away (`| head`): no traceback, and none at shutdown either.
    _abandon_output()
    raise SystemExit(EXIT_CLOSED)


@contextlib.contextmanager
def _one_line() -> Generator[None, None, None]:
    """Turns an exception that no subcommand expected into a typed error."""
    try:
        yield
        return
    except OSError as failed:
        error = UsageError("SX0819", failed.strerror or str(failed), Where(_what_failed(failed)))
        _show_traceback()
    except MemoryError:
        error = UsageError("SX0820", "memory ran out")
        _show_traceback()
    except Exception as fault:
        place = _innermost(fault)
        text = " ".join(f"{type(fault).__name__}: {fault}".split())[:300]
        error = UsageError("SX0821", f"internal error: {text}", Where(place))
        _show_traceback()
    _abandon_output()
    with contextlib.suppress(OSError):
        click.echo(f"sassxlate: {error}", err=True)
    raise SystemExit(exit_status(error))


def _what_failed(error: OSError) -> str:
    """The file, or the other object of the failed operation."""
    if error.filename is not None:
        return os.fsdecode(error.filename)
    if error.errno == errno.ENOENT and not _has_directory():
        return "the working directory"
    return "standard output"


def _has_directory() -> bool:
    try:
        os.getcwd()
    except OSError:
        return False
    return True


def _innermost(fault: Exception) -> str | None:
    """The innermost line, ours or a library's, that raised it."""
    trace = fault.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return None
    return f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"


def _show_traceback() -> None:
    if os.environ.get("SASSXLATE_TRACEBACK", "") not in ("", "0"):
        import traceback

        traceback.print_exc()


def _write_any_name() -> None:
    """Paths that are not text in the terminal's encoding are written as their bytes."""
    codecs.register_error("sassxlate", _as_it_is)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="sassxlate")


def _as_it_is(error: UnicodeError) -> tuple[bytes, int]:
    """The original bytes of a file name that Python decoded; other characters as escapes."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return b"".join(map(_byte_or_escape, error.object[error.start : error.end])), error.end


def _byte_or_escape(character: str) -> bytes:
    number = ord(character)
    if 0xDC80 <= number <= 0xDCFF:
        return bytes([number - 0xDC00])
    return character.encode("ascii", "backslashreplace")


def _hold_closed_streams() -> None:
    """Opens standard descriptors that are closed, so that no file of ours takes their numbers.

    As the C library does for privileged programs: opened in the wrong direction, so that using them
    fails as before, here and in an application that inherits them.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            mode = os.O_WRONLY if number == 0 else os.O_RDONLY
            if os.open(os.devnull, mode) == number:
                os.set_inheritable(number, True)
    # Python sets them to None.
    if cast(object, sys.stdin) is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
    if cast(object, sys.stdout) is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    if cast(object, sys.stderr) is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def _abandon_output() -> None:
    """Drops buffered output, so that Python does not try to write it again at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
