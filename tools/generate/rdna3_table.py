"""Generate ``disasm/rdna3/tables/opcodes.json``: the gfx1100 instruction encodings as data.

Source: tinygrad's tables ``runtime/autogen/amd/rdna3`` (MIT, (c) the tiny corp), which are made
from AMD's machine-readable ISA.  Run ``python -m tools.generate.rdna3_table`` with the ``tinygrad``
wheel installed; ``--check`` compares with the committed file.  Corrections to the source are data
in ``rdna3_source.py``.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tools.generate.rdna3_source import (
    ABSENT,
    ARGS,
    DROPPED,
    FORMATS,
    GFX1150_SALU,
    PARTIAL,
    READ_WRITE,
    SUFFIX,
    TRANS,
)

TARGET = Path(__file__).resolve().parents[2] / "disasm" / "rdna3" / "tables" / "opcodes.json"


def source(module: str) -> Any:
    """A module of the source tables."""
    return importlib.import_module(f"tinygrad.runtime.autogen.amd.rdna3.{module}")


def operand_type(fmt: str, bits: int) -> str:
    """Our name of a tinygrad operand format."""
    name = fmt.removeprefix("FMT_")
    if m := re.fullmatch(r"NUM_([FIUB]|BF|PK\d_?[A-Z]*|M)(\d+)", name):
        kind, size = m.groups()
        if kind == "M":
            return "mask"
        if kind.startswith("PK"):
            pair = kind.startswith("PK2") and size == "16"
            if not pair:
                return f"b{bits}" if bits in (16, 32) else "b32"
            return {"F": "pk_f16", "BF": "pk_bf16"}.get(kind[4:], "pk_b16")
        if size == "24":
            return f"{kind.lower()}32"
        return f"{kind.lower()}{size}"
    if name.startswith("WMMA_"):
        part, kind = name.split("_")[1:]
        if part == "AB":
            return f"b{bits}"
        return {"F32": "f32", "I32": "i32", "F16": "pk_f16", "BF16": "pk_bf16"}[kind]
    return f"b{bits}"


def operand(
    field: str, info: tuple[Any, int, Any], fmt: str, name: str
) -> tuple[str, str, str, int, str]:
    """(field, direction, class, registers, type) of one operand of the source."""
    kind, bits, where = info[0].name, info[1], info[2].name
    typ = operand_type(kind, bits)
    if fmt.startswith("SOP") and bits < 32:
        typ, bits = "b32", 32  # the scalar unit takes a whole register and picks its half
    regs = 1 if typ == "mask" else max(1, bits // 32)
    name_of = {"vsrc0": "src0", "vsrc1": "src1", "srcy0": "src0", "vsrcy1": "src1", "vdsty": "vdst"}
    ours = name_of.get(field, field)
    if where in ("OPR_SDST", "OPR_SREG", "OPR_SDST_NULL", "OPR_EXEC", "OPR_SMEM_OFFSET"):
        cls = "sd"
    elif where in ("OPR_SSRC", "OPR_SSRC_LANESEL"):
        cls = "s"
    elif where == "OPR_SRC_VGPR_OR_INLINE":
        cls = "vi"
    elif where == "OPR_SRC_VGPR" or fmt == "VINTERP":
        cls = "v"
    elif ours in ("src0", "src1", "src2"):
        cls = "src"  # OPR_VGPR stands for the DPP form; OPR_SRC is the general one
    else:
        cls = "v"
    write = ours in ("vdst", "sdst") or (ours == "sdata")
    if fmt == "SOPK" and name.startswith("S_CMPK"):
        write = False
    return ours, "w" if write else "r", cls, regs, typ


ORDER = ("sdata vdst sdst sbase soffset addr data data0 data1 ssrc0 ssrc1 src0 src1 src2").split()


def buffer_arguments(mnemonic: str, operands: dict[str, Any]) -> str:
    """The operands of a buffer access; two of 16 bits share a register."""
    if not operands or mnemonic.endswith("_inv"):
        return ""
    regs = max(1, operands["vdata"][1] // 32)
    if "_d16_format_" in mnemonic:
        regs = (len(mnemonic.rpartition("_")[2]) + 1) // 2
    way = "rw" if "_atomic_" in mnemonic else "w" if "_load_" in mnemonic else "r"
    vdata = f"vdata:{way}:v:{regs}:b{32 * regs}"
    return f"{vdata} vaddr:r:v:1:b32 srsrc:r:sd:4:b128 soffset:r:s:1:lane"


def arguments(fmt: str, name: str, mnemonic: str, operands: dict[str, Any]) -> str:
    """The operands in LLVM's print order, as ``field:direction:class:registers:type`` items."""
    if mnemonic in ARGS:
        return ARGS[mnemonic]
    if fmt in ("MUBUF", "MTBUF"):
        return buffer_arguments(mnemonic, operands)
    rows: dict[str, tuple[str, str, str, int, str]] = {}
    for field, info in operands.items():
        if info[2].name.startswith(
            ("OPR_SIMM", "OPR_LABEL", "OPR_WAIT", "OPR_HWREG", "OPR_CLAUSE")
        ):
            continue
        if info[2].name in ("OPR_DELAY", "OPR_SENDMSG", "OPR_SENDMSG_RTN", "OPR_VERSION"):
            continue
        row = operand(field, info, fmt, name)
        if row[0] == "soffset":
            continue  # optional, written after the base
        rows[row[0]] = row
    if mnemonic.startswith("v_cmp"):
        del_dst = rows.pop("vdst", None)
        rows.pop("sdst", None)
        if not mnemonic.startswith("v_cmpx"):
            rows["sdst"] = ("sdst", "w", "sd", 1, "mask")
        del del_dst
    if re.match(r"v_(add|sub|subrev)_co_ci_u32", mnemonic):
        rows["sdst"] = ("sdst", "w", "sd", 1, "mask")
        rows["src2"] = ("src2", "r", "sd", 1, "mask")
    if re.match(r"v_(dual_)?fma(ak|mk)_", mnemonic):
        typ = rows["src0"][4]
        rows["lit"] = ("lit", "r", "i", 1, typ)
    order = list(ORDER)
    if re.match(r"v_(dual_)?fmamk_", mnemonic):
        order.insert(order.index("src1"), "lit")
    else:
        order.append("lit")
    if fmt in ("FLAT", "GLOBAL", "SCRATCH"):
        order.append("saddr")
        if "addtid" in mnemonic:
            rows.pop("addr", None)
    if mnemonic.startswith("v_dual_cndmask"):
        rows["src1"] = ("src1", "r", "v", 1, "f32")
        rows["src0"] = ("src0", "r", "src", 1, "f32")
    out: list[str] = []
    for field in order:
        if field not in rows:
            continue
        f, d, c, n, t = rows[field]
        if d == "w" and READ_WRITE.match(mnemonic):
            d = "rw"
        if f == "addr" and fmt in ("FLAT", "GLOBAL"):
            n = 2
        if f == "vdst" and "_atomic_cmpswap" in mnemonic:
            n = 2 if mnemonic.endswith("64") else 1  # data holds two values, the result one
        if f == "addr" and fmt == "SCRATCH":
            n = 1
        if f == "saddr":
            n = 1 if fmt == "SCRATCH" else 2
        out.append(f"{f}:{d}:{c}:{n}:{t}")
    return " ".join(out)


