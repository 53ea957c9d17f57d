"""How many instructions a launch executed: the images that count say how often each block began,
and a block's instructions are known.

An instruction counts once a wave, whatever lanes are active: that is what a scheduler issues.
"""

from __future__ import annotations

import ctypes
import functools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from sassxlate.disasm.rdna3.ir import Inst

from .flow import Flow, discover

Class: TypeAlias = Literal["valu", "salu", "vmem", "smem", "lds", "branch", "wait", "hint"]
CLASSES: tuple[Class, ...] = ("valu", "salu", "vmem", "smem", "lds", "branch", "wait", "hint")

_JUMPS = ("s_branch", "s_cbranch_", "s_setpc_b64", "s_swappc_b64", "s_call_b64", "s_endpgm")
_WAITS = ("s_waitcnt", "s_barrier", "s_sleep", "s_nop", "s_trap", "s_sendmsg", "s_wait_event",
          "buffer_gl", "s_dcache_inv", "s_gl1_inv", "s_icache_inv")  # fmt: skip
# They are issued for the scheduler's or the cache's sake, and change nothing.
_HINTS = ("s_delay_alu", "s_clause", "s_setprio", "s_set_inst_prefetch_distance", "s_code_end")


def class_of(op: str) -> Class:
    """The class of an instruction by its mnemonic; a dual instruction is one of VALU."""
    for name, stems in (("hint", _HINTS), ("branch", _JUMPS), ("wait", _WAITS)):
        if op.startswith(stems):
            return name  # type: ignore[return-value]
    if op.startswith("v_"):
        return "valu"
    if op.startswith(("global_", "flat_", "scratch_", "buffer_", "image_")):
        return "vmem"
    if op.startswith("ds_"):
        return "lds"
    return "smem" if op.startswith(("s_load", "s_buffer_load")) else "salu"


@dataclass(frozen=True, slots=True)
class Executed:
    """Instructions by class: in the code, and as waves executed them."""

    static: Mapping[str, int]
    dynamic: Mapping[str, int]


def counters(flow: Flow) -> Any:
    """Zeroes for one image of this flow, for ``run_image``."""
    return (ctypes.c_uint64 * len(flow.blocks))()


@functools.lru_cache(maxsize=256)
def flow_of(code: bytes, entry: int) -> Flow:
    """The blocks that an image counts, in the order of their numbers: by address."""
    return discover(code, entry)


def by_block(flow: Flow, numbers: Iterable[int]) -> list[tuple[int, int, list[Inst]]]:
    """(address, times, instructions) of each block."""
    blocks = sorted(flow.blocks.values(), key=lambda b: b.start)
    return [
        (block.start, times, [step.inst for step in block.steps])
        for block, times in zip(blocks, numbers, strict=True)
    ]


def executed(flow: Flow, numbers: Iterable[int]) -> Executed:
    """What the counters say, by class."""
    static: Counter[str] = Counter()
    dynamic: Counter[str] = Counter()
    for _, times, instructions in by_block(flow, numbers):
        for inst in instructions:
            name = class_of(inst.op)
            static[name] += 1
            dynamic[name] += times
    return Executed(static, dynamic)
