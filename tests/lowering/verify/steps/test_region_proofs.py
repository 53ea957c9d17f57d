"""Kept proofs of regions: what is proved once is not proved again, and nothing else is taken."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sassxlate.disasm.rdna3.instruction import S
from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.llm.language.question import read_question
from sassxlate.lowering.region.text import RegionText, read_code, region_text
from sassxlate.lowering.verify import Proved, Verdict
from sassxlate.lowering.verify.steps.prover import Prover
from sassxlate.lowering.verify.steps.region_proofs import RegionProofs
from sassxlate.runtime_shim.writer import writer
from tests.lowering import emulated

SUM = "gfx1100\nin v1 v2\nout v0\nfree t24 s20\nIADD3 v0 v1 v2 Z\nIADD3 v0 v0 v1 Z"
RIGHT = "v_add_nc_u32 v0 v1 v2 ; v_add_nc_u32 v0 v0 v1 ;"
WRONG = "v_add_nc_u32 v0 v1 v2 ; v_add_nc_u32 v0 v0 v2 ;"


def _proofs(store: dict[str, bytes]) -> RegionProofs:
    return RegionProofs(store.get, store.__setitem__)


def _asked(store: dict[str, bytes], q: RegionText, answer: str) -> tuple[Verdict, int]:
    """The verdict of a new process, and how often it asked for a proof of a step."""
    prover = Prover(regions=_proofs(store))
    verdict = prover.region(q.block, q.regs, q.live_out, read_code(answer.split(), q))
    return verdict, prover.asked


def test_a_region_is_proved_once() -> None:
    store: dict[str, bytes] = {}
    q = read_question(SUM, 90)
    first, asked = _asked(store, q, RIGHT)
    assert isinstance(first, Proved)
    assert asked
    assert _asked(store, q, RIGHT) == (first, 0)
    # Another answer, another live-out set or architecture is another proof.
    wrong, asked = _asked(store, q, WRONG)
    assert not isinstance(wrong, Proved)
    assert asked
    assert len(store) == 1
    more = SUM.replace("out v0", "out v0 v1").replace("IADD3 v0 v0 v1 Z", "IADD3 v1 v0 v1 Z")
    assert _asked(store, read_question(more, 90), RIGHT.replace("v0 v0 v1", "v1 v0 v1"))[1]
    assert _asked(store, read_question(SUM, 80), RIGHT)[1]
    assert len(store) == 3


def test_what_assumes_something_says_so_again() -> None:
    store: dict[str, bytes] = {}
    proofs = _proofs(store)
    proof = Proved(("NaN payload", "uniform values"))
    proofs.keep("key", proof)
    assert proofs.find("key") == proof
    assert proofs.find("other") is None
    (name,) = store
    for damaged in (b"", b"refuted", b"prove", b"\xff\xfe"):
        store[name] = damaged
        assert proofs.find("key") is None


def test_where_a_number_decides_the_text_is_not_enough() -> None:
    """Two constants of one name: the answer loads the word at 0x210, which only one of them is."""
    text = "gfx1100\nin c0\nout v0\nfree t24 s20\nMOV v0 c0 #15"
    answer = "s_load_b32 s0 kern :2 null + x2 b02 b10 v_mov_b32 v0 s0 ;"
    store: dict[str, bytes] = {}
    for at in (0x210, 0x318, 0x210, 0x318):
        q = read_question(text, 90)
        sass = decode(assemble(f"MOV R0, c[0x0][{at:#x}]", 90), 0, 90)
        regs = replace(q.regs, consts={(0, at): S(q.names.place["c0"].index)})
        q = region_text(replace(q.block, instructions=(sass,)), regs, q.live_out)
        assert q.text == text
        assert isinstance(_asked(store, q, answer)[0], Proved) == (at == 0x210)


def test_a_second_translation_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the cache alone, with the same code; a damaged proof is made again."""
    monkeypatch.setenv("SASSXLATE_CACHE_DIR", str(tmp_path))
    cubin = emulated.load("byte_lanes", 90)
    made: list[bytes] = []
    asked: list[int] = []
    for damaged in (False, False, True, False):
        files = sorted(tmp_path.rglob("proof-*"))
        if damaged:
            for file in files:
                file.write_bytes(file.read_bytes().replace(b"proved", b"unsaid"))
        w = writer("search", None, 1)
        done, report = w.translate(cubin, "byte_lanes")
        assert report is not None
        assert report.accepted
        assert w.engine is not None
        made.append(done.code_object)
        asked.append(w.engine.prover.asked)
    assert len(set(made)) == 1
    assert asked[0] > 0
    assert asked[1] == asked[3] == 0
    assert asked[2] > 0
