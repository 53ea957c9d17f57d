"""LLVM 22 agrees on the bytes and the text of every instruction of the table."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from random import Random

import pytest

from sassxlate import toolchain
from sassxlate.disasm.containers import code_object
from sassxlate.disasm.rdna3 import OPS, decode, encode, format_inst
from sassxlate.disasm.rdna3.instruction import I, Inst, V
from sassxlate.disasm.rdna3.samples import sample
from tools.witness.llvm import witness
from tools.witness.llvm.llvm import assemble_lines, compile_hip, disassembler

needs_clang = pytest.mark.skipif(toolchain.clang() is None, reason="no clang (wheel ziglang)")
needs_libllvm = pytest.mark.skipif(disassembler() is None, reason="no libLLVM with AMDGPU")


def ambiguous(inst: Inst) -> bool:
    """Instructions whose text LLVM itself does not read back.

    v_cndmask_b16 prints no op_sel (lost for scalars); v_fmac_f16 with a high destination prints
    an op_sel that the parser refuses; f64 literals with a sign modifier are refused.
    """
    if inst.op == "v_cndmask_b16":
        return True
    if inst.op == "v_pk_fmac_f16" and isinstance(inst.args[1], I):
        return True  # printed as a float, but read as one in the low half only
    if inst.op.startswith("v_wmma") and I(0x3E22F983) in inst.args:
        return True  # printed and read as 1/(2 pi) of another type
    if inst.op == "v_fmac_f16" and inst.op_sel & 8:
        return True
    signed = inst.neg | inst.abs
    return "f64" in inst.op and bool(signed) and any(isinstance(a, I) for a in inst.args)


def samples(seed: int, each: int) -> list[Inst]:
    """``each`` legal instructions of every mnemonic."""
    rng = Random(seed)
    return [sample(rng, op) for op in OPS for _ in range(each)]


def check_bytes(insts: list[Inst]) -> None:
    """Our bytes are those that LLVM makes of our text."""
    insts = [i for i in insts if not ambiguous(i)]
    texts = [format_inst(i) for i in insts]
    codes, errors = assemble_lines(texts)
    refused = [f"{texts[i]}: {message}" for i, message in errors.items()]
    assert refused == []
    wrong = [
        f"{text}: {encode(inst).hex()}, LLVM {code.hex() if code else None}"
        for inst, text, code in zip(insts, texts, codes, strict=True)
        if code != encode(inst)
    ]
    assert wrong == []


def check_text(insts: list[Inst]) -> None:
    """LLVM disassembles our bytes to our text."""
    disassemble = disassembler()
    assert disassemble is not None
    wrong: list[str] = []
    for inst in insts:
        code = encode(inst)
        size, text = disassemble(code)
        multiplies = "fmaak" in inst.op + text or "fmamk" in inst.op + text
        if multiplies and int.from_bytes(code[-4:], "little") < 256:
            continue  # LLVM's disassembler reads such a literal as the code of an operand
        if inst.dpp and inst.op in ("v_fma_mixlo_f16", "v_fma_mixhi_f16"):
            continue  # LLVM's disassembler takes the wrong bits for the control
        ours = format_inst(inst)
        if (size, text) != (len(code), ours) or format_inst(decode(code)[0]) != ours:
            wrong.append(f"{code.hex()}: {ours}, LLVM {text}")
    assert wrong == []


@needs_clang
def test_bytes_of_every_opcode() -> None:
    check_bytes(samples(1, 4))


@needs_clang
@pytest.mark.sweep
def test_bytes_of_every_opcode_at_length() -> None:
    check_bytes(samples(2, 60))


@needs_libllvm
def test_text_of_every_opcode() -> None:
    check_text(samples(3, 4))


@needs_libllvm
@pytest.mark.sweep
def test_text_of_every_opcode_at_length() -> None:
    check_text(samples(4, 60))


@needs_clang
def test_shortest_encoding_is_llvms() -> None:
    """Without a suffix in the text, LLVM chooses the size that we choose."""
    rng = Random(5)
    insts = [sample(rng, op) for op in OPS if op.startswith("v_") for _ in range(2)]
    insts = [i for i in insts if not i.enc and not ambiguous(i) and not OPS[i.op].is_vopd]
    # LLVM folds the sign of a constant into it.
    insts = [i for i in insts if not (i.neg | i.abs and any(isinstance(a, I) for a in i.args))]
    texts = [format_inst(i).replace("_e32", "").replace("_e64", "") for i in insts]
    texts = [t.replace("_dpp ", " ") for t in texts]
    codes, errors = assemble_lines(texts)
    assert {texts[i]: m for i, m in errors.items()} == {}
    wrong = [
        f"{t}: {encode(i).hex()}, LLVM {c.hex() if c else None}"
        for i, t, c in zip(insts, texts, codes, strict=True)
        if c != encode(i)
    ]
    assert wrong == []


# Constants whose encoding depends on the operand's type.
CONSTANTS = {
    "s_mov_b64 s[0:1], 0xffffffff": ("s_mov_b64", 2, 0xFFFFFFFF),
    "s_mov_b64 s[0:1], -1": ("s_mov_b64", 2, -1),
    "s_mov_b64 s[0:1], 1.0": ("s_mov_b64", 2, 0x3FF0000000000000),
    "s_mov_b32 s0, 1.0": ("s_mov_b32", 1, 0x3F800000),
    "s_mov_b32 s0, 0xfffffff0": ("s_mov_b32", 1, -16),
    "s_mov_b32 s0, 0xffffffef": ("s_mov_b32", 1, -17),
}


@needs_clang
def test_constants_of_64_bits() -> None:
    from sassxlate.disasm.rdna3.instruction import S

    codes, errors = assemble_lines(list(CONSTANTS))
    assert errors == {}
    for code, (op, n, value) in zip(codes, CONSTANTS.values(), strict=True):
        assert code == encode(Inst(op, (S(0, n), I(value))))


@needs_clang
def test_float_constants_by_type() -> None:
    cases = {
        "v_add_f64 v[0:1], v[2:3], 2.0": ("v_add_f64", 2, 0x4000000000000000),
        "v_add_f64 v[0:1], v[2:3], 0x40590000": ("v_add_f64", 2, 0x4059000000000000),
        "v_pk_add_f16 v0, v1, 1.0": ("v_pk_add_f16", 1, 0x3C00),
        "v_pk_add_u16 v0, v1, 0x3c003c00": ("v_pk_add_u16", 1, 0x3C003C00),
    }
    codes, errors = assemble_lines(list(cases))
    assert errors == {}
    for code, (op, n, value) in zip(codes, cases.values(), strict=True):
        assert code == encode(Inst(op, (V(0, n), V(n, n), I(value)))), op


def test_table_is_what_the_generator_makes() -> None:
    tinygrad = pytest.importorskip("tinygrad")
    del tinygrad
    root = Path(__file__).resolve().parents[3]
    table = json.loads((root / "disasm" / "rdna3" / "tables" / "opcodes.json").read_text())
    if f"tinygrad {version('tinygrad')};" not in table[""]:
        pytest.skip("another version of tinygrad")
    done = subprocess.run(
        [sys.executable, "-m", "tools.generate.rdna3_table", "--check"], check=False, cwd=root
    )
    assert done.returncode == 0


KERNELS = sorted(Path(__file__).with_name("kernels").glob("*.hip"))


@needs_clang
@needs_libllvm
@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("path", KERNELS, ids=lambda path: str(path.stem))
def test_compiled_kernels(path: Path, level: int) -> None:
    """Every word of what clang makes of HIP kernels has LLVM's text."""
    disassemble = disassembler()
    assert disassemble is not None
    data, messages = compile_hip(path, level)
    assert data is not None, messages
    tally = witness.Tally()
    for section in code_object.read(data).sections:
        at = 0
        while section.code and at < len(section.data):
            at += witness.judge(tally, disassemble, section.data[at : at + 12]) or 4
    assert [row for row in tally.rows if row[0] != "equal"] == []
    assert tally.counts["equal"] == tally.counts["words"] > 500


