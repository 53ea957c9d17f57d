"""The semantics of RDNA3 against AMD's pseudocode, run by a separate interpreter."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tinygrad", reason="tinygrad, whose tables carry the pseudocode, is missing")

from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.disasm.rdna3.semantics import Mode, Semantics, semantics_table
from sassxlate.domain.integers import Bits, Reference
from tools.silicon.inputs import inputs
from tools.witness.pcode import cases, compare, control, machine, memory
from tools.witness.pcode import softfloat as sf
from tools.witness.pcode.__main__ import NO_VALUE, measured
from tools.witness.pcode.values import NotDescribed

from .harness import WIDTH

FORMS = Path(__file__).with_name("emitted.txt")
SEED = int(os.environ.get("SASSXLATE_TEST_SEED", "1"))
REF: Any = Reference()

# Opcodes that are never emitted, and for which AMD's text is incomplete (docs/rdna3.md).
OPEN = {"v_div_scale_f32", "v_div_scale_f64", "v_mullit_f32"}
# AMD's text has no value for the apertures (src_shared_base, src_private_base).
WITHOUT = {"s_mov_b64"}
UNDESCRIBED = {"v_trig_preop_f64", "v_xnor_b16"}


def recorded() -> list[cases.Form]:
    return [form for form, _ in cases.forms(FORMS)]


def test_floating_point_of_the_witness() -> None:
    """Against the host's, to nearest even."""
    bits = inputs(600, 3)[1].astype(np.uint32).reshape(-1)
    a, b = bits[: len(bits) // 2], bits[len(bits) // 2 :]
    f, rules = sf.FORMATS[32], sf.Rules()
    with np.errstate(all="ignore"):
        x, y = a.view(np.float32), b.view(np.float32)
        wanted = {sf.add: x + y, sf.mul: x * y, sf.div: x / y}
        halves = x.astype(np.float16).view(np.uint16).tolist()
    for fn, floats in wanted.items():
        for i, want in enumerate(floats.view(np.uint32).tolist()):
            got = fn(f, int(a[i]), int(b[i]), rules)
            assert got == want or (sf.is_nan(f, got) and sf.is_nan(f, want)), (fn, i)
    for i, want in enumerate(halves):
        got = sf.convert(f, int(a[i]), sf.FORMATS[16], rules)
        assert got == want or sf.is_nan(f, int(a[i])), i


def test_large_powers_of_the_witness() -> None:
    """They are cut where no result changes: against integers of all their digits."""
    for f in sf.FORMATS.values():
        ends = [1, f.infinity - 1, 1 << f.fraction, f.bias << f.fraction]
        around = (f.top, f.top + f.fraction, 2 * (f.top + f.fraction + 2), 5 * f.top)
        powers = [s * (p + d) for p in around for d in range(-4, 5) for s in (-1, 1)]
        for rounding in (sf.NEAREST, sf.UP, sf.DOWN, sf.ZERO):
            for flush in (False, True):
                rules = sf.Rules(rounding, flush_out=flush)
                for a in (x | sign for x in ends for sign in (0, f.sign)):
                    n, e = sf.unpack(f, a)
                    for by in powers:
                        assert sf.scale(f, a, by, rules) == sf.pack(f, n, e + by, rules), (a, by)
    f = sf.FORMATS[32]
    assert sf.scale(f, 0x3F800000, 1 << 31, sf.Rules()) == f.infinity
    assert sf.scale(f, 0x3F800000, -(1 << 31), sf.Rules(sf.UP)) == 1


# --- every meaning, as the integer reader has it -------------------------------------------------


def _sources(row: Semantics, inst: Inst, wave: machine.Wave, lane: int) -> list[Bits]:
    count = sum(k not in ("scc", "exec", "execm") for k in row.dst)
    printed = iter(inst.args[count:])
    out: list[Bits] = []
    for kind in row.src:
        if kind == "scc":
            out.append(Bits(wave.scc, 1))
        elif kind == "exec":
            out.append(Bits(wave.exec, 32))
        elif kind == "vcc":
            out.append(Bits(wave.sgprs[106] >> lane & 1, 1))
        elif kind == "lane":
            out.append(Bits(lane, 32))
        elif kind == "neg":
            out.append(Bits(inst.neg, 8))
        elif kind in ("imm", "immz"):
            unsigned = kind == "immz"
            out.append(Bits(inst.imm & 0xFFFF if unsigned else inst.imm & 0xFFFFFFFF, 32))
        elif kind == "m":
            out.append(Bits(wave.read(next(printed), 0) >> lane & 1, 1))
        else:
            acc = kind[:4] == "acc:"
            width = WIDTH[kind[4:] if acc else kind]
            value = wave.read(inst.args[0] if acc else next(printed), lane)
            out.append(Bits(value & ((1 << width) - 1), width))
    return out


def _call(row: Semantics, args: list[Bits]) -> tuple[Bits, ...]:
    out: Bits | tuple[Bits, ...]
    out = row.fn(REF, Mode(), *args) if row.mode else row.fn(REF, *args)
    return out if isinstance(out, tuple) else (out,)


def _ours(row: Semantics, inst: Inst, wave: machine.Wave, lane: int) -> list[tuple[str, int]]:
    """(kind, value) of each result of a lane."""
    args = _sources(row, inst, wave, lane)
    if row.dst[0] in ("p16", "pf16"):
        halves = [_call(row, [Bits(a.n >> at & 0xFFFF, 16) for a in args])[0].n for at in (0, 16)]
        return [(row.dst[0], halves[1] << 16 | halves[0])]
    results = _call(row, args)
    return [(k, r.n) for k, r in zip(row.dst, results, strict=True)]


def _placed(kind: str, value: int, old: int) -> int:
    """The register after a result of that kind."""
    if WIDTH.get(kind) != 16:
        return value
    if kind == "f16hi":
        return old & 0xFFFF | value << 16
    return old & 0xFFFF0000 | value


def _compare(case: cases.Case, vectors: cases.Vectors, wave_number: int, *, read: bool) -> None:
    row, inst = semantics_table()[case.form.op], case.inst
    words = cases.scalars(vectors)[wave_number]
    first = wave_number * cases.LANES

    def wave() -> machine.Wave:
        w = machine.Wave(scc=int(words[cases.SCC]), exec=int(words[cases.EXEC]), completed=read)
        w.sgprs[106] = int(words[cases.VCC])
        for r, group, word in case.vector_loads:
            w.vgprs[r] = vectors[group, first : first + cases.LANES, word].tolist()
        for r, group, word in case.scalar_loads:
            w.sgprs[r] = int(words[10 * group + word])
        return w

    before, after = wave(), wave()
    machine.step(after, inst)
    vector = case.form.op.startswith("v_")
    for lane in range(cases.LANES if vector else 1):
        if vector and not before.exec >> lane & 1:
            continue
        args = iter(inst.args)
        for kind, value in _ours(row, inst, before, lane):
            if kind == "scc":
                got, want = value, after.scc
            elif kind == "exec":
                got, want = value, after.exec
            elif kind == "execm":
                got, want = value, after.exec >> lane & 1
            elif kind == "m":
                got, want = value, after.read(next(args), 0) >> lane & 1
            else:
                dst = next(args)
                got = _placed(kind, value, before.read(dst, lane))
                want = after.read(dst, lane)
            width = compare.result_width(case.form.op)
            same = compare.same(case.form.op, width, got, want)
            inputs_ = [hex(b.n) for b in _sources(row, inst, before, lane)]
            assert same, f"{inst}: {kind} of {inputs_}: {got:#x}, AMD's text {want:#x}"


@pytest.mark.parametrize("waves", [2, pytest.param(16, marks=pytest.mark.sweep)])
def test_every_meaning(waves: int) -> None:
    """A wave has 32 inputs of a vector instruction, and one of a scalar one."""
    vectors = inputs(32 * waves, SEED)
    missing: set[str] = set()
    for form in cases.meaning_forms():
        if form.op in OPEN:
            continue
        try:
            case = cases.make(form, cases.seed(f"{form.text} {SEED}"), vectors)
            for number in range(waves // 2 if form.op.startswith("v_") else waves):
                try:
                    _compare(case, vectors, number, read=False)
                except AssertionError:
                    _compare(case, vectors, number, read=True)
        except NotDescribed:
            missing.add(form.op)
    assert missing == UNDESCRIBED


# --- what is emitted, through the emulator -------------------------------------------------------


def _check(forms: list[cases.Form], vectors: int) -> None:
    tally = measured(forms, inputs(vectors, SEED))
    print(dict(tally.lanes))
    assert not tally.shown, "\n".join(tally.shown)
    without = {op for op, v in tally.verdicts.items() if any(k.startswith("no ") for k in v)}
    assert without <= WITHOUT


def test_some_emitted_forms() -> None:
    """Different forms per seed; from encoded bytes, with modifiers, modes and masks."""
    chance = random.Random(SEED)
    forms = [f for f in recorded() if f.op not in NO_VALUE]
    loads = [f for f in forms if memory.is_memory(f.op)]
    rest = [f for f in forms if f not in loads and not control.is_branch(f.op)]
    _check([*chance.sample(loads, 6), *chance.sample(rest, 20)], 64)


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(8))
def test_all_emitted_forms(part: int) -> None:
    _check([*recorded(), *cases.memory_forms()][part::8], 4096)


def test_fixtures_are_recorded() -> None:
    """Every opcode of a translated fixture is in the recorded forms."""
    from sassxlate.disasm.containers.cubin import parse_cubin
    from sassxlate.lowering.pipeline import translate_kernel

    known = {f.op for f in recorded()}
    folder = Path(__file__).resolve().parents[3] / "fixtures" / "kernels" / "sm_90"
    chosen = random.Random(SEED).sample(sorted(folder.glob("*.cubin")), 4)
    for path in chosen:
        cubin = parse_cubin(path.read_bytes())
        for kernel in cubin.kernels:
            items = translate_kernel(cubin, kernel.name).items
            new = {i.op for i in items if isinstance(i, Inst)} - known - NO_VALUE
            assert not new, f"python -m tools.witness.pcode forms {path} --add"


# Forms that LLVM's backend writes and the rules do not.
_LLVMS = (
    "v_cndmask_b32 v1 v1 v1 s1 neg:1", "v_cndmask_b32 v1 v1 v1 s1 neg:2 abs:3",
    "v_cndmask_b32 v1 i v1 vcc_lo neg:3 abs:2", "v_cndmask_b32 v1 s1 v1 s1 abs:1",
)  # fmt: skip


def test_forms_of_llvm() -> None:
    _check([cases.parse(form) for form in _LLVMS], 512)


# --- the manual's own examples -----------------------------------------------------------------

NAN = -1
EXAMPLES: dict[str, dict[int, int]] = {
    "v_rcp_f32": {0xFF800000: 1 << 31, 0xC0000000: 0xBF000000, 1 << 31: 0xFF800000,
                  0: 0x7F800000, 0x7F800000: 0},
    "v_exp_f32": {0xFF800000: 0, 1 << 31: 0x3F800000, 0x7F800000: 0x7F800000},
    "v_log_f32": {0xFF800000: NAN, 0xBF800000: NAN, 1 << 31: 0xFF800000, 0: 0xFF800000,
                  0x3F800000: 0, 0x7F800000: 0x7F800000},
    "v_rsq_f32": {0xFF800000: NAN, 1 << 31: 0xFF800000, 0: 0x7F800000, 0x40800000: 0x3F000000,
                  0x7F800000: 0},
    "v_sqrt_f32": {0xFF800000: NAN, 1 << 31: 1 << 31, 0: 0, 0x40800000: 0x40000000,
                   0x7F800000: 0x7F800000},
    "v_sin_f32": {0xFF800000: NAN, 0xFF7FFFFF: 0, 1 << 31: 1 << 31, 0x3E800000: 0x3F800000,
                  0x7F800000: NAN},
    "v_cos_f32": {0xFF800000: NAN, 0xFF7FFFFF: 0x3F800000, 1 << 31: 0x3F800000, 0x3E800000: 0,
                  0x7F800000: NAN},
    "v_clz_i32_u32": {0: 0xFFFFFFFF, 0x800000FF: 0, 0x100000FF: 3, 0xFFFF: 16, 1: 31},
    "v_ctz_i32_b32": {0: 0xFFFFFFFF, 0xFF000001: 0, 0xFF000008: 3, 0xFFFF0000: 16, 1 << 31: 31},
    "v_cls_i32": {0: 0xFFFFFFFF, 0x40000000: 1, 1 << 31: 1, 0x0FFFFFFF: 4, 0xFFFF0000: 16,
                  0xFFFFFFFE: 31, 0xFFFFFFFF: 0xFFFFFFFF},
}  # fmt: skip


@pytest.mark.parametrize("op", EXAMPLES)
def test_examples_of_the_manual(op: str) -> None:
    """Section 16.8 of AMD's RDNA3 ISA manual."""
    for a, want in EXAMPLES[op].items():
        (got,) = _call(semantics_table()[op], [Bits(a, 32)])
        if want == NAN:
            assert sf.is_nan(sf.FORMATS[32], got.n), hex(a)
        else:
            assert got.n == want, (hex(a), hex(got.n))


# --- what this witness has found --------------------------------------------------------------


def test_signed_fields_past_the_top() -> None:
    """Bits above the source are copies of its sign."""
    row = semantics_table()["v_bfe_i32"]
    (got,) = _call(row, [Bits(0x86FD92CD, 32), Bits(17, 32), Bits(17, 32)])
    assert got.n == 0xFFFFC37E
    for op, width in (("s_bfe_i32", 32), ("s_bfe_i64", 64)):
        top = Bits(1 << (width - 1), width)
        for field in (width, width - 1, 17):
            got, scc = _call(semantics_table()[op], [top, Bits(field << 16 | width - 8, 32)])
            assert (got.n, scc.n) == ((1 << width) - 128, 1), (op, field)


def test_sine_of_a_denormal() -> None:
    (got,) = _call(semantics_table()["v_sin_f32"], [Bits(1, 32)])
    assert got.n == 6


def test_atomic_additions_flush() -> None:
    """Denormal operands, in memory or in the register, count as zeros outside of LDS."""
    vectors = inputs(64, SEED)
    vectors[1, ::2, :] = 0x00400001
    form = cases.Form("global_atomic_add_f32", ("v2", "v1", "off"))
    execs = np.full(2, 0xFFFFFFFF, dtype=np.uint32)
    ((plain, rest),) = memory.run([memory.plan(form, vectors)], vectors, execs)
    assert plain
    assert not rest


def test_a_wrong_meaning_is_found() -> None:
    """The comparison fails for a different instruction."""
    vectors = inputs(64, SEED)
    form = cases.parse("v_sub_nc_u32 v1 v1 v1")
    case = cases.make(form, random.Random(1), vectors)
    (outcome,) = cases.emulated([case], vectors)
    other = cases.make(cases.parse("v_subrev_nc_u32 v1 v1 v1"), random.Random(1), vectors)
    assert not compare.compare(case, vectors, outcome, range(2))
    assert compare.compare(other, vectors, outcome, range(2))
