"""Strong accesses of 128 bits, of which LLVM has no atomics: one instruction, kept as it is."""

from __future__ import annotations

import pytest

from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.disasm.sass.codec.assembler import assemble_listing
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.lowering.tier.translate import by_tier
from tests.lowering.emulated import check, load, patched

_CONTROL = ~((1 << 105) - 1)  # the waits of the word


@pytest.mark.parametrize("scope", ["SM", "GPU", "SYS"])
def test_a_store(scope: str) -> None:
    def strong(ins: Instruction) -> int | None:
        if not ins.text.startswith("@P4 STG.E.128 "):
            return None
        text = ins.text.replace(".128", f".128.STRONG.{scope}")
        made = int.from_bytes(assemble_listing([f"{text} ;"], 80)[""][:16], "little")
        return made & ~_CONTROL | ins.word & _CONTROL

    cubin = patched(load("predicated_stores", 80), strong)
    assert cubin.kernels[0].code != load("predicated_stores", 80).kernels[0].code
    made = check(cubin, "predicated_stores", change=by_tier, strict=True)
    names = [i.op for i in made.items if isinstance(i, Inst)]
    assert "global_store_b128" in names
