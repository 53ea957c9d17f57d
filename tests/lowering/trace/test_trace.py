"""`sassxlate trace`: both sides of real kernels agree; seeded defects are found at their place;
bad endings are reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sassxlate.cli.trace import command
from sassxlate.disasm.rdna3.instruction import I, Inst, V
from sassxlate.errors import SassxlateError, exit_status
from tests.lowering.trace import wrong

pytestmark = pytest.mark.usefixtures("valid_documents")

GOLDEN = Path(__file__).with_name("golden")
STORES = [str(wrong.KERNELS / "sm_80" / "predicated_stores.cubin"), "-k", "predicated_stores"]
BUFFERS = ["--arg", "buf:4k:random", "--arg", "buf:4k:count", "--arg", "buf:64k"]
ARGS = [*BUFFERS, "--arg", "i32:40"]


def trace(*options: str, status: int = 0) -> str:
    done = CliRunner().invoke(command, list(options))
    assert done.exit_code == status, (done.output[:2000], done.exception)
    return done.output


def refused(*options: str) -> SassxlateError:
    done = CliRunner().invoke(command, list(options))
    assert isinstance(done.exception, SassxlateError), (done.output, done.exception)
    return done.exception


def of(kernel: str, *options: str, status: int = 0) -> str:
    file = str(wrong.KERNELS / "sm_80" / f"{kernel}.cubin")
    return trace(file, "-k", kernel, *options, status=status)


# --- both sides ----------------------------------------------------------------------------------


def test_golden(request: pytest.FixtureRequest) -> None:
    """Lanes that leave, guards, stores and a register that is written in some lanes."""
    got = trace(*STORES, *ARGS, "--grid", "2", "--cta", "1", "--lane", "0,7-8")
    path = GOLDEN / "predicated_stores.txt"
    if request.config.getoption("--bless", default=False):
        path.write_text(got)
    assert got == path.read_text()


@pytest.mark.parametrize(
    ("kernel", "grid", "block"),
    [
        ("barrier_reduce", "2", "128"),  # waits at barriers
        ("divergent_if", "1", "64"),
        pytest.param("nested_break", "1", "64", marks=pytest.mark.sweep),
        ("shuffle_forms", "1", "64"),
        ("double_math", "1", "32"),  # NaN that are not the same
        ("uniform_loop", "1", "64"),
        ("global_atomics", "2", "64"),
        ("calls", "1", "32"),
        pytest.param("local_array", "1", "32", marks=pytest.mark.sweep),
    ],
)
def test_no_difference(kernel: str, grid: str, block: str) -> None:
    buffers = ["--arg", "buf:16k:random", "--arg", "buf:16k:count", "--arg", "buf:256k"]
    shape = ["--grid", grid, "--block", block, "--shared", "4096"]
    out = of(kernel, *buffers, "--arg", "i32:64", *shape, "--until", "difference")
    assert out.startswith("no difference: both ran to their end\n"), out


def test_what_timing_decides_is_no_difference() -> None:
    """A lane that waits for another one's flag may poll once more or less."""
    data = ["--arg", "buf:4k:random", "--arg", "buf:4k:count", "--arg", "buf:16k"]
    shape = ["--arg", "i32:128", "--block", "128", "--give-up", "50000"]
    out = of("lane_flags", *data, *shape, "--until", "difference", "--lane", "all", status=3)
    assert out.startswith("not decided: ")


def test_lines_of_json() -> None:
    out = trace(*STORES, *ARGS, "--format", "json", "--lane", "3-4", "--register", "R6,P4")
    *rows, end = [json.loads(line) for line in out.splitlines()]
    assert end == {
        "schema": "sassxlate.trace-end/1", "end": "done",
        "text": "the chosen warps ran to their end", "steps": len(rows),
        "taken_over": {}, "met": True,
    }  # fmt: skip
    assert [row["step"] for row in rows] == list(range(1, len(rows) + 1))
    guarded = next(row for row in rows if row["offset"] == 0x170)
    assert guarded["sass"] == "@P4 LOP3.LUT R6, R5, R4, RZ, 0x3c, !PT"
    assert (guarded["cta"], guarded["warp"], guarded["lanes"]) == (0, 0, [3, 4])
    assert (guarded["active"], guarded["rdna3_here"]) == ("ffffffff", "00000018")
    assert [r["name"] for r in guarded["registers"]] == ["P4", "R6"]
    for register in guarded["registers"]:
        assert register["rdna3"] == register["sass"]
        assert register["differs"] == "00000000"
        assert register["place"][0] in "vs"
    assert all(r["text"] for r in guarded["rdna3"])