SALU_KIND = (
    (re.compile(r"s_c?branch|s_subvector"), "branch"),
    (re.compile(r"s_(setpc|swappc|call|rfe|getpc)"), "jump"),
    (re.compile(r"s_wait|s_wait_"), "wait"),
    (re.compile(r"s_barrier"), "barrier"),
    (re.compile(r"s_endpgm"), "end"),
    (re.compile(r"s_sendmsg"), "message"),
    (re.compile(r"s_(round_mode|denorm_mode|setreg)"), "mode"),
    (
        re.compile(
            r"s_(delay_alu|clause|nop|sleep|set_inst|setprio|code_end|ttrace|icache|setkill|sethalt"
            r"|version|trap|wakeup|incperf|decperf)"
        ),
        "hint",
    ),
)


RARE = {"VINTERP": "interp", "LDSDIR": "ldsdir", "EXP": "export"}


def kind(fmt: str, mnemonic: str) -> str:
    """The unit and role of an instruction; see OpInfo.kind."""
    if fmt.startswith("SOP"):
        return next((k for pattern, k in SALU_KIND if pattern.match(mnemonic)), "salu")
    if fmt == "SMEM":
        return "inv" if mnemonic.endswith("_inv") else "smem"
    if fmt == "DS":
        return "lds"
    if fmt in ("MUBUF", "MTBUF"):
        return "inv" if mnemonic.endswith("_inv") else "buffer"
    if fmt in RARE:
        return RARE[fmt]
    if fmt in ("FLAT", "GLOBAL", "SCRATCH"):
        return fmt.lower()
    return "valu"


