"""The descriptors of textures and surfaces, as seen by code on the device.

A texture object is the number of an entry in a table of descriptors, whose address the launcher
puts into the kernarg segment; native/cuda/texture.cpp fills the entries (struct Descriptor).  The
levels of detail of one texture are adjacent entries.  Arrays are linear in memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from sassxlate.disasm.rdna3.instruction import I, Inst, S, V
from sassxlate.disasm.sass.instruction import Imm, Reg
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.target import NULL, ZERO

ENTRY_SHIFT, LAST_ENTRY = 8, 4095  # entries of 256 bytes; entry 0 belongs to no object

# Words of a descriptor; masks are 0 or all ones.
BASE, PITCH, SLICE, SHIFT, CHANNELS, KIND, LINEAR = 0, 2, 3, 4, 5, 6, 7
AXIS, AXIS_WORDS = 8, 12
SCALE, FACTOR, BITS, ROUND, PERIOD, LIMIT = range(6)
SIZE, PERIODIC, WRAP, MIRROR, BORDER_MODE, CLAMP = range(6, 12)
LAYERS, MASK, DIVISOR, RECIPROCAL, BORDER = 44, 45, 46, 47, 48
BYTES_X, HEIGHT, DEPTH, CHANNEL_SHIFT = 52, 53, 54, 55
EXPAND, ADJUST, LOWEST, BORDERED, FETCHABLE, CURVED, CURVE = 56, 57, 58, 59, 60, 61, 62

# The values of KIND: the conversion of a channel to the program's value.
RAW, FLOAT, HALF, NORMALISED = range(4)


@dataclass(slots=True)
class Texture:
    """The descriptor that an instruction uses, at an address in two SGPRs."""

    c: RuleEmitter
    table: S

    def field(self, word: int, n: int = 1) -> S:
        """``n`` words in SGPRs, loaded here."""
        out = self.c.stemp(n)
        self.c.raw(Inst(f"s_load_b{32 * n}", (out, self.table, NULL), imm=4 * word))
        return out

    def axis(self, axis: int, word: int) -> S:
        return self.field(AXIS + AXIS_WORDS * axis + word)

    def zero(self, word: int, label: str) -> None:
        """Branches to the label if a word is 0."""
        with self.c.scope():
            self.c.emit("s_cmp_eq_u32", self.field(word), ZERO)
        self.c.branch("s_cbranch_scc1", label)


def descriptor(c: RuleEmitter, table: S) -> Texture:
    """Puts the address of the descriptor into ``table``: the handle's low word is its number.

    Raises LoweringError SX0410 for handles in vector registers.
    """
    offset = c.operand("offset") if "offset" in c.ins.operands else Imm(0)
    if not isinstance(offset, Imm):
        raise c.refuse("texture without a handle")
    if "Uc" in c.ins.operands and offset.value == 0:
        handle = c.ssrc("Uc")
    elif "bank" in c.ins.operands and c.imm("bank") == 0:
        handle = c.constant_word(0, 4 * offset.value)
    else:
        raise c.refuse("this kind of texture handle")
    with c.scope():
        number = c.stemp()
        c.raw(Inst("s_load_b64", (table, c.target.kernarg, NULL), imm=c.k.textures))
        c.emit("s_min_u32", number, handle, I(LAST_ENTRY))
        c.emit("s_lshl_b32", number, number, I(ENTRY_SHIFT))
        c.emit("s_add_u32", S(table.index), S(table.index), number)
        c.emit("s_addc_u32", S(table.index + 1), S(table.index + 1), ZERO)
    return Texture(c, table)


def coordinates(c: RuleEmitter, *roles: str) -> list[V]:
    """The words of the named lists of sources, in order, in VGPRs."""
    found: list[V] = []
    for role in roles:
        reg = c.ins.get(role)
        if isinstance(reg, Reg) and not reg.is_zero:
            found += [c.vsrc(role, i) for i in range(reg.width)]
    return found