def test_choices() -> None:
    out = trace(*STORES, *ARGS, "--grid", "2", "--cta", "1,0,0", "--in", "L_0060", "--limit", "2")
    first, *_ = out.splitlines()
    assert first.startswith("/*0060*/ IMAD.MOV.U32 R11, RZ, RZ, 0x4")
    assert first.endswith("block 1,0,0 warp 0 lanes 0-7")
    assert out.endswith("end: 2 steps\n")
    out = trace(*STORES, *ARGS, "--grid", "2", "--cta", "1", "--lane", "9", "--in", "0x60")
    assert "; 9 not active\n" in out
    assert out.endswith("note: lanes 9 never execute it\n")
    out = trace(*STORES, *ARGS, "--grid", "3", "--cta", "2", "--in", "60")
    assert out.splitlines() == [
        "end: the chosen warps ran to their end",
        "note: no selected warp ever executes block 60",
    ]


@pytest.mark.parametrize(
    "options",
    [
        ["--in", "0x61"], ["--in", "what"], ["--cta", "1"], ["--cta", "0,0,0,0"], ["--warp", "1"],
        ["--lane", "32"], ["--lane", "5-2"], ["--lane", "-"], ["--register", "R300"],
        ["--register", "X1"], ["--register", "R200"], ["--grid", "0"],
        ["--block", "1025"], ["--block", "32,33"], ["--launch", "0"],
    ],
)  # fmt: skip
def test_wrong_choices(options: list[str]) -> None:
    error = refused(*STORES, *ARGS, *options)
    assert error.code in ("SX0836", "SX0826")
    assert exit_status(error) == 2


def test_wrong_arguments() -> None:
    assert refused(*STORES, *BUFFERS).code == "SX0826"
    assert refused(*STORES, *ARGS, "--", "x").code == "SX0836"
    assert refused(*STORES, *ARGS, "--run").code == "SX0836"
    assert refused(*STORES, *ARGS, "--code-object", "/nowhere").code == "SX0835"


# --- defects -------------------------------------------------------------------------------------

Change = Callable[[Inst], Inst]


def _arg(index: int, value: Any) -> Change:
    return lambda i: replace(i, args=(*i.args[:index], value, *i.args[index + 1 :]))


