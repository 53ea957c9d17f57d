"""The key of a cached proof: more than the text, if a number and a name may mean one place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sassxlate.disasm.rdna3.instruction import S
from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.disasm.sass.instruction import RegRef
from sassxlate.errors import EncodeError
from sassxlate.llm.language.question import read_question
from sassxlate.lowering.region.text import RegionText, read_code, region_text
from sassxlate.lowering.verify import Proved, Verdict
from sassxlate.lowering.verify.steps.prover import Prover


def _asked(text: str, sass: str, consts: dict[tuple[int, int], str]) -> RegionText:
    """A question with different SASS of the same text."""
    q = read_question(text, 90)
    block = replace(q.block, instructions=(decode(assemble(sass, 90), 0, 90),))
    places = {at: S(q.names.place[name].index) for at, name in consts.items()}
    regs = replace(q.regs, consts=places)
    made = region_text(block, regs, q.live_out)
    assert made.text == text
    return made


def _verdict(prover: Prover, q: RegionText, answer: str) -> Verdict:
    code = read_code(answer.split(), q)
    return prover.region(q.block, q.regs, q.live_out, code)


LOAD = "gfx1100\nin c0\nout v0\nfree t24 s20\nMOV v0 c0 #15"


@pytest.mark.parametrize("kept", [True, False])
def test_a_constant_may_be_loaded_only_from_where_it_is(kept: bool) -> None:
    answer = "s_load_b32 s0 kern :2 null + x2 b02 b10 v_mov_b32 v0 s0 ;"
    prover = Prover()
    for at in (0x210, 0x318):
        q = _asked(LOAD, f"MOV R0, c[0x0][{at:#x}]", {(0, at): "c0"})
        if not kept:
            prover = Prover()
        assert isinstance(_verdict(prover, q, answer), Proved) == (at == 0x210)
    # What loads nothing has one proof.
    for at in (0x210, 0x318):
        q = _asked(LOAD, f"MOV R0, c[0x0][{at:#x}]", {(0, at): "c0"})
        assert isinstance(_verdict(prover, q, "v_mov_b32 v0 c0 ;"), Proved)
    assert prover.solved == (3 if kept else 2)


def test_a_bank_may_be_loaded_only_by_its_own_address() -> None:
    text = "gfx1100\nin c0\nout v0\nfree t24 s20\nMOV v0 c0 #15"
    load = "s_load_b64 s0 :2 kern :2 null + x2 b02 b00 s_load_b32 s2 s0 :2 null + #4"
    prover = Prover()
    for bank in (3, 4):
        q = _asked(text, "MOV R0, c[0x3][0x4]", {(3, 4): "c0"})
        around = replace(q.block.around, bank_table={bank: 0x200})
        q = region_text(replace(q.block, around=around), q.regs, q.live_out)
        assert isinstance(_verdict(prover, q, f"{load} v_mov_b32 v0 s2 ;"), Proved) == (bank == 3)


def _several(keep: bool) -> RegionText:
    heads = ["gfx1100", "in p0 v1 v2 v3", "out p0 v0", *(["keep p0"] if keep else [])]
    sass = ["SEL v0 v1 v2 Pp= p0", "ISETP .NE .AND v3 Z Pu= p0"]
    return read_question("\n".join([*heads, "free t24 s20", *sass]), 90)


def test_a_predicate_that_a_step_spoils_is_missed_by_waiting_lanes() -> None:
    """The step's text does not say so: its SASS only reads the predicate, whose end that is."""
    spoils = "v_cndmask_b32 v0 v2 v1 p0 s_mov_b32 p0 #0 ;"
    prover = Prover()
    free = f"{spoils} v_cmp_ne_i32 p0 v3 #0 ;"
    assert isinstance(_verdict(prover, _several(False), free), Proved)
    kept = "v_cmp_ne_i32 s0 v3 #0 s_and_not1_b32 p0 p0 exec_lo s_or_b32 p0 p0 s0 ;"
    right = f"v_cndmask_b32 v0 v2 v1 p0 ; {kept}"
    assert isinstance(_verdict(prover, _several(True), right), Proved)
    assert not isinstance(_verdict(prover, _several(True), f"{spoils} {kept}"), Proved)


