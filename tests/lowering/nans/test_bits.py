"""The bits of NaN results, wherever code reads them, equal the interpreter's."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from sassxlate.cfg import liveness
from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.containers.values import Cubin
from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.disasm.sass.instruction import RegRef
from sassxlate.lowering.kernel_graph import kernel_cfg
from sassxlate.lowering.nans.bits import NanBits, nan_bits
from sassxlate.lowering.nans.reads import Nan, numeric, nvcc_routine
from sassxlate.lowering.nans.values import Bounds, float_result
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.verify import Proved, Refuted, verify
from sassxlate.lowering.verify.block.of_kernel import blocks
from tests.disasm.sass.interpreter.launches import Prepared, Words, assembled, with_code
from tests.lowering.nans import generated_nans

HERE = Path(__file__).resolve().parent
_EACH = 8 * 4096  # words that a kernel of nan_bits.cu writes


# --- whole kernels -------------------------------------------------------------------------------


def _same(prepared: Prepared) -> Words:
    ours, theirs = prepared.interpreted(), prepared.translated()
    wrong = np.flatnonzero(ours != theirs)
    assert [(int(i), hex(ours[i]), hex(theirs[i])) for i in wrong[:4]] == []
    return theirs


def _measured() -> dict[str, str]:
    lines = (HERE / "nan_bits.txt").read_text().splitlines()
    return dict(line.split(": ") for line in lines if not line.startswith("#"))


def _digest(words: Words) -> str:
    return hashlib.blake2b(words.tobytes(), digest_size=8).hexdigest()


@pytest.mark.parametrize(("seed", "arch"), [(4, 90), (6, 80), (10, 90), (12, 80), (25, 90)])
def test_random_kernels(seed: int, arch: int) -> None:
    _same(generated_nans.of_seed(seed, arch))


@pytest.mark.sweep
@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize("seed", range(150))
def test_more_random_kernels(seed: int, arch: int) -> None:
    _same(generated_nans.of_seed(seed, arch))


@cache
def _cubin(arch: int, folder: Path) -> Cubin:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not on PATH")
    made = folder / f"nan_bits_{arch}.cubin"
    flags = ["-O3", "-std=c++17", f"-arch=sm_{arch}", "-cubin"]
    words = [nvcc, *flags, HERE / "nan_bits.cu", "-o", made]
    subprocess.run(words, check=True, capture_output=True)
    return parse_cubin(made.read_bytes())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("nan_bits")


def _of_cuda(kernel: str, arch: int, folder: Path) -> Prepared:
    kind, _, number = kernel.partition(" ")
    wanted = f"{kind}ILi{number}E" if number else kind
    cubin = _cubin(arch, folder)
    (name,) = (k.name for k in cubin.kernels if wanted in k.name)
    none = np.zeros(4, np.uint32)
    out = np.zeros(_EACH, np.uint32)
    return Prepared(cubin, name, (32, 1, 1), (128, 1, 1), (none, none, out), 0)


_KERNELS = ["loops", *(f"floats {n}" for n in range(20)), *(f"halves {n}" for n in range(13))]
_SHORT = {"loops", "halves 2", "halves 3", "halves 10"} | {f"floats {n}" for n in (1, 3, 4, 9, 18)}


@pytest.mark.parametrize(
    ("kernel", "arch"),
    [
        pytest.param(name, arch, marks=[pytest.mark.sweep] * (arch != 90 or name not in _SHORT))
        for name in _KERNELS
        for arch in (75, 80, 86, 89, 90, 120)
    ],
)
def test_cuda(kernel: str, arch: int, folder: Path) -> None:
    """copysign, signbit, conversions, integer arithmetic, shuffles and stores of each operation's
    results, over all triples of special values; on an H200 too."""
    words = _same(_of_cuda(kernel, arch, folder))
    if arch == 90 and kernel in (measured := _measured()):
        assert _digest(words) == measured[kernel]


@pytest.mark.parametrize(
    ("number", "arch"),
    [
        pytest.param(n, arch, marks=[pytest.mark.sweep] * (arch != 90 or n not in (1, 3, 4, 8)))
        for n in range(12)
        for arch in (75, 80, 90, 120)
    ],
)
def test_doubles(number: int, arch: int, folder: Path) -> None:
    """The operand whose NaN is propagated, and its sign, as on an H200."""
    kernel = f"doubles {number}"
    words = _same(_of_cuda(kernel, arch, folder))
    if arch == 90:
        assert _digest(words) == _measured()[kernel]


_SUMS = """
S2R R0, SR_TID.X ;
ULDC.64 UR6, c[0x0][0x208] ;
ULDC.64 UR4, c[0x0][0x210] ;
MOV R2, UR4 ;
MOV R3, UR5 ;
IMAD.WIDE R2, R0, 0x4, R2 ;
ULDC.64 UR4, c[0x0][0x220] ;
MOV R4, UR4 ;
MOV R5, UR5 ;
IMAD.WIDE R4, R0, 0x4, R4 ;
LDG.E R6, desc[UR6][R2.64] ;
REDG.E.ADD.{kind}.RN.STRONG.GPU desc[UR6][R4.64], R6 ;
EXIT ;
"""


@pytest.mark.parametrize("kind", ["F32", "F16x2"])
def test_atomic_sums(kind: str) -> None:
    """They leave NVIDIA's NaN in memory."""
    values = np.array(generated_nans.SPECIAL, np.uint32)
    a, out = (w.ravel().copy() for w in np.meshgrid(values, values))
    cubin = with_code(assembled(_SUMS.format(kind=kind), 90), 90)
    count = len(a) // 32 * 32
    inputs = a[:count], a[:4], out[:count]
    shapes = (1, 1, 1), (count, 1, 1)
    _same(Prepared(cubin, "divergent_if", *shapes, inputs, count))


