"""PTX to a cubin, by ptxas; results are kept by ptxas's version, architecture, options and text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from sassxlate.disasm.containers import parse_cubin
from sassxlate.errors import ContainerError
from sassxlate.runtime_shim.cache.store import key_of
from sassxlate.runtime_shim.ptx.errors import PtxError, shown
from sassxlate.runtime_shim.ptx.options import JitOptions
from sassxlate.runtime_shim.ptx.source import Source
from sassxlate.runtime_shim.ptx.tools import Tool
from sassxlate.runtime_shim.ptx.workshop import Workshop

# The name that NVIDIA's driver gives the text in its messages.
_INPUT = "application ptx input"
_OUTPUT = "made.cubin"
_MESSAGE = re.compile(r"(?:error|fatal)\s*:\s*(?P<text>.*)")
_ABORTED = "Ptx assembly aborted"
_UNRESOLVED = "Unresolved extern"


@dataclass(frozen=True, slots=True)
class Assembled:
    """A cubin, what ptxas printed, and which ptxas that was."""

    cubin: bytes
    log: str
    tool: Tool
    arch: int


def architecture(
    source: Source, capability: int, options: JitOptions, supported: frozenset[int]
) -> tuple[int, str]:
    """The architecture to compile for, as (90, "a").

    Raises:
        PtxError: SX0743, the text is for a newer device, or for another one alone.
    """
    number, letter = options.target or (capability, "")
    if number not in supported:
        number = max((a for a in supported if a <= number), default=number)
    if source.target is None:
        return number, letter
    least, only = source.target
    name = f"sm_{least}{only}"
    if least > number:
        raise PtxError("SX0743", f"the PTX is for {name}, the device is sm_{number}")
    if (only == "a" and least != number) or (only == "f" and least // 10 != number // 10):
        text = f"the PTX is for {name} and its family alone, the device is sm_{number}"
        raise PtxError("SX0743", text)
    return number, only or letter


def assemble(
    shop: Workshop,
    source: Source,
    capability: int,
    options: JitOptions,
    *,
    relocatable: bool = False,
) -> Assembled:
    """Compiles PTX for a device of a capability.

    The first ptxas that was found does it; one that is too old for the text or the device leaves
    it to the next.

    Raises:
        PtxError: SX0741 to SX0747.
        ServiceError: SX0907, no file can be written.
    """
    found = shop.tools("ptxas")
    found.need()
    arch = architecture(source, capability, options, shop.supported)
    too_old: PtxError | None = None
    newest = (0, 0)
    for tool in found:
        try:
            return _with(shop, tool, source, arch, options, relocatable)
        except PtxError as error:
            if error.code != "SX0744":
                raise
            if tool.release > newest:
                newest, too_old = tool.release, error
    assert too_old is not None
    raise too_old


def unresolved(error: PtxError) -> bool:
    """Whether the text only lacks functions of other modules."""
    return error.code == "SX0742" and _UNRESOLVED in error.log


def _with(
    shop: Workshop,
    tool: Tool,
    source: Source,
    arch: tuple[int, str],
    options: JitOptions,
    relocatable: bool,
) -> Assembled:
    arguments = [f"-arch=sm_{arch[0]}{arch[1]}", *options.arguments(), *["-c"] * relocatable]
    key = key_of(tool.identity.encode(), *(a.encode() for a in arguments), source.text)
    if (kept := shop.read(key, "ptxas")) is not None:
        return Assembled(*kept, tool, arch[0])
    with shop.folder() as folder:
        (folder / _INPUT).write_bytes(source.text)
        ran = shop.work(tool, [*arguments, _INPUT, "-o", _OUTPUT], folder)
        if ran.status:
            raise _refusal(tool, ran.status, ran.output, arch)
        cubin = read_output(tool, folder / _OUTPUT, arch[0], ran.output)
    shop.keep(key, "ptxas", cubin, ran.output)
    return Assembled(cubin, ran.output, tool, arch[0])


def read_output(tool: Tool, path: Path, arch: int, log: str) -> bytes:
    """The cubin for ``arch`` that a tool wrote; PtxError SX0745 if it is none."""
    try:
        data = path.read_bytes()
        made = parse_cubin(data).arch
    except OSError as error:
        text = f"{tool.path} ended well and wrote nothing ({error.strerror})"
        raise PtxError("SX0745", text, log=log) from error
    except ContainerError as error:
        text = f"{tool.path} wrote no cubin: {error.message}"
        raise PtxError("SX0745", text, log=log) from error
    if made != arch:
        text = f"{tool.path} wrote code for sm_{made}, not for sm_{arch}"
        raise PtxError("SX0745", text, log=log)
    return data


def _refusal(tool: Tool, status: int, output: str, arch: tuple[int, str]) -> PtxError:
    lines = [line for line in output.splitlines() if _MESSAGE.search(line)]
    if not lines:
        said = shown(output) or "it printed nothing"
        text = f"{tool.path} failed with exit status {status}: {said}"
        return PtxError("SX0745", text, log=output)
    first = next((line for line in lines if _ABORTED not in line), lines[0])
    line = shown(first)
    mine = f"ptxas {tool.version}"
    if "Unsupported .version" in first or "for option 'gpu-name'" in first:
        text = f"{mine} is too old for this PTX on sm_{arch[0]}{arch[1]}: {line}"
        return PtxError("SX0744", text, log=output)
    above = ("higher than default SM version", "cannot be compiled for architecture")
    code = "SX0743" if any(part in first for part in above) else "SX0742"
    return PtxError(code, f"{mine}: {line}", log=output)


__all__ = ["Assembled", "architecture", "assemble", "read_output", "unresolved"]
