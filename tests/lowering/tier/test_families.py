"""Code for RDNA2 and RDNA4, which no table of ours reads: LLVM's assembler is the witness.

It makes the same bytes of our listing, so each instruction is where, and what, we say.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from sassxlate import toolchain
from sassxlate.cli import cli
from sassxlate.disasm.containers.elf import Elf
from sassxlate.errors import LoweringError
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.select.translated import Translated
from sassxlate.lowering.target import GFX1100, TARGETS, Target
from sassxlate.lowering.tier.families import FAMILIES
from sassxlate.lowering.tier.families.encodings import Encodings, places
from sassxlate.lowering.tier.families.stand_ins import instructions, replaced
from sassxlate.lowering.tier.numbers import stand_ins
from sassxlate.lowering.tier.refusal import Refused
from sassxlate.lowering.tier.report import chosen
from sassxlate.lowering.tier.translate import by_tier
from sassxlate.runtime_shim.selftest.contracts.contracts import CONTRACTS
from sassxlate.runtime_shim.service.engine import default_engine
from tests.lowering.emulated import load
from tools.witness.llvm import llvm

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
CPUS = ("gfx1030", "gfx1201")
OTHERS = [t for t in TARGETS.values() if not t.has_rules]
# With barriers, scratch, atomics, an aligned loop, conversions and roundings.
KERNELS = ("conversions", "local_array", "dynamic_shared", "uniform_loop", "cas64_loop")

needs_clang = pytest.mark.skipif(toolchain.clang() is None, reason="no clang")
by_cpu = pytest.mark.parametrize("target", [TARGETS[cpu] for cpu in CPUS], ids=CPUS)


def text_section(source: Sequence[str], target: Target) -> bytes:
    """LLVM's machine code of instructions."""
    data, messages = llvm.assemble_object("\n".join(source) + "\n", cpu=target.name)
    assert data is not None, messages[:2000]
    return llvm.section(data, ".text")


def listed(made: Translated) -> list[str]:
    """The instructions of its assembly."""
    lines = [line.partition("//")[0].strip() for line in made.assembly.splitlines()]
    return [line for line in lines if line]


@cache
def made_for(name: str, target: Target) -> Translated:
    return by_tier(translate_kernel(load(name, 80), name, target=target.of_rules), target)


def check(name: str, target: Target) -> None:
    made = made_for(name, target)
    assert text_section(listed(made), target) == made.program.data
    assert made.report.rdna_instructions == len(made.program.offsets)
    elf = Elf(made.code_object)
    assert elf.flags == target.flags
    assert elf.abiversion == (4 if target.generic_version else 3)
    assert target.isa.encode() in made.code_object
    assert made.program.data in made.code_object


@needs_clang
@by_cpu
@pytest.mark.parametrize("name", KERNELS)
def test_every_byte_is_what_the_listing_says(name: str, target: Target) -> None:
    check(name, target)


@needs_clang
@pytest.mark.sweep
@pytest.mark.parametrize("target", OTHERS, ids=lambda t: t.name)
def test_every_byte_of_every_kernel(target: Target) -> None:
    taken = 0
    for name in sorted(CONTRACTS):
        if (FIXTURES / "kernels" / "sm_80" / f"{name}.cubin").exists():
            try:
                made_for(name, target)
            except Refused:
                continue
            check(name, target)
            taken += 1
    assert taken > len(CONTRACTS) // 3


def stand_in(real_number: int, family: Encodings, rng: random.Random) -> list[str]:
    """Texts of instructions that stand for one of NUMBERED, with operands of all kinds."""
    real = stand_ins.NUMBERED[real_number]
    word = ("v7", "s9", "vcc_lo", "0x3fc00001", "5", "-3", "1.0")
    if real.op.endswith("f64") and "cvt" not in real.op:
        if real.sources == 3:
            return [f"v_mqsad_u32_u8 v[2:5], v[6:7], {real_number}, v[8:11]"]
        return [f"v_qsad_pk_u16_u8 v[2:3], s[4:5], {real_number}, v[8:9]"]
    if "f64" in real.op:
        return [f"v_qsad_pk_u16_u8 v[2:3], {a}, {real_number}, 0" for a in ("v[6:7]", "s[8:9]")]
    sources = [a for a in word if real.sources == 1 or a[0] != "0"]
    pairs = [(a, "v3" if real.sources == 2 else "0") for a in sources]
    del family
    return [f"v_sad_u8 v1, {a}, {b}, {real_number}" for a, b in rng.sample(pairs, len(pairs))]


