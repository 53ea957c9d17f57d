"""The pass over the bits of NaN results takes memory by a kernel's size, not by its square."""

from __future__ import annotations

import tracemalloc

from sassxlate.cfg import liveness
from sassxlate.lowering.kernel_graph import kernel_cfg
from sassxlate.lowering.nans.bits import nan_bits
from tests.disasm.sass.interpreter.launches import assembled, with_code

_HEAD = "MOV R2, 0x1000 ;\nMOV R3, 0x0 ;\nLDG.E R4, [R2.64] ;\nLDG.E R5, [R2.64+0x4] ;\n"
_KEPT = range(11, 31)


def _peak(branches: int) -> int:
    """The pass's greatest memory in bytes, for a kernel of so many branches: each may compute
    another value for R10, and one of the registers that are read at the end may become R10."""
    lines: list[str] = []
    for k in range(branches):
        to = f"R{_KEPT[k % len(_KEPT)]}"
        lines += [f"@P0 BRA `(.L{k}) ;", "FADD R10, R4, R5 ;", f".L{k}:"]
        lines.append(f"SEL {to}, R10, {to}, P1 ;")
    lines += [f"IADD3 R4, R4, R{n}, RZ ;" for n in _KEPT]
    code = assembled(_HEAD + "\n".join([*lines, "STG.E [R2.64], R4 ;", "EXIT ;"]), 80)
    (kernel,) = with_code(code, 80).kernels
    cfg = kernel_cfg(kernel)
    live = liveness(cfg)
    tracemalloc.start()
    try:
        nan_bits(cfg, live)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_four_times_the_branches_take_about_four_times_the_memory() -> None:
    """Almost twelve times where each block had sets of all makers so far."""
    _peak(20)  # what is made once
    small, large = _peak(100), _peak(400)
    assert large < 6 * small, (small, large)
