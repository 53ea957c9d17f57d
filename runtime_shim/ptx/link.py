"""The driver's linker (``cuLink*``): PTX, cubins, fat binaries, objects and archives to one cubin,
by ptxas and nvlink."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sassxlate.disasm.containers import parse_cubin, parse_fatbin
from sassxlate.errors import ContainerError
from sassxlate.runtime_shim.cache.store import key_of
from sassxlate.runtime_shim.ptx.assemble import assemble
from sassxlate.runtime_shim.ptx.errors import PtxError, shown
from sassxlate.runtime_shim.ptx.options import JitOptions, Kind
from sassxlate.runtime_shim.ptx.source import read_source
from sassxlate.runtime_shim.ptx.workshop import Workshop

_SUFFIX: dict[Kind, str] = {"ptx": "cubin", "object": "o", "library": "a"}
_MESSAGE = re.compile(r"(?:error|fatal)\s*:")


@dataclass(frozen=True, slots=True)
class Input:
    """A piece as the application added it, with its name for it."""

    kind: Kind
    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Linked:
    """The program, and what the tools printed."""

    cubin: bytes
    log: str


def link(shop: Workshop, inputs: Sequence[Input], capability: int, options: JitOptions) -> Linked:
    """One cubin of all inputs.

    PTX alone is compiled as a whole, and a cubin alone that is linked already is the answer: these
    need no nvlink.

    Raises:
        PtxError: SX0741 to SX0749; SX0770, an input is damaged.
        ServiceError: SX0907, no file can be written.
    """
    if not inputs:
        raise PtxError("SX0748", "there is nothing to link")
    if len(inputs) == 1 and (done := _alone(shop, inputs[0], capability, options)) is not None:
        return done
    number = options.target[0] if options.target else capability
    letter = options.target[1] if options.target else ""
    pieces: list[tuple[str, bytes]] = []
    logs: list[str] = []
    for index, item in enumerate(inputs):
        data = item.data
        if item.kind == "ptx":
            made = assemble(shop, read_source(data), capability, options, relocatable=True)
            data = made.cubin
            logs.append(made.log)
        elif item.kind == "cubin" and not _relocatable(item):
            # nvlink takes it without a word, and leaves its kernels out.
            text = f"{shown(item.name, 80)} is linked already, and can be no part of a program"
            raise PtxError("SX0748", text)
        # What the application calls it, in a form that every file system takes.
        stem = re.sub(r"[^A-Za-z0-9_-]", "_", item.name)[:60]
        pieces.append((f"{index}-{stem}.{_SUFFIX.get(item.kind, item.kind)}", data))
    return _linked(shop, pieces, (number, letter), options, logs)


def _linked(
    shop: Workshop,
    pieces: list[tuple[str, bytes]],
    arch: tuple[int, str],
    options: JitOptions,
    logs: list[str],
) -> Linked:
    tool = shop.tools("nvlink").need()
    arguments = [f"-arch=sm_{arch[0]}{arch[1]}"]
    if options.max_registers:
        arguments += ["-maxrregcount", str(options.max_registers)]
    if options.debug:
        arguments += ["-g"]
    words = [tool.identity, *arguments, *(f"{name} {len(data)}" for name, data in pieces)]
    key = key_of(*(w.encode() for w in words), *(data for _, data in pieces))
    kept = shop.read(f"{key}.nvlink")
    if kept is not None:
        return Linked(kept, "".join(logs))
    with shop.folder() as folder:
        for name, data in pieces:
            (folder / name).write_bytes(data)
        names = [f"./{name}" for name, _ in pieces]
        ran = shop.work(tool, [*arguments, *names, "-o", "linked.cubin"], folder)
        log = "".join([*logs, ran.output])
        if ran.status:
            said = [line for line in ran.output.splitlines() if _MESSAGE.search(line)]
            code = "SX0748" if said else "SX0745"
            text = shown(said[0] if said else ran.output) or f"exit status {ran.status}, silent"
            raise PtxError(code, f"nvlink {tool.version}: {text}", log=log)
        cubin = _read(tool.path, folder / "linked.cubin", log)
    shop.keep(f"{key}.nvlink", cubin)
    return Linked(cubin, log)


def _read(tool: str, path: Path, log: str) -> bytes:
    try:
        data = path.read_bytes()
        parse_cubin(data)
    except OSError as error:
        text = f"{tool} ended well and wrote nothing ({error.strerror})"
        raise PtxError("SX0745", text, log=log) from error
    except ContainerError as error:
        raise PtxError("SX0745", f"{tool} wrote no cubin: {error.message}", log=log) from error
    return data


def _alone(shop: Workshop, item: Input, capability: int, options: JitOptions) -> Linked | None:
    """The answer for one input that needs no nvlink."""
    if item.kind == "ptx":
        made = assemble(shop, read_source(item.data), capability, options)
        return Linked(made.cubin, made.log)
    if item.kind == "cubin" and not _relocatable(item):
        return Linked(item.data, "")
    if item.kind == "fatbin":
        return _fatbin_alone(shop, item, capability, options)
    return None


def _fatbin_alone(
    shop: Workshop, item: Input, capability: int, options: JitOptions
) -> Linked | None:
    try:
        entries = parse_fatbin(item.data).entries
        fitting = [e for e in entries if e.kind == "elf" and e.arch == capability]
        older = [e for e in entries if e.kind == "ptx" and e.arch <= capability]
        if fitting:
            payload = fitting[0].payload
            return None if parse_cubin(payload).relocatable else Linked(payload, "")
        if not older:
            return None
        text = max(older, key=lambda e: e.arch).payload
    except ContainerError as error:
        raise PtxError("SX0770", f"{shown(item.name, 80)}: {error.message}") from error
    made = assemble(shop, read_source(text), capability, options)
    return Linked(made.cubin, made.log)


def _relocatable(item: Input) -> bool:
    try:
        return parse_cubin(item.data).relocatable
    except ContainerError as error:
        raise PtxError("SX0770", f"{shown(item.name, 80)}: {error.message}") from error


__all__ = ["Input", "Linked", "link"]