def implicit(fmt: str, mnemonic: str, pcode: str) -> tuple[list[str], list[str]]:
    """(implicit reads, implicit writes) among scc, vcc, exec, m0 and mode."""
    reads: set[str] = set()
    writes: set[str] = set()
    if fmt.startswith("SOP"):
        if re.search(r"\bSCC\s*=(?!=)", pcode):
            writes.add("scc")
        if re.match(r"s_(cselect|cmov|cmovk|addc|subb|cbranch_scc)", mnemonic):
            reads.add("scc")
        if re.search(r"saveexec|wrexec", mnemonic):
            writes.add("exec")
            reads.add("exec")
        if mnemonic.startswith("s_cbranch_vcc"):
            reads.add("vcc")
        if mnemonic.startswith("s_cbranch_exec"):
            reads.add("exec")
        if "movrel" in mnemonic:
            reads.add("m0")
        if re.match(r"s_(round_mode|denorm_mode|setreg)", mnemonic):
            writes.add("mode")
            reads.add("mode")
        if re.match(r"s_getreg", mnemonic):
            reads.add("mode")
        if mnemonic.startswith("s_sendmsg"):
            reads.add("m0")
        return sorted(reads), sorted(writes)
    if fmt == "SMEM" or mnemonic.endswith("_inv"):
        return [], []
    if not re.match(r"v_(readlane|writelane)", mnemonic):
        reads.add("exec")
    if mnemonic.startswith("v_cmpx"):
        writes.add("exec")
    if mnemonic.startswith(("v_div_fmas", "v_dual_cndmask")):
        reads.add("vcc")
    if "movrel" in mnemonic or "swaprel" in mnemonic or "addtid" in mnemonic:
        reads.add("m0")
    if mnemonic.startswith(("ds_consume", "ds_append")):
        reads.add("m0")
    if fmt.startswith("VOP") and re.search(r"_(f16|f32|f64|bf16)", mnemonic):
        reads.add("mode")
    return sorted(reads), sorted(writes)


NO_GDS = re.compile(r"ds_b?permute_b32|ds_bvh_stack_rtn_b32")
ONLY_GDS = re.compile(r"ds_gws_|ds_ordered_count|ds_(add|sub)_gs_reg_rtn")
# Instructions whose 32-bit encoding alone has DPP.
DPP_SHORT = re.compile(r"v_dot2acc_f32_f16|v_movrels|v_movreld")
INT_CLAMP = re.compile(
    r"v_(mul_[iu]32_[iu]24|(add|sub|subrev)_nc_[iu](16|32)|mad_[iu](16|32)|mad_[iu]\d+_[iu]\d+"
    r"|m?sad_|sad_|m?qsad_|(add|sub|subrev)_co_)"
)
FLOAT_TYPE = re.compile(r":((pk_)?(b?f16|f32|f64)|mix)( |$)")


def modifiers(fmt: str, mnemonic: str, args: str) -> set[str]:
    """Which of clamp, omod, neg_lo, iu and no_op_sel the 64-bit encodings have."""
    out: set[str] = set()
    if fmt == "VOP3P":
        if not re.match(r"v_wmma_(f|bf)", mnemonic):
            out.add("clamp")
        if "_iu8" in mnemonic or "_iu4" in mnemonic:
            out.add("iu")
        elif re.search(r"f16|f32", mnemonic):
            out.add("neg_lo")
        if re.match(r"v_dot[48]_|v_wmma_(f32|i32)", mnemonic):
            out.add("no_op_sel")
        return out
    floating = FLOAT_TYPE.search(args) is not None
    floating = floating and not re.match(r"v_cndmask|v_cmpx?_class|v_dot2_(b?f16)", mnemonic)
    if INT_CLAMP.match(mnemonic) or floating:
        out.add("clamp")
    dst = args.split(" ")[0]
    if "clamp" in out and FLOAT_TYPE.search(dst) and dst.startswith("vdst"):
        out.add("omod")
    return out


def formats() -> dict[str, Any]:
    """Bit layout of every format: fixed bits, opcode field, operand fields."""
    ins = source("ins")
    out: dict[str, Any] = {}
    for name, (cls_name, names) in FORMATS.items():
        mask = value = 0
        fields: dict[str, list[Any]] = {}
        op: list[int] = []
        for field, bits in getattr(ins, cls_name)._fields:
            width = bits.hi - bits.lo + 1
            kind_name = type(bits).__name__
            if kind_name == "FixedBitField":
                mask |= ((1 << width) - 1) << bits.lo
                value |= bits.default << bits.lo
            elif field in ("op", "opx"):
                op = [bits.lo, width]
            elif (name, field) in DROPPED:
                continue
            elif field == "opy":
                fields["opy"] = ["i", bits.lo, width]
            else:
                ours, kind_of = names[field]
                fields[ours] = [kind_of, bits.lo, width]
        ends = [lo + width for _, lo, width in fields.values()]
        size = 4 if max([*ends, sum(op)]) <= 32 else 8
        size = 8 if mask >> 32 else size
        op = op or [0, 0]  # EXP has one instruction
        out[name] = {"size": size, "mask": mask, "value": value, "op": op, "fields": fields}
    return out