@needs_clang
@by_cpu
def test_stand_ins_become_what_they_stand_for(target: Target) -> None:
    """The bytes are those of the text, and the text names the real instruction."""
    family = FAMILIES[target.instructions]
    rng = random.Random(target.name)
    source: list[str] = ["s_cbranch_execz 1", "s_nop 0"]
    for number in range(len(stand_ins.NUMBERED)):
        source += stand_in(number, family, rng)
    source += [f"{name} v1, v2, s3, 0x12345678" for name in sorted(stand_ins.FUSED_REAL)]
    code = text_section(source, target)
    starts = [at for at, _ in places(code, family)]
    assert len(starts) == len(source)
    done = replaced(code, source, [(at, n + 1) for n, at in enumerate(starts)], family)
    texts = list(itertools.chain(*(text.split("\n") for text in done.texts)))
    texts[0] = f"s_cbranch_execz {int.from_bytes(done.code[:2], 'little')}"
    assert text_section(texts, target) == done.code
    said = " ".join(texts)
    for real in (*stand_ins.NUMBERED, *stand_ins.FUSED_REAL.values()):
        assert family.names.get(real.op, real.op) in said
    assert not any(name in said for name in stand_ins.STAND_INS)
    lines = dict(done.lines)
    for at, text in zip([at for at, _ in places(done.code, family)], texts, strict=True):
        assert at in lines or text.startswith(("s_round_mode", "s_denorm_mode", "v_")), text


@needs_clang
@by_cpu
def test_roundings_are_between_changes_of_the_mode(target: Target) -> None:
    family = FAMILIES[target.instructions]
    add = next(n for n, r in enumerate(stand_ins.NUMBERED) if r.op == "v_add_f32" and r.mode == 5)
    source = [f"v_sad_u8 v1, v2, v3, {add}", f"v_sad_u8 v4, v1, v3, {add}", "v_mov_b32_e32 v5, v4"]
    done = replaced(text_section(source, target), source, [], family)
    assert done.texts == (
        "s_round_mode 0x5", "v_add_f32_e64 v1, v2, v3", "v_add_f32_e64 v4, v1, v3",
        "s_round_mode 0x0", "v_mov_b32_e32 v5, v4",
    )  # fmt: skip
    assert text_section(done.texts, target) == done.code


@needs_clang
@by_cpu
def test_code_that_is_not_its_text_is_refused(target: Target) -> None:
    family = FAMILIES[target.instructions]
    source = ["s_nop 0", "v_mov_b32_e32 v1, v2", "s_branch 65535"]
    code = text_section(source, target)
    assert replaced(code, source, [], family).code == code
    for wrong in (source[:2], [*source, "s_nop 0"], [source[1], source[0], source[2]],
                  [source[0], "v_sad_u8 v1, v2, v3, 0", source[2]]):  # fmt: skip
        with pytest.raises(Refused, match="text"):
            replaced(code, wrong, [], family)
    hidden = text_section(["v_sad_u8 v1, v2, v3, 0"], target)
    with pytest.raises(Refused, match="text"):
        replaced(hidden, ["v_bfi_b32 v1, v2, v3, 0"], [], family)
    long = ["v_mov_b32_e32 v1, 0x12345678", "s_branch 65534"]
    data = text_section(long, target)
    with pytest.raises(Refused, match="into an instruction"):
        replaced(data, long, [], family)
    with pytest.raises(Refused, match="format"):
        places(bytes.fromhex("ffffffff00000000"), family)
    clamped = ["v_sad_u8 v1, v2, v3, 4 clamp"]
    data = text_section(clamped, target)
    with pytest.raises(Refused, match="modifiers"):
        replaced(data, clamped, [], family)


def test_an_aligned_place_has_s_nop_before_it() -> None:
    family = FAMILIES["RDNA2"]
    code = bytes.fromhex("000080bf" * 4 + "000081bf")
    lines = ("\ts_nop 0 ; one", "\t.p2align\t4, , 4", ".LBB0_1:", "\ts_endpgm")
    body = "\n".join(lines)
    found = instructions(f"\nk:\n{body}\n.Lfunc_end0:\n\ts_nop 1\n", "k")
    assert found == ["s_nop 0", ".p2align 4, , 4", "s_endpgm"]
    assert replaced(code, found, [], family).texts == ("s_nop 0",) * 4 + ("s_endpgm",)
    with pytest.raises(Refused, match="other instructions than s_nop"):
        replaced(code[:8] + code[16:] + code[8:16], found, [], family)


