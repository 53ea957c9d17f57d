"""Functions whose addresses are in memory: relocations tell which, indirect calls reach them."""

from __future__ import annotations

import struct

from sassxlate.cfg import rdna3_flow
from sassxlate.disasm.rdna3 import assemble
from sassxlate.disasm.rdna3.instruction import I, Inst, S, V
from sassxlate.lowering.codeobject.code_object import KernelImage, code_pointers, read, write
from sassxlate.lowering.target import target_named

CALL = Inst("s_swappc_b64", (S(8, 2), S(4, 2)))
FUNCTION = (Inst("v_mov_b32", (V(0), I(1))), Inst("s_setpc_b64", (S(8, 2),)))
CODE = assemble((CALL, Inst("s_endpgm", ()), *FUNCTION)).data
PLACE = 8  # of the function


def test_an_indirect_call_reaches_them() -> None:
    assert PLACE not in rdna3_flow.discover(CODE, 0).blocks
    flow = rdna3_flow.discover(CODE, 0, (PLACE,))
    assert PLACE in flow.blocks[0].succs
    assert [step.inst.op for step in flow.blocks[PLACE].steps] == ["v_mov_b32", "s_setpc_b64"]


def test_code_without_calls_does_not() -> None:
    code = assemble((Inst("s_endpgm", ()), *FUNCTION)).data
    assert set(rdna3_flow.discover(code, 0, (4,)).blocks) == {0}


def test_relocations_name_them() -> None:
    """A table of relocations at the file's end: of code, of data, of half an instruction, and of
    another type."""
    target = target_named("gfx1100")
    image = KernelImage("k", CODE, 8, target.sgprs, 0, 0, 8)
    data = write([image], target)
    code = read(data)
    assert code_pointers(data, code) == ()
    text = code.text_address
    rows = ((PLACE, 13), (-text, 13), (PLACE + 2, 13), (0, 1), (1 << 40, 13), (0, 13))
    table = b"".join(struct.pack("<QQq", 0, kind, text + offset) for offset, kind in rows)
    headers, count = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<H", data, 60)[0]
    moved = bytearray(data + table)
    header = struct.pack("<IIQQQQIIQQ", 0, 4, 2, 0, len(data), len(table), 0, 0, 8, 24)
    places = data[headers : headers + 64 * count] + header
    struct.pack_into("<Q", moved, 40, len(moved))
    struct.pack_into("<H", moved, 60, count + 1)
    whole = bytes(moved) + places
    assert code_pointers(whole, read(whole)) == (0, PLACE)
    assert code_pointers(whole[:-1], code) == ()
