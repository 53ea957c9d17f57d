"""RDNA3 (gfx1100): encodings as data, encoder, decoder, text, reads and writes."""

from .assemble import Program, assemble
from .decode import branch_target, decode, decode_program
from .effects import RRef, counters, keeps_part, reads, registers, writes
from .encode import can_encode, encode
from .immtext import depctr_imm, waitcnt_fields, waitcnt_imm
from .table import OPS, Operand, OpInfo, info
from .text import format_inst, format_item, format_program

__all__ = [
    "OPS",
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
    "encode",
    "format_inst",
    "format_item",
    "format_program",
    "info",
    "keeps_part",
    "reads",
    "registers",
    "waitcnt_fields",
    "waitcnt_imm",
    "writes",
]
