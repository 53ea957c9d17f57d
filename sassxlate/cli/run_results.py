"""What `sassxlate run` keeps, writes and says when the application has ended."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sassxlate import __version__
from sassxlate.errors import SassxlateError
from sassxlate.runtime_shim import application
from sassxlate.runtime_shim.application import RunReport
from sassxlate.runtime_shim.cache import runs
from sassxlate.runtime_shim.cache.store import Cache, key_of

if TYPE_CHECKING:
    from sassxlate.lowering.report.pages import Pages

_NOT_FOUND = 127  # the status of a program that is not found, or lacks a library


def keep_record(used: RunReport, cache: Cache, called: tuple[str, ...], compiled: bool) -> None:
    """Keeps which kernels of which files were used, for the next start with other versions."""
    names: dict[str, list[str]] = {}
    for kernel in used.kernels:
        names.setdefault(kernel.module_key, []).append(kernel.name)
    files = [(m.file, m.cc, names.get(m.key, ())) for m in used.modules]
    if files:
        with suppress(OSError):
            runs.keep(cache, called, compiled, files)


def write_report(
    pages: Pages,
    used: RunReport,
    cache: Path,
    tag: str,
    counts: tempfile.TemporaryDirectory[str] | None,
    strict: bool,
) -> None:
    """Writes the report; if that fails, the application's status still decides."""
    from sassxlate.runtime_shim.run_report import (
        write,  # a heavy import that starts threads: only after the application
    )

    pages.counted = counts is not None
    try:
        write(pages, used, cache, tag, None if counts is None else Path(counts.name), strict)
    except SassxlateError as error:
        click.echo(f"sassxlate: {error}", err=True)
    finally:
        if counts is not None:
            counts.cleanup()


def dump_used(report: RunReport, cache: Path, tag: str, directory: Path, target: str) -> None:
    """Per kernel used: the cubin it came from, its code object, launch text and assembly."""
    from sassxlate.disasm.containers import parse_cubin
    from sassxlate.lowering.pipeline import translate_kernel
    from sassxlate.lowering.target import target_named

    store = Cache(cache, tag)
    for kernel in report.kernels:
        stem = f"{kernel.module_key}-{kernel.kernel_key}"
        base = directory / f"{kernel.module_key[:8]}-{kernel.name[:100]}"
        try:
            cubin = store.need("module", f"{kernel.module_key}.cubin")
            code = store.need("kernel", f"{stem}.hsaco")
            (directory / f"{kernel.module_key[:8]}.cubin").write_bytes(cubin)
            Path(f"{base}.hsaco").write_bytes(code)
            Path(f"{base}.launch").write_bytes(store.need("kernel", f"{stem}.launch"))
            module = parse_cubin(cubin)
            translated = translate_kernel(module, kernel.name, target=target_named(target))
            same = code == translated.code_object
            text = translated.assembly if same else _listed(code, kernel.name)
            Path(f"{base}.s").write_text(text)
        except OSError as error:
            click.echo(f"sassxlate: SX0719: --dump: {kernel.name}: {error}", err=True)


def _listed(data: bytes, name: str) -> str:
    """The code of a kernel with blocks by a model, with the SASS of each line by the source map."""
    from sassxlate.disasm.listing.rdna3_section import decode_code
    from sassxlate.lowering.codeobject import code_object, source_map

    obj = code_object.read(data)
    kernel = obj.kernel(name)
    rows = source_map.parse(source_map.find(data)).get(name, ())
    lines: list[str] = []
    for line in decode_code(obj.text[kernel.entry : kernel.entry + kernel.size]):
        came = source_map.at(rows, line.address)
        lines.append(f"  {line.text:<56} // {line.address:06x}{f' ; {came}' if came else ''}\n")
    return "".join(lines)


def explain(status: int, path: Path, env: dict[str, str]) -> None:
    """Says why the application did not start, or what killed it."""
    if status == _NOT_FOUND:
        for name in application.missing_libraries(path, env):
            click.echo(f"sassxlate: SX0705: {path} needs {name}, which is not found", err=True)
    elif status > 128:
        click.echo(f"sassxlate: {path.name} was killed by signal {status - 128}", err=True)


def summarize(report: RunReport, path: Path, tag: str, device: str) -> None:
    """Says which kernels were refused, and that the output is not to be trusted."""
    many = len(report.refusals)
    lines = [
        f"{many} {'refusal' if many == 1 else 'refusals'} in this run; attach to a report:",
        f"  sassxlate {__version__}, tag {tag}, device {device}",
        f"  {path.name}, blake2b {_digest(path)}",
        *(f"  {refusal.line}" for refusal in report.refusals),
        report.warning(path.name),  # the last line: a long list may scroll away
    ]
    for line in lines:
        click.echo(f"sassxlate: {line}", err=True)


def _digest(path: Path) -> str:
    try:
        return key_of(path.read_bytes())
    except OSError as error:
        return f"unknown ({error.strerror})"


__all__ = ["dump_used", "explain", "keep_record", "summarize", "write_report"]
