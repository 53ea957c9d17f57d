"""Collects what a file's kernels need at run time: manifests, code objects, refusals, host code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from sassxlate.disasm.containers import demangle
from sassxlate.disasm.inputs import kernel_matches
from sassxlate.errors import SassxlateError
from sassxlate.executors import Place, work_through
from sassxlate.lowering.target import Target
from sassxlate.runtime_shim.cache.keys import host_key, module_key
from sassxlate.runtime_shim.cache.store import Cache
from sassxlate.runtime_shim.service.early import library
from sassxlate.runtime_shim.service.early.warm import Progress, warm
from sassxlate.runtime_shim.service.engine import default_engine
from sassxlate.runtime_shim.service.request import text_of
from sassxlate.runtime_shim.service.scheduler import default_width
from sassxlate.runtime_shim.service.server import JOB_LIMIT_S
from sassxlate.runtime_shim.service.work import Work

Isa = Literal["avx512", "avx2"]
ISAS: tuple[Isa, ...] = ("avx512", "avx2")


@dataclass(slots=True)
class Gathered:
    """The files for one target, by ``TARGET/AREA/NAME``; the kernels, by mangled name; those that
    are refused, with their lines; what went wrong; the capability that the code is for."""

    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    kernels: list[str] = field(default_factory=list[str])
    refused: dict[str, str] = field(default_factory=dict[str, str])
    faults: list[str] = field(default_factory=list[str])
    capability: int = 0


@dataclass(frozen=True, slots=True)
class _Wanted:
    code: bytes
    kernel: str
    isa: Isa
    quick: bool


def gather(
    file: Path,
    cache: Cache,
    target: Target,
    isas: Sequence[Isa],
    patterns: Sequence[str],
    asked: int,
    width: int | None,
    told: Callable[[Progress], None],
) -> Gathered:
    """What the images that ``file`` registers need on a target; it is translated into the cache
    first.  ``patterns``: only kernels that match one of them, if there are any.  ``asked`` is the
    capability that the user asked for, 0 if none.

    Raises:
        ContainerError: the file's device code cannot be read.
    """
    found = Gathered()
    places = library.images(file)
    found.capability = asked or library.device_capability(places)
    if patterns:
        found.faults += _prepare_some(
            file, cache, target, places, found.capability, patterns, isas, bool(asked)
        )
    else:
        done = warm(
            [file.absolute()],
            cache,
            default_engine(target),
            compiles=bool(isas),
            asked=asked,
            width=width,
            job_limit_s=JOB_LIMIT_S,
            told=told,
        )
        if done.interrupted:
            raise KeyboardInterrupt
        found.faults += done.faults
    area = _Area(cache, target.name, found)
    wanted: dict[str, list[_Wanted]] = {}
    for place in places:
        capability = library.capability_for(place, found.capability, bool(asked))
        image = library.part(file, place[0], place[1])
        for stem, name in area.module(module_key(image, capability)):
            if patterns and not kernel_matches(name, demangle(name), patterns):
                continue
            code = area.kernel(stem, name)
            if code is not None:
                key = host_key(code, name, False)
                slow = cache.read("host", f"{key}.slow") is not None
                wanted[key] = [_Wanted(code, name, isa, slow) for isa in isas]
    for name, data in sorted(_host_code(cache, wanted, width, found.faults).items()):
        found.files[f"{target.name}/{name}"] = data
    return found


def _prepare_some(
    file: Path,
    cache: Cache,
    target: Target,
    places: Sequence[library.Place],
    device: int,
    patterns: Sequence[str],
    isas: Sequence[Isa],
    asked: bool,
) -> list[str]:
    """Translates and compiles the kernels that match, one after the other; what went wrong."""
    work = Work(cache, default_engine(target), lambda: cache)
    faults = list[str]()
    for place in places:
        capability = library.capability_for(place, device, asked)
        part = {"op": "part", "image": text_of(file.absolute()), "cc": capability}
        answer = work.run({**part, "offset": place[0], "size": place[1]})
        if not answer["ok"]:
            faults.append(str(answer["line"]))
            continue
        for name in answer["kernels"]:
            if kernel_matches(name, demangle(name), patterns):
                request = {"op": "ahead", "module": answer["key"], "kernel": name}
                made = work.run({**request, "compile": True} if isas else request)
                if not made["ok"] and str(made["code"]).startswith("SX09"):
                    faults.append(str(made["line"]))
    return faults


@dataclass(slots=True)
class _Area:
    """Takes files of a cache under a target's name."""

    cache: Cache
    target: str
    found: Gathered

    def take(self, area: str, name: str) -> bytes | None:
        data = self.cache.read(area, name)
        if data is not None:
            self.found.files[f"{self.target}/{area}/{name}"] = data
        return data

    def module(self, key: str) -> Iterator[tuple[str, str]]:
        """Takes a manifest and its sections; the stems and names of its kernels."""
        text = self.take("module", f"{key}.txt")
        if text is None:
            return  # the preparation has said why
        for line in text.decode("utf-8", "surrogateescape").splitlines():
            kind, _, rest = line.partition(" ")
            if kind == "made":
                yield from self.module(rest.split(" ")[0])
            elif kind == "section" and (name := rest.split(" ", 3)[2]) != "-":
                self.take("module", name)
            elif kind == "kernel":
                yield f"{key}-{rest.split(' ')[0]}", rest.split(" ", 7)[7]
            elif kind == "nocode":
                self.found.refused["*"] = rest.partition(" ")[2]

    def kernel(self, stem: str, name: str) -> bytes | None:
        """Takes a kernel's translation, or its refusal; its code object."""
        self.found.kernels.append(name)
        launch, code = self.take("kernel", f"{stem}.launch"), self.take("kernel", f"{stem}.hsaco")
        if launch is not None and code is not None:
            return code
        refused = self.take("kernel", f"{stem}.refused")
        if refused is not None:
            text = refused.decode("utf-8", "surrogateescape")
            self.found.refused[name] = text.partition("\nline ")[2].strip()
        else:
            self.found.faults.append(f"{name}: it was not translated")
        return None


