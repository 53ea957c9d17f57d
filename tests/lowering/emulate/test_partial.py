"""Code of the blocks that have been entered: waves that come to others go on in the baseline's."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from sassxlate.cfg.rdna3_flow import discover
from sassxlate.disasm.rdna3.codec.assemble import Item, Label, assemble
from sassxlate.disasm.rdna3.instruction import I, Inst, LabelRef, S, Sp, V
from sassxlate.errors import EmulatorError
from sassxlate.lowering.emulate.compiler import compile_kernel
from sassxlate.lowering.emulate.counts import counters
from sassxlate.lowering.emulate.image.abi import FLAG_PARTIAL
from sassxlate.lowering.emulate.options import CompileOptions, Isa
from sassxlate.lowering.emulate.runner import EmulatedDevice, LoadedImage, Setup, run_image
from sassxlate.lowering.emulate.wave.partial import left_out

from . import branching
from .baseline import ISAS, baseline


def _flags(data: bytes) -> int:
    return int.from_bytes(data[32:40], "little")


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.sweep) for n in range(1, 40))]
)
def test_random_kernels(seed: int, isa: Isa, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is left out, memory, the counters and the waves at barriers are the baseline's."""
    monkeypatch.setattr(left_out, "_WAY_OUT", -10000)  # the least part, too
    rng = random.Random(f"partial {seed}")
    code = branching.kernel(rng, 200, left_out.LEAST)
    flow, options = discover(code, 0), CompileOptions(isa=isa, counts=True)
    words = [rng.getrandbits(32) for _ in range(branching.WORDS)]
    base, numbers = baseline(code, options), counters(flow)
    wanted = branching.result(base, words, counts=numbers)
    first = counters(flow)
    branching.result(base, words, groups=1, counts=first)
    of_first = frozenset(n for n, times in enumerate(first) if times)
    some = frozenset(n for n in range(len(flow.blocks) - 2) if rng.random() < 0.95)
    for entered in (of_first, some):
        image = compile_kernel(code, 0, replace(options, entered=entered))
        assert _flags(image.data) & FLAG_PARTIAL
        mine = counters(flow)
        assert branching.result(LoadedImage(image), words, counts=mine, rest=base) == wanted
        assert list(mine) == list(numbers)
    assert base.times_left


def test_marks() -> None:
    """The baseline notes the blocks that its waves enter, where it does not count them."""
    rng = random.Random("marks")
    code = branching.kernel(rng, 200, left_out.LEAST)
    words = [rng.getrandbits(32) for _ in range(branching.WORDS)]
    numbers = counters(discover(code, 0))
    counting = baseline(code, CompileOptions(counts=True))
    plain = baseline(code, CompileOptions())
    assert branching.result(plain, words) == branching.result(counting, words, counts=numbers)
    assert plain.entered == {n for n, times in enumerate(numbers) if times}
    assert 0 < len(plain.entered) < len(numbers)


def _with_fault(bad: Inst) -> bytes:
    """Lanes 7 and up come to ``bad`` in workgroup 1, in a block that is entered only there."""
    items: list[Item] = [
        Inst("s_load_b64", (S(2, 2), S(0, 2))),
        Inst("v_mov_b32", (V(1), I(0x1000001))),
        Inst("s_waitcnt", (), 0),
        Inst("s_cmp_lg_u32", (S(4), I(0))),
        Inst("s_cbranch_scc0", (LabelRef("end"),)),
        Inst("v_cmp_lt_u32", (Sp("vcc_lo"), I(6), V(0))),
        Inst("s_and_saveexec_b32", (S(6), Sp("vcc_lo"))),
        Inst("s_cbranch_execz", (LabelRef("end"),)),
        *(Inst("v_xor_b32", (V(2), V(2), V(0))) for _ in range(left_out.LEAST)),
        bad,
        Label("end"),
        Inst("s_endpgm"),
    ]
    return assemble(items).data


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(
    "bad",
    [
        Inst("global_load_b32", (V(3), V(1), S(2, 2))),
        Inst("ds_store_b32", (V(1), V(0))),
        Inst("s_trap", (), 3),
    ],
    ids=lambda inst: inst.op,
)
def test_faults(bad: Inst, isa: Isa) -> None:
    """A fault in a block that was left out has the same kind, place, lane and address."""
    code, options = _with_fault(bad), CompileOptions(isa=isa)
    base = baseline(code, options)
    image = compile_kernel(code, 0, replace(options, entered=frozenset({0, 4})))
    assert image.instructions < 20
    said: list[str] = []
    device = EmulatedDevice(1 << 16)
    for loaded, rest in ((LoadedImage(image), base), (base, None)):
        with pytest.raises(EmulatorError) as caught:
            run_image(
                loaded, Setup(wg_sgpr=(4, None, None), lds_size=64), 3, 32,
                device.base.to_bytes(8, "little"), device, rest=rest,
            )  # fmt: skip
        said.append(f"{caught.value} {caught.value.where}")
    assert base.times_left == 1
    assert said[0] == said[1]
    assert "workgroup 1, wave 0, lane 7" in said[0]


def test_without_the_rest_of_the_kernel_a_wave_that_leaves_is_a_fault() -> None:
    code = _with_fault(Inst("s_trap", (), 3))
    image = compile_kernel(code, 0, CompileOptions(entered=frozenset({0, 4})))
    device = EmulatedDevice(1 << 16)
    with pytest.raises(EmulatorError, match="illegal"):
        run_image(
            LoadedImage(image), Setup(wg_sgpr=(4, None, None)), 2, 32,
            device.base.to_bytes(8, "little"), device,
        )  # fmt: skip


def test_what_is_worth_leaving_out() -> None:
    """A small part costs more by its way in than by itself; a small kernel is compiled as a whole,
    and so is one that names registers by M0, strict code and code without optimisation."""
    code = _with_fault(Inst("s_trap", (), 3))
    whole = compile_kernel(code, 0)
    blocks = len(discover(code, 0).blocks)
    assert blocks == 5
    entered = CompileOptions(entered=frozenset())
    assert compile_kernel(code, 0, entered).instructions < 10
    for other in (replace(entered, strict=True), replace(entered, quick=True)):
        image = compile_kernel(code, 0, other)
        assert (image.instructions, _flags(image.data) & FLAG_PARTIAL) == (whole.instructions, 0)
    few = compile_kernel(code, 0, replace(entered, entered=frozenset(range(4))))
    assert few.instructions == whole.instructions
    indexed = assemble([Inst("v_movrels_b32", (V(2), V(1)))]).data
    named = code[:-4] + indexed + code[-4:]
    assert compile_kernel(named, 0, entered).instructions == compile_kernel(named, 0).instructions
    small = _with_fault(Inst("s_trap", (), 3))[-400:]
    assert not _flags(compile_kernel(small, 0, entered).data) & FLAG_PARTIAL