# Instructions whose immediate has a text of its own, as words without it; DS has a second word.
IMMEDIATES = {
    "s_waitcnt": 0xBF890000,
    "s_delay_alu": 0xBF870000,
    "s_sendmsg": 0xBFB60000,
    "s_waitcnt_depctr": 0xBF880000,
    "s_getreg_b32": 0xB8800000,
    "s_setreg_b32": 0xB9000000,
    "s_version": 0xB0800000,
    "s_nop": 0xBF800000,
    "s_clause": 0xBF850000,
    "s_round_mode": 0xBF910000,
    "s_wait_event": 0xBF8B0000,
    "s_endpgm": 0xBFB00000,
    "s_movk_i32": 0xB0000000,
    "s_cmpk_lt_u32": 0xB6800000,
    "ds_swizzle_b32": 0x02000001 << 32 | 0xD8D40000,
}


def check_immediates(step: int) -> None:
    disassemble = disassembler()
    assert disassemble is not None
    for op, word in IMMEDIATES.items():
        for imm in range(0, 1 << 16, step):
            code = (word | imm).to_bytes(16, "little")
            text = disassemble(code)[1]
            inst = decode(code)[0]
            assert (inst.op, format_inst(inst)) == (op, text)


@needs_libllvm
def test_immediates() -> None:
    check_immediates(101)


@needs_libllvm
@pytest.mark.sweep
def test_all_immediates() -> None:
    check_immediates(1)


@needs_libllvm
def test_instructions_of_rdna35_are_refused() -> None:
    """The scalar unit's floating point (gfx1150) is nothing that gfx1100 has, and LLVM agrees."""
    gen = pytest.importorskip("tinygrad.runtime.autogen.amd.rdna3.enum")
    disassemble = disassembler()
    assert disassemble is not None
    places = {"SOP1": (0xBE800000, 8), "SOP2": (0x80000000, 23), "SOPC": (0xBF000000, 16)}
    refused = 0
    for fmt, (word, place) in places.items():
        for opcode in getattr(gen, f"{fmt}Op"):
            if opcode.name.lower() in OPS:
                continue
            refused += 1
            code = (word | opcode.value << place).to_bytes(16, "little")
            assert witness.ours(code)[1].startswith("SX0520"), opcode.name
            assert disassemble(code)[0] == 0
    assert refused == 58


def check_sweep(words: int, seed: int, gaps: bool) -> None:
    """No word has another text than LLVM's, and none is accepted that LLVM refuses."""
    names = list(witness.FORMATS)
    for name, tally in witness.sweep(names, words, seed, gaps=gaps).items():
        wrong = [row for row in tally.rows if row[0] in ("differs", "alone", "nobodys")]
        # Of literals in v_fma_mix* LLVM prints the lower half, whether or not it is all.
        assert [row for row in wrong if not row[2].startswith("v_fma_mix")] == [], name
        refused = [row[3] for row in tally.rows if row[0] == "gap"]
        assert [text for text in refused if text[:6] not in ("SX0521", "SX0523", "SX0524")] == []


@needs_clang
@needs_libllvm
def test_words_of_every_format() -> None:
    check_sweep(80, 11, gaps=False)


@needs_clang
@needs_libllvm
@pytest.mark.sweep
def test_words_of_every_format_at_length() -> None:
    check_sweep(20_000, 12, gaps=True)