def _host_code(
    cache: Cache, wanted: dict[str, list[_Wanted]], width: int | None, faults: list[str]
) -> dict[str, bytes]:
    """Host code by ``host-ISA/KEY.sxh``; what the cache lacks is compiled, in several processes."""
    from sassxlate.lowering.emulate.options import host_isa

    found: dict[str, bytes] = {}
    lacking: list[tuple[str, _Wanted]] = []
    for key, variants in wanted.items():
        for one in variants:
            own = one.isa == host_isa() and not one.quick
            data = cache.read("host", f"{key}.sxh" if own else f"{key}-{one.isa}.sxh")
            if data is None:
                lacking.append((key, one))
            else:
                found[f"host-{one.isa}/{key}.sxh"] = data
    if not lacking:
        return found
    # Never in this process: what ends it must not end the command.
    place = Place(max(2, min(width or default_width(), len(lacking))))
    bad: list[str] = []
    for done in work_through(place, _compile, lacking):
        key, one = done.job
        made = done.result or f"{one.kernel}: the process that compiled it died"
        if isinstance(made, str):
            bad.append(f"{made} ({one.isa})")
            continue
        found[f"host-{one.isa}/{key}.sxh"] = made
        if not (one.isa == host_isa() and not one.quick):
            cache.write("host", f"{key}-{one.isa}.sxh", made)
    faults += sorted(bad)
    return found


def _compile(job: tuple[str, _Wanted]) -> bytes | str:
    from sassxlate.lowering.emulate.compiler import compile_code_object
    from sassxlate.lowering.emulate.options import CompileOptions

    wanted = job[1]
    options = CompileOptions(isa=wanted.isa, quick=wanted.quick)
    try:
        return compile_code_object(wanted.code, wanted.kernel, options).data
    except SassxlateError as error:
        return str(error.at(kernel=wanted.kernel))


__all__ = ["ISAS", "Gathered", "Isa", "gather"]
