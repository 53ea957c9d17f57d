"""Rounding and denormal modes around an instruction; between instructions MODE is nearest-even with
denormals kept.  s_round_mode and s_denorm_mode: bits 1:0 are for f32, bits 3:2 for f64 and f16."""

from __future__ import annotations

from contextlib import nullcontext
from types import TracebackType
from typing import Final

from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.lowering.builder.rule_emitter import RuleEmitter

_ROUND = {"RM": 2, "RP": 1, "RZ": 3}
KEEP_DENORMALS = 0xF
FLUSH_F32 = 0xC
FLUSH_F16 = 0x3


_AS_IS: Final = nullcontext()


def ftz(c: RuleEmitter, wanted: bool | None = None) -> _Mode | nullcontext[None]:
    """Flushes denormal f32 inputs and results inside the block if the instruction says .FTZ."""
    on = c.ins.has("FTZ") if wanted is None else wanted
    return _Mode(c, "s_denorm_mode", FLUSH_F32, KEEP_DENORMALS) if on else _AS_IS


def rounding(c: RuleEmitter, mode: str | None = None) -> _Mode | nullcontext[None]:
    """Rounds inside the block by the instruction's .RM, .RP or .RZ."""
    name = mode or next((m for m in c.ins.modifiers if m in _ROUND), None)
    value = _ROUND.get(name or "", 0)
    return _Mode(c, "s_round_mode", value | value << 2, 0) if value else _AS_IS


class _Mode:
    """What ``with`` begins and ends a mode by; a generator would take three times as long."""

    def __init__(self, c: RuleEmitter, op: str, inside: int, after: int) -> None:
        self.c, self.op, self.inside, self.after = c, op, inside, after

    def __enter__(self) -> None:
        self.c.raw(Inst(self.op, (), imm=self.inside))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.c.raw(Inst(self.op, (), imm=self.after))