# --- where results are put right -----------------------------------------------------------------

_HEAD = "MOV R2, 0x1000 ;\nMOV R3, 0x0 ;\nLDG.E R4, [R2.64] ;\nLDG.E R5, [R2.64+0x4] ;\n"


def _found(text: str) -> tuple[NanBits, list[str]]:
    """The result of the pass on a kernel for sm_80, and the text of its instructions."""
    (kernel,) = with_code(assembled(_HEAD + text, 80), 80).kernels
    cfg = kernel_cfg(kernel)
    texts = [i.text for b in cfg.blocks for i in b.instructions]
    return nan_bits(cfg, liveness(cfg)), texts


def _names(found: NanBits, texts: list[str]) -> tuple[list[str], list[str]]:
    before = [texts[at // 16] for at in sorted(found.before)]
    return before, [texts[at // 16] for at in sorted(found.after)]


def test_loops_that_compute_are_left_alone() -> None:
    found, texts = _found(
        "MOV R6, RZ ;\nMOV R7, 0x10 ;\n.L:\nFFMA R6, R4, R5, R6 ;\nIADD3 R7, R7, -0x1, RZ ;\n"
        "ISETP.GT.AND P0, PT, R7, RZ, PT ;\n@P0 BRA `(.L) ;\nSTG.E [R2.64], R6 ;\nEXIT ;\n"
    )
    assert _names(found, texts) == (["STG.E [R2.64], R6"], [])


def test_results_that_a_loop_reads_are_put_right_before_it() -> None:
    found, texts = _found(
        "FADD R6, R4, R5 ;\nMOV R7, 0x10 ;\n.L:\nLOP3.LUT R8, R6, R7, R8, 0x96, !PT ;\n"
        "IADD3 R7, R7, -0x1, RZ ;\nISETP.GT.AND P0, PT, R7, RZ, PT ;\n@P0 BRA `(.L) ;\n"
        "STG.E [R2.64], R8 ;\nEXIT ;\n"
    )
    assert _names(found, texts) == ([], ["FADD R6, R4, R5"])


def test_what_may_have_been_loaded_is_put_right_where_it_is_computed() -> None:
    """A NaN that was loaded keeps its bits."""
    found, texts = _found(
        "ISETP.GT.AND P0, PT, R5, RZ, PT ;\n@P0 FADD R4, R4, R5 ;\nSTG.E [R2.64], R4 ;\nEXIT ;\n"
    )
    assert _names(found, texts) == ([], ["@P0 FADD R4, R4, R5"])


@pytest.mark.parametrize("made", ["FADD R7, R4, R5", "HADD2 R7, R4, R5"])
def test_a_register_of_a_double_too(made: str) -> None:
    """The register holds a double's word where the guard left the result out: once neither."""
    found, texts = _found(
        "DADD R6, R4, R4 ;\nISETP.GT.AND P0, PT, R5, RZ, PT ;\n"
        f"@P0 {made} ;\n@P0 PRMT R8, R7, 0x5410, RZ ;\nSTG.E [R2.64], R8 ;\nEXIT ;\n"
    )
    assert _names(found, texts) == ([], [f"@P0 {made}"])


def test_each_value_is_put_right_once() -> None:
    found, texts = _found(
        "FMUL R6, R4, R5 ;\nSTG.E [R2.64], R6 ;\nLOP3.LUT R7, R6, 0x1, RZ, 0xc0, !PT ;\n"
        "STG.E [R2.64+0x4], R7 ;\nEXIT ;\n"
    )
    assert _names(found, texts) == (["STG.E [R2.64], R6"], [])


@pytest.mark.parametrize(
    "text",
    [
        "FADD.SAT R6, R4, R5 ;",  # NaN becomes 0
        # As nvcc's exp:
        "FADD.SAT R6, R4, R5 ;\nMOV R7, 0x437c0000 ;\nFFMA.RM R6, R6, R7, 12582913 ;",
        "I2F R6, R4 ;\nFMUL R6, R6, 0.5 ;",
        "FMNMX R6, R4, 1, PT ;",  # for a number and a NaN, the number
        "FADD R6, R4, R5 ;\nFSETP.GEU.AND P0, PT, R6, R5, PT ;\nSEL R6, R4, R5, P0 ;",
        "FADD R6, R4, R5 ;\nFMUL R6, R6, R6 ;\nF2I R6, R6 ;",
        "MOV R6, 0xffc00000 ;",
        "HFMA2.MMA R6, -RZ, RZ, 0, 3.0517578125e-05 ;",  # as nvcc writes constants
    ],
)  # fmt: skip
def test_what_costs_nothing(text: str) -> None:
    found, texts = _found(f"{text}\nSTG.E [R2.64], R6 ;\nEXIT ;\n")
    assert _names(found, texts) == ([], [])


def test_an_integer_of_the_uniform_data_path_is_no_nan() -> None:
    for text in ("I2FP.F32.U32 R4, R5", "UI2FP.F32.U32 UR4, UR5", "UI2F.U32 UR4, UR5"):
        ins = decode(assemble(f"{text} ;", 120), 0, 120)
        assert float_result(ins, Bounds()) == 64


def test_halves_and_registers_that_they_are_read_as() -> None:
    """A result of halves that is read as binary32 is read as bits."""
    found, texts = _found("HADD2 R6, R4, R5 ;\nFADD R7, R6, R6 ;\nSTG.E [R2.64], R7 ;\nEXIT ;\n")
    assert found.before[5 * 16] == ((RegRef("R", 6), Nan.HALVES),)
    assert _names(found, texts)[0] == ["FADD R7, R6, R6", "STG.E [R2.64], R7"]


def test_signs_of_extremes_are_bits() -> None:
    plain, signs = (
        decode(assemble(f"FMNMX{name} R7, R6, R5, PT ;", 90, 0), 0, 90) for name in ("", ".XORSIGN")
    )
    assert numeric(plain) == (("Ra", "Rb"), Nan.SINGLE | Nan.HIGH)
    assert numeric(signs) == ((), Nan(0))


def test_reads_of_doubles_are_told() -> None:
    found, _ = _found("DADD R6, R4, R4 ;\nSTG.E.64 [R2.64], R6 ;\nEXIT ;\n")
    assert found.wide == {5 * 16}


def _readings(text: str) -> set[str]:
    """The assumptions under which the blocks of a kernel for sm_80 are proved."""
    cubin = with_code(assembled(_HEAD + text, 80), 80)
    done = translate_kernel(cubin, cubin.kernels[0].name)
    out: set[str] = set()
    for found in blocks(done):
        verdict = verify(found.block)
        assert isinstance(verdict, Proved), verdict
        out |= set(verdict.modulo)
    return out


def test_verdicts_say_where_nan_bits_are_seen() -> None:
    floats = "FADD R6, R4, R5 ;\nLOP3.LUT R7, R6, R4, RZ, 0x3c, !PT ;\nSTG.E [R2.64], R7 ;\n"
    assert _readings(f"{floats}STG.E [R2.64+0x4], R6 ;\nEXIT ;\n") == set()
    doubles = "DADD R6, R4, R4 ;\nSTG.E.64 [R2.64], R6 ;\nEXIT ;\n"
    assert _readings(doubles) == {"NaN payload", "NaN bits of doubles stored"}
    doubles = "DADD R6, R4, R4 ;\nDSETP.GT.AND P0, PT, R6, R4, PT ;\n@P0 STG.E [R2.64], R4 ;\n"
    assert _readings(f"{doubles}EXIT ;\n") == {"NaN payload"}


_CONVERSIONS = """
MOV R12, RZ ;
MOV R13, RZ ;
S2R R0, SR_TID.X ;
ULDC.64 UR6, c[0x0][0x208] ;
ULDC.64 UR4, c[0x0][0x210] ;
MOV R2, UR4 ;
MOV R3, UR5 ;
IMAD.WIDE R2, R0, 0x4, R2 ;
LDG.E R8, desc[UR6][R2.64] ;
ULDC.64 UR4, c[0x0][0x218] ;
MOV R2, UR4 ;
MOV R3, UR5 ;
IMAD.WIDE R2, R0, 0x4, R2 ;
LDG.E R9, desc[UR6][R2.64] ;
ULDC.64 UR4, c[0x0][0x220] ;
MOV R4, UR4 ;
MOV R5, UR5 ;
IMAD.WIDE R4, R0, 0x8, R4 ;
{form} ;
STG.E desc[UR6][R4.64], R12 ;
STG.E desc[UR6][R4.64+0x4], R13 ;
EXIT ;
"""
_HIGH = (
    0x00000000, 0x80000000, 0x3FF80000, 0xBFF34567, 0x7FF00000, 0xFFF00000, 0x7FF80000, 0xFFF80000,
    0x7FF12345, 0xFFF12345, 0x7FFFFFFF, 0xFFFFFFFF, 0x47EFFFFF, 0x380FFFFF, 0x7E007E01, 0xFC01FE01,
)  # fmt: skip


@pytest.mark.parametrize(
    "form",
    [
        *(f"{to}.F64{how} R12, {sign}" for to in ("F2F.F32", "F2F.F16", "F2F.BF16")
          for how, sign in (("", "-R8"), (".RP", "|R8|"), (".RM", "-|R8|"))),
        "F2F.F64.F32 R12, -R9", "F2F.F64.F32 R12, |R8|", "F2F.F64.F32 R12, -|R8|",
        "F2F.F64.F16 R12, -R9", "F2F.F64.F16 R12, |R9|", "F2F.F64.BF16 R12, -|R8|",
        "FRND.F64.FLOOR R12, -R8", "FRND.F64.TRUNC R12, |R8|", "DADD R12, -RZ, |R8|",
        "MUFU.RSQ64H R13, -R9", "MUFU.RCP64H R13, |R9|",
    ],
)  # fmt: skip
def test_signs_of_conversions(form: str) -> None:
    """A NaN keeps the sign that it has in the register, if a double is read or made."""
    high = np.concatenate([np.array(_HIGH, np.uint32)] * 4)
    low = np.repeat(np.array([0, 1, 0xFFC12345, 0x7F812345], np.uint32), len(_HIGH))
    cubin = with_code(assembled(_CONVERSIONS.format(form=form), 90), 90)
    inputs = low, high, np.zeros(2 * len(low), np.uint32)
    _same(Prepared(cubin, "divergent_if", (1, 1, 1), (len(low), 1, 1), inputs, len(low)))


_LOADED = "".join(f"LDG.E.64 R{n}, [R2.64] ;\n" for n in (8, 10, 12))
_READ = "LOP3.LUT R7, R{}, R4, RZ, 0x3c, !PT ;\nSTG.E [R2.64], R7 ;\nEXIT ;\n"


@pytest.mark.parametrize(
    ("text", "high"),
    [
        ("DADD R6, R8, R10 ;", 7),
        ("DADD R6, -R8, |R10| ;", 7),
        ("DADD R8, -RZ, |R8| ;", 9),  # fabs
        ("DADD.RM R8, -RZ, -R8 ;", 9),
        ("DMUL R8, R8, R8 ;", 9),
        ("DMUL R8, R8, -c[0x0][0x160] ;", 9),
        ("DFMA R6, R8, -R10, R12 ;", 7),
        ("DFMA.RP R8, R8, R10, -R8 ;", 9),
        ("DFMA R8, R8, 2, R10 ;", 9),
        ("@P0 DFMA R8, R8, R10, R12 ;", 9),
        ("FRND.F64.FLOOR R6, -R8 ;", 7),
        ("MUFU.RCP64H R7, R9 ;", 7),
        ("MUFU.RSQ64H R9, -R9 ;", 9),
        ("DADD R6, R8, R10 ;\nDFMA R6, R6, R8, R10 ;\nDMUL R8, R6, -R6 ;", 9),
    ],
)
def test_operations_of_doubles_whose_bits_are_read(text: str, high: int) -> None:
    """Proved to the bit: the operand whose NaN is propagated, and its sign."""
    bits = _readings(f"{_LOADED}{text}\n{_READ.format(high)}")
    assert bits <= {"approximations"}


@pytest.mark.parametrize("text", ["DADD R6, R8, R10 ;", "DFMA R6, R8, -R10, R12 ;"])
def test_doubles_whose_nan_is_not_chosen_are_refuted(text: str) -> None:
    cubin = with_code(assembled(f"{_HEAD}{_LOADED}{text}\n{_READ.format(7)}", 80), 80)
    (found,) = blocks(translate_kernel(cubin, cubin.kernels[0].name))
    fixed = found.block
    for op in ("v_cndmask_b32", "v_or_b32"):
        left_out = [[s for s in code if s.inst.op != op] for code in fixed.rdna]
        assert not isinstance(verify(replace(fixed, rdna=left_out)), Proved)


def test_doubles_that_are_only_stored_cost_nothing() -> None:
    """A store of the whole double sees its NaN, too: the verdict says so."""
    found, _ = _found("DADD R6, R4, R4 ;\nDMUL R6, R6, R4 ;\nSTG.E.64 [R2.64], R6 ;\nEXIT ;\n")
    assert (found.exact, found.wide) == (frozenset(), {6 * 16})
    found, _ = _found("DADD R6, R4, R4 ;\nDMUL R6, R6, R4 ;\nSTG.E [R2.64], R7 ;\nEXIT ;\n")
    assert (found.exact, found.wide) == ({4 * 16, 5 * 16}, frozenset())


def test_a_float_of_a_double_has_its_sign() -> None:
    """A read of the float's bits reads the double's; arithmetic does not."""
    text = "DADD R6, R4, R4 ;\nF2F.F32.F64 R8, R6 ;\nFADD R9, R8, R8 ;\n"
    assert _found(f"{text}STG.E [R2.64], R9 ;\nEXIT ;\n")[0].exact == frozenset()
    assert _found(f"{text}STG.E [R2.64], R8 ;\nEXIT ;\n")[0].exact == {4 * 16}


@pytest.mark.parametrize(
    ("name", "routine"),
    [
        ("$__internal_0_$__cuda_sm20_div_rn_f64_full", True),
        ("$__internal_1_$__cuda_sm20_dsqrt_rn_f64_mediumpath_v1", True),
        ("$__internal_2_$__cuda_sm20_dblrcp_rn_slowpath_v3", True),
        ("_Z6dividedd", False),
        ("$__internal_0_$__cuda_sm70_shflsync_bfly", False),
    ],
)
def test_routines_of_nvcc(name: str, routine: bool) -> None:
    assert nvcc_routine(name) is routine


def test_code_without_the_fix_is_refuted() -> None:
    """Code that reads the bits of an unrepaired NaN is not a correct translation."""
    text = "FADD R6, R4, R5 ;\nLOP3.LUT R7, R6, R4, RZ, 0x3c, !PT ;\nSTG.E [R2.64], R7 ;\nEXIT ;\n"
    cubin = with_code(assembled(_HEAD + text, 80), 80)
    (found,) = blocks(translate_kernel(cubin, cubin.kernels[0].name))
    fixed = found.block
    left_out = [[s for s in code if s.inst.op != "v_max3_f32"] for code in fixed.rdna]
    assert sum(map(len, left_out)) == sum(map(len, fixed.rdna)) - 1
    assert isinstance(verify(fixed), Proved)
    assert isinstance(verify(replace(fixed, rdna=left_out)), Refuted)


_GUARDED = """
S2R R0, SR_TID.X ;
LDCU.64 UR6, c[0x0][0x358] ;
LDCU.64 UR4, c[0x0][0x390] ;
LDCU UR12, c[0x0][0x398] ;
S2UR UR8, SR_CTAID.X ;
MOV R2, UR4 ;
MOV R3, UR5 ;
UMOV UR10, 0x80000003 ;
ULEA UR9, UR8, URZ, 0x5 ;
UISETP.NE.U32.AND UP0, UPT, UR8, URZ, UPT ;
@UP0 UFADD UR10, UR10, UR12 ;
IADD3 R8, PT, PT, R0, UR9, RZ ;
IMAD.WIDE R2, R8, 0x4, R2 ;
@UP0 ULOP3.LUT UR10, UR10, 0x5, URZ, 0x3c, !UPT ;
MOV R9, UR10 ;
STG.E desc[UR6][R2.64], R9 ;
EXIT ;
"""


def test_a_uniform_result_that_its_guard_leaves_out() -> None:
    """Block 0 leaves the sum out: what repairs the sum's NaN must leave the register alone, too."""
    none, count = np.zeros(4, np.uint32), 64  # the count is an addend
    cubin = with_code(assembled(_GUARDED, 120), 120)
    inputs = none, none, np.zeros(count, np.uint32)
    words = _same(Prepared(cubin, "divergent_if", (2, 1, 1), (32, 1, 1), inputs, count))
    assert set(words[:32]) == {0x80000003}
    assert set(words[32:]) == {(count - 3) ^ 5}  # denormal numbers
