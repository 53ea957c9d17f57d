"""A block that is followed again passes on what its code does not name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sassxlate import compiled
from sassxlate.cfg import Block, Cfg, liveness
from sassxlate.cfg.register_sets import ALL
from sassxlate.disasm.containers import parse_cubin
from sassxlate.lowering.kernel_graph import kernel_cfg
from sassxlate.lowering.nans import bits
from sassxlate.lowering.nans.bits import NanBits, nan_bits
from sassxlate.lowering.nans.steps import UNKNOWN, State
from tests.disasm.sass.interpreter import generated
from tests.disasm.sass.interpreter.launches import assembled, with_code
from tests.lowering.nans import generated_nans

KERNELS = Path(__file__).parents[3] / "fixtures" / "kernels"
PASS: Any = getattr(bits, "_Pass")  # noqa: B009
pytestmark = pytest.mark.skipif(
    compiled.state() == "used", reason="a method of a compiled class cannot be replaced"
)


def _followed(monkeypatch: pytest.MonkeyPatch, cfg: Cfg) -> int:
    """How many blocks the pass follows before it has a fixed point."""
    count = 0
    through = PASS._through

    def counted(self: Any, block: Block, state: State, weight: int) -> State:
        nonlocal count
        count += not weight
        made: State = through(self, block, state, weight)
        return made

    with monkeypatch.context() as changed:
        changed.setattr(PASS, "_through", counted)
        nan_bits(cfg, liveness(cfg))
    return count


def _whole(self: Any, block: Block, state: State, fresh: list[int]) -> State:
    """Everything after a block, found anew."""
    out: State = self._through(block, state, 0)
    return {register: out.get(register, UNKNOWN) for register in range(len(ALL))}


def _graphs() -> list[Cfg]:
    """Kernels with calls and loops, and random ones."""
    found: list[Cfg] = []
    for arch in (80, 90):
        for name in ("double_math", "uniform_loop", "calls", "mutual_recursion", "jump_table"):
            path = KERNELS / f"sm_{arch}" / f"{name}.cubin"
            if path.exists():
                found += [kernel_cfg(kernel) for kernel in parse_cubin(path.read_bytes()).kernels]
        for seed in range(8):
            code = assembled(generated.kernel(seed, arch, generated_nans.Writer), arch)
            (kernel,) = with_code(code, arch, generated.SHARED).kernels
            found.append(kernel_cfg(kernel))
    return found


def test_the_result_is_that_of_following_all(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = _graphs()

    def all_bits() -> list[NanBits]:
        return [nan_bits(cfg, liveness(cfg), tier=tier) for cfg in graphs for tier in (False, True)]

    quick = all_bits()
    assert any(made.before or made.after for made in quick)
    with monkeypatch.context() as changed:
        changed.setattr(PASS, "_again", _whole)
        assert all_bits() == quick


def _calls(count: int) -> Cfg:
    """A function that is called so often, where other floats are kept each time, and integers are
    computed under a branch before the next call."""
    lines = ["MOV R2, 0x1000 ;", "MOV R3, 0x0 ;", "LDG.E R4, [R2.64] ;", "MOV R8, R4 ;"]
    for k in range(count):
        kept, other = f"R{10 + k % 20}", f"R{10 + (k + 7) % 20}"
        lines += [f"FADD {kept}, {other}, R8 ;", f"MOV R6, {16 * (len(lines) - 3 * k + 4):#x} ;"]
        lines += ["MOV R7, 0x0 ;", "CALL.REL.NOINC `(.F) ;", f"FADD R8, R8, {kept} ;"]
        for n in range(3):
            name = f".L{3 * k + n}"
            lines += [f"@P{n} BRA `({name}) ;", "IADD3 R9, R9, 0x1, RZ ;", f"{name}:"]
    lines += [f"STG.E [R2.64+{4 * n:#x}], R{n} ;" for n in range(8, 30)]
    lines += ["EXIT ;", ".F:", "FADD R8, R8, R4 ;", "RET.REL.NODEC R6 0x0 ;"]
    (kernel,) = with_code(assembled("\n".join(lines), 80), 80).kernels
    return kernel_cfg(kernel)


def test_what_comes_back_from_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a call does not hand to the function is not brought to the places after other calls, and
    of these only the few are followed again that name what is new."""
    cfg = _calls(80)
    assert len(cfg.blocks) == 562
    assert _followed(monkeypatch, cfg) < 1.1 * len(cfg.blocks)  # 4 where all goes through it
