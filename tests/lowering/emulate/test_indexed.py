"""Registers whose number M0 gives: single instructions, and LLVM's vectors with a dynamic index."""

from __future__ import annotations

import itertools
import random
import struct

import pytest

from sassxlate.disasm.rdna3.codec.assemble import assemble
from sassxlate.disasm.rdna3.instruction import I, Inst, S, Sp, V
from sassxlate.lowering.emulate.compiler import compile_kernel
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.emulate.runner import EmulatedDevice, LoadedImage, Setup, run_image

from .baseline import each_with_an_isa
from .llvm_kernels import CPU, TRIPLE, code_of

_MASK = 0x0FF0F00F
_FIRST, _COUNT = 8, 16  # the registers that are moved from and to


def _run(code: bytes, options: CompileOptions, arguments: bytes, data: bytes) -> bytes:
    """What the kernel leaves in its memory, whose address is its first argument."""
    device = EmulatedDevice(1 << 17)
    memory = device.alloc(len(data))
    device.write(memory, data)
    loaded = LoadedImage(compile_kernel(code, 0, options))
    run_image(loaded, Setup(), 1, 32, struct.pack("<Q", memory) + arguments, device)
    return device.read(memory, len(data))


def _vectors(op: str, m0: int) -> list[Inst]:
    """Fills the registers with the lane's number and theirs, moves one, and stores all."""
    items = [
        Inst("s_load_b64", (S(2, 2), S(0, 2))),
        Inst("s_waitcnt", (), 0),
        Inst("s_mov_b32", (Sp("m0"), I(m0 & 0xFFFFFFFF))),
        Inst("v_lshlrev_b32", (V(1), I(2), V(0))),
    ]
    for i in range(_COUNT):
        items.append(Inst("v_add_nc_u32", (V(_FIRST + i), I(100 * i), V(0))))
    move = (V(_FIRST + 2), V(_FIRST + 5))
    items += [
        Inst("s_mov_b32", (Sp("exec_lo"), I(_MASK))),
        Inst(op, move),
        Inst("s_mov_b32", (Sp("exec_lo"), I(-1))),
    ]
    for i in range(_COUNT):
        items.append(Inst("global_store_b32", (V(1), V(_FIRST + i), S(2, 2)), 128 * i))
    return [*items, Inst("s_endpgm")]


@pytest.mark.parametrize(
    ("m0", "op", "strict", "isa"),
    each_with_an_isa(
        itertools.product((0, 1, 7, -3), ("v_movrels_b32", "v_movreld_b32"), (False, True))
    ),
)
def test_vector_registers(op: str, m0: int, isa: str, *, strict: bool) -> None:
    code = assemble(_vectors(op, m0)).data
    options = CompileOptions(isa="avx512" if isa == "avx512" else "avx2", strict=strict)
    got = struct.unpack(f"<{32 * _COUNT}I", _run(code, options, b"", bytes(128 * _COUNT)))
    rows = [[100 * i + lane for lane in range(32)] for i in range(_COUNT)]
    to, source = (2, 5 + m0) if op == "v_movrels_b32" else (2 + m0, 5)
    values = list(rows[source]) if 0 <= source < _COUNT else []
    if 0 <= to < _COUNT:
        rows[to] = [v if _MASK >> i & 1 else o
                    for i, (v, o) in enumerate(zip(values, rows[to], strict=True))]  # fmt: skip
    assert list(got) == [v for row in rows for v in row]


@pytest.mark.parametrize("m0", [0, 2, 6])
@pytest.mark.parametrize("op", ["s_movrels_b32", "s_movreld_b32", "s_movrels_b64", "s_movreld_b64"])
def test_scalar_registers(op: str, m0: int) -> None:
    first, count = 20, 16
    n = 2 if op.endswith("64") else 1
    items = [
        Inst("s_load_b64", (S(2, 2), S(0, 2))),
        Inst("s_waitcnt", (), 0),
        Inst("v_lshlrev_b32", (V(1), I(2), V(0))),
        Inst("s_mov_b32", (Sp("m0"), I(m0))),
        *(Inst("s_movk_i32", (S(first + i),), 7 * i) for i in range(count)),
        Inst(op, (S(first + 2, n), S(first + 4, n))),
    ]
    for i in range(count):
        items.append(Inst("v_writelane_b32", (V(2), S(first + i), I(i))))
    items += [Inst("global_store_b32", (V(1), V(2), S(2, 2))), Inst("s_endpgm")]
    got = struct.unpack("<16I", _run(assemble(items).data, CompileOptions(), b"", bytes(128))[:64])
    want = [7 * i for i in range(count)]
    to, source = (2, 4 + m0) if "movrels" in op else (2 + m0, 4)
    want[to : to + n] = want[source : source + n]
    assert list(got) == want


_KERNEL = f"""target triple = "{TRIPLE}"
declare i32 @llvm.amdgcn.workitem.id.x()
define amdgpu_kernel void @kernel(ptr addrspace(1) %p, i32 %n, i32 %m) #0 {{
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %a = getelementptr <16 x i32>, ptr addrspace(1) %p, i32 %t
  %v = load <16 x i32>, ptr addrspace(1) %a
  %w = insertelement <16 x i32> %v, i32 %t, i32 %m
  %x = extractelement <16 x i32> %w, i32 %n
  %y = insertelement <16 x i32> %w, i32 %x, i32 0
  store <16 x i32> %y, ptr addrspace(1) %a
  ret void
}}
attributes #0 = {{ nounwind "target-cpu"="{CPU}" "target-features"="+wavefrontsize32,+cumode" \
"amdgpu-no-dispatch-ptr" "amdgpu-no-queue-ptr" "amdgpu-no-dispatch-id" \
"amdgpu-no-implicitarg-ptr" }}
"""


@pytest.mark.parametrize(("n", "m"), [(0, 1), (5, 5), (15, 3), (9, 15)])
@pytest.mark.parametrize("level", [0, 3])
def test_a_vector_by_llvm(n: int, m: int, level: int) -> None:
    code, entry = code_of(_KERNEL, level)
    assert entry == 0
    rng = random.Random(n)
    rows = [[rng.getrandbits(32) for _ in range(16)] for _ in range(32)]
    data = b"".join(struct.pack("<16I", *row) for row in rows)
    got = _run(code, CompileOptions(align="unaligned"), struct.pack("<II", n, m), data)
    for lane, row in enumerate(rows):
        row[m] = lane
        row[0] = row[n]
    assert got == b"".join(struct.pack("<16I", *row) for row in rows)
