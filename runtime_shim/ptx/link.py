"""The driver's linker (``cuLink*``): PTX, cubins, fat binaries, objects and archives to one cubin,
by ptxas and nvlink."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sassxlate.disasm.containers import Cubin, parse_cubin, parse_fatbin
from sassxlate.errors import ContainerError
from sassxlate.runtime_shim.cache.store import key_of
from sassxlate.runtime_shim.ptx.assemble import architecture, assemble, read_output
from sassxlate.runtime_shim.ptx.errors import PtxError, shown
from sassxlate.runtime_shim.ptx.options import JitOptions, Kind
from sassxlate.runtime_shim.ptx.source import Source, read_source
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
    number, letter = architecture(Source(b"", None), capability, options, shop.supported)
    inputs = [_chosen(item, number) for item in inputs]
    if len(inputs) == 1 and (done := _alone(shop, inputs[0], capability, options)) is not None:
        return done
    pieces: list[tuple[str, bytes]] = []
    logs: list[str] = []
    for index, item in enumerate(inputs):
        data = item.data
        if item.kind == "ptx":
            source = read_source(data)
            made = assemble(shop, source, capability, options, relocatable=True)
            data = made.cubin
            logs.append(made.log)
            letter = letter or architecture(source, capability, options, shop.supported)[1]
        elif item.kind == "cubin":
            cubin = _cubin(item)
            letter = letter or cubin.variant
            if not cubin.relocatable:
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
    if (kept := shop.read(key, "nvlink")) is not None:
        return Linked(kept[0], "".join([*logs, kept[1]]))
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
        cubin = read_output(tool, folder / "linked.cubin", arch[0], log)
    shop.keep(key, "nvlink", cubin, ran.output)
    return Linked(cubin, log)


def _alone(shop: Workshop, item: Input, capability: int, options: JitOptions) -> Linked | None:
    """The answer for one input that needs no nvlink."""
    if item.kind == "ptx":
        made = assemble(shop, read_source(item.data), capability, options)
        return Linked(made.cubin, made.log)
    if item.kind == "cubin" and not _cubin(item).relocatable:
        return Linked(item.data, "")
    return None


def _chosen(item: Input, number: int) -> Input:
    """Of a fat binary the entry for the device: machine code, PTX to compile, or older machine
    code; itself if it has none of these."""
    if item.kind != "fatbin":
        return item
    try:
        entries = parse_fatbin(item.data).entries
        elf = [e for e in entries if e.kind == "elf" and e.arch <= number]
        text = [e for e in entries if e.kind == "ptx" and e.arch <= number]
        newest = max(elf, key=lambda e: e.arch, default=None)
        if newest is not None and (newest.arch == number or not text):
            return Input("cubin", item.name, newest.payload)
        if text:
            return Input("ptx", item.name, max(text, key=lambda e: e.arch).payload)
    except ContainerError as error:
        raise PtxError("SX0770", f"{shown(item.name, 80)}: {error.message}") from error
    return item


def _cubin(item: Input) -> Cubin:
    try:
        return parse_cubin(item.data)
    except ContainerError as error:
        raise PtxError("SX0770", f"{shown(item.name, 80)}: {error.message}") from error


__all__ = ["Input", "Linked", "link"]
