"""LLVM's passes find nothing to add to our code, and find what is taken away; AMD's comgr reads
what we wrote."""

from __future__ import annotations

import random
from functools import cache

import pytest

from sassxlate import toolchain
from tests.lowering.emulated import load
from tools.rocm.packages import VERSIONS
from tools.witness.judge import comgr, llvm_tools, mir, removed
from tools.witness.judge.machine_code import Decoded, decode
from tools.witness.judge.objects import RULES, TIER, Made, all_of, fixtures, made
from tools.witness.judge.opcodes import Opcodes, remembered
from tools.witness.judge.verdicts import changes, described, differences, encoded_back, judged
from tools.witness.llvm import llvm

# Waits for loads, LDS and the scalar cache; transcendentals; fences; calls; matrix products.
SMALL = ("divergent_if", "shared_atomics", "float_rules", "spin_lock", "dynamic_shared")
ROCM = tuple(version for version in VERSIONS if version[0].isdigit())
SEED = 1
TRIALS = 240


@pytest.fixture(scope="module")
def opcodes() -> Opcodes:
    if llvm_tools.why_not():
        pytest.skip(llvm_tools.why_not())
    return remembered()


@cache
def small() -> tuple[Made, ...]:
    return tuple(one for name in SMALL for one in made(name, load(name, 80), name))


def read(pieces: tuple[Made, ...], opcodes: Opcodes) -> list[tuple[Decoded, ...]]:
    codes = decode([piece.code for piece in pieces])
    described(codes, opcodes)
    return codes


def assembled(source: str, opcodes: Opcodes) -> tuple[Decoded, ...]:
    if toolchain.clang() is None:
        pytest.skip("no clang (pip install '.[test]')")
    data, messages = llvm.assemble_object(source)
    assert data is not None, messages
    codes = decode([llvm.section(data, ".text")])
    described(codes, opcodes)
    return codes[0]


def lacks(code: tuple[Decoded, ...], opcodes: Opcodes) -> list[str]:
    (found,) = changes([mir.function(0, code, opcodes)])
    return [line for change in found for line in change.lacks]


def test_nothing_to_add(opcodes: Opcodes) -> None:
    pieces = small()
    assert {piece.engine for piece in pieces} == {RULES, TIER}
    verdicts = judged(read(pieces, opcodes), opcodes)
    assert [(str(p), v) for p, v in zip(pieces, verdicts, strict=True) if not v.clean] == []


def test_single_waits_taken_away_are_found(opcodes: Opcodes) -> None:
    codes = read(small(), opcodes)
    done = removed.trials(codes, removed.draw(codes, 30, SEED), opcodes)
    assert len(done) == 30
    assert sum(trial.found for trial in done) >= 0.85 * len(done)


def test_why_a_wait_is_unneeded(opcodes: Opcodes) -> None:
    """Something is outstanding that no register waits for, or nothing is."""
    store = "ds_store_b32 v0, v1\n"
    for before, reason in ((store, removed.NO_READER), ("", removed.NOTHING_PENDING)):
        code = assembled(f"{before}s_waitcnt lgkmcnt(0)\ns_endpgm\n", opcodes)
        (wait,) = removed.waits(code)
        (trial,) = removed.trials([code], [(0, wait)], opcodes)
        assert trial.reason == reason


READS_EARLY = """
global_load_b32 v1, v2, s[4:5]
v_add_nc_u32_e32 v3, v1, v2
s_endpgm
"""


def test_a_missing_wait(opcodes: Opcodes) -> None:
    assert lacks(assembled(READS_EARLY, opcodes), opcodes) == ["S_WAITCNT 1015"]
    waits = READS_EARLY.replace("v_add", "s_waitcnt vmcnt(0)\nv_add")
    assert lacks(assembled(waits, opcodes), opcodes) == []


