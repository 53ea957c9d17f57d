"""Writes a program or library that carries its translation, and gives the original back."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sassxlate import __version__
from sassxlate.disasm.containers.host import read_file
from sassxlate.errors import SassxlateError, ShimError, UsageError, Where
from sassxlate.files import replace_file
from sassxlate.lowering.target import target_named
from sassxlate.runtime_shim import application, hip_probe, paths
from sassxlate.runtime_shim.cache.store import Cache
from sassxlate.runtime_shim.cache.tag import cache_tag
from sassxlate.runtime_shim.embed import elf_segment
from sassxlate.runtime_shim.embed.gather import Gathered, Isa, gather
from sassxlate.runtime_shim.service.early import library
from sassxlate.runtime_shim.service.early.warm import Progress

FOLDER = "sassxlate-libs"  # beside the output, with our libraries
_DRIVER = "libcuda.so.1"
_LINKER = "/lib64/ld-linux-x86-64.so.2"
_LIST_S = 30
_ROOM = 1 << 50  # of the cache meanwhile: nothing is to be evicted before it is taken
_FOUND = re.compile(r"^\s*(\S+) => (\S+) \(0x")


@dataclass(frozen=True, slots=True)
class Embedded:
    """What was written: kernels by target, refusals and faults as lines, and remarks."""

    kernels: dict[str, int]
    refused: dict[str, str]
    faults: tuple[str, ...]
    remarks: tuple[str, ...]
    needed: tuple[str, ...]
    runpath: tuple[str, ...]
    size: int


def embed(
    file: Path,
    out: Path,
    *,
    is_library: bool = False,
    libraries: str = "beside",
    targets: Sequence[str],
    isas: Sequence[Isa],
    patterns: Sequence[str] = (),
    capability: str = "",
    width: int | None = None,
    told: Callable[[Progress], None],
) -> Embedded:
    """Write ``file`` to ``out`` with the translation of its kernels.

    ``capability`` is that of the device, like "8.0"; without it SASSXLATE_CC or the file decides.
    ``libraries``: "beside" copies ours to a folder beside ``out``, "installed" names where they are
    here, anything else is the folder in which they will be.

    Raises:
        ShimError: SX0702 to SX0704, SX0794 to SX0796: not a file for this.
        ContainerError: its device code cannot be read.
        UsageError: SX0813, a file cannot be written.
    """
    data = read_file(os.fspath(file))
    image = _image(data, file)
    if not out.parent.is_dir():
        raise UsageError("SX0813", "cannot write: there is no such folder", Where(str(out)))
    if image.is_library != is_library:
        kind = "a shared object: --library embeds that" if image.is_library else "no shared object"
        raise ShimError("SX0794", f"it is {kind}", Where(str(file)))
    if elf_segment.find(image) is not None:
        text = "it carries a translation already; `sassxlate unembed` removes it"
        raise ShimError("SX0795", text, Where(str(file)))
    asked = library.asked_capability(capability)
    gathered = _gather(file, targets, isas, patterns, asked, width, told)
    files = {name: content for one in gathered.values() for name, content in one.files.items()}
    if not any(one.kernels for one in gathered.values()):
        lines = (x for one in gathered.values() for x in (*one.faults, *one.refused.values()))
        why = "; ".join(dict.fromkeys(lines))
        text = f"it has no kernel to carry{f': {why}' if why else ''}"
        raise ShimError("SX0796", text, Where(str(file)))
    for target in targets:
        files[f"{target}/probe/empty.hsaco"] = hip_probe.empty_kernel(target)
    first = next(iter(gathered.values()))
    settings = {
        "version": __version__,
        "targets": " ".join(targets),
        "cc": str(first.capability),
        "replace": ",".join(application.REPLACED),
    }
    needed = _needed(file, image)
    runpath = _runpath(libraries)
    try:
        made = elf_segment.add(image, needed, runpath, files, settings)
    except SassxlateError as error:
        raise error.at(file=str(file)) from None
    elf_segment.read(made)  # what was written can be read
    remarks: list[str] = []
    if extra := elf_segment.overlay(image):
        remarks.append(
            f"{extra} bytes after the end of the ELF file (a signature, or a payload) are kept, "
            "but are no longer the last of the file"
        )
    try:
        replace_file(out, made, stat.S_IMODE(file.stat().st_mode) | 0o200)
        if libraries == "beside":
            _copy_libraries(out.parent / FOLDER)
    except OSError as error:
        text = f"cannot write: {error.strerror or error}"
        raise UsageError("SX0813", text, Where(str(out))) from None
    return Embedded(
        {name: len(one.kernels) for name, one in gathered.items()},
        {k: v for one in gathered.values() for k, v in one.refused.items()},
        tuple(dict.fromkeys(line for one in gathered.values() for line in one.faults)),
        tuple(remarks),
        tuple(needed),
        tuple(runpath),
        len(made),
    )


def unembed(file: Path, out: Path) -> int:
    """Write the file that ``file`` was made of to ``out``, bit for bit; its bytes.

    Raises:
        ShimError: SX0797, it carries nothing or was changed since; SX0791, damaged.
        UsageError: SX0813, the file cannot be written.
    """
    image = _image(read_file(os.fspath(file)), file)
    try:
        data = elf_segment.remove(image)
    except SassxlateError as error:
        raise error.at(file=str(file)) from None
    try:
        replace_file(out, data, stat.S_IMODE(file.stat().st_mode) | 0o200)
    except OSError as error:
        text = f"cannot write: {error.strerror or error}"
        raise UsageError("SX0813", text, Where(str(out))) from None
    return len(data)


def _image(data: bytes, file: Path) -> elf_segment.Image:
    try:
        return elf_segment.read(data)
    except SassxlateError as error:
        raise error.at(file=str(file)) from None


def _gather(
    file: Path,
    targets: Sequence[str],
    isas: Sequence[Isa],
    patterns: Sequence[str],
    asked: int,
    width: int | None,
    told: Callable[[Progress], None],
) -> dict[str, Gathered]:
    root = paths.cache_dir()
    error = paths.unusable(root)
    if error is not None:
        raise error
    return {
        name: gather(
            file, Cache(root, cache_tag(name), _ROOM), target_named(name), isas, patterns,
            asked, width, told,
        )
        for name in targets
    }  # fmt: skip


def _needed(file: Path, image: elf_segment.Image) -> list[str]:
    """Our libraries to load before all others: the detour, the driver, and those that the
    program's own libraries need, which its search path does not serve."""
    ours = paths.library_dir()
    names = [application.PRELOAD, _DRIVER]
    env = application.environment(os.environ, ours, {})
    env.pop("LD_PRELOAD", None)
    try:
        done = subprocess.run(
            [_LINKER, "--list", os.fspath(file.absolute())],
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LIST_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return names
    for line in done.stdout.splitlines():
        found = _FOUND.match(line)
        if found is None or not Path(found[2]).is_relative_to(ours):
            continue
        if found[1] not in image.needed and found[1] not in names:
            names.append(found[1])
    return names


def _runpath(libraries: str) -> list[str]:
    if libraries == "beside":
        base = f"$ORIGIN/{FOLDER}"
    else:
        base = str(paths.library_dir()) if libraries == "installed" else libraries
        if ":" in base or (libraries != "installed" and not base.startswith(("/", "$ORIGIN"))):
            text = (
                f"--libraries {base}: an absolute folder, or one from $ORIGIN on, without a colon"
            )
            raise UsageError("SX0848", text)
    return [base, *(f"{base}/{name}" for name in application.REPLACED)]


def _copy_libraries(folder: Path) -> None:
    """Our libraries, without what only the translation service reads."""
    ours = paths.library_dir()
    for base, _, files in os.walk(ours):
        for name in files:
            if ".so" not in name:
                continue
            source = Path(base, name)
            goal = folder / source.relative_to(ours)
            data = source.read_bytes()
            if goal.is_file() and goal.read_bytes() == data:
                continue
            goal.parent.mkdir(parents=True, exist_ok=True)
            replace_file(goal, data, 0o755)


__all__ = ["Embedded", "embed", "unembed"]
