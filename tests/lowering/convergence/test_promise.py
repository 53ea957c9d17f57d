"""Whether LLVM's structured code shows each operation the lanes that SASS shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from sassxlate.cfg import Cfg, analyse, build
from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.assembler import assemble_listing
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.lowering.convergence.promise import Promise, Reason, promise
from sassxlate.lowering.pipeline import build_cfg, link
from sassxlate.lowering.select.stages import Source
from sassxlate.lowering.target import DEFAULT
from sassxlate.lowering.tier.refusal import Refused
from sassxlate.lowering.tier.warp.together import together

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
GOLDEN = Path(__file__).with_name("promises.txt")
_NOP = "NOP ;"


def _code(text: Sequence[str]) -> list[Instruction]:
    code = assemble_listing(text, 80)[""]
    words = [int.from_bytes(code[at : at + 16], "little") for at in range(0, len(code), 16)]
    return [decode(w, 16 * i, 80) for i, w in enumerate(words)]


def _promise(text: Sequence[str]) -> Promise:
    return promise(build("k", 80, _code(text)))


def _reasons(found: Promise, mnemonic: str) -> list[Reason]:
    return [o.reason for o in found.operations if o.mnemonic == mnemonic]


_SHUFFLE = "SHFL.IDX PT, R2, R1, R0, 0x1f ;"
_DIVERGE = ("S2R R0, SR_TID.X ;", "ISETP.LT.AND P0, PT, R0, 0x5, PT ;")
_IF = (
    *_DIVERGE, "BSSY B0, `(.M) ;", "@P0 BRA `(.L) ;", "IADD3 R1, R0, 0x1, RZ ;", ".L:",
    "BSYNC B0 ;", ".M:", _SHUFFLE, "EXIT ;",
)  # fmt: skip
# A shuffle after a loop that lanes leave at different turns, and one in it.
_LOOP = (
    *_DIVERGE, "BSSY B0, `(.M) ;", ".H:", "IADD3 R0, R0, 0x1, RZ ;",
    "ISETP.LT.AND P0, PT, R0, 0x40, PT ;", "@P0 BRA `(.H) ;", "BSYNC B0 ;", ".M:", _SHUFFLE,
    "EXIT ;",
)  # fmt: skip


def _without(text: Sequence[str], part: str) -> list[str]:
    return [_NOP if line.startswith(part) else line for line in text]


def test_a_branch_closed_by_a_barrier() -> None:
    assert _reasons(_promise(_IF), "SHFL") == [Reason.STEP]
    assert _promise(_IF).proved


@pytest.mark.parametrize("part", ["BSYNC", "BSSY"])
def test_without_its_barrier_it_is_not_known(part: str) -> None:
    assert _reasons(_promise(_without(_IF, part)), "SHFL") == [Reason.APART]


def test_a_barrier_after_the_operation_is_too_late() -> None:
    moved: list[str] = list(_IF)
    at = moved.index("BSYNC B0 ;")
    moved[at:at] = [_SHUFFLE]
    assert _reasons(_promise(moved), "SHFL") == [Reason.APART, Reason.STEP]


def test_a_uniform_branch_needs_no_barrier() -> None:
    uniform = [line.replace("SR_TID.X", "SR_CTAID.X") for line in _without(_IF, "BSYNC")]
    assert _promise(_without(uniform, "BSSY")).proved


def test_an_operation_in_an_arm_sees_the_lanes_of_the_branch() -> None:
    text = [*_DIVERGE, "@P0 BRA `(.L) ;", "VOTE.ANY R3, PT, PT ;", ".L:", "EXIT ;"]
    assert _reasons(_promise(text), "VOTE") == [Reason.ARM]
    inner = [*text[:3], "@P1 BRA `(.N) ;", "NOP ;", ".N:", *text[3:]]
    assert _reasons(_promise(inner), "VOTE") == [Reason.APART]
    barrier = [line.replace("VOTE.ANY R3, PT, PT", "BAR.SYNC 0x0") for line in text]
    assert _reasons(_promise(barrier), "BAR") == [Reason.APART]
    waits = [line.replace("VOTE.ANY R3, PT, PT", "WARPSYNC R3") for line in text]
    assert _reasons(_promise(waits), "WARPSYNC") == [Reason.MASK]


def test_loops() -> None:
    assert _reasons(_promise(_LOOP), "SHFL") == [Reason.STEP]
    assert _reasons(_promise(_without(_LOOP, "BSYNC")), "SHFL") == [Reason.APART]
    inside: list[str] = list(_LOOP)
    inside.insert(inside.index(".H:") + 1, _SHUFFLE)
    assert _reasons(_promise(inside), "SHFL") == [Reason.TURNS, Reason.STEP]
    # WARPSYNC brings the lanes of one turn together in SASS; structured code has others there.
    inside[inside.index(_SHUFFLE)] = "WARPSYNC 0xffffffff ;"
    inside.insert(inside.index(".H:") + 2, _SHUFFLE)
    assert _reasons(_promise(inside), "SHFL")[0] is Reason.TURNS


def test_uniform_registers() -> None:
    text = [*_DIVERGE, "@P0 BRA `(.L) ;", "R2UR UR4, R0 ;", "NOP ;", ".L:", "EXIT ;"]
    writes = [line.replace("R2UR UR4, R0", "UMOV UR4, 0x1") for line in text]
    assert _reasons(_promise(writes), "UMOV") == [Reason.LOCAL]
    read = [*writes[:-1], "MOV R5, UR4 ;", "EXIT ;"]
    assert _reasons(_promise(read), "UMOV") == [Reason.SHARED]


def test_a_lock_waits() -> None:
    text = [
        ".H:", "ATOMG.E.CAS.STRONG.GPU PT, R4, [R2], R4, R5 ;",
        "ISETP.NE.AND P0, PT, R4, RZ, PT ;", "@P0 BRA `(.H) ;", "EXIT ;",
    ]  # fmt: skip
    assert [o.reason for o in _promise(text).operations] == [Reason.WAITS]
    counts = [line.replace("R4, RZ, PT", "R9, RZ, PT") for line in text]
    assert _promise(counts).proved


# --- kernels -----------------------------------------------------------------------------------


def _fixtures() -> Iterator[tuple[str, Cfg]]:
    for path in sorted((FIXTURES / "kernels").glob("sm_*/*.cubin")):
        cubin = parse_cubin(path.read_bytes())
        for kernel in cubin.kernels:
            cfg = build_cfg(link(Source(cubin, kernel.name, DEFAULT))).cfg
            yield f"{path.parent.name} {kernel.name}", cfg


def _line(name: str, found: Promise) -> str:
    counts = Counter(o.reason.value for o in found.operations)
    words = [f"{reason}={n}" for reason, n in sorted(counts.items())]
    return " ".join([name, "proved" if found.proved else "unknown", *words])


def test_fixtures(request: pytest.FixtureRequest) -> None:
    """Every fixture's verdict; and what the tier takes by its own analysis is proved here."""
    lines: list[str] = []
    for name, cfg in _fixtures():
        state = analyse(cfg)
        found = promise(cfg, state)
        lines.append(_line(name, found))
        try:
            together(cfg, state)
        except Refused:
            continue
        # Saving a barrier in a callee is no operation of the tier; groups after an inner BSYNC are.
        # Uniform registers of sections are decided by `tier.apart` alone: see tests of its own.
        left = {o.reason for o in found.unknown} - {Reason.STATE, Reason.APART, Reason.SHARED}
        # No loops that wait: see tests of `tier.warp.retries`.
        if name.endswith((" cas64_loop", " shared_atomics")):
            left -= {Reason.WAITS}
        # Lanes leave its loop only to end: see tests of `tier.warp.turns`.
        if name.endswith(" barrier_reduce"):
            left -= {Reason.TURNS}
        assert not left, name
    text = "".join(f"{line}\n" for line in lines)
    if request.config.getoption("bless"):
        GOLDEN.write_text(text, encoding="ascii")
    assert text == GOLDEN.read_text(encoding="ascii")