def test_a_register_that_a_step_spoils_is_missed_where_it_is_read() -> None:
    prover = Prover()
    one = read_question("gfx1100\nin v1\nout v0\nfree t24 s20\nIADD3 v0 v1 #1 Z", 90)
    spoils = "v_add_nc_u32 v1 #1 v1 v_mov_b32 v0 v1 ;"
    assert isinstance(_verdict(prover, one, spoils), Proved)  # whether it may is not checked here
    heads = "gfx1100\nin v1 v3\nout v0 v1 v2\nfree t24 s20\n"
    sass = "IADD3 v0 v1 #1 Z\nIADD3 v2 v1 #2 Z\nIADD3 v1 v3 #1 Z"
    q = read_question(heads + sass, 90)
    code = read_code(f"{spoils} v_add_nc_u32 v2 #2 v1 ; v_add_nc_u32 v1 #1 v3 ;".split(), q)
    for ends in (None, [1, 2, 3]):
        found = prover.region(q.block, q.regs, q.live_out, code, ends)
        assert not isinstance(found, Proved)


def test_a_mark_is_part_of_what_was_proved() -> None:
    """In one answer all lanes share a value that is never read; in another they do not."""
    heads = "gfx1100\nin v1 v3\nout v0 v2\nfree t24 s20\n"
    q = read_question(heads + "IADD3 v0 v1 #1 Z\nIADD3 v2 v3 #1 Z\nIADD3 v0 v3 #2 Z", 90)
    reads = "v_readfirstlane_b32 s0 v0 v_add_nc_u32 v2 #1 v3 v_add_nc_u32 v2 s0 v2"
    answer = f"v_add_nc_u32 v0 #1 v1 ; {reads} v_sub_nc_u32 v2 v2 v0 ; v_add_nc_u32 v0 #2 v3 ;"
    made = read_code(answer.split(), q)
    prover = Prover()
    marked = [[replace(i, uniform=True) for i in group] for group in made]
    assert isinstance(prover.region(q.block, q.regs, q.live_out, marked), Proved)
    with pytest.raises(EncodeError):
        prover.region(q.block, q.regs, q.live_out, made)


def test_a_predicate_without_a_name_may_be_read_after() -> None:
    """R2P names predicates only by number."""
    q = read_question("gfx1100\nin p0 v1 v2\nout v0\nfree t24 s20\nSEL v0 v1 v2 Pp= p0", 90)
    ins = decode(assemble("R2P PR, R0, 0x6", 90), 0, 90)
    regs = replace(q.regs, p={n: S(60 + n) for n in range(3)})
    block = replace(q.block, instructions=(ins,))
    prover = Prover()
    for live in ([], [RegRef("P", 1)]):
        made = region_text(block, regs, frozenset(live))
        assert made.text.endswith("R2P v0 #6")
        assert isinstance(_verdict(prover, made, ";"), Proved) == (not live)


@pytest.mark.parametrize(("worth", "stored"), [(0.0, 1), (1e9, 0)])
def test_only_what_took_long_is_stored(
    monkeypatch: pytest.MonkeyPatch, worth: float, stored: int
) -> None:
    monkeypatch.setattr("sassxlate.lowering.verify.steps.prover.WORTH_S", worth)
    store: dict[str, Verdict] = {}
    prover = Prover(store.get, store.__setitem__)
    q = read_question("gfx1100\nin v0 v1\nout v0\nfree t24 s20\nIADD3 v0 v0 v1 Z", 90)
    for _ in range(2):
        assert isinstance(_verdict(prover, q, "v_add_nc_u32 v0 v0 v1 ;"), Proved)
    assert (len(store), prover.solved) == (stored, 1)
    again = Prover(store.get, store.__setitem__)
    assert isinstance(_verdict(again, q, "v_add_nc_u32 v0 v0 v1 ;"), Proved)
    assert again.solved == 1 - stored
