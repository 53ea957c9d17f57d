"""`sassxlate verify launches`: compares whole launches between the reference interpreter and the
translation."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sassxlate.disasm.amdgpu_machines import RDNA3
from sassxlate.errors import InterpretError, SassxlateError, UsageError
from sassxlate.notes import quiet
from sassxlate.output import print_json_line
from sassxlate.runtime_shim.ptx.machine_code import machine_code

if TYPE_CHECKING:
    from sassxlate.disasm.containers import Cubin, Kernel
    from sassxlate.lowering.trace.compare_memory import Verdict
    from sassxlate.lowering.trace.recording import Recorded

LIMIT = 50_000_000  # warp instructions per launch


@dataclass(frozen=True, slots=True)
class _Used:
    """A kernel that the program used, with the data that its launches need."""

    cubin: Cubin
    kernel: Kernel
    launch: Mapping[str, str]  # the launch text; fills by kind


@dataclass(frozen=True, slots=True)
class How:
    """The limits and the output format of a run: the options of these names."""

    limit: int = LIMIT
    most: int = 0
    as_json: bool = False
    verbose: bool = False
    target: str = RDNA3[0]
    tier: str = ""  # llvm or best: whose code runs


@dataclass(frozen=True, slots=True)
class Launched:
    """A hand-made launch."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    arguments: tuple[str, ...]
    seed: int


def verify_launch(
    file: str, patterns: tuple[str, ...], arch: str | None, launched: Launched, how: How
) -> int:
    """As :func:`verify_run`, for one launch of a kernel of ``file``."""
    from sassxlate.lowering.trace.arguments import find_kernel, parse
    from sassxlate.runtime_shim.service import client

    if len(patterns) != 1:
        raise UsageError("SX0827", "--grid launches one kernel: -k NAME")
    entry, kernel = find_kernel(file, patterns[0], arch, machine_code)
    with tempfile.TemporaryDirectory(prefix="sassxlate-launch-") as name:
        folder = Path(name)
        (folder / "cubin").write_bytes(entry)
        values: list[dict[str, str]] = []
        for number, text in enumerate(launched.arguments):
            argument = parse(text, number, launched.seed)
            if argument.buffer is None:
                values.append({"hex": argument.value.hex()})
                continue
            argument.buffer.tofile(folder / f"{number}")
            values.append({"file": str(folder / f"{number}")})
        spec: dict[str, Any] = {"cubin": str(folder / "cubin"), "kernel": kernel}
        spec |= {"values": values, "shared": launched.shared}
        spec |= {"grid": launched.grid, "block": launched.block}
        (folder / "spec").write_text(json.dumps(spec))
        os.environ["PYTHONPATH"] = client.import_root()
        args = ("-P", "-m", "sassxlate.runtime_shim.replay.launch_once", str(folder / "spec"))
        return verify_run(sys.executable, args, replace(how, verbose=True))


