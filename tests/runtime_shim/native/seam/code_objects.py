"""Checks of what a GPU requires of a code object and a launch: our own reader, LLVM's assembler and
readelf."""

from __future__ import annotations

import io
import re
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from elftools.elf.elffile import ELFFile

from sassxlate import toolchain
from sassxlate.disasm.rdna3 import decode_program, format_inst
from sassxlate.lowering.codeobject.code_object import CodeObject, KernelObject, read

# RDNA3 in CU mode: two SIMDs per workgroup, 1,536 VGPRs per lane each, given out by 24.
SIMDS, REGISTERS, GRANULE, LANES = 2, 1536, 24, 32
LDS = 65536
# Registers that the hardware presents: AMD's loader refuses descriptors that ask for less.
USER_AND_SYSTEM_SGPRS = 16


def check_code(data: bytes) -> CodeObject:
    """Asserts what AMD's loader looks at; every word of every kernel is decoded."""
    code = read(data)
    assert code.version == 5
    assert code.metadata["amdhsa.target"] == "amdgcn-amd-amdhsa--gfx1100"
    assert code.metadata["amdhsa.version"] == [1, 2]
    assert len(code.kernels) == 1
    (kernel,) = code.kernels
    row, descriptor = kernel.metadata, kernel.descriptor
    assert row[".kernarg_segment_size"] == descriptor.kernarg_size
    assert row[".group_segment_fixed_size"] == descriptor.group_segment_size
    assert row[".private_segment_fixed_size"] == descriptor.private_segment_size
    assert bool(row[".private_segment_fixed_size"]) == descriptor.enable_private_segment
    assert row[".wavefront_size"] == 32
    assert descriptor.wave32
    assert descriptor.enable_kernarg_ptr
    system = (
        descriptor.enable_workgroup_id_x
        + descriptor.enable_workgroup_id_y
        + descriptor.enable_workgroup_id_z
    )
    assert descriptor.user_sgpr_count + system >= USER_AND_SYSTEM_SGPRS
    arguments: Any = row[".args"]
    size = row[".kernarg_segment_size"]
    assert arguments == [{".offset": 0, ".size": size, ".value_kind": "by_value"}]
    used = highest_vgpr(code, kernel)
    assert used < descriptor.vgprs, f"v{used} of {descriptor.vgprs}"
    return code


def machine_code(code: CodeObject, kernel: KernelObject) -> bytes:
    """The kernel's bytes."""
    return code.text[kernel.entry : kernel.entry + kernel.size]


def highest_vgpr(code: CodeObject, kernel: KernelObject) -> int:
    """The highest VGPR that any instruction names."""
    texts = (format_inst(inst) for _, inst in decode_program(machine_code(code, kernel)))
    found = [0]
    for text in texts:
        found += [int(n) for n in re.findall(r"\bv(\d+)\b", text)]
        found += [int(n) for n in re.findall(r"\bv\[\d+:(\d+)\]", text)]
    return max(found)


def check_launch(launch: dict[str, Any], code: CodeObject) -> None:
    """Asserts that a card has the room for a launch, and that the arguments are all there."""
    kernel = code.kernel(launch["kernel"])
    row, descriptor = kernel.metadata, kernel.descriptor
    x, y, z = launch["block"]
    threads = x * y * z
    limit: Any = row[".max_flat_workgroup_size"]
    assert threads <= limit
    static: Any = row[".group_segment_fixed_size"]
    assert static + launch["shared"] <= LDS
    waves = -(-threads // LANES)
    registers = -(-descriptor.vgprs // GRANULE) * GRANULE
    assert -(-waves // SIMDS) * registers <= REGISTERS, f"{threads} threads of {registers} VGPRs"
    if launch["call"] == "hipModuleLaunchKernel":
        assert len(bytes.fromhex(launch["kernarg"])) == descriptor.kernarg_size


def assembled_again(code: CodeObject, kernel: KernelObject) -> tuple[bytes, bytes] | None:
    """(the kernel's bytes, what LLVM's assembler makes of their text); None without a clang."""
    tool = toolchain.clang()
    if tool is None:
        return None
    data = machine_code(code, kernel)
    lines = [format_inst(inst) for _, inst in decode_program(data)]
    with TemporaryDirectory() as folder:
        source, output = Path(folder, "a.s"), Path(folder, "a.o")
        source.write_text("\n".join(lines) + "\n")
        target = ("-target", "amdgcn-amdhsa-none", "-mcpu=gfx1100", "-c")
        command = [*tool.command, *target, str(source), "-o", str(output)]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stderr
        section = ELFFile(io.BytesIO(output.read_bytes())).get_section_by_name(".text")
        assert section is not None
        return data, bytes(section.data())
