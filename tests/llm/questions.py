"""Questions of the repository's kernels."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.errors import SassxlateError
from sassxlate.llm.language.older_forms.restate import too_long
from sassxlate.lowering.optimize.regions import cut_regions
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.region.text import RegionText, region_text

KERNELS = Path(__file__).resolve().parents[2] / "fixtures" / "kernels"


@cache
def questions(arch: int = 90, every: int = 8) -> tuple[RegionText, ...]:
    """The questions of every n-th kernel, each distinct one once."""
    found: dict[str, RegionText] = {}
    for path in sorted((KERNELS / f"sm_{arch}").glob("*.cubin"))[::every]:
        cubin = parse_cubin(path.read_bytes())
        for kernel in cubin.kernels:
            selected = translate_kernel(cubin, kernel.name).selected
            for piece in selected.pieces:
                for part in cut_regions(
                    piece.block, selected.regs, piece.live_out, too_long=too_long
                ):
                    try:
                        q = region_text(part.block, selected.regs, part.live_out)
                    except SassxlateError:
                        continue
                    if not part.macro:
                        found.setdefault(q.text, q)
    return tuple(found.values())
