"""``sassxlate run``: run an application with our libraries in place of NVIDIA's."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

import click
from click.core import ParameterSource

from sassxlate.cli.grammar import Command
from sassxlate.cli.options import (
    emulated_card_option,
    engine_options,
    matrix_option,
    report_options,
    target_option,
)
from sassxlate.cli.run_results import dump_used, explain, keep_record, summarize, write_report
from sassxlate.disasm.amdgpu_machines import RDNA3, spelled
from sassxlate.errors import SassxlateError, UsageError
from sassxlate.files import replace_file
from sassxlate.llm.engine.choose import TIER
from sassxlate.lowering.report.pages import begin
from sassxlate.runtime_shim import application, hip_blas, hip_probe, paths, trusted
from sassxlate.runtime_shim.cache import hybrid, runs
from sassxlate.runtime_shim.cache.store import AREAS, Cache, key_of, size_cap
from sassxlate.runtime_shim.cache.tag import cache_tag
from sassxlate.runtime_shim.emulated_card import emulated_card as emulated_card_of
from sassxlate.runtime_shim.service import client
from sassxlate.runtime_shim.writer import writer
from sassxlate.runtime_shim.written_before import mark_of, write_before

EXIT_REFUSED = 3


@click.command(
    cls=Command,
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
    example="sassxlate run -- ./saxpy",
)
@click.option(
    "--device",
    type=click.Choice(["auto", "emulator", "hip"]),
    default="auto",
    help="Run kernels on an AMD GPU through HIP, or emulated (auto: a GPU if there is one).",
)
@emulated_card_option
@click.option("--strict", is_flag=True, help="Emulate with deferred loads and undefined values.")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    default=0,
    help="Seed for --strict: undefined values, scheduling order, approximation errors.",
)
@click.option(
    "--interleave",
    is_flag=True,
    help="Run the warps of a block in turns, each up to its next access to memory (emulated "
    "device): for programs with races that NVIDIA's GPUs win, docs/compatibility.md.",
)
@click.option(
    "--kernel-time-limit",
    type=click.FloatRange(0),
    default=0.0,
    envvar="SASSXLATE_KERNEL_TIME_LIMIT",
    metavar="SECONDS",
    help="End a launch that takes longer, with error 702 (emulated device; 0: no limit).",
)
@click.option(
    "--keep-status",
    is_flag=True,
    help="Keep the application's exit status even if kernels were refused.",
)
@click.option(
    "--replace",
    metavar="LIST",
    help="NVIDIA's libraries that ours take the place of (cufft, cublas), with commas; or none. "
    "Default: both; on an AMD card cublas only where hipBLAS is found.",
)
@click.option(
    "--tier",
    type=click.Choice(["auto", "baseline", "llvm"]),
    envvar="SASSXLATE_TIER",
    default="auto",
    show_default=True,
    help="The emulated device's code: of stencils at once (baseline), compiled before a kernel's "
    "first launch (llvm), or the one until the other is there (auto).",
)
@click.option(
    "--arch",
    metavar="SM",
    help="The compute capability that the device reports, like sm_80; by default that of "
    "SASSXLATE_CC, or the newest, up to sm_90, that APP and its libraries have code for.",
)
@click.option(
    "--trace",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Write every driver call to DIR.",
)
@click.option(
    "--trace-format",
    type=click.Choice(["text", "perfetto"]),
    default="text",
    show_default=True,
    help="A line per call, or DIR/trace.json for ui.perfetto.dev: calls, launches and "
    "translations with their times.",
)
@click.option(
    "--launches",
    is_flag=True,
    help="After APP, print which kernels it launched, with their grids and how often, on standard "
    "error.",
)
@click.option(
    "--dump",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Write used kernels' files to DIR.",
)
@target_option
@matrix_option
@engine_options
@report_options
@click.argument("app")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def command(
    device: str,
    emulated_card: bool,
    strict: bool,
    seed: int,
    interleave: bool,
    kernel_time_limit: float,
    tier: str,
    keep_status: bool,
    replace: str | None,
    arch: str | None,
    trace: str | None,
    trace_format: str,
    launches: bool,
    dump: str | None,
    target: str,
    matrix: str,
    engine: str | None,
    model: str | None,
    samples: int,
    report: Path | None,
    report_format: str | None,
    app: str,
    args: tuple[str, ...],
) -> None:
    """Run APP with ARGS; its streams, signals and exit status pass through.

    The exit status is 3 if a kernel was refused, however APP or a child of it handled that (unless
    --keep-status), and the last line says that its output is not to be trusted; 126 and 127 if APP
    cannot be run or found.

    --report writes a page (or JSON) about the kernels that APP used: SASS beside RDNA3, and on the
    emulated device how often each block ran; counting takes time.

    Blocks have the rules' code, or cheaper code that `sassxlate translate --engine` stored
    (--engine rules: only the rules' code); the report names the writer.  With --model or another
    --engine, APP's own kernels are translated that way before it starts; what it loads at run time
    has the rules' code, which llvm and best replace while APP runs.  All engines but hybrid store
    their code for runs with that engine alone: it is what was requested, not the cheapest, and a
    model's code may cost more than the rules' code.
    """
    if trace_format != "text" and trace is None:
        raise UsageError("SX0719", "--trace-format needs --trace DIR")
    if launches and trace_format != "text":
        raise UsageError("SX0719", "--launches reads a trace of lines: not with --trace-format")
    if seed and not strict:
        raise UsageError("SX0719", "--seed needs --strict")
    if strict and device == "hip":
        raise UsageError("SX0719", "--strict needs the emulated device; it cannot run on hip")
    if emulated_card and (device == "emulator" or strict):
        text = "--emulated-card runs AMD's HIP library: neither --device emulator nor --strict"
        raise UsageError("SX0719", text)
    if interleave and device == "hip" and not emulated_card:
        raise UsageError("SX0719", "--interleave needs the emulated device; it cannot run on hip")
    capability = "" if arch is None else application.capability(arch)
    chosen = None if replace is None else application.replacements(replace)
    path = application.find(app, os.environ.get("PATH", os.defpath))
    application.check(path)
    libraries = _plain(paths.library_dir())
    size_cap()  # a wrong size is said now, not by a service in the background
    if _target_by_default() and not (strict or interleave or emulated_card):
        target = hip_probe.own_target(device) or target
    wanted = spelled(target, matrix)
    tag = cache_tag(wanted)
    cache = _usable_cache(tag)
    if model is not None or engine not in (None, "rules"):
        engines = writer(engine, model, samples, wanted)
        if engine is not None and engine != "hybrid":
            cache = engines.keeps_in(cache)
        engines.place = cache
        write_before(path, engines, capability, Cache(cache, tag, size_cap()))
    else:
        writer("rules", None, samples)  # raises for options that do not go together
        if engine == "rules" and hybrid.any_kept(cache, tag):
            cache = paths.private_dir(cache / "rules")
    socket = paths.socket_path(tag, cache)
    pages = None
    if report is not None:
        pages = begin(report, report_format, "run", " ".join([app, *args]), wanted)
    kept_report = os.environ.get("SASSXLATE_KEEP_REPORT")
    report_path = _report_file(kept_report)
    settings = client.library_settings(socket, cache, tag) | {
        "SASSXLATE_TARGET": target,
        "SASSXLATE_MATRIX": matrix,
        "SASSXLATE_REPORT": str(report_path),
        "SASSXLATE_RUNNER": str(os.getpid()),
        "SASSXLATE_STRICT": "1" if strict else "0",
        "SASSXLATE_STRICT_SEED": str(seed),
        "SASSXLATE_INTERLEAVE": "1" if interleave else "0",
        "SASSXLATE_TIER": tier,
        "SASSXLATE_KERNEL_TIME_LIMIT": str(kernel_time_limit),
        # Of what is loaded at run time.  Counts and seeds are of one code from start to end.
        "SASSXLATE_BACKGROUND_ENGINE": (
            engine if engine in TIER and not (strict or interleave or report) else ""
        ),
    }
    if capability:
        settings["SASSXLATE_CC"] = capability
    card = None
    if emulated_card:
        card = emulated_card_of(target)
        settings |= card.settings
    off = strict or interleave or card is not None
    found = None if off else hip_probe.chosen(device, target)
    hip = str(card.userland.hip) if card else found.path if found else None
    if target not in RDNA3 and (card is not None or hip is None):
        raise UsageError("SX0719", f"the emulated device runs no code for {target}")
    settings["SASSXLATE_HIP"] = hip or str(libraries / "libamdhip64.so")
    if found and found.visible is not None:
        settings["HIP_VISIBLE_DEVICES"] = found.visible
    if card is None:
        settings["SASSXLATE_DEVICES"] = found.devices if found else ""
    hipblas = hip_blas.find(hip) if hip is not None else None
    if chosen is None:
        chosen = application.defaults(hip is not None, hipblas is not None)
    folders = application.folders(chosen, card=hip is not None)
    if hipblas is not None:
        settings[hip_blas.VARIABLE] = str(hipblas)
    if "cublas" in folders and not os.environ.get("SASSXLATE_BLAS"):
        blas = application.host_blas()
        if blas is not None:
            settings["SASSXLATE_BLAS"] = str(blas)
    listed = None
    if launches and trace is None:
        listed = tempfile.TemporaryDirectory(prefix="trace-", dir=paths.runtime_dir())
        trace = listed.name
    if trace:
        settings["SASSXLATE_TRACE"] = str(_directory(trace))
        settings["SASSXLATE_TRACE_FORMAT"] = trace_format
    dump_dir = _directory(dump) if dump else None
    counts = None
    if pages is not None and hip is None:
        counts = tempfile.TemporaryDirectory(prefix="counts-", dir=paths.runtime_dir())
        settings["SASSXLATE_COUNTS"] = counts.name

    called = runs.application(path, args)
    record = runs.find(cache, called)
    changed = None if record is None or not record.outdated(tag) else runs.key(called)
    mark = cache / "module" / tag / f"{mark_of(path)}.ran"
    if client.listening(socket):
        if changed is not None:
            with suppress(SassxlateError):
                client.call(socket, {"op": "prepare", "module": changed}, timeout=1.0)
    elif changed is not None or not mark.exists():
        # Its start overlaps with the application's; a program that ran before needs no service.
        with suppress(SassxlateError):  # the libraries start it where this fails, and say why
            client.spawn(socket, cache, wanted, changed)
    env = application.environment(os.environ, libraries, settings, folders)
    program, words = path, [app]
    if card is not None:
        program, words = card.start(app, path, env)
    try:
        status = application.start_and_wait(program, [*words, *args], env)
        used = application.read_report(report_path)
    finally:
        if not kept_report:
            with suppress(OSError):
                report_path.unlink()
    if used.kernels and not used.refusals:
        with suppress(OSError):
            mark.parent.mkdir(parents=True, exist_ok=True)
            replace_file(mark, b"")
    keep_record(used, Cache(cache, tag, size_cap()), called, tier != "baseline" and hip is None)
    if trace and trace_format == "perfetto":
        from sassxlate.runtime_shim import perfetto

        perfetto.write(_directory(trace), path.name)
    if launches and trace:
        from sassxlate.runtime_shim.launches import lines

        for line in lines(_directory(trace)):
            click.echo(line, err=True)
    if listed is not None:
        listed.cleanup()
    if dump_dir is not None:
        dump_used(used, cache, tag, dump_dir, wanted)
    explain(status, path, env)
    if pages is not None:
        write_report(pages, used, cache, tag, counts, strict)
    if used.refusals:
        summarize(used, path, tag, f"{'hip' if hip else 'emulator'} ({wanted})")
        if not keep_status:
            status = EXIT_REFUSED
    raise SystemExit(status)


def _plain(libraries: Path) -> Path:
    """The directory, or a link to it, under a name that LD_LIBRARY_PATH can hold."""
    if not any(c in str(libraries) for c in ":;"):
        return libraries
    link = paths.runtime_dir() / f"lib-{key_of(os.fsencode(libraries))[:12]}"
    with suppress(FileExistsError):
        link.symlink_to(libraries, target_is_directory=True)
    return link


def _usable_cache(tag: str) -> Path:
    cache = paths.cache_dir()
    error = paths.unusable(cache)
    try:
        for area in AREAS:
            trusted.check_folder(cache / area / tag)
    except trusted.UntrustedError as found:
        error = error or found
    if error is None:
        return cache
    spare = paths.private_dir(paths.runtime_dir() / "cache")
    click.echo(f"sassxlate: {error}; using {spare}", err=True)
    return spare


def _report_file(kept: str | None) -> Path:
    """The record that the libraries write, begun: a temporary file, or ``kept``, which stays."""
    if kept:
        name = str(Path(kept).absolute())
        try:
            descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise UsageError("SX0719", f"{name}: {error.strerror}") from error
    else:
        descriptor, name = tempfile.mkstemp(prefix="report-", dir=paths.runtime_dir())
    with os.fdopen(descriptor, "wb", buffering=0) as file:
        try:
            file.write(b"sassxlate-report 1\n")
        except OSError as error:
            text = f"{name}: no report can be written ({error.strerror}): kernels that are refused"
            click.echo(f"sassxlate: SX0722: {text} do not show in the exit status", err=True)
    return Path(name)


def _directory(name: str) -> Path:
    directory = Path(name).absolute()
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError("SX0719", f"{directory}: {error.strerror}") from error
    return directory


def _target_by_default() -> bool:
    """Whether neither an option nor the environment names the target."""
    source = click.get_current_context().get_parameter_source("target")
    return source is ParameterSource.DEFAULT
