"""Branches over more than a branch reaches: LLVM's addresses of code, and islands."""

from __future__ import annotations

import pytest

from sassxlate.disasm.rdna3 import branch_target, decode, encode
from sassxlate.disasm.rdna3.instruction import I, Inst, S, V
from sassxlate.lowering.tier.numbers import far
from sassxlate.lowering.tier.numbers.pieces import OPCODES, Piece, branch, in_clause, one_source
from sassxlate.lowering.tier.numbers.stand_ins import branches, replaced
from sassxlate.lowering.tier.numbers.weave import woven
from sassxlate.lowering.tier.refusal import BACKEND, Refused
from sassxlate.lowering.tier.translate import by_tier
from tests.lowering.emulated import check, load

OPS = OPCODES["RDNA3"]
NOP, END = encode(Inst("s_nop", (), imm=0)), encode(Inst("s_endpgm"))
ROUNDED = encode(Inst("v_lerp_u8", (V(0), V(1), S(2), I(0x437C0000))))  # a sum and two modes


def _decoded(code: bytes) -> dict[int, Inst]:
    out: dict[int, Inst] = {}
    at = 0
    while at < len(code):
        out[at], size = decode(code, at)
        at += size
    return out


def _jump(to: int, at: int) -> bytes:
    """LLVM's jump from ``at`` to an offset."""
    distance = to - at - 4
    low, high = distance & 0xFFFFFFFF, distance >> 32 & 0xFFFFFFFF
    words = [0xBE844700, 0x8004FF04, low, 0x8205FF05, high, 0xBE804804]
    return b"".join(w.to_bytes(4, "little") for w in words)


@pytest.mark.parametrize("forward", [True, False])
def test_a_jump_by_an_address_becomes_a_branch(forward: bool) -> None:
    """Its distance is that of the code with the roundings' instructions."""
    if forward:
        code = _jump(24 + len(ROUNDED), 0) + ROUNDED + END
    else:
        code = ROUNDED + NOP + _jump(len(ROUNDED), len(ROUNDED) + 4) + END
    made = _decoded(replaced(code, ())[0])
    (at,) = (at for at, i in made.items() if i.op == "s_branch")
    target = made[branch_target(made[at], at)]
    assert target.op == ("s_endpgm" if forward else "s_nop")
    assert not any("pc_b64" in i.op or i.op.startswith("s_add") for i in made.values())
    assert [i.op for i in made.values()].count("v_fma_f32") == 1


def test_another_use_of_an_address_is_refused() -> None:
    """Literals that a linker fills in, a jump to another register, an address that is kept."""
    unlinked = b"".join(w.to_bytes(4, "little") for w in
                        (0xBE844700, 0x8004FF04, 0, 0x8205FF05, 0, 0xBE804804))  # fmt: skip
    other = _jump(28, 0)[:-4] + (0xBE804806).to_bytes(4, "little")
    for code in (unlinked, other, _jump(28, 0)[:4]):
        with pytest.raises(Refused, match="addresses of code") as why:
            replaced(code + END, ())
        assert why.value.code == BACKEND


def test_a_branch_into_an_instruction_is_refused() -> None:
    with pytest.raises(Refused, match="into an instruction"):
        replaced(_jump(26, 0) + ROUNDED + END, ())


def _pieces(count: int) -> list[Piece]:
    """Branches from all over the code to its first clause and its end, between clauses of two
    loads."""
    load_ = encode(Inst("s_load_b32", (S(4), S(0, 2), S(6)), imm=0))
    clause = encode(Inst("s_clause", (), imm=1))
    out: list[Piece] = []
    at, end = 0, count * (4 + len(clause) + 2 * len(load_))
    for n in range(count):
        for data, to in ((branch(OPS), end if n % 2 else 4), (clause, None), *((load_, None),) * 2):
            out.append(Piece(at, data, to, clause=in_clause(data, OPS)))
            at += len(data)
    return [*out, Piece(end, END)]


def test_branches_go_over_islands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(far, "REACH", 64)
    done = woven(_pieces(200), [(0, 7), (1000, 8)], lambda _: b"", OPS, flushes=False)
    made = _decoded(done.code)
    assert len(done.code) > len(b"".join(p.data for p in _pieces(200)))

    def goal(at: int) -> int:
        for _ in range(100):
            if made[at].op != "s_branch":
                return at
            at = branch_target(made[at], at) or 0
            assert at in made
        raise AssertionError("a branch that goes round")

    last = max(made)
    goals = [goal(at) for at, i in made.items() if i.op == "s_branch"]
    assert {made[g].op for g in goals} <= {"s_endpgm", "s_clause"}
    assert goals.count(last) >= 100
    for at, inst in made.items():
        if branches(inst.op):
            assert abs((branch_target(inst, at) or 0) - at) <= 4 * 64
    ops = [i.op for i in made.values()]
    for n, op in enumerate(ops):
        if op == "s_clause":
            assert ops[n + 1 : n + 3] == ["s_load_b32"] * 2
    lines = [line for _, line in done.lines]
    assert lines[:2] == [7, 0]  # an island is of no line; after it comes the line before it
    assert {*lines} == {0, 7, 8}
    assert lines[-1] == 8


def test_what_islands_cannot_reach_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(far, "REACH", 2)
    with pytest.raises(Refused, match="a branch too far"):
        woven(_pieces(50), [], lambda _: b"", OPS, flushes=False)


def test_a_kernel_with_islands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(far, "REACH", 48)
    used: list[int] = []
    islands = far.with_islands

    def counted(pieces: list[Piece], ops: object) -> list[Piece]:
        out = islands(pieces, OPS)
        used.append(len(out) - len(pieces))
        return out

    monkeypatch.setattr(far, "with_islands", counted)
    check(load("conversions", 80), "conversions", change=by_tier)
    assert used
    assert used[0] > 0


def test_scalar_opcodes_are_rdna3s() -> None:
    assert one_source(encode(Inst("s_getpc_b64", (S(4, 2),)))) == OPS.getpc
    assert one_source(encode(Inst("s_setpc_b64", (S(4, 2),)))) == OPS.setpc
    assert in_clause(encode(Inst("s_clause", (), imm=3)), OPS) == 4
    assert decode(branch(OPS), 0)[0].op == "s_branch"
