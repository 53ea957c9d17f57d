"""From SASS to a code object, from there to host code, and a whole program with a warm cache."""

from __future__ import annotations

import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sassxlate.bench.figures import Figure, seconds
from sassxlate.disasm.containers import load
from sassxlate.disasm.containers.values import Cubin
from sassxlate.errors import UsageError
from sassxlate.lowering.emulate.compiler import compile_code_object
from sassxlate.lowering.emulate.image.image import HostImage
from sassxlate.lowering.emulate.options import CompileOptions, Isa
from sassxlate.lowering.pipeline import translate_code
from sassxlate.lowering.select.translated import TranslatedCode
from sassxlate.lowering.target import DEFAULT, Target
from sassxlate.runtime_shim.service import client

TRANSLATE_S = 0.25  # SASS to code object, for a kernel of 200 instructions
COMPILE_MS = 1.2  # code object to host code, per RDNA3 instruction
WARM_S = 0.3  # saxpy with a warm cache
_RUN_LIMIT_S = 120


@dataclass(frozen=True, slots=True)
class Subject:
    """A kernel of fixtures: the file, and a part of the kernel's name."""

    file: str
    kernel: str
    sized: bool = True  # about 200 instructions: the targets hold for such kernels


SUBJECTS = (
    Subject("kernels/sm_80/double_math.cubin", "double_math"),
    Subject("kernels/sm_80/uniform_loop.cubin", "uniform_loop"),
    Subject("programs/reduction", "sum_and_largest"),
    Subject("programs/saxpy", "saxpy", sized=False),
)


def find(fixtures: Path, subject: Subject) -> tuple[Cubin, str]:
    """The first cubin of the file that has the kernel, and the kernel's full name."""
    for _, cubin in load(fixtures / subject.file).cubins():
        for kernel in cubin.kernels:
            if subject.kernel in kernel.name:
                return cubin, kernel.name
    raise UsageError("SX0817", f"{subject.file} has no kernel {subject.kernel}")


class _Watch:
    """Wall and CPU time of calls.  On an idle machine the two are equal; on a busy one the CPU time
    shows the cost of the work, and the wall time also the machine's other load."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def take(self, action: Callable[[], object], unit: float = 1.0) -> None:
        """One call; times are divided by ``unit`` seconds."""
        used = _cpu()
        self.add(seconds(action) / unit, (_cpu() - used) / unit)

    def add(self, wall: float, cpu: float) -> None:
        self.wall.append(wall)
        self.cpu.append(cpu)

    def figures(self, name: str, unit: str, target: float | None, note: str) -> list[Figure]:
        return [
            Figure(name, unit, tuple(self.wall), "less", target, note),
            Figure(f"{name} (CPU)", unit, tuple(self.cpu), "less", target),
        ]


def _cpu() -> float:
    """CPU seconds of this process and of its children that have ended."""
    used = os.times()
    return time.process_time() + used.children_user + used.children_system


def _in_child(action: Callable[[], object], watch: _Watch) -> None:
    """Times ``action`` in a forked process: everything imported, nothing used yet, as in a
    worker of the service."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            mine = _Watch()
            mine.take(action)
            os.write(writer, struct.pack("<dd", mine.wall[0], mine.cpu[0]))
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    data = os.read(reader, 16)
    os.close(reader)
    _, status = os.waitpid(pid, 0)
    if status or len(data) != 16:
        raise UsageError("SX0817", f"a measuring process ended with status {status}")
    wall, cpu = struct.unpack("<dd", data)
    watch.add(wall, cpu)


def _stages(rows: Sequence[dict[str, float]]) -> str:
    """Median milliseconds of every stage."""
    return ", ".join(
        f"{name} {statistics.median(row[name] for row in rows) * 1e3:.1f}" for name in rows[0]
    )