def verify_run(
    program: str, args: tuple[str, ...], how: How, patterns: tuple[str, ...] = ()
) -> int:
    """Runs a program on the emulated device, and each of its launches again in the interpreter.

    Returns the exit status: 1 if memory differs, 3 if nothing was decided.
    """
    from sassxlate.disasm.inputs import kernel_matches
    from sassxlate.llm.engine.choose import tier_identity
    from sassxlate.lowering.trace import recording as record
    from sassxlate.runtime_shim import paths
    from sassxlate.runtime_shim.cache.store import key_of

    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="sassxlate-verify-") as folder:
        cache = paths.cache_dir() if paths.usable(paths.cache_dir()) else Path(folder) / "cache"
        status = _record(program, args, Path(folder), cache, how.target, tier=how.tier)
        if how.tier:  # `run` keeps its code apart
            cache /= f"engine-{key_of(tier_identity(how.tier).encode())[:16]}"
        used: dict[str, _Used | None] = {}
        seen: set[str] = set()
        compared: Counter[str] = Counter()

        def wanted(_: str, key: str) -> bool:
            if how.most and compared[key] >= how.most:
                total["left out"] += 1
                return False
            return True

        for path in sorted(Path(folder).glob("launches-*")):
            for recorded in record.read(path, wanted):
                if recorded.key not in used:
                    used[recorded.key] = _of(cache, recorded)
                kernel = used[recorded.key]
                shown = kernel.kernel.demangled if kernel else recorded.kernel
                if patterns and not kernel_matches(recorded.kernel, shown, patterns):
                    continue
                mark = _mark(recorded)
                if mark in seen:
                    total["repeated"] += 1
                    continue
                seen.add(mark)
                compared[recorded.key] += 1
                verdict = _verdict(kernel, recorded, how.limit)
                total[type(verdict).__name__] += 1
                _say(recorded, kernel, verdict, how.as_json, how.verbose)
    if status:
        click.echo(f"sassxlate: {Path(program).name} ended with status {status}", err=True)
    names = ("Same", "Different", "Unknown", "repeated", "left out")
    text = ", ".join(f"{total[n]} {n.lower()}" for n in names if total[n]) or "no launches"
    if not (how.as_json and quiet()):
        click.echo(f"all: {text}", err=how.as_json)
    if total["Different"]:
        return 1
    return 0 if total["Same"] and not total["Unknown"] else 3


def recorded_in(
    program: str,
    args: tuple[str, ...],
    folder: Path,
    cache: Path,
    settings: Mapping[str, str] | None = None,
    target: str = RDNA3[0],
) -> int:
    """Runs a program on the emulated device, a ``target``, which records its launches in
    ``folder``; returns the program's exit status.  ``settings`` are more variables of its
    environment."""
    return _record(program, args, folder, cache, target, settings)


def used_kernel(cache: Path, recorded: Recorded) -> tuple[Cubin, Kernel] | None:
    """The kernel of a launch, from the cache that the program was run with."""
    used = _of(cache, recorded)
    return None if used is None else (used.cubin, used.kernel)


def _record(
    program: str,
    args: tuple[str, ...],
    folder: Path,
    cache: Path,
    target: str,
    more: Mapping[str, str] | None = None,
    tier: str = "",
) -> int:
    """Runs the program under ``sassxlate run``; its output goes to standard error."""
    command = [sys.executable, "-P", "-m", "sassxlate", "run", "--keep-status"]
    command += ["--device", "emulator", "--target", target]
    command += [*(["--engine", tier] if tier else []), "--", program, *args]
    # One thread, so that the order of blocks is the interpreter's.
    settings = {"SASSXLATE_RECORD": str(folder), "SASSXLATE_THREADS": "1"}
    settings |= {"SASSXLATE_CACHE_DIR": str(cache), **(more or {})}
    done = subprocess.run(
        command, env={**os.environ, **settings}, stdout=sys.stderr.fileno(), check=False
    )
    return done.returncode


def _of(cache: Path, recorded: Recorded) -> _Used | None:
    """The cache's data on the kernel of a launch."""
    from sassxlate.disasm.containers import parse_cubin
    from sassxlate.runtime_shim.cache.keys import host_key
    from sassxlate.runtime_shim.cache.store import load, name_key, need

    name = recorded.kernel
    for path in sorted(cache.glob(f"kernel/*/*-{name_key(name)}.hsaco")):
        code = load(path)
        if code is None or host_key(code, name, False) != recorded.key:
            continue
        module = cache / "module" / path.parent.name / f"{path.stem.split('-')[0]}.cubin"
        cubin = parse_cubin(need(module))
        kernel = next((k for k in cubin.kernels if k.name == name), None)
        if kernel is not None:
            text = need(path.with_suffix(".launch")).decode()
            fields = (line.rpartition(" ") for line in text.splitlines())
            return _Used(cubin, kernel, {key: value for key, _, value in fields})
    return None


