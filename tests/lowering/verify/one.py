"""One instruction word as a block: translated in the silicon template's slot, decoded back."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache

import pytest

from sassxlate.cfg import Cfg
from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.containers.values import Cubin
from sassxlate.disasm.rdna3 import assemble, decode
from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.disasm.sass import BadWord, decode_section
from sassxlate.lowering import pipeline
from sassxlate.lowering.abi.kernarg import bank_layout
from sassxlate.lowering.passes import made_safe
from sassxlate.lowering.pipeline import select_kernel
from sassxlate.lowering.verify import BlockPair, Placed
from sassxlate.lowering.verify.block.of_kernel import goes_on
from sassxlate.lowering.verify.nans import claims

FOLDER_WORD = 0x180  # the slot's offset in the code


@cache
def _template() -> Cubin:
    from pathlib import Path

    root = Path(__file__).resolve().parents[3]
    return parse_cubin((root / "fixtures" / "silicon" / "sm_90" / "template.cubin").read_bytes())


@contextmanager
def _all_read() -> Generator[None]:
    """The template stores general registers and predicates; a uniform result that it does not read
    would have no code."""

    def none(cfg: Cfg) -> frozenset[int]:
        return frozenset()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "dead_instructions", none)
        yield


def block_of(word: int) -> BlockPair:
    """The block of one word.  Raises the error that refuses its translation."""
    cubin = _template()
    code = bytearray(cubin.kernels[0].code)
    code[FOLDER_WORD : FOLDER_WORD + 16] = word.to_bytes(16, "little")
    kernel = replace(cubin.kernels[0], code=bytes(code))
    with _all_read():
        selected = select_kernel(replace(cubin, kernels=(kernel,)), kernel.name)
    items = made_safe(selected.items)
    program = assemble(items)
    said = {
        i: item.origin.offset
        for i, item in enumerate(items)
        if isinstance(item, Inst) and item.origin is not None and item.origin.offset is not None
    }
    first = next((i for i, offset in said.items() if offset == FOLDER_WORD), None)
    placed: list[Placed] = []
    tail: list[Placed] = []
    if first is not None:
        last = next(i for i, offset in said.items() if i > first and offset != FOLDER_WORD)
        if isinstance(end := items[last], Inst) and end.args[1:] == (selected.regs.save_exec,):
            last += 1  # the restore of EXEC after the guard
        loose_out = next(i for i in range(last, len(items)) if not goes_on(items[i]))
        for i in range(first, loose_out):
            item = items[i]
            if isinstance(item, Inst):
                at = program.offsets[i]
                inst, size = decode(program.data, at)
                step = Placed(replace(inst, uniform=item.uniform), at, at + size)
                (placed if i < last else tail).append(step)
    (ins,) = decode_section(word.to_bytes(16, "little"), kernel.arch, strict=False).instructions
    assert not isinstance(ins, BadWord)
    tables = {
        f.offset: int(f.kind.removeprefix("bank"))
        for f in selected.launch.fills
        if f.kind.startswith("bank")
    }
    merged = frozenset(selected.plan.pending_live)
    loose, loose_out = claims((ins,))
    exact = frozenset({ins.offset} if FOLDER_WORD in selected.nans.exact else ())
    return BlockPair(
        (ins,),
        [placed],
        selected.regs,
        bank_layout(kernel.arch),
        merged,
        tables,
        tail=tail,
        exact=exact,
        loose=loose,
        loose_out=loose_out,
    )