def _translate(
    subject: Subject, cubin: Cubin, name: str, first: _Watch, repeat: int, target: Target
) -> tuple[list[Figure], TranslatedCode]:
    watch = _Watch()
    made = [translate_code(cubin, name, target=target)]
    for _ in range(repeat):
        watch.take(lambda: made.append(translate_code(cubin, name, target=target)))
    limit = TRANSLATE_S if subject.sized else None
    report = made[-1].report
    size = f"{report.sass_instructions} SASS, {report.rdna_instructions} RDNA3 instructions"
    stages = _stages([dict(one.report.seconds) for one in made[1:]])
    label = f"{subject.kernel}: to code object"
    figures = first.figures(label + ", first", "s", limit, size)
    return figures + watch.figures(label, "s", limit, f"ms: {stages}"), made[-1]


def _compile(subject: Subject, done: TranslatedCode, isa: Isa, repeat: int) -> list[Figure]:
    watch = _Watch()
    images: list[HostImage] = []
    options = CompileOptions(isa=isa)

    def once() -> None:
        images.append(compile_code_object(done.code_object, done.kernel.name, options))

    once()  # helpers, which all kernels share, are compiled once in a process
    count = images.pop().instructions
    for _ in range(repeat):
        watch.take(once, count / 1e3)
    note = f"{count} instructions; ms: {_stages([image.seconds for image in images])}"
    target = COMPILE_MS if subject.sized else None
    return watch.figures(f"{subject.kernel}: to host code", "ms/instruction", target, note)


def _runs(program: Path, repeat: int, target: Target, isa: Isa) -> list[Figure]:
    """Wall time of a run with an empty cache, then with a warm one; launches are part of it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        (Path(made) / "run").mkdir(mode=0o700)
        environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("SASSXLATE_")},
            "SASSXLATE_CACHE_DIR": str(Path(made) / "cache"),
            "XDG_RUNTIME_DIR": str(Path(made) / "run"),
            "SASSXLATE_SERVICE_IDLE": "60",
            "SASSXLATE_ISA": isa,
            "PYTHONPATH": client.import_root(),
        }
        command = [sys.executable, "-P", "-m", "sassxlate", "run", "--device", "emulator"]
        command += ["--target", target.name, "--", str(program)]

        def once() -> None:
            done = subprocess.run(
                command, env=environment, capture_output=True, timeout=_RUN_LIMIT_S, check=False
            )
            if done.returncode or not done.stdout.rstrip().endswith(b"PASS"):
                said = (done.stdout + done.stderr).decode(errors="replace").strip()
                raise UsageError("SX0817", f"{program.name} did not pass: {said[-200:]}")

        cold, warm = _Watch(), _Watch()
        try:
            cold.take(once)
            once()  # the program is marked as known only by a run that needed nothing
            for _ in range(repeat):
                warm.take(once)
        finally:
            for socket in (Path(made) / "run").rglob("service-*.sock"):
                client.call(socket, {"op": "stop"}, timeout=10)
    name = program.name
    note = "everything translated by a service that starts; CPU without the service's"
    return [
        *cold.figures(f"{name}: run, cold", "s", None, note),
        *warm.figures(f"{name}: run, warm", "s", WARM_S, "launches included"),
    ]


def measure(fixtures: Path, repeat: int, isa: Isa, target: Target = DEFAULT) -> list[Figure]:
    """The figures of every subject and of the program saxpy, for a target."""
    found = [(subject, *find(fixtures, subject)) for subject in SUBJECTS]

    # Before anything is translated in this process, whose children these are.
    firsts = [_Watch() for _ in found]
    for watch, (_, cubin, name) in zip(firsts, found, strict=True):
        for _ in range(repeat):
            _in_child(partial(translate_code, cubin, name, target=target), watch)
    figures: list[Figure] = []
    for (subject, cubin, name), watch in zip(found, firsts, strict=True):
        made, done = _translate(subject, cubin, name, watch, repeat, target)
        figures += [*made, *_compile(subject, done, isa, repeat)]
    return figures + _runs(fixtures / "programs" / "saxpy", repeat, target, isa)
