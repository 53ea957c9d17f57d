"""Questions of the repository's kernels."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.errors import SassxlateError
from sassxlate.llm.prompt import Prompt, prompt
from sassxlate.llm.stretch import stretches
from sassxlate.lowering.pipeline import translate_kernel

KERNELS = Path(__file__).resolve().parents[2] / "fixtures" / "kernels"


@cache
def questions(arch: int = 90, every: int = 8) -> tuple[Prompt, ...]:
    """Of every so many-th kernel, each distinct one once."""
    found: dict[str, Prompt] = {}
    for path in sorted((KERNELS / f"sm_{arch}").glob("*.cubin"))[::every]:
        cubin = parse_cubin(path.read_bytes())
        for kernel in cubin.kernels:
            selected = translate_kernel(cubin, kernel.name).selected
            for piece in selected.pieces:
                for part in stretches(piece.block, selected.regs, piece.live_out):
                    try:
                        q = prompt(part.block, selected.regs, part.live_out)
                    except SassxlateError:
                        continue
                    if not part.macro:
                        found.setdefault(q.text, q)
    return tuple(found.values())
