"""Writes the loops of ``sassxlate bench emulator`` to ``fixtures/bench``: the assembly text, and
the code object that this project's own assembler makes of it, with where each came from.

Run after a change of a loop, of the encoder or of the code-object writer.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

from sassxlate.disasm.rdna3 import assemble, format_program
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, Item, Label, LabelRef, S, Sp, V
from sassxlate.lowering.codeobject.code_object import KernelImage, write
from sassxlate.lowering.target import DEFAULT

OUT = Path(__file__).resolve().parents[2] / "fixtures" / "bench"
VCC = Sp("vcc_lo")
KERNARG_SIZE = 48  # u64 address, u32 turns, then up to eight u32 that a loop may use


def op(name: str, *args: Arg, imm: int = 0, comment: str = "") -> Inst:
    return Inst(name, args, imm, comment=comment)


def _start() -> list[Item]:
    """s[2:3] the address, s4 the turns, s[8:15] the constants, v0 the lane, v1 its byte offset."""
    return [
        op("s_load_b64", S(2, 2), S(0, 2)),
        op("s_load_b32", S(4), S(0, 2), imm=8),
        op("s_load_b256", S(8, 8), S(0, 2), imm=16),
        op("v_lshlrev_b32", V(1), I(2), V(0)),
        op("s_waitcnt", imm=0),  # every counter at zero
    ]


def _turn(label: str) -> list[Item]:
    """The end of a turn: three instructions."""
    return [
        op("s_add_i32", S(4), S(4), I(-1)),
        op("s_cmp_lg_u32", S(4), I(0)),
        op("s_cbranch_scc1", LabelRef(label)),
    ]


def alu() -> list[Item]:
    """17 instructions a turn, 9 of them vector arithmetic: integer and FP32 chains with a compare
    and a select, and the scalar instructions and delay hints that a compiler puts around them."""
    return [
        *_start(),
        op("v_mov_b32", V(2), V(0)),
        op("v_cvt_f32_u32", V(3), V(0)),
        Label("turn"),
        op("v_mul_lo_u32", V(2), V(2), S(8)),
        op("s_xor_b32", S(9), S(9), S(4)),
        op("s_delay_alu", imm=0x0001),
        op("v_add_nc_u32", V(2), S(9), V(2)),
        op("v_lshrrev_b32", V(4), I(15), V(2)),
        op("s_delay_alu", imm=0x0001),
        op("v_xor_b32", V(2), V(4), V(2)),
        op("v_cvt_f32_u32", V(5), V(4)),
        op("v_cmp_gt_u32", VCC, S(10), V(2)),
        op("s_delay_alu", imm=0x0002),
        op("v_fma_f32", V(3), V(3), S(11), V(5)),
        op("v_mul_f32", V(5), S(12), V(5)),
        op("s_add_u32", S(13), S(13), S(9)),
        op("v_cndmask_b32", V(3), V(3), V(5), VCC),
        *_turn("turn"),
        op("v_add_nc_u32", V(2), S(13), V(2)),
        op("global_store_b32", V(1), V(2), S(2, 2)),
        op("global_store_b32", V(1), V(3), S(2, 2), imm=128),
        op("s_endpgm"),
    ]


def memory() -> list[Item]:
    """y = a * x + y over 32 lanes side by side, x and y of 4 KiB each, again and again."""
    return [
        *_start(),
        op("v_mov_b32", V(2), V(1)),
        Label("turn"),
        op("global_load_b32", V(3), V(2), S(2, 2)),
        op("global_load_b32", V(4), V(2), S(8, 2)),
        op("s_waitcnt", imm=0x03F7),  # vmcnt(0)
        op("v_fma_f32", V(4), V(3), S(10), V(4)),
        op("global_store_b32", V(2), V(4), S(8, 2)),
        op("v_add_nc_u32", V(2), I(128), V(2)),
        op("v_and_b32", V(2), I(0xFFF), V(2)),
        *_turn("turn"),
        op("s_endpgm"),
    ]


def lds() -> list[Item]:
    """Two reads of LDS a turn, one at scattered and one at side-by-side addresses, and a write."""
    return [
        *_start(),
        op("v_mov_b32", V(2), V(0)),
        op("ds_store_b32", V(1), V(0)),
        op("s_waitcnt", imm=0),
        Label("turn"),
        op("v_and_b32", V(3), I(31), V(2)),
        op("v_lshlrev_b32", V(3), I(2), V(3)),
        op("ds_load_b32", V(4), V(3)),
        op("ds_load_b32", V(5), V(1)),
        op("s_waitcnt", imm=0xFC07),  # lgkmcnt(0)
        op("v_mul_lo_u32", V(2), V(2), S(8)),
        op("v_add_nc_u32", V(2), V(4), V(2)),
        op("v_xor_b32", V(5), V(5), V(2)),
        op("ds_store_b32", V(1), V(5)),
        op("s_waitcnt", imm=0xFC07),
        *_turn("turn"),
        op("global_store_b32", V(1), V(2), S(2, 2)),
        op("s_endpgm"),
    ]


LOOPS: dict[str, tuple[Callable[[], list[Item]], int]] = {
    "alu": (alu, 0),
    "memory": (memory, 0),
    "lds": (lds, 128),
}


def make(name: str) -> tuple[str, bytes]:
    """(assembly text, code object) of a loop."""
    build, group_segment = LOOPS[name]
    items = build()
    code = assemble(items).data
    image = KernelImage(name, code, 8, 16, group_segment, 0, KERNARG_SIZE, 32)
    title = textwrap.indent(inspect.cleandoc(build.__doc__ or ""), "// ")
    return f"{title}\n{name}:\n{format_program(items)}", write([image], DEFAULT)


def main() -> None:
    """Writes every loop and the file of where they came from."""
    OUT.mkdir(parents=True, exist_ok=True)
    lines = ["# Written by tools/generate/bench_loops.py.", 'licence = "Apache-2.0"', ""]
    for name in LOOPS:
        text, code_object = make(name)
        (OUT / f"{name}.s").write_text(text, encoding="utf-8")
        (OUT / f"{name}.hsaco").write_bytes(code_object)
        for suffix, data in (("s", text.encode()), ("hsaco", code_object)):
            lines += [f'[file."{name}.{suffix}"]', f'sha256 = "{hashlib.sha256(data).hexdigest()}"']
            lines += ['source = "tools/generate/bench_loops.py"', ""]
    (OUT / "provenance.toml").write_text("\n".join(lines), encoding="utf-8")
    sys.stdout.write(f"{len(LOOPS)} loops in {OUT}\n")


if __name__ == "__main__":
    main()
