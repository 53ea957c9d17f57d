"""Instructions to machine code: the shortest equivalent encoding, as llvm-mc chooses it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sassxlate.disasm.rdna3.codec.encode.graphics import (
    encode_buffer,
    encode_export,
    encode_interp,
    encode_ldsdir,
)
from sassxlate.disasm.rdna3.codec.encode.memory import encode_ds, encode_flat
from sassxlate.disasm.rdna3.codec.encode.scalar import encode_smem, encode_sop, encode_sopk
from sassxlate.disasm.rdna3.codec.encode.vector import encode_valu
from sassxlate.disasm.rdna3.codec.encode.vopd import encode_vopd
from sassxlate.disasm.rdna3.codec.operands import literal_of
from sassxlate.disasm.rdna3.codec.text.instruction import describe
from sassxlate.disasm.rdna3.instruction import Inst, LabelRef
from sassxlate.disasm.rdna3.tables.opcodes import OPS, OpInfo, info
from sassxlate.errors import EncodeError

_ENCODERS: Final[dict[str, Callable[[Inst, OpInfo], bytes]]] = {
    "SOP1": encode_sop,
    "SOP2": encode_sop,
    "SOPC": encode_sop,
    "SOPK": encode_sopk,
    "SOPP": encode_sopk,
    "SMEM": encode_smem,
    "VOP1": encode_valu,
    "VOP2": encode_valu,
    "VOPC": encode_valu,
    "VOP3": encode_valu,
    "VOP3SD": encode_valu,
    "VOP3P": encode_valu,
    "VOPD": encode_vopd,
    "DS": encode_ds,
    "FLAT": encode_flat,
    "GLOBAL": encode_flat,
    "SCRATCH": encode_flat,
    "MUBUF": encode_buffer,
    "MTBUF": encode_buffer,
    "VINTERP": encode_interp,
    "LDSDIR": encode_ldsdir,
    "EXP": encode_export,
}
_BY_OP: Final = {op: (row, _ENCODERS[row.formats[-1]]) for op, row in OPS.items()}


def encode(inst: Inst) -> bytes:
    """The machine code of one instruction: 4, 8 or 12 bytes.

    ``inst.enc`` may ask for more than the shortest form: ``e64`` for the 64-bit encoding, ``lit2``
    for operand 2 as a literal although an inline constant has the value, ``ignored:FF`` for bits
    of unused register fields, ``word:FF`` for a literal of which a 16-bit operand takes half (upper
    case, so that no token is part of another).

    Raises:
        EncodeError: SX0501 to SX0512, naming the instruction; labels need assemble().
    """
    if inst.enc:  # which equality of instructions ignores
        return _encode(inst)
    code = _CODES.get(inst)
    if code is None:
        code = _encode(inst)
        if len(_CODES) >= _MOST_CODES:
            _CODES.clear()
        _CODES[inst] = code
    return code


_CODES: Final[dict[Inst, bytes]] = {}  # of instructions without ``enc``
_MOST_CODES: Final = 1 << 14


def _encode(inst: Inst) -> bytes:
    found = _BY_OP.get(inst.op)
    try:
        if found is None:
            info(inst.op)
            raise AssertionError  # info raises
        code = found[1](inst, found[0])
    except EncodeError as error:
        raise EncodeError(error.code, error.message, error.where).at(inst=describe(inst)) from None
    if "word:" in inst.enc:
        code = code[:-4] + literal_of(inst.enc).to_bytes(4, "little")
    return _with_ignored(code, inst.enc) if "ignored" in inst.enc else code


def _with_ignored(code: bytes, enc: str) -> bytes:
    """Put back bits that the hardware ignores and the decoder kept."""
    raw = int.from_bytes(code, "little")
    for token in enc.split():
        name, _, value = token.partition(":")
        raw |= int(value, 16) if name == "ignored" else 0
    return raw.to_bytes(len(code), "little")


def can_encode(inst: Inst) -> str | None:
    """Why an instruction cannot be encoded, None if it can; labels count as resolved."""
    if inst.args and isinstance(inst.args[-1], LabelRef):
        inst = inst.with_args(inst.args[:-1])
    try:
        encode(inst)
    except EncodeError as error:
        return error.message
    return None