def _dropped(cfg: Cfg, offset: int) -> Cfg:
    """The graph with the BSYNC at an offset exchanged for NOP: its edge is no meeting of lanes."""
    blocks = tuple(
        replace(b, instructions=tuple(_plain(i) if i.offset == offset else i
                                      for i in b.instructions))
        for b in cfg.blocks
    )  # fmt: skip
    return replace(cfg, blocks=blocks)


def _plain(ins: Instruction) -> Instruction:
    return decode(_code([_NOP])[0].word, ins.offset, 80)


def _seen(found: Promise) -> set[int]:
    """The operations that are proved to see the same lanes."""
    return {o.offset for o in found.operations if o.reason in (Reason.STEP, Reason.ARM)}


def test_barriers_taken_away_from_fixtures() -> None:
    """Without a BSYNC nothing more is proved, and where lanes had come apart before, less is."""
    less = 0
    for name, cfg in _fixtures():
        if not name.startswith("sm_80"):
            continue
        before = _seen(promise(cfg))
        syncs = [b.last.offset for b in cfg.blocks if b.last.mnemonic == "BSYNC"]
        for offset in syncs:
            after = _seen(promise(_dropped(cfg, offset)))
            assert after <= before, (name, hex(offset))
            less += after < before
    assert less >= 8


_DIVERGENT = "_Z17compact_divergent"


def test_compaction(nvcc: Callable[..., str], tmp_path: Path) -> None:
    """compact_divergent votes where lanes run apart; the program's other kernels do not."""
    source = FIXTURES / "programs" / "src" / "compaction.cu"
    out = tmp_path / "compaction.cubin"
    nvcc("-cubin", "-arch=sm_80", str(source), "-o", str(out))
    cubin = parse_cubin(out.read_bytes())
    verdicts = {
        k.name: promise(build_cfg(link(Source(cubin, k.name, DEFAULT))).cfg) for k in cubin.kernels
    }
    for name, found in verdicts.items():
        assert found.proved == (not name.startswith(_DIVERGENT)), (name, found.unknown)
