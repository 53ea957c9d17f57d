"""Groups to cubins, by nvcc on PATH or in NVIDIA's wheels."""

from __future__ import annotations

import subprocess
import zlib
from collections.abc import Sequence
from pathlib import Path

from .kernel import Group
from .plan import FLAGS, FLUSHES

_LIMIT_S = 600


class CompileError(Exception):
    """nvcc failed; its first lines."""


def _run(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_LIMIT_S, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CompileError(str(error)) from None
    if done.returncode:
        raise CompileError((done.stdout + done.stderr).strip()[:600])


_NEWER_NVVM = 100  # from this architecture on nvcc 13 has another NVVM than the truth's


def target(arch: int, flags: str) -> tuple[str, ...]:
    """nvcc's options for an architecture.

    Where denormals are flushed the truth's NVVM makes the PTX: what is flushed is the compiler's choice.  LLVM
    7's (up to sm_90) folds fabsf(1e-38f) and ceilf(1e-38f) without flushing; LLVM 20's flushes, and
    makes a copysign with a positive number abs.ftz, which flushes too.
    """
    if flags in FLUSHES and arch >= _NEWER_NVVM:
        return (f"-gencode=arch=compute_90,code=sm_{arch}",)
    return (f"-arch=sm_{arch}",)


def compile_group(nvcc: Sequence[str], group: Group, arch: int, flags: str, folder: Path) -> Path:
    """The group's cubin, made unless it is there.  Raises CompileError."""
    text = group.source(arch)
    stem = f"{group.name}.sm_{arch}.{flags}.{zlib.crc32(text.encode()):08x}"
    out = folder / f"{stem}.cubin"
    if out.is_file():
        return out
    source, made = folder / f"{stem}.cu", folder / f"{stem}.tmp"
    source.write_text(text)
    head = [*nvcc, *target(arch, flags), "-w"]
    if flags == "rdc":
        linked = folder / f"{stem}.o"
        _run([*head, *FLAGS[flags], "-dc", str(source), "-o", str(linked)])
        _run([*head, "-dlink", "-cubin", str(linked), "-o", str(made)])
        linked.unlink()
    else:
        _run([*head, *FLAGS[flags], "-cubin", str(source), "-o", str(made)])
    made.replace(out)
    source.unlink()
    return out
