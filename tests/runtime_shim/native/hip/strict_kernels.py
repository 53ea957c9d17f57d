"""Kernels of real machine code for the tests of strict mode, as one code object.

The arguments are two addresses, `out` and `at`; each lane works on its own dword after them.
"""

from __future__ import annotations

from sassxlate.disasm.rdna3 import assemble
from sassxlate.disasm.rdna3.instruction import I, Inst, Item, S, Sp, V
from sassxlate.lowering.codeobject.code_object import KernelImage, write
from sassxlate.lowering.target import DEFAULT

WAIT = Inst("s_waitcnt", (), imm=0)
OUT, AT, ARGS, GROUP = S(4, 2), S(6, 2), S(0, 2), S(13)
LDS_SIZE, SCRATCH_SIZE = 256, 16
PROLOGUE: tuple[Item, ...] = (
    Inst("s_load_b64", (OUT, ARGS)),
    Inst("s_load_b64", (AT, ARGS), 8),
    Inst("v_lshlrev_b32", (V(1), I(2), V(0))),
    WAIT,
)


def _load(base: S) -> Inst:
    return Inst("global_load_b32", (V(2), V(1), base))


def _store(register: int, base: S = OUT) -> Inst:
    return Inst("global_store_b32", (V(1), V(register), base))


KERNELS: dict[str, tuple[Item, ...]] = {
    "copy": (_load(AT), WAIT, _store(2)),
    "hasty": (_load(AT), _store(2)),
    "write": (Inst("v_mov_b32", (V(2), I(7))), _store(2, AT)),
    "write_arguments": (Inst("v_mov_b32", (V(2), I(7))), _store(2, ARGS)),
    "registers": (_store(21),),
    "scalars": (Inst("v_mov_b32", (V(2), S(77))), _store(2)),
    "shared": (Inst("ds_load_b32", (V(2), V(1))), WAIT, _store(2)),
    "private": (Inst("scratch_load_b32", (V(2), Sp("off"), Sp("off")), 4), WAIT, _store(2)),
    # out[group] = how many were before it; the counter is at `at`.
    "ticket": (
        Inst("v_mov_b32", (V(3), I(0))), Inst("v_mov_b32", (V(4), I(1))),
        Inst("s_mov_b32", (Sp("exec_lo"), I(1))),
        Inst("global_atomic_add_u32", (V(2), V(3), V(4), AT), glc=True), WAIT,
        Inst("v_lshlrev_b32", (V(1), I(2), GROUP)), _store(2),
    ),
    "reciprocal": (
        _load(AT), WAIT, Inst("v_rcp_f32", (V(3), V(2))),
        Inst("s_waitcnt_depctr", (), imm=0x0F9F), _store(3),
    ),
}  # fmt: skip


def code_object() -> bytes:
    images: list[KernelImage] = []
    for name, body in KERNELS.items():
        program = assemble([*PROLOGUE, *body, Inst("s_endpgm")])
        start = program.offsets[len(PROLOGUE)]
        images.append(
            KernelImage(
                name=name,
                code=program.data,
                vgprs=32,
                sgprs=32,
                group_segment=LDS_SIZE,
                private_segment=SCRATCH_SIZE,
                kernarg_size=16,
                source=f"0\t/*0000*/ MOV R1, c[0x0][0x28]\n{start:x}\t/*0040*/ LDG.E R2, [R2.64]\n",
            )
        )
    return write(images, DEFAULT)