def test_a_wait_for_too_few(opcodes: Opcodes) -> None:
    short = READS_EARLY.replace("v_add", "s_waitcnt vmcnt(1)\nv_add")
    assert lacks(assembled(short, opcodes), opcodes) == ["S_WAITCNT 1015"]


def test_a_wait_after_a_branch(opcodes: Opcodes) -> None:
    """What is outstanding at a branch is so at its target."""
    source = """
global_load_b32 v1, v2, s[4:5]
s_cbranch_scc0 There
s_endpgm
There:
v_add_nc_u32_e32 v3, v1, v2
s_endpgm
"""
    assert lacks(assembled(source, opcodes), opcodes) == ["S_WAITCNT 1015"]


def test_a_wait_in_a_routine(opcodes: Opcodes) -> None:
    source = """
global_load_b32 v1, v2, s[4:5]
s_call_b64 s[8:9], Routine
s_endpgm
Routine:
v_add_nc_u32_e32 v3, v1, v2
s_setpc_b64 s[8:9]
"""
    assert lacks(assembled(source, opcodes), opcodes) == ["S_WAITCNT 1015"]


def test_an_open_hazard(opcodes: Opcodes) -> None:
    source = "v_exp_f32_e32 v1, v0\nv_add_f32_e32 v2, v1, v1\ns_endpgm\n"
    assert lacks(assembled(source, opcodes), opcodes) == ["S_WAITCNT_DEPCTR 3999"]


def test_another_encoding_is_noticed(opcodes: Opcodes) -> None:
    """A mistake of the mapping to machine IR cannot pass: the bytes would be others."""
    code = assembled(READS_EARLY, opcodes)

    def spell(inst: Decoded, line: str) -> str:
        return line.replace("V_ADD_U32", "V_SUB_U32")

    (again,) = encoded_back([mir.function(0, code, opcodes, spell)])
    assert len(differences(code, again)) == 1
    (again,) = encoded_back([mir.function(0, code, opcodes)])
    assert differences(code, again) == []


def test_a_call_is_encoded_as_far_as_it_jumps(opcodes: Opcodes) -> None:
    """Branches keep their distances: in code of 128 KiB they would not reach otherwise."""
    source = "s_branch End\ns_call_b64 s[8:9], R\nR:\ns_setpc_b64 s[8:9]\nEnd:\ns_endpgm\n"
    code = assembled(source, opcodes)
    (again,) = encoded_back([mir.function(0, code, opcodes, mir.short_calls)])
    assert differences(code, again) == []
    (again,) = encoded_back([mir.function(0, code, opcodes)])
    assert differences(code, again) != []


@pytest.mark.parametrize("version", ROCM)
def test_comgr_reads_what_was_written(version: str, opcodes: Opcodes) -> None:
    if comgr.why_not(version):
        pytest.skip(comgr.why_not(version))
    pieces = small()
    seen = comgr.read([piece.code_object for piece in pieces], version)
    found = [(str(p), comgr.differences(p, s)) for p, s in zip(pieces, seen, strict=True)]
    assert [one for one in found if one[1]] == []


@pytest.mark.sweep
def test_nothing_to_add_to_any_fixture(opcodes: Opcodes) -> None:
    pieces = tuple(all_of(fixtures()))
    codes = read(pieces, opcodes)
    verdicts = judged(codes, opcodes)
    assert [(str(p), v) for p, v in zip(pieces, verdicts, strict=True) if not v.clean] == []
    drawn = removed.draw(codes, TRIALS, random.Random(SEED).randrange(2**32))
    done = removed.trials(codes, drawn, opcodes)
    assert sum(trial.found for trial in done) >= 0.85 * len(done)
    if not comgr.why_not(ROCM[-1]):
        seen = comgr.read([piece.code_object for piece in pieces], ROCM[-1])
        assert [comgr.differences(p, s) for p, s in zip(pieces, seen, strict=True)] == [
            [] for _ in pieces
        ]
