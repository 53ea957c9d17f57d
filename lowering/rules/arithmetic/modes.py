"""Rounding and denormal modes around an instruction; between instructions MODE is nearest-even with
denormals kept.  s_round_mode and s_denorm_mode: bits 1:0 are for f32, bits 3:2 for f64 and f16."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final

from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.lowering.builder.rule_emitter import RuleEmitter

_ROUND = {"RM": 2, "RP": 1, "RZ": 3}
KEEP_DENORMALS = 0xF
FLUSH_F32 = 0xC
FLUSH_F16 = 0x3


_AS_IS: Final = nullcontext()


def ftz(c: RuleEmitter, wanted: bool | None = None) -> AbstractContextManager[None]:
    """Flushes denormal f32 inputs and results inside the block if the instruction says .FTZ."""
    on = c.ins.has("FTZ") if wanted is None else wanted
    return _mode(c, "s_denorm_mode", FLUSH_F32, KEEP_DENORMALS) if on else _AS_IS


def rounding(c: RuleEmitter, mode: str | None = None) -> AbstractContextManager[None]:
    """Rounds inside the block by the instruction's .RM, .RP or .RZ."""
    name = mode or next((m for m in c.ins.modifiers if m in _ROUND), None)
    value = _ROUND.get(name or "", 0)
    return _mode(c, "s_round_mode", value | value << 2, 0) if value else _AS_IS


@contextmanager
def _mode(c: RuleEmitter, op: str, inside: int, after: int) -> Generator[None]:
    c.raw(Inst(op, (), imm=inside))
    yield
    c.raw(Inst(op, (), imm=after))