DEFECTS: dict[str, tuple[int, str, Change, str]] = {
    "a constant": (0x60, "v_mov_b32", _arg(1, I(5)), "value"),
    "an operation": (0x170, "v_xor_b32", lambda i: replace(i, op="v_or_b32"), "value"),
    "a comparison": (0x130, "v_cmp_", lambda i: replace(i, op="v_cmp_lt_i32"), "value"),
    "a guard": (0x160, "s_and_saveexec", lambda i: replace(i, op="s_or_saveexec_b32"), "value"),
    "a register": (0x100, "v_and_b32", _arg(1, V(0)), "value"),
    "a register that a load still fills": (0x100, "v_and_b32", _arg(1, V(5)), "fault"),
    "an address": (0x80, "v_mad_i64_i32", lambda i: replace(i, op="v_mad_u64_u32"), ""),
    "who leaves": (0x50, "s_and_not1_b32", lambda i: replace(i, op="s_and_b32"), "path"),
    "where it is stored": (0x200, "global_store", lambda i: replace(i, imm=i.imm - 4), "memory"),
    "how much is stored": (
        0x1D0, "global_store", lambda i: replace(i, op="global_store_b8"), "memory",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DEFECTS)
def test_defects_are_found_where_they_are(name: str, tmp_path: Path) -> None:
    offset, op, change, kind = DEFECTS[name]
    done = wrong.translated("predicated_stores")
    code = str(wrong.broken(done, offset, op, change, tmp_path / "wrong.hsaco"))
    until = ["--until", "difference", "--code-object", code]
    if not kind:  # no index is negative: that makes no difference here
        assert trace(*STORES, *ARGS, *until).startswith("no difference")
        return
    launch = [*STORES, "--arg", "buf:4k:random", "--arg", "buf:4k:random", "--arg", "buf:64k",
              "--arg", "i32:40", "--grid", "2", *until]  # fmt: skip
    assert trace(*launch, status=1).startswith("difference: ")
    first, *lines = [
        json.loads(line) for line in trace(*launch, "--format", "json", status=1).splitlines()
    ]
    assert first["end"] == kind
    if kind == "memory":
        assert f"/*{offset:04x}*/" in first["text"], first
        return
    if kind == "path":
        assert lines[0]["offset"] == offset
        return
    assert lines[0]["offset"] == offset
    if kind == "fault":
        assert "used before s_waitcnt" in first["text"]
        return
    assert any(int(r["differs"], 16) for r in lines[0]["registers"])
    state = {r["name"]: r for r in lines[1]["registers"]}
    assert any(r["sass"] != r["rdna3"] for r in state.values())
    assert "R4" in state or offset < 0xA0


@pytest.mark.parametrize("offset", [0x100, 0x110])
def test_a_load_says_which_store_was_wrong(offset: int, tmp_path: Path) -> None:
    done = wrong.translated("dynamic_shared")
    path = tmp_path / "wrong.hsaco"
    code = wrong.broken(done, offset, "ds_store", lambda i: replace(i, imm=i.imm + 4), path)
    launch = ["--arg", "buf:4k:random", "--arg", "buf:4k:random", "--arg", "buf:4k", "--arg",
              "i32:64", "--block", "64", "--shared", "512"]  # fmt: skip
    until = ["--until", "difference", "--code-object", str(code)]
    first, second, *_ = of("dynamic_shared", *launch, *until, status=1).splitlines()
    assert second.startswith("/*0150*/ LDS R8")
    assert "by what was stored at" in first
    assert f"at /*{offset:04x}*/ " in first


def test_another_code_object(tmp_path: Path) -> None:
    path = tmp_path / "other.hsaco"
    path.write_bytes(wrong.translated("calls").code_object)
    assert refused(*STORES, *ARGS, "--code-object", str(path)).code == "SX0835"
    path.write_bytes(b"\x7fELF" + bytes(300))
    assert refused(*STORES, *ARGS, "--code-object", str(path)).code == "SX0835"


# --- what ends badly -----------------------------------------------------------------------------


def test_traps_on_both_sides(tmp_path: Path) -> None:
    file = str(wrong.patched("predicated_stores", {0x110: "BPT.TRAP 0x1"}, tmp_path / "k"))
    out = trace(file, *STORES[1:], *ARGS, "--until", "difference")
    assert "both sides stop" in out
    assert "SX0216" in out
    assert "trap fault" in out
    assert "/*0110*/ BPT.TRAP" not in trace(file, *STORES[1:], *ARGS, "--in", "0")


def test_a_trap_of_one_side(tmp_path: Path) -> None:
    file = str(wrong.patched("predicated_stores", {0x110: "@P0 BPT.TRAP 0x1"}, tmp_path / "k"))
    out = trace(file, *STORES[1:], *ARGS, "--until", "difference", "--format", "json")
    assert json.loads(out.splitlines()[0])["end"] in ("done", "both")


def test_wild_stores() -> None:
    out = trace(*STORES, *BUFFERS[:-1], "buf:64", "--arg", "i32:40", "--until", "difference")
    assert "both sides stop" in out
    assert "address fault" in out


def test_endless_kernels_are_given_up(tmp_path: Path) -> None:
    file = str(wrong.patched("predicated_stores", {0x210: "BRA 0x210"}, tmp_path / "k"))
    out = trace(file, *STORES[1:], *ARGS, "--until", "difference", "--give-up", "3000", status=3)
    assert "given up" in out
    out = trace(file, *STORES[1:], *ARGS, "--in", "0210", "--limit", "5", "--give-up", "3000")
    assert out.count("/*0210*/ BRA 0x210") == 5
    assert out.endswith("end: 5 steps\n")
    never = trace(file, *STORES[1:], *ARGS, "--register", "R3", "--give-up", "3000")
    assert "given up" in never


def test_refused_kernels(tmp_path: Path) -> None:
    file = tmp_path / "k"
    data = bytearray((wrong.KERNELS / "sm_80" / "predicated_stores.cubin").read_bytes())
    base = data.find(wrong.translated("predicated_stores").kernel.code)
    data[base + 0x110 : base + 0x120] = bytes(15) + b"\xff"
    file.write_bytes(data)
    error = refused(str(file), *STORES[1:], *ARGS)
    assert exit_status(error) == 3
    assert error.where.offset == 0x110


def test_a_launch_of_a_program_that_has_none() -> None:
    error = refused("/bin/true", "-k", "nothing", "--arg", "i32:1")
    assert exit_status(error) == 2
