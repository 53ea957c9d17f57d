"""For `sassxlate trace`: a hand-made launch or one of a program, prepared for both sides and
run."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.containers import Cubin, parse_cubin
from sassxlate.disasm.sass.traits import traits
from sassxlate.errors import EmulatorError, UsageError, Where
from sassxlate.lowering.codeobject.code_object import read
from sassxlate.lowering.emulate import counts
from sassxlate.lowering.emulate.compiler import compile_code_object
from sassxlate.lowering.emulate.options import CompileOptions, Place, TracePoint
from sassxlate.lowering.emulate.runner import LoadedImage, run_image, setup_of
from sassxlate.lowering.emulate.trace_buffer import Buffer
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.select.translated import Translated
from sassxlate.lowering.target import DEFAULT, Target
from sassxlate.lowering.trace.device_memory import Memory
from sassxlate.lowering.trace.memory_history import MemoryChange, Word, changes_of_sass, culprit
from sassxlate.lowering.trace.observations import Choice, Stopped, Streams
from sassxlate.lowering.trace.recording import Recorded
from sassxlate.lowering.trace.subject import Subject
from sassxlate.runtime_shim.ptx.machine_code import machine_code

if TYPE_CHECKING:
    from sassxlate.disasm.sass.interpreter import Order

Shape = tuple[int, int, int]
THREADS = 1024  # most threads of a block
Bytes = NDArray[np.uint8]
_NOWHERE = 0x0000_7000_0000_0000  # base address if a launch has no memory
_BUDGET = 24  # RDNA3 instructions per SASS instruction before giving up on a launch
_ROOM = 1 << 30  # bytes of records


def by_hand(
    file: str,
    name: str,
    arch: str | None,
    shapes: tuple[Shape, Shape],
    arguments: tuple[str, ...],
    shared: int,
    seed: int,
    code: str | None = None,
    target: Target = DEFAULT,
) -> Subject:
    """A launch as `sassxlate interpret` takes it.  SassxlateError if it is refused."""
    from sassxlate.lowering.trace.arguments import find_kernel, lay_out
    from sassxlate.lowering.trace.interpreter_launch import module_images

    x, y, z = shapes[1]
    if x * y * z > THREADS:
        message = f"a block of {x * y * z} threads; CUDA has at most {THREADS:,}"
        raise UsageError("SX0826", message)
    image, mangled = find_kernel(file, name, arch, machine_code)
    cubin = parse_cubin(image)
    kernel = next(k for k in cubin.kernels if k.name == mangled)
    given = lay_out(kernel, arguments, seed)
    translated = _translated(file, cubin, mangled, target)
    end = given.end

    def allocate(size: int) -> int:
        nonlocal end
        place, end = end, end + size + 511 & ~511
        return place

    images, banks = module_images(cubin, kernel, allocate)
    pieces: dict[int, Bytes] = dict(given.buffers)
    pieces |= {place: np.frombuffer(data, np.uint8) for place, data in images.items()}
    grid, block = shapes
    table = {f"bank{number}": place for number, place in banks.items()}
    kernarg = translated.launch.kernarg(given.params, block, grid, table, shared)
    recorded = Recorded(
        0, mangled, "", grid, block, shared, False, kernarg, pieces, dict(pieces), 0
    )
    return Subject(cubin, kernel, translated, _other(code, translated), recorded)


def of_program(
    program: str,
    args: tuple[str, ...],
    name: str,
    number: int,
    arch: str | None = None,
    code: str | None = None,
    target: Target = DEFAULT,
) -> Subject:
    """A launch of a program: the ``number``-th of the named kernel."""
    from sassxlate.disasm.inputs import kernel_matches
    from sassxlate.lowering.trace import recording
    from sassxlate.runtime_shim import paths
    from sassxlate.runtime_shim.replay.against_interpreter import recorded_in, used_kernel
    from sassxlate.runtime_shim.replay.block_counts import capability

    with tempfile.TemporaryDirectory(prefix="sassxlate-trace-") as folder:
        cache = paths.cache_dir() if paths.usable(paths.cache_dir()) else Path(folder) / "cache"
        recorded_in(program, args, Path(folder), cache, capability(arch), target.name)
        left = number
        names: set[str] = set()
        for path in sorted(Path(folder).glob("launches-*")):
            for launch in recording.read(path):
                used = used_kernel(cache, launch)
                shown = used[1].demangled if used else launch.kernel
                names.add(launch.kernel)
                if not kernel_matches(launch.kernel, shown, (name,)):
                    continue
                if left:
                    left -= 1
                    continue
                if used is None:
                    text = "the launched kernel is not in the cache"
                    raise UsageError("SX0835", text, Where(program, launch.kernel))
                translated = _translated(program, used[0], launch.kernel, target)
                return Subject(*used, translated, _other(code, translated), launch)
    told = ", ".join(sorted(names))[:400] or "none"
    many = f"launches {number - left} times a kernel {name}" if number > left else "no launch of"
    text = f"{many}; kernels that it launches: {told}"
    if number == left:
        text = f"it launches no kernel {name}; it launches: {told}"
    raise UsageError("SX0835", text, Where(program))


def _translated(file: str, cubin: Cubin, name: str, target: Target) -> Translated:
    from sassxlate.errors import SassxlateError

    try:
        return translate_kernel(cubin, name, target=target)
    except SassxlateError as error:
        raise error.at(file=file, kernel=name) from None


def _other(path: str | None, translated: Translated) -> bytes:
    """A code object in place of the translation: of the same size and with the same source map."""
    if path is None:
        return translated.code_object
    from sassxlate.lowering.codeobject import source_map

    name = translated.kernel.name
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UsageError("SX0835", error.strerror or str(error), Where(path)) from None
    mine = source_map.exact(source_map.find(translated.code_object), name)
    if source_map.exact(source_map.find(data), name) != mine or mine is None:
        text = "this code object is not a translation of the kernel by this version"
        raise UsageError("SX0835", text, Where(path, name))
    obj, ours = read(data), read(translated.code_object)
    if len(obj.text) != len(ours.text) or obj.kernel(name).entry != ours.kernel(name).entry:
        raise UsageError("SX0835", "this code object has other code", Where(path, name))
    return data


@dataclass(slots=True)
class Emulated:
    """The result of a launch on the emulated device."""

    streams: Streams
    stopped: Stopped | None
    memory: Mapping[int, Bytes]


def emulate(
    subject: Subject, choice: Choice, *, seed: int = 0, give_up: int, room: int = _ROOM
) -> Emulated:
    """Runs the translation in strict mode and records the selected points."""
    buffer, stopped, memory = _run(
        subject, choice.points(), choice.warps, seed, give_up, min(room, _ROOM)
    )
    return Emulated(Streams(buffer, choice), stopped, memory)


def recorded_at(
    subject: Subject, point: TracePoint, warp: int, passing: int, seed: int, give_up: int
) -> Mapping[Any, Any]:
    """The values of a point when a warp passes it for the ``passing``-th time, from 0."""
    buffer, _, _ = _run(subject, (point,), frozenset((warp,)), seed, give_up, _ROOM)
    for n, one in enumerate(buffer.records()):
        if n == passing:
            out: dict[Any, Any] = {}
            at = 0
            for place in point.wide:
                out[place] = one.values[at : at + 32]
                at += 32
            for k, place in enumerate(point.scalar):
                out[place] = np.full(32, one.values[at + k], np.uint32)
            return out
    return {}


_STORES = ("store", "atomic", "reduction", "bulk")


def watched(
    subject: Subject, choice: Choice, word: Word, order: Order, seed: int, give_up: int
) -> tuple[MemoryChange, bool] | Literal["same"] | None:
    """The step that left a different value in a word of memory than on the other side, and whether
    the change is RDNA3's; "same" if both sides changed it alike, None if nothing is known."""
    value, warps = 0, None
    if word.block < 0:
        place = Place("m", word.address)
        for base, data in subject.recorded.before.items():
            at = word.address - base
            if 0 <= at <= len(data) - 4:
                value = int.from_bytes(data[at : at + 4].tobytes(), "little")
                break
        else:
            return None
    else:
        first = word.block * subject.waves
        warps = frozenset(range(first, first + subject.waves))
        room = subject.kernel.shared_size + subject.recorded.shared
        if word.address + 4 > room:
            return None
        place = Place("l", word.address)
    points: list[TracePoint] = []
    owner: dict[int, int] = {}
    for offset, step in choice.steps.items():
        if step.after is not None and traits(step.ins).reaches(_STORES):
            owner[len(points)] = offset
            points.append(replace(step.after, number=len(points), places=(place,)))
    buffer, _, _ = _run(subject, points, warps, seed, give_up, _ROOM)
    mine: list[MemoryChange] = []
    for one in buffer.records():
        if int(one.values[0]) != value:
            value = int(one.values[0])
            mine.append(MemoryChange(one.wave, owner[one.point], value))
    theirs = changes_of_sass(subject.launch(), word, frozenset(owner.values()), order, give_up)
    return culprit(theirs, mine) or ("same" if mine else None)


