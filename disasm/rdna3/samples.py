"""Random legal instructions, edge-biased and seeded by the caller: for tests and fuzzing."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from sassxlate.disasm.rdna3.codec.decode.graphics import EXPORT_TARGETS
from sassxlate.disasm.rdna3.codec.encode.instruction import can_encode
from sassxlate.disasm.rdna3.codec.encode.memory import OFF
from sassxlate.disasm.rdna3.codec.encode.vopd import Y_ONLY
from sassxlate.disasm.rdna3.codec.text.immediates import depctr_imm, waitcnt_imm
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, Sp, V
from sassxlate.disasm.rdna3.tables.layout import NO_IMMEDIATE, Layout, layout
from sassxlate.disasm.rdna3.tables.opcodes import OPS, Operand, OpInfo
from sassxlate.disasm.rdna3.tables.operand_codes import SGPRS, bits_of, inline_values, literal_value

_DPP16: Final = (
    "quad_perm:[{0},{1},{2},{3}]",
    "row_shl:{4}",
    "row_shr:{4}",
    "row_ror:{4}",
    "row_mirror",
    "row_half_mirror",
    "row_share:{5}",
    "row_xmask:{5}",
)
_Y: Final = tuple(op for op, row in OPS.items() if row.is_vopd)


def register(rng: Random, count: int, n: int, align: int = 1) -> int:
    """The first of ``n`` of ``count`` registers, often at either end."""
    top = (count - n) // align
    return align * rng.choice((0, 1, top, rng.randint(0, top), rng.randint(0, top)))


def vgpr(rng: Random, n: int, half: bool = False) -> V:
    """A VGPR tuple; ``half``: often one that the 32-bit encodings can name."""
    return V(register(rng, 128 if half and rng.random() < 0.7 else 256, n), n)


def scalar_register(rng: Random, n: int, special: bool = True) -> Arg:
    """An SGPR tuple, or a special register."""
    if special and rng.random() < 0.25:
        if n == 1:
            return Sp(rng.choice(("vcc_lo", "vcc_hi", "m0", "exec_lo", "exec_hi", "null", "ttmp3")))
        if n == 2:
            return Sp(rng.choice(("vcc", "exec", "null", "ttmp4")), 2)
        return Sp("ttmp4", n) if n <= 8 else Sp("ttmp0", n)
    return S(register(rng, SGPRS, n, min(n, 4)), n)


def constant(rng: Random, typ: str, literal: bool = True) -> I:
    """A constant of a type: inline, or a literal."""
    if not literal or rng.random() < 0.6:
        return I(rng.choice(tuple(inline_values(typ))))
    bits = bits_of(typ)
    word = rng.choice((65, 0xFFFFFFEF, 0x7FC00000, 0x80000000, rng.getrandbits(32)))
    return I(word & 0xFFFF if bits == 16 else literal_value(word, typ))


def _source(rng: Random, operand: Operand) -> Arg:
    cls, n, typ = operand.cls, operand.n, operand.type
    pick = rng.random()
    if cls == "v" or (cls in ("src", "vi") and pick < 0.6):
        return vgpr(rng, n, operand.half)
    if cls in ("sd", "sx"):
        return scalar_register(rng, n)
    if cls == "vi":
        return constant(rng, typ, literal=False)
    if cls == "i":
        return I(literal_value(rng.getrandbits(16 if bits_of(typ) == 16 else 32), typ))
    if pick < 0.8:
        return scalar_register(rng, n)
    if pick < 0.85 and n <= 2:
        return Sp(rng.choice(("src_shared_base", "src_private_limit", "scc")), n)
    if typ == "mix":
        return I(rng.randrange(65))
    return constant(rng, typ, literal=typ != "lane")


def _dpp(rng: Random) -> str:
    if rng.random() < 0.3:
        lanes = ",".join(str(rng.randrange(8)) for _ in range(8))
        return f"dpp8:[{lanes}]" + rng.choice(("", " fi:1"))
    four = [rng.randrange(4) for _ in range(4)]
    control = rng.choice(_DPP16).format(*four, rng.randint(1, 15), rng.randrange(16))
    masks = f" row_mask:{rng.randrange(16):#x} bank_mask:{rng.randrange(16):#x}"
    return control + masks + rng.choice(("", " bound_ctrl:1")) + rng.choice(("", " fi:1"))


def _subset(rng: Random, mask: int) -> int:
    return mask & rng.getrandbits(4) if rng.random() < 0.4 else 0


def _modified(rng: Random, inst: Inst, row: OpInfo, lay: Layout) -> Inst:
    """The instruction with some of the modifiers that its 64-bit encoding has."""
    packed = lay.format.name == "VOP3P"
    sources = (1 << sum(a.field.startswith("src") for a in row.args)) - 1
    return replace(
        inst,
        neg=_subset(rng, lay.neg),
        abs=_subset(rng, lay.abs),
        clamp=lay.clamp and rng.random() < 0.2,
        omod=rng.randrange(4) if lay.omod and rng.random() < 0.2 else 0,
        op_sel=_subset(rng, lay.op_sel),
        neg_hi=_subset(rng, lay.neg) if packed and not lay.abs else 0,
        op_sel_hi=7 ^ _subset(rng, sources) if packed and "no_op_sel" not in row.flags else 7,
        dpp=_dpp(rng) if lay.dpp and rng.random() < 0.25 else "",
        enc="e64" if rng.random() < 0.3 and len(row.forms) > 1 and row.args else "",
    )


def _valu(rng: Random, row: OpInfo) -> Inst:
    if row.is_vopd:
        half = Inst(row.op, tuple(_source(rng, a) for a in row.args))
        other = OPS[rng.choice(_Y)]
        more = Inst(other.op, tuple(_source(rng, a) for a in other.args))
        second = row.forms["VOPD"] >= Y_ONLY
        return replace(more, y=half) if second else replace(half, y=more)
    args = tuple(
        Sp("vcc_lo") if a.type == "mask" and rng.random() < 0.5 else _source(rng, a)
        for a in row.args
    )
    inst = Inst(row.op, args)
    return _modified(rng, inst, row, layout(row.op, row.formats[-1]))


def _memory(rng: Random, row: OpInfo) -> Inst:
    glc = rng.random() < 0.5
    operands = row.args[1:] if row.atomic and row.kind != "lds" and not glc else row.args
    scalar = rng.random() < 0.4
    args: list[Arg] = []
    for a in operands:
        if a.field == "saddr":
            args.append(S(register(rng, SGPRS, a.n, a.n), a.n) if scalar else OFF)
        elif a.field == "addr" and row.kind == "scratch" and rng.random() < 0.5:
            args.append(OFF)
        elif a.field == "addr" and row.kind == "global" and scalar:
            args.append(vgpr(rng, 1))
        else:
            args.append(vgpr(rng, a.n))
    if row.kind == "lds":
        gds = "gds" in row.flags
        if gds or row.op == "ds_nop":
            return Inst(row.op, tuple(args), rng.getrandbits(16) if gds else 0, gds=gds)
        if "2addr" in row.op:
            return Inst(row.op, tuple(args), rng.randrange(256), imm2=rng.randrange(256))
        offset = rng.choice((0, 4, 65535, rng.getrandbits(16)))
        if row.op == "ds_swizzle_b32":
            offset = rng.choice((0xE01F, 0xC420, 0x80E4, 0x041F, 0x7C1F, 0x1F))
        return Inst(row.op, tuple(args), offset)
    low = 0 if row.kind == "flat" else -4096
    imm = rng.choice((0, low, 4095, rng.randint(low, 4095)))
    dlc, slc = rng.random() < 0.3, rng.random() < 0.3
    return Inst(row.op, tuple(args), imm, glc=glc, dlc=dlc, slc=slc)


def _rare(rng: Random, row: OpInfo) -> Inst:
    """Buffers, interpolation, LDS parameters, exports."""
    if row.kind == "buffer":
        offen, idxen = rng.randrange(2), rng.randrange(2)
        typed = "MTBUF" in row.forms
        tfe = rng.randrange(2) if row.load and not typed else 0
        args = (
            vgpr(rng, row.args[0].n + tfe),
            vgpr(rng, offen + idxen) if offen + idxen else OFF,
            scalar_register(rng, 4),
            constant(rng, "b32", literal=False) if rng.random() < 0.3 else scalar_register(rng, 1),
        )
        more = [(n, 1) for n, on in (("idxen", idxen), ("offen", offen), ("tfe", tfe)) if on]
        if typed:
            more.append(("format", rng.randrange(128)))
        glc, dlc, slc = (rng.random() < 0.3 for _ in range(3))
        imm = rng.choice((0, 4095, rng.randrange(4096)))
        return Inst(row.op, args, imm, glc=glc, dlc=dlc, slc=slc, more=tuple(more))
    registers = tuple(vgpr(rng, a.n, a.half) for a in row.args)
    if row.kind == "interp":
        wait = (("wait_exp", rng.randrange(8)),)
        neg, clamp = _subset(rng, 7), rng.random() < 0.2
        op_sel = _subset(rng, layout(row.op, "VINTERP").op_sel)
        return Inst(row.op, registers, neg=neg, clamp=clamp, op_sel=op_sel, more=wait)
    if row.kind == "export":
        enabled = tuple(a if rng.random() < 0.7 else OFF for a in registers)
        more = [("target", rng.choice(tuple(EXPORT_TARGETS)))]
        more += [(name, 1) for name in ("done", "row_en") if rng.random() < 0.3]
        return Inst(row.op, enabled, more=tuple(more))
    more = [("wait_vdst", rng.randrange(16))]
    if row.op == "lds_param_load":
        more = [("attr", rng.randrange(32)), ("chan", rng.randrange(4)), *more]
    return Inst(row.op, registers, more=tuple(more))


def _scalar_memory(rng: Random, row: OpInfo) -> Inst:
    args = tuple(scalar_register(rng, a.n, special=False) for a in row.args)
    if not args:
        return Inst(row.op)
    glc, dlc = rng.random() < 0.3, rng.random() < 0.3
    more: tuple[tuple[str, int], ...] = ()
    if row.op.startswith("s_atc_probe"):
        glc = dlc = False
        more = (("probe", rng.randrange(128)),)
    offset = (S(register(rng, SGPRS, 1)),) if rng.random() < 0.3 else ()
    low = 0 if "buffer" in row.op else -(1 << 20)
    imm = rng.choice((0, 4, low, (1 << 20) - 1, rng.randint(0, 0xFFFFF)))
    return Inst(row.op, (*args, *offset), imm, glc=glc, dlc=dlc, more=more)


def _immediate(rng: Random, row: OpInfo) -> int:
    if row.op in NO_IMMEDIATE or not {"SOPK", "SOPP"} & set(row.forms):
        return rng.choice((128, 131, 133)) if row.kind == "message" else 0
    if row.op == "s_waitcnt":
        return waitcnt_imm(rng.randrange(64), rng.randrange(64), rng.randrange(8))
    if row.op == "s_waitcnt_depctr":
        return depctr_imm(va_vdst=rng.randrange(16), vm_vsrc=rng.randrange(8))
    if row.op == "s_delay_alu":
        return rng.randrange(12) | rng.randrange(6) << 4 | rng.randrange(12) << 7
    if row.kind == "message":
        return rng.choice((1, 3, 9))
    if row.kind == "branch" or row.op == "s_call_b64" or row.op.endswith("k_i32"):
        return rng.choice((0, 1, -1, 32767, -32768))
    if row.op.startswith("s_cmpk") and row.op.endswith("i32"):
        return rng.choice((0, 64, -32768))
    return rng.choice((0, 1, 64, 65, 0xFFFF, rng.getrandbits(16)))


def candidate(rng: Random, op: str) -> Inst:
    """An instruction that may break a rule which involves several operands."""
    row = OPS[op]
    if row.kind == "valu":
        return _valu(rng, row)
    if row.kind in ("lds", "flat", "global", "scratch"):
        return _memory(rng, row)
    if "SMEM" in row.forms:
        return _scalar_memory(rng, row)
    if row.kind in ("buffer", "interp", "ldsdir", "export"):
        return _rare(rng, row)
    args = tuple(_source(rng, a) for a in row.args)
    if row.kind == "wait" and args:
        args = (Sp("null"),)  # the counters with a separate wait instruction
    return Inst(op, args, _immediate(rng, row))


def sample(rng: Random, op: str) -> Inst:
    """A random legal instruction of a mnemonic."""
    for _ in range(1000):
        inst = candidate(rng, op)
        if can_encode(inst) is None:
            return inst
    raise AssertionError(f"no legal {op} found")
