"""Code objects of several versions and kinds list as llvm-objdump lists them."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
import zstandard
from click.testing import CliRunner

from sassxlate import toolchain
from sassxlate.cli import disasm
from sassxlate.disasm.containers import code_object, offload_bundle
from sassxlate.disasm.rdna3.tables import kernel_descriptor
from sassxlate.errors import EncodeError, SassxlateError
from tools.witness.llvm.llvm import assemble_object, compile_hip

needs_clang = pytest.mark.skipif(toolchain.clang() is None, reason="no clang (wheel ziglang)")
HERE = Path(__file__).parent
BENCH = HERE.parents[2] / "fixtures" / "bench" / "lds.hsaco"

SOURCE = """
.text
.globl first
.p2align 8
.type first,@function
first:
 s_mov_b32 s0, s1
 s_cbranch_scc1 L1
 s_add_u32 s0, s0, other@rel32@lo+4
L1:
 s_branch 0
 s_call_b64 s[0:1], L1
 v_add_nc_u32 v0, 0x12345678, v1
 .long 0xffffffff
 s_endpgm
 .fill 12, 1, 0
 s_nop 0
.globl second
.type second,@function
second:
 s_cbranch_vccz L1
 s_endpgm
 .byte 1,2
"""
# The lines of `llvm-objdump -dr` of SOURCE; the text after a bad word is ours.
LISTING = """
{path}:	file format elf64-amdgpu

Disassembly of section .text:

0000000000000000 <first>:
	s_mov_b32 s0, s1                                           // 000000000000: BE800001
	s_cbranch_scc1 L1                                          // 000000000004: BFA20002
	s_add_u32 s0, s0, lit(0x0)                                 // 000000000008: 8000FF00 00000000
		000000000000000c:  R_AMDGPU_REL32_LO	other+0x4

0000000000000010 <L1>:
	s_branch 0                                                 // 000000000010: BFA00000 <L1+0x4>
	s_call_b64 s[0:1], L1                                      // 000000000014: BA00FFFE
	v_add_nc_u32_e32 v0, 0x12345678, v1                        // 000000000018: 4A0002FF 12345678
	.long 0xffffffff                                           // 000000000020: FFFFFFFF // SX0520
	s_endpgm                                                   // 000000000024: BFB00000
		...
	s_nop 0                                                    // 000000000034: BF800000

0000000000000038 <second>:
	s_cbranch_vccz L1                                          // 000000000038: BFA3FFF5
	s_endpgm                                                   // 00000000003C: BFB00000
	.byte 0x01, 0x02                                           // 000000000040: 01 02 // SX0522
