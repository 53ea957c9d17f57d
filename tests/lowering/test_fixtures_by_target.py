"""Every kernel of the fixtures for every target: LLVM's tools accept the code, and it runs."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from sassxlate import toolchain
from sassxlate.disasm.containers import load
from sassxlate.disasm.containers.values import Cubin
from sassxlate.disasm.rdna3 import decode_program, format_inst
from sassxlate.lowering.codeobject.code_object import read
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.select.translated import Translated
from sassxlate.lowering.target import DEFAULT, TARGETS, Target
from sassxlate.runtime_shim.selftest.contracts.contracts import CONTRACTS
from tests.lowering import emulated
from tools.witness.llvm import llvm

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
ARCHS = (80, 90, 120)
WITH_RULES = {name: t for name, t in TARGETS.items() if t.has_rules}
OTHERS = [t for t in WITH_RULES.values() if t != DEFAULT]
SAMPLE = 3  # kernels of each target that every run of the tests has
LEAST = 150  # kernels of the fixtures
E_FLAGS = slice(48, 52)  # of a 64-bit ELF file

by_target = pytest.mark.parametrize("target", WITH_RULES.values(), ids=WITH_RULES)


@cache
def kernels() -> tuple[tuple[Cubin, str], ...]:
    """All kernels of the cubins and executables among the fixtures."""
    programs = (p for p in (FIXTURES / "programs").iterdir() if p.is_file())
    files = [*FIXTURES.rglob("*.cubin"), *(p for p in programs if os.access(p, os.X_OK))]
    found = [
        (cubin, kernel.name)
        for file in sorted(files)
        for _, cubin in load(file).cubins()
        for kernel in cubin.kernels
    ]
    assert len(found) > LEAST
    return tuple(found)


def made(chosen: Sequence[tuple[Cubin, str]], target: Target) -> list[Translated]:
    """Their translations, whose files say which processor they are for."""
    out = [translate_kernel(cubin, name, target=target) for cubin, name in chosen]
    for done in out:
        obj = read(done.code_object)
        assert obj.target == target
        assert obj.metadata["amdhsa.target"] == target.isa
        entry = obj.kernels[0].entry
        assert obj.text[entry : entry + len(done.program.data)] == done.program.data
    return out


def assembled(code: Sequence[bytes], target: Target) -> None:
    """LLVM's assembler makes the same bytes of the text, and its linker a file with our e_flags."""
    if toolchain.clang() is None:
        pytest.skip("no clang (pip install '.[test]')")
    lines: list[str] = []
    for n, data in enumerate(code):
        lines += [f"K{n}:", *(format_inst(inst) for _, inst in decode_program(data))]
    made_of_text, messages = llvm.assemble_object("\n".join(lines) + "\n", cpu=target.name)
    assert made_of_text is not None, messages[:2000]
    file, messages = llvm.link_object(made_of_text)
    assert file is not None, messages[:2000]
    assert llvm.section(file, ".text") == b"".join(code)
    assert int.from_bytes(file[E_FLAGS], "little") == target.flags


def disassembled(code: Sequence[bytes], target: Target) -> None:
    """LLVM's disassembler finds the same instructions: each is one of the processor's."""
    decode = llvm.disassembler(target.name)
    if decode is None:
        pytest.skip("no libLLVM with AMDGPU (SASSXLATE_LIBLLVM)")
    for data in code:
        for at, end in pairwise([*(at for at, _ in decode_program(data)), len(data)]):
            size, text = decode(data[at:])
            assert size == end - at, (target.name, text, data[at:end].hex())


def sample(target: Target) -> list[tuple[Cubin, str]]:
    return random.Random(target.name).sample(kernels(), SAMPLE)


@by_target
def test_llvm_accepts_a_sample(target: Target) -> None:
    done = made(sample(target), target)
    for one in done:
        assert int.from_bytes(one.code_object[E_FLAGS], "little") == target.flags
    code = [one.program.data for one in done]
    assembled(code, target)
    if llvm.disassembler(target.name) is not None:
        disassembled(code, target)


@pytest.mark.sweep
@by_target
def test_llvm_accepts_all(target: Target) -> None:
    code = [one.program.data for one in made(kernels(), target)]
    assembled(code, target)
    disassembled(code, target)


@pytest.mark.parametrize("target", OTHERS, ids=lambda t: t.name)
def test_a_sample_computes_what_it_must(target: Target) -> None:
    rng = random.Random(target.name)
    name = rng.choice(sorted(CONTRACTS))
    done = emulated.check(emulated.load(name, rng.choice(ARCHS)), name, target=target)
    assert read(done.code_object).target == target


@pytest.mark.sweep
@pytest.mark.parametrize("name", CONTRACTS)
@pytest.mark.parametrize("target", OTHERS, ids=lambda t: t.name)
def test_all_compute_what_they_must(name: str, target: Target) -> None:
    arch = random.Random(f"{name} {target.name}").choice(ARCHS)
    emulated.check(emulated.load(name, arch), name, target=target, strict=True)


def test_llvm_refuses_what_a_target_has_not() -> None:
    """So acceptance says something: the double rate of matrices is no RDNA3 instruction."""
    if toolchain.clang() is None:
        pytest.skip("no clang (pip install '.[test]')")
    for target in WITH_RULES.values():
        assert llvm.assemble_object("v_mov_b32 v0, v1\n", cpu=target.name)[0] is not None
        assert llvm.assemble_object("v_mfma_f32_4x4x1_16b_f32 a[0:3], v0, v1, a[0:3]\n",
                                    cpu=target.name)[0] is None  # fmt: skip
