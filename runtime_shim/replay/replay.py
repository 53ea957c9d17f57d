"""For `sassxlate bench codegen`: a program's launches, recorded once and run again with any code
object of the same kernels, counting instructions."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sassxlate.cfg.rdna3_flow import Flow
from sassxlate.disasm.amdgpu_machines import RDNA3
from sassxlate.disasm.containers.values import Cubin
from sassxlate.errors import UsageError
from sassxlate.lowering.abi.kernarg import LaunchInfo
from sassxlate.lowering.abi.link import BANK4, address_words
from sassxlate.lowering.codeobject.code_object import read
from sassxlate.lowering.emulate import counts
from sassxlate.lowering.emulate.compiler import compile_code_object
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.emulate.runner import LoadedImage, run_image, setup_of
from sassxlate.lowering.trace import recording
from sassxlate.lowering.trace.device_memory import Memory
from sassxlate.lowering.trace.recording import Recorded
from sassxlate.runtime_shim.service import client

_LIMIT_S = 300


def recorded(program: Path, folder: Path, target: str = RDNA3[0]) -> list[Recorded]:
    """The program's launches on the emulated device, a ``target``, in order; it must pass its own
    check."""
    with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as made:
        environment = {
            **os.environ,
            "SASSXLATE_RECORD": made,
            "SASSXLATE_THREADS": "1",  # so that the order of blocks is the replay's
            "SASSXLATE_CC": "8.0",
            "PYTHONPATH": client.import_root(),
        }
        command = [sys.executable, "-P", "-m", "sassxlate", "run", "--device", "emulator"]
        done = subprocess.run(
            [*command, "--target", target, "--", str(program)],
            env=environment, capture_output=True, timeout=_LIMIT_S, check=False,
        )  # fmt: skip
        if done.returncode or not done.stdout.rstrip().endswith(b"PASS"):
            said = (done.stdout + done.stderr).decode(errors="replace").strip()
            raise UsageError("SX0817", f"{program.name} did not pass: {said[-200:]}")
        return [
            launch
            for path in sorted(Path(made).glob("launches-*"))
            for launch in recording.read(path)
        ]


def variables(cubin: Cubin, info: LaunchInfo, launch: Recorded) -> dict[str, tuple[int, int]]:
    """Address and size of the module's variables at a launch, by name."""

    def pointer(bank: str) -> int:
        at = next((f.offset for f in info.fills if f.kind == bank), None)
        return 0 if at is None else int.from_bytes(launch.kernarg[at : at + 8], "little")

    def word(address: int) -> int:
        for base, data in launch.before.items():
            if base <= address < base + len(data):
                return int.from_bytes(data[address - base : address - base + 8].tobytes(), "little")
        return 0

    found: dict[str, tuple[int, int]] = {}
    bank3, bank4 = pointer("bank3"), pointer("bank4")
    places = {r.symbol: r.offset for r in cubin.relocs if r.section == BANK4 and not r.addend}
    places |= {name: at for (name, addend), at in address_words(cubin).items() if not addend}
    for variable in cubin.globals:
        if variable.section.startswith(".nv.constant3") and bank3:
            found[variable.name] = bank3 + variable.offset, variable.size
        elif variable.name in places and bank4:
            found[variable.name] = word(bank4 + places[variable.name]), variable.size
    return found


@dataclass(slots=True)
class Counted:
    """A kernel's image with its counters."""

    data: bytes
    name: str
    loaded: LoadedImage
    flow: Flow
    numbers: Any
    launches: int = 0
    waves: int = 0


def counted(data: bytes, name: str) -> Counted:
    obj = read(data)
    kernel = obj.kernel(name)
    image = compile_code_object(data, name, CompileOptions(counts=True))
    flow = counts.flow_of(obj.text, kernel.entry)
    return Counted(data, name, LoadedImage(image), flow, counts.counters(flow))


def run(
    code: Counted,
    launch: Recorded,
    memory: Memory,
    kernarg: bytes,
    held: Mapping[str, tuple[int, int]] | None = None,
) -> int:
    """Replays a recorded launch; returns the words of memory that differ from the record.
    ``held``: variables that the code object defines itself, and the addresses of the program's."""
    obj = read(code.data)
    kernel = obj.kernel(code.name)
    memory.reset(launch.before)
    size = max((s.address + s.size for s in obj.image.segments), default=0)
    base = memory.alloc(bytes(size), 1 << 16)
    for segment in obj.image.segments:
        memory.write(base + segment.address, segment.data)
    places = {s.name: base + s.value for s in obj.image.symbols}
    mine = {name: (places[name], *where) for name, where in (held or {}).items() if name in places}
    for here, there, length in mine.values():
        memory.write(here, memory.read(there, length))
    run_image(
        code.loaded, setup_of(kernel.descriptor), launch.grid, launch.block, kernarg, memory,
        dynamic_lds=launch.shared, resident=launch.cooperative, code_base=base + obj.text_address,
        counts=code.numbers,
    )  # fmt: skip
    for here, there, length in mine.values():
        memory.write(there, memory.read(here, length))
    code.launches += 1
    x, y, z = launch.block
    blocks = launch.grid[0] * launch.grid[1] * launch.grid[2]
    code.waves += blocks * -(-x * y * z // 32)
    return memory.differences(launch.after)


def hip_kernarg(data: bytes, name: str, launch: Recorded, parameters: bytes) -> bytes:
    """The kernarg segment that HIP's runtime would build for clang's kernel."""
    row: Any = read(data).kernel(name).metadata
    segment = bytearray(int(row[".kernarg_segment_size"]))
    segment[: len(parameters)] = parameters
    most = max(i for i in range(3) if i == 0 or launch.grid[i] * launch.block[i] > 1)
    values = {"hidden_grid_dims": 1 + most, "hidden_dynamic_lds_size": launch.shared}
    for axis, blocks, threads in zip("xyz", launch.grid, launch.block, strict=True):
        values[f"hidden_block_count_{axis}"] = blocks
        values[f"hidden_group_size_{axis}"] = threads
    for arg in row[".args"]:
        at, size = int(arg[".offset"]), int(arg[".size"])
        if arg[".value_kind"] in values:
            segment[at : at + size] = values[arg[".value_kind"]].to_bytes(size, "little")
    return bytes(segment)