"""


def run(*args: str, exit_code: int = 0) -> str:
    """The output of the command."""
    done = CliRunner().invoke(disasm.command, list(args))
    assert done.exit_code == exit_code, done.output
    return done.output


@needs_clang
def test_shape(tmp_path: Path) -> None:
    data, messages = assemble_object(SOURCE)
    assert data is not None, messages
    path = tmp_path / "a.o"
    path.write_bytes(data)
    printed = run("--encoding", str(path), exit_code=3)
    lines = [line.partition(": no ")[0].partition(": the ")[0] for line in printed.splitlines()]
    assert lines == LISTING.format(path=path).splitlines()
    assert "<second>" in run("-k", "second", str(path), exit_code=3)
    assert "<first>" not in run("-k", "second", str(path), exit_code=3)


def test_own_code_object() -> None:
    printed = run(str(BENCH))
    assert "\n0000000000001500 <lds>:\n\ts_load_b64 s[2:3], s[0:1], null " in printed
    assert " // 000000001500:\n" in printed
    assert ".amdhsa_kernel lds\n\t.amdhsa_group_segment" in run("--descriptors", str(BENCH))
    (kernel,) = json.loads(run("--format", "json", str(BENCH)))["kernels"]
    assert kernel["arch"] == "gfx1100"
    assert kernel["descriptor"]["kernarg_size"] > 0
    first = kernel["instructions"][0]
    assert first["text"] == "s_load_b64 s[2:3], s[0:1], null"
    assert first["encoding"] == ["F4040080", "F8000000"]
    assert first["writes"] == ["s2", "s3"]


@needs_clang
@pytest.mark.parametrize("version", [4, 5, 6])
def test_versions_and_descriptors(version: int) -> None:
    """Descriptors as directives assemble to the bytes that they were read from."""
    data, messages = compile_hip(HERE / "kernels" / "control.hip", 2, version)
    assert data is not None, messages
    obj = code_object.read(data)
    assert (obj.version, obj.linked) == (version, False)
    kernels = {
        symbol.name[:-3]: section.data[symbol.value : symbol.value + kernel_descriptor.SIZE]
        for section in obj.sections
        for symbol in obj.symbols_of(section)
        if symbol.name.endswith(".kd")
    }
    assert len(kernels) > 8
    source = [f".amdhsa_code_object_version {version}", ".text"]
    for name in kernels:
        source += [f".globl {name}", f".type {name},@function", f"{name}:", "s_endpgm"]
    source.append(".rodata")
    for name, body in kernels.items():
        source += kernel_descriptor.text(name, body)
    made, messages = assemble_object("\n".join(source) + "\n")
    assert made is not None, messages
    (rodata,) = (s.data for s in code_object.read(made).sections if s.name == ".rodata")
    for i, body in enumerate(kernels.values()):
        again = rodata[64 * i : 64 * i + 64]
        assert again[:16] + again[24:] == body[:16] + body[24:]  # between them is the entry


def bundle(*entries: tuple[str, bytes]) -> bytes:
    """An offload bundle."""
    size = 32 + sum(24 + len(name) for name, _ in entries)
    head, body = b"", b""
    for name, data in entries:
        head += struct.pack("<QQQ", size + len(body), len(data), len(name)) + name.encode()
        body += data
    return b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries)) + head + body


def test_bundle(tmp_path: Path) -> None:
    path = tmp_path / "bundle.hsaco"
    host = ("host-x86_64-unknown-linux-gnu-", b"")
    path.write_bytes(bundle(host, ("hipv4-amdgcn-amd-amdhsa--gfx1100", BENCH.read_bytes())))
    assert "<lds>:" in run(str(path))
    # A host library: what tells it is the name of the section.
    inside = b"\x7fELF" + bytes(60) + b".hip_fatbin\0" + path.read_bytes()
    bundles = offload_bundle.find_bundles(inside)
    assert [name for b in bundles for name, _ in offload_bundle.unbundle(b)] == [
        "hipv4-amdgcn-amd-amdhsa--gfx1100"
    ]
    head = struct.pack("<HHII", 2, 1, 0, len(path.read_bytes())) + bytes(8)
    packed = b"CCOB" + head + zstandard.compress(path.read_bytes())
    packed = packed[:8] + struct.pack("<I", len(packed)) + packed[12:]
    path.write_bytes(packed)
    assert "<lds>:" in run(str(path))
    other = bundle(host, ("hipv4-amdgcn-amd-amdhsa--gfx90a", BENCH.read_bytes()))
    for data, code in ((other, "SX0531"), (b"CCOB" + bytes(40), "SX0531"), (other[:60], "SX0532")):
        path.write_bytes(data)
        done = CliRunner().invoke(disasm.command, [str(path)])
        assert isinstance(done.exception, EncodeError)
        assert done.exception.code == code


@pytest.mark.parametrize(
    ("at", "value", "code"),
    [(48, 0x36, "SX0531"), (48, 0xFF, "SX0531"), (8, 9, "SX0531"), (7, 0, "SX0531")],
)
def test_other_targets_are_refused(tmp_path: Path, at: int, value: int, code: str) -> None:
    data = bytearray(BENCH.read_bytes())
    data[at] = value
    path = tmp_path / "other.hsaco"
    path.write_bytes(data)
    done = CliRunner().invoke(disasm.command, [str(path)])
    assert isinstance(done.exception, SassxlateError)
    assert done.exception.code == code


def test_options_that_do_not_apply() -> None:
    for args, code in (
        (["--control"], "SX0822"),
        (["--source"], "SX0822"),
        (["--arch", "sm_80"], "SX0802"),
    ):
        done = CliRunner().invoke(disasm.command, [*args, str(BENCH)])
        assert isinstance(done.exception, SassxlateError)
        assert done.exception.code == code


def test_damaged_files_raise_typed_errors() -> None:
    data = BENCH.read_bytes()
    for end in (*range(16, len(data), 97), len(data) - 1):
        with pytest.raises(EncodeError) as caught:
            code_object.read(data[:end])
        assert caught.value.code in ("SX0531", "SX0532")
    assert {read_error(data, at) for at in range(0, len(data), 29)} == {"", "SX0531", "SX0532"}


def read_error(data: bytes, at: int) -> str:
    """The code of the error that a damaged byte leads to; empty if it is ignored."""
    broken = bytearray(data)
    broken[at] ^= 0xFF
    try:
        code_object.read(bytes(broken))
    except EncodeError as error:
        return error.code
    return ""