def _mark(recorded: Recorded) -> str:
    """The identity of a launch: kernel, shape, arguments and memory; not its number."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (recorded.key, recorded.grid, recorded.block, recorded.shared, recorded.kernarg):
        digest.update(repr(part).encode())
    for base, data in sorted(recorded.before.items()):
        digest.update(f"{base} {len(data)}".encode())
        digest.update(data.tobytes())
    return digest.hexdigest()


def _verdict(used: _Used | None, recorded: Recorded, limit: int) -> Verdict:
    from sassxlate.lowering.trace.compare_memory import Unknown, compare
    from sassxlate.lowering.trace.interpreter_launch import approximations, replayed

    if used is None:
        return Unknown("the launched kernel is not in the cache")
    if recorded.fault:
        return Unknown(f"the launch stopped with fault {recorded.fault}")
    try:
        launch = replayed(used.cubin, used.kernel, used.launch, recorded)
        return compare(
            launch, recorded.after, approximations(launch), limit, approximations(launch, "TANH")
        )
    except InterpretError as error:
        return Unknown(f"the interpreter stopped: {error}")
    except SassxlateError as error:
        return Unknown(str(error))


# --- output ------------------------------------------------------------------------------------


def _say(
    recorded: Recorded, used: _Used | None, verdict: Verdict, as_json: bool, verbose: bool
) -> None:
    from sassxlate.lowering.trace.compare_memory import Different, Same

    if as_json:
        record = {"launch": recorded.number, "kernel": recorded.kernel}
        record |= {"grid": recorded.grid, "block": recorded.block}
        record |= {"verdict": type(verdict).__name__, **asdict(verdict)}
        if isinstance(verdict, Different) and used is not None:
            record |= {"block_start": _block(used, verdict.offset)}
        print_json_line("verify-launches", record)
        return
    if isinstance(verdict, Same) and not verbose:
        return
    shape = " x ".join(",".join(map(str, s)) for s in (recorded.grid, recorded.block))
    name = used.kernel.demangled if used is not None else recorded.kernel
    click.echo(f"launch {recorded.number}, {name} ({shape}): {_text(used, verdict)}")


def _text(used: _Used | None, verdict: Verdict) -> str:
    from sassxlate.lowering.trace.compare_memory import Different, Same

    if isinstance(verdict, Same):
        return "same" + (f" (modulo {', '.join(verdict.modulo)})" if verdict.modulo else "")
    if not isinstance(verdict, Different):
        return f"unknown: {verdict.reason}"
    text = f"{verdict.words} words differ, the first at {verdict.address:#x}: "
    text += f"SASS {verdict.sass:#010x}, RDNA3 {verdict.rdna:#010x}; "
    if verdict.offset is None:
        return text + "no SASS instruction wrote it"
    block = _block(used, verdict.offset) if used is not None else None
    inside = "" if block is None else f", in block /*{block:04x}*/"
    writer = _instruction(used, verdict.offset)
    text += f"written by /*{verdict.offset:04x}*/ {writer}{inside}"
    if verdict.lane is not None:
        text += ", lane {2} of warp {1} of block {0}".format(*verdict.lane)
    return text


def _block(used: _Used, offset: int | None) -> int | None:
    from sassxlate.lowering.abi.link import link_kernel
    from sassxlate.lowering.kernel_graph import kernel_cfg

    if offset is None:
        return None
    graph = kernel_cfg(link_kernel(used.kernel, used.cubin))
    return next((b.start for b in graph.blocks if b.start <= offset < b.end), None)


def _instruction(used: _Used | None, offset: int) -> str:
    from sassxlate.disasm.sass import decode
    from sassxlate.lowering.abi.link import link_kernel

    if used is None:
        return ""
    code = link_kernel(used.kernel, used.cubin).code
    word = int.from_bytes(code[offset : offset + 16], "little")
    return decode(word, offset, used.cubin.arch).text


__all__ = [
    "LIMIT",
    "How",
    "Launched",
    "recorded_in",
    "used_kernel",
    "verify_launch",
    "verify_run",
]