def test_scratch_of_rdna2_needs_its_own_registers() -> None:
    """The buffer of the private segment is among the user SGPRs, and the wave's offset after the
    workgroup's numbers: the descriptor is LLVM's."""
    made = made_for("local_array", TARGETS["gfx1030"])
    elf = Elf(made.code_object)
    (rodata,) = (bytes(s.data) for s in elf.sections if s.name == ".rodata")
    assert int.from_bytes(rodata[4:8], "little") > 0  # private_segment_fixed_size
    assert rodata[56] & 1  # enable_sgpr_private_segment_buffer
    assert rodata[52] & 1  # enable_private_segment: the offset
    assert "buffer_store_dword" in made.assembly


def test_an_atomic_sum_flushes_on_rdna2() -> None:
    """It has no global_atomic_add_f32: the loop of LLVM's own would keep denormals."""
    asked = {t: made_for("global_atomics", TARGETS[t]).assembly for t in CPUS}
    assert "global_atomic_add_f32" in asked["gfx1201"]
    assert "atomic_add_f32" not in asked["gfx1030"]
    before, _, after = asked["gfx1030"].partition("v_add_f32")
    assert before.rstrip().rpartition("\n")[2].split()[:2] == ["s_denorm_mode", "0xc"]
    assert after.partition("\n")[2].split()[:2] == ["s_denorm_mode", "0xf"]
    assert "global_atomic_cmpswap" in after


def test_the_rules_write_nothing_for_them() -> None:
    for target in OTHERS:
        with pytest.raises(LoweringError) as caught:
            translate_kernel(load("divergent_if", 80), "divergent_if", target=target)
        assert caught.value.code == "SX0465"
        assert target.of_rules.most_threads(100) == target.most_threads(100)
    assert GFX1100.of_rules is GFX1100


def test_what_the_tier_refuses_is_refused() -> None:
    target = TARGETS["gfx1201"]
    name = "named_barriers"
    rules = translate_kernel(load(name, 80), name, target=target.of_rules)
    with pytest.raises(Refused):
        chosen(rules, target, "best")
    rules = translate_kernel(load("divergent_if", 80), "divergent_if", target=target.of_rules)
    made, report = chosen(rules, target, "best")
    assert made.code_object != rules.code_object
    assert report.blocks[0].outcome == "accepted"


def test_the_service_asks_the_tier() -> None:
    """So `run --device hip` has code for a card of another family; refusals are errors there."""
    target = TARGETS["gfx1201"]
    engine = default_engine(target)
    cubin = load("divergent_if", 80)
    made = engine.translate(cubin, cubin.kernels[0])
    assert Elf(made.code_object).flags == target.flags
    assert "kernarg_size" in str(made.launch)
    waits = load("named_barriers", 80)
    with pytest.raises(Refused):
        engine.translate(waits, waits.kernels[0])


def test_the_command(tmp_path: Path) -> None:
    """LLVM is asked without an option; other engines, and the emulated device, are refused."""
    cubin = str(FIXTURES / "kernels" / "sm_80" / "divergent_if.cubin")
    asked = ["translate", "--target", "gfx12-generic", cubin, "-o", str(tmp_path)]
    done = CliRunner().invoke(cli, asked)
    assert done.exit_code == 0, done.output
    (file,) = tmp_path.glob("*.hsaco")
    assert Elf(file.read_bytes()).flags == TARGETS["gfx12-generic"].flags
    assert "s_wait_kmcnt" in file.with_suffix(".s").read_text()
    refused = CliRunner().invoke(cli, [*asked, "--engine", "search"])
    assert "SX1008" in refused.output
    judged = CliRunner().invoke(cli, [*asked, "--verify"])
    assert "SX0465" in judged.output
    warmed = CliRunner().invoke(cli, ["warm", "--target", "gfx1201", "--engine", "llvm", cubin])
    assert "SX0719" in warmed.output
    ran = CliRunner().invoke(cli, ["run", "--device", "emulator", "--target", "gfx1201", "true"])
    assert "SX0719" in ran.output
