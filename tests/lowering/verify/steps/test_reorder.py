"""Steps split into smaller ones: related instructions stay together, and no wrong code is
proved."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from sassxlate.disasm.containers import parse_cubin
from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.errors import SassxlateError
from sassxlate.llm.language.older_forms.restate import too_long
from sassxlate.lowering.engine.gate import prove
from sassxlate.lowering.optimize.draft import Draft
from sassxlate.lowering.optimize.peephole.peephole import shortened
from sassxlate.lowering.optimize.regions import CutRegion, cut_regions
from sassxlate.lowering.pipeline import select_kernel
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.text import RegionText, answer_text, read_code, region_text
from sassxlate.lowering.region.uniform import with_uniform
from sassxlate.lowering.verify import Proved, Refuted
from sassxlate.lowering.verify.steps.legality import check_legality
from sassxlate.lowering.verify.steps.prover import Prover, lives, waited
from sassxlate.lowering.verify.steps.reorder import parts

KERNELS = Path(__file__).resolve().parents[4] / "fixtures" / "kernels"


def questions(name: str) -> Iterator[tuple[CutRegion, RegisterMap, RegionText]]:
    cubin = parse_cubin((KERNELS / f"{name}.cubin").read_bytes())
    for kernel in cubin.kernels:
        selected = select_kernel(cubin, kernel.name)
        for piece in selected.pieces:
            for region in cut_regions(
                piece.block, selected.regs, piece.live_out, too_long=too_long
            ):
                if not region.macro and len(region.block.instructions) > 2:
                    question = region_text(region.block, selected.regs, region.live_out)
                    yield region, selected.regs, question


def test_each_instruction_is_there_once_and_what_depends_stays_in_order() -> None:
    split = 0
    for region, regs, question in questions("sm_80/carry_chains"):
        code = read_code(answer_text(region.code, question).split(), question)
        count = len(code)
        lists = parts(region.block, regs, code, [(0, count - 1)])
        assert sorted(n for mine in lists for n in mine) == list(range(count))
        (together,) = (mine for mine in lists if 0 in mine)
        assert count - 1 in together
        split += len(lists) > 1
        place = {n: at for at, n in enumerate(n for mine in lists for n in mine)}
        sass = region.block.instructions
        for a in range(count):
            for b in range(a + 1, count):
                if sass[a].writes & (sass[b].reads | sass[b].writes) or (
                    sass[a].reads & sass[b].writes
                ):
                    assert place[a] < place[b]
    assert split > 0


@pytest.mark.parametrize("most", [12, pytest.param(48, marks=pytest.mark.sweep)])
@pytest.mark.parametrize("name", ["sm_80/carry_chains", "sm_90/predicated_stores"])
def test_nothing_wrong_is_proved_in_smaller_steps(name: str, most: int) -> None:
    """Code of the search with two instructions' code exchanged, or one instruction elsewhere."""
    chance = random.Random(5)
    prover = Prover(timeout_ms=300, cut_ms=300)
    wrong = right = 0
    for region, regs, question in questions(name):
        draft = Draft.of(read_code(answer_text(region.code, question).split(), question), question)
        shortened(draft)
        live_after = lives(region.block, region.live_out)
        for _ in range(8):
            made = _changed(draft.code(), chance)
            code = with_uniform(made, region.block.instructions, regs)
            try:
                check_legality(code, question)
                verdict = prover.pieces(
                    region.block, regs, live_after, code, 0, len(code), draft.bound
                )
                if not isinstance(verdict, Proved):
                    wrong += 1
                elif waited(region.block, regs, region.live_out, code):
                    right += 1
                    whole = prove(region.block, regs, region.live_out, code)
                    assert not isinstance(whole, Refuted), answer_text(code, question)
            except SassxlateError:
                continue
        if wrong + right > most:
            break
    assert wrong > 4


def _changed(code: list[list[Inst]], chance: random.Random) -> list[list[Inst]]:
    a, b = chance.sample(range(len(code)), 2)
    if chance.random() < 0.5 or not code[a]:
        code[a], code[b] = code[b], code[a]
    else:
        code[b].insert(chance.randrange(len(code[b]) + 1), code[a].pop())
    return code
