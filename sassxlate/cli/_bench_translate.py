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
from pathlib import Path

from sassxlate.disasm.containers import load
from sassxlate.disasm.containers.model import Cubin
from sassxlate.lowering.emulate.compiler import CompileOptions, Isa, compile_code_object
from sassxlate.lowering.emulate.image import HostImage
from sassxlate.lowering.pipeline import Translated, translate_kernel
from sassxlate.runtime_shim import client

from ..errors import UsageError
from ._figures import Figure, seconds

TRANSLATE_S = 0.25  # SASS to code object, a kernel of 200 instructions
COMPILE_MS = 1.2  # code object to host code, an RDNA3 instruction
WARM_S = 0.3  # saxpy with a warm cache
_RUN_LIMIT_S = 120


@dataclass(frozen=True, slots=True)
class Subject:
    """A kernel of fixtures: the file, and a part of the kernel's name."""

    file: str
    kernel: str
    sized: bool = True  # about 200 instructions: the targets are for such


SUBJECTS = (
    Subject("kernels/sm_80/double_math.cubin", "double_math"),
    Subject("kernels/sm_80/uniform_loop.cubin", "uniform_loop"),
    Subject("programs/reduction", "sum_and_largest"),
    Subject("programs/saxpy", "saxpy", sized=False),
)


def _find(fixtures: Path, subject: Subject) -> tuple[Cubin, str]:
    """The first cubin of the file that has the kernel, and the kernel's whole name."""
    for _, cubin in load(fixtures / subject.file).cubins():
        for kernel in cubin.kernels:
            if subject.kernel in kernel.name:
                return cubin, kernel.name
    raise UsageError("SX0817", f"{subject.file} has no kernel {subject.kernel}")


def _in_child(action: Callable[[], float]) -> float:
    """What ``action`` returns in a forked process: all imported, nothing used yet, as in a worker
    of the service."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.write(writer, struct.pack("<d", action()))
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    data = os.read(reader, 8)
    os.close(reader)
    _, status = os.waitpid(pid, 0)
    if status or len(data) != 8:
        raise UsageError("SX0817", f"a measuring process ended with status {status}")
    (value,) = struct.unpack("<d", data)
    return float(value)


def _stages(rows: Sequence[dict[str, float]]) -> str:
    """Median milliseconds of every stage."""
    return ", ".join(
        f"{name} {statistics.median(row[name] for row in rows) * 1e3:.1f}" for name in rows[0]
    )


def _translate(
    subject: Subject, cubin: Cubin, name: str, first: list[float], repeat: int
) -> tuple[list[Figure], Translated]:
    times: list[float] = []
    stages: list[dict[str, float]] = []
    done = translate_kernel(cubin, name)
    cpu = time.process_time()
    for _ in range(repeat):
        start = time.perf_counter()
        done = translate_kernel(cubin, name)
        times.append(time.perf_counter() - start)
        stages.append(dict(done.report.seconds))
    cpu = (time.process_time() - cpu) / repeat
    target = TRANSLATE_S if subject.sized else None
    report = done.report
    size = f"{report.sass_instructions} SASS, {report.rdna_instructions} RDNA3 instructions"
    label = f"{subject.kernel}: to code object"
    figures = [
        Figure(label + ", first", "s", tuple(first), "less", target, size),
        Figure(label, "s", tuple(times), "less", target, f"CPU {cpu:.3g} s; ms: {_stages(stages)}"),
    ]
    return figures, done


def _compile(subject: Subject, done: Translated, isa: Isa, repeat: int) -> Figure:
    times: list[float] = []
    images: list[HostImage] = []
    cpu = time.process_time()
    for _ in range(repeat):
        start = time.perf_counter()
        images.append(
            compile_code_object(done.code_object, done.kernel.name, CompileOptions(isa=isa))
        )
        times.append((time.perf_counter() - start) * 1e3 / images[-1].instructions)
    cpu = (time.process_time() - cpu) * 1e3 / repeat / images[-1].instructions
    note = f"{images[-1].instructions} instructions, CPU {cpu:.3g} ms each; "
    note += f"ms: {_stages([i.seconds for i in images])}"
    target = COMPILE_MS if subject.sized else None
    return Figure(
        f"{subject.kernel}: to host code", "ms/instruction", tuple(times), "less", target, note
    )


def _runs(program: Path, repeat: int) -> list[Figure]:
    """Wall time of a run with an empty cache, then with a warm one; launches are part of it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        (Path(made) / "run").mkdir(mode=0o700)
        environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("SASSXLATE_")},
            "SASSXLATE_CACHE_DIR": str(Path(made) / "cache"),
            "XDG_RUNTIME_DIR": str(Path(made) / "run"),
            "SASSXLATE_SERVICE_IDLE": "60",
            "PYTHONPATH": client.import_root(),
        }
        command = [sys.executable, "-P", "-m", "sassxlate", "run", "--device", "emulator"]
        command += ["--", str(program)]

        def once() -> None:
            done = subprocess.run(
                command, env=environment, capture_output=True, timeout=_RUN_LIMIT_S, check=False
            )
            if done.returncode or not done.stdout.rstrip().endswith(b"PASS"):
                said = (done.stdout + done.stderr).decode(errors="replace").strip()
                raise UsageError("SX0817", f"{program.name} did not pass: {said[-200:]}")

        try:
            cold = seconds(once)
            once()  # the program is marked as known only by a run that needed nothing
            warm = [seconds(once) for _ in range(repeat)]
        finally:
            for socket in (Path(made) / "run").rglob("service-*.sock"):
                client.call(socket, {"op": "stop"}, timeout=10)
    name = program.name
    return [
        Figure(f"{name}: run, cold", "s", (cold,), note="service started, everything translated"),
        Figure(f"{name}: run, warm", "s", tuple(warm), "less", WARM_S, "launches included"),
    ]


def measure(fixtures: Path, repeat: int, isa: Isa) -> list[Figure]:
    """The figures of every subject, and of the program saxpy."""
    found = [(subject, *_find(fixtures, subject)) for subject in SUBJECTS]

    def first(cubin: Cubin, name: str) -> float:
        return _in_child(lambda: seconds(lambda: translate_kernel(cubin, name)))

    # Before anything is translated in this process, whose children these are.
    firsts = [[first(cubin, name) for _ in range(repeat)] for _, cubin, name in found]
    figures: list[Figure] = []
    for (subject, cubin, name), times in zip(found, firsts, strict=True):
        made, done = _translate(subject, cubin, name, times, repeat)
        figures += [*made, _compile(subject, done, isa, repeat)]
    return figures + _runs(fixtures / "programs" / "saxpy", repeat)
