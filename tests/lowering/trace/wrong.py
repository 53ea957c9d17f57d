"""Kernels for the trace: translations with a defect in them, and SASS that ends badly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.rdna3 import decode, encode
from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.select.translated import Translated
from sassxlate.lowering.trace.points import steps

KERNELS = Path(__file__).resolve().parents[3] / "fixtures" / "kernels"


def translated(name: str, arch: int = 80) -> Translated:
    cubin = parse_cubin((KERNELS / f"sm_{arch}" / f"{name}.cubin").read_bytes())
    return translate_kernel(cubin, name)


def broken(
    done: Translated, offset: int, op: str, change: Callable[[Inst], Inst], path: Path
) -> Path:
    """A code object in which the first ``op`` of a SASS instruction's code is replaced by another
    one."""
    program = done.program.data
    for at in steps(done)[offset].rdna:
        inst, size = decode(program, at)
        if not inst.op.startswith(op):
            continue
        code = encode(change(inst))
        assert len(code) == size, "a defect may not move the rest"
        whole = done.code_object
        base = whole.find(program)
        assert base > 0
        assert code != program[at : at + size]
        path.write_bytes(whole[: base + at] + code + whole[base + at + size :])
        return path
    raise AssertionError(f"no {op} at {offset:#x}")


def patched(name: str, words: Mapping[int, str], path: Path, arch: int = 80) -> Path:
    """The cubin with instructions replaced, by their offset."""
    data = (KERNELS / f"sm_{arch}" / f"{name}.cubin").read_bytes()
    (kernel,) = parse_cubin(data).kernels
    base = data.find(kernel.code)
    assert base > 0
    out = bytearray(data)
    for offset, text in words.items():
        word = assemble(f"{text} ;", arch, offset)
        out[base + offset : base + offset + 16] = word.to_bytes(16, "little")
    path.write_bytes(out)
    return path
