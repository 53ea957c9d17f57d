"""RDNA3: encodings as data, encoder, decoder, text, reads and writes."""

from sassxlate.disasm.rdna3.codec.assemble import (
    Encoded,
    Encoder,
    Program,
    assemble,
    encode_items,
    resolve_labels,
)
from sassxlate.disasm.rdna3.codec.decode.instruction import branch_target, decode, decode_program
from sassxlate.disasm.rdna3.codec.encode.instruction import can_encode, encode
from sassxlate.disasm.rdna3.codec.text.immediates import depctr_imm, waitcnt_fields, waitcnt_imm
from sassxlate.disasm.rdna3.codec.text.instruction import format_inst, format_item, format_program
from sassxlate.disasm.rdna3.reads_writes import (
    MACRO,
    READS,
    RRef,
    counters,
    effects,
    keeps_part,
    reads,
    registers,
    writes,
)
from sassxlate.disasm.rdna3.tables.opcodes import OPS, Operand, OpInfo, info

__all__ = [
    "MACRO",
    "OPS",
    "READS",
    "Encoded",
    "Encoder",
    "OpInfo",
    "Operand",
    "Program",
    "RRef",
    "assemble",
    "branch_target",
    "can_encode",
    "counters",
    "decode",
    "decode_program",
    "depctr_imm",
    "effects",
    "encode",
    "encode_items",
    "format_inst",
    "format_item",
    "format_program",
    "info",
    "keeps_part",
    "reads",
    "registers",
    "resolve_labels",
    "waitcnt_fields",
    "waitcnt_imm",
    "writes",
]