def count(subject: Subject, *, seed: int = 0, give_up: int) -> tuple[counts.Runs, Stopped | None]:
    """Counts how often waves executed the kernel's blocks in the whole launch."""
    name = subject.kernel.name
    obj = read(subject.code)
    flow = counts.flow_of(obj.text, obj.kernel(name).entry)
    numbers = counts.counters(flow)
    _, stopped, _ = _run(subject, (), None, seed, give_up, 1, numbers)
    runs = counts.of_code_object(
        subject.code,
        name,
        numbers,
        waves=subject.waves * subject.blocks,
        target=f"sm_{subject.cubin.arch}",
    )
    return runs, stopped


def _run(
    subject: Subject,
    points: Sequence[TracePoint],
    warps: frozenset[int] | None,
    seed: int,
    give_up: int,
    room: int,
    numbers: Any = None,
) -> tuple[Buffer, Stopped | None, Mapping[int, Bytes]]:
    """Runs the launch; memory afterwards is in its pieces."""
    recorded, name = subject.recorded, subject.kernel.name
    options = CompileOptions(
        strict=True, poison=bool(seed), trace=tuple(points), counts=numbers is not None
    )
    loaded = LoadedImage(compile_code_object(subject.code, name, options))
    pieces = recorded.before or {_NOWHERE: np.zeros(16, np.uint8)}
    memory = Memory([replace(recorded, before=pieces, after=pieces)])
    buffer = Buffer(room, _BUDGET * give_up)
    stopped: Stopped | None = None
    try:
        memory.reset(recorded.before)
        try:
            stuck = run_image(
                loaded, setup_of(read(subject.code).kernel(name).descriptor), recorded.grid,
                recorded.block, recorded.kernarg, memory, dynamic_lds=recorded.shared,
                resident=recorded.cooperative, strict_seed=seed, counts=numbers, trace=buffer,
                traced=None if warps is None else sorted(warps),
                ranges=[(base, len(data)) for base, data in recorded.before.items()],
            )  # fmt: skip
            if stuck:
                text = f"{stuck} waves wait at a barrier for others that never arrive"
                stopped = Stopped("barrier", text, -1, 0)
        except EmulatorError as error:
            if error.code != "SX0630":
                raise
            stopped = Stopped.of(error, subject.waves)
        after = {
            base: np.frombuffer(memory.read(base, len(data)), np.uint8)
            for base, data in recorded.before.items()
        }
    finally:
        memory.close()
    return buffer, stopped, after