def opcodes(fmt: str) -> list[Any]:
    """The source's opcodes of a format, in order."""
    return list(getattr(source("enum"), f"{fmt}Op"))


def images() -> dict[str, str]:
    """Opcode to name of the image instructions, which are refused by name."""
    return {str(op.value): op.name.lower() for op in opcodes("MIMG")}


def operations() -> dict[str, Any]:
    """Every mnemonic with its encodings, operands and properties."""
    all_operands = source("operands").OPERANDS
    pcode_of: dict[Any, str] = source("str_pcode").PCODE
    out: dict[str, Any] = {}
    for fmt in FORMATS:
        for op in opcodes(fmt):
            name: str = op.name
            if GFX1150_SALU.match(name) and fmt.startswith("SOP"):
                continue
            if ABSENT.match(SUFFIX.sub("", name)):
                continue
            if fmt == "FLAT" and not name.startswith("FLAT_"):
                continue
            if fmt == "VOP3" and name == "V_READFIRSTLANE_B32_E64":
                continue  # LLVM has only the 32-bit form
            mnemonic = SUFFIX.sub("", name).lower()
            row = out.setdefault(mnemonic, {"forms": {}})
            row["forms"][fmt] = op.value
            info = all_operands.get(op, {})
            args = arguments(fmt, name, mnemonic, info)
            better = len(args) > len(row.get("args", "")) or fmt in ("VOP3", "VOP3SD")
            if "args" not in row or better:
                row["args"] = args
            row.setdefault("kind", kind(fmt, mnemonic))
            reads, writes = implicit(fmt, mnemonic, pcode_of.get(op, ""))
            if reads:
                row["reads"] = reads
            if writes:
                row["writes"] = writes
            flags = set(row.get("flags", []))
            if fmt in ("VOP3", "VOP3P", "VOP3SD"):
                first = info.get("vsrc0", info.get("src0"))
                dpp = first is not None and first[2].name == "OPR_VGPR"
                if dpp and mnemonic != "v_fma_dx9_zero_f32":
                    flags.add("dpp")
            if fmt in ("VOP1", "VOP2") and DPP_SHORT.match(mnemonic):
                flags.add("dpp")
            if fmt in ("VOP3", "VOP3SD", "VOP3P"):
                flags |= modifiers(fmt, mnemonic, row["args"])
            if TRANS.match(mnemonic):
                flags.add("trans")
            if mnemonic.startswith("v_fma_mix"):
                flags.add("mixed")
            if "_wmma_" in mnemonic:
                flags.add("wmma")
            if PARTIAL.search(mnemonic) and "store" not in mnemonic:
                flags.add("partial")
            if re.search(
                r"_atomic_|ds_.*_rtn|ds_(add|sub|rsub|inc|dec|min|max|and|or|xor)_"
                r"|ds_(mskor|cmpstore|condxchg|append|consume)",
                mnemonic,
            ):
                flags.add("atomic")
            if NO_GDS.match(mnemonic):
                flags.add("no_gds")
            if ONLY_GDS.match(mnemonic):
                flags.add("gds")
            if flags:
                row["flags"] = sorted(flags)
    for row in out.values():
        if list(row["forms"]) in (["VOP2"], ["VOPD"]):  # no 64-bit form: a VGPR
            row["args"] = row["args"].replace("src1:r:src:", "src1:r:v:")
    return out


def text() -> str:
    """The table as committed."""
    head = {
        "": "generated by tools/generate/rdna3_table.py from tinygrad "
        f"{version('tinygrad')}; do not edit",
        "notice": "Encodings from tinygrad's tables of AMD's ISA, MIT License, (c) the tiny corp",
    }
    lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in head.items()]
    rows = [f" {json.dumps(k)}: {json.dumps(v)}" for k, v in formats().items()]
    lines.append('"formats": {\n' + ",\n".join(rows) + "\n}")
    lines.append(f'"images": {json.dumps(images())}')
    rows = [f" {json.dumps(k)}: {json.dumps(v)}" for k, v in operations().items()]
    lines.append('"ops": {\n' + ",\n".join(rows) + "\n}")
    return "{" + ",\n".join(lines) + "}\n"


def main() -> int:
    """Write or check the table; exit status 1 when --check finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    new = text()
    if args.check:
        return 0 if TARGET.read_text() == new else 1
    TARGET.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
