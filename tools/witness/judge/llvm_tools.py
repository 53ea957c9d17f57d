"""LLVM's llc and llvm-mc with the AMDGPU target, of the pinned version: python -m tools.rocm."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from sassxlate.disasm.amdgpu_machines import RDNA3
from tools.rocm import folder
from tools.rocm.packages import LLVM_TOOLS

CPU = RDNA3[0]
# Registers of 16 bits are halves of 32 in our code, as in LLVM's without real-true16.
FEATURES = "-real-true16,+cumode,+wavefrontsize32"
_PROGRAMS = "usr/lib/llvm-22/bin"
_LIBRARY = "usr/lib/x86_64-linux-gnu/libLLVM.so.22.1"


def why_not() -> str:
    """Why the tools cannot be used here; empty if they can."""
    if folder.present(LLVM_TOOLS):
        return ""
    place = folder.root(LLVM_TOOLS)
    return f"LLVM's tools are not in {place}: python -m tools.rocm fetch {LLVM_TOOLS}"


def library() -> Path:
    """The library that holds all of LLVM."""
    return folder.root(LLVM_TOOLS) / _LIBRARY


def run(tool: str, words: Sequence[str], given: str) -> subprocess.CompletedProcess[str]:
    """Runs a tool of LLVM for our processor with ``given`` on its standard input.

    Raises:
        ShimError: SX0864, the tools have not been fetched.
    """
    program = str(folder.root(LLVM_TOOLS) / _PROGRAMS / tool)
    command = [*_loader(), program, "-mtriple=amdgcn-amd-amdhsa", f"-mcpu={CPU}", *words]
    if tool == "llvm-mc":
        command[command.index("-mtriple=amdgcn-amd-amdhsa")] = "-triple=amdgcn-amd-amdhsa"
    return subprocess.run(command, input=given, capture_output=True, text=True, check=False)


def complaints(text: str) -> str:
    """The machine verifier's complaints alone, or all that llc says."""
    found = re.findall(r"\*\*\* (Bad machine code: .*?) \*\*\*", text)
    where = re.findall(r"^- (function|basic block|instruction|operand \d+): +(.*)$", text, re.M)
    said = [f"{what}: {one}" for what, one in where]
    return "; ".join([*found, *said])[:2000] if found else text.strip()[:2000]


@cache
def _loader() -> tuple[str, ...]:
    return tuple(folder.loader(LLVM_TOOLS))
