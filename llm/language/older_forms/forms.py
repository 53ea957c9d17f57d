"""Forms of later architectures, each with the equivalent lines of older code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from sassxlate.disasm.sass.instruction import (
    RZ,
    Const,
    Imm,
    Instruction,
    Operand,
    Pred,
    Reg,
    Special,
)
from sassxlate.llm.language.older_forms.lender import (
    FALSE,
    TRUE,
    ZERO,
    ScratchNames,
    both,
    is_zero,
    line,
)
from sassxlate.lowering.region.restated import said_at

Lines: TypeAlias = "list[Instruction] | None"


def _load(ins: Instruction, lender: ScratchNames) -> Lines:
    """LDC from the place that older kernels use, in pairs."""
    source, to = ins.get("src"), ins.get("Rd")
    if not isinstance(source, Const) or not isinstance(to, Reg) or source.ur is not None:
        return None
    if source.bank == 0 and source.offset >= 0:
        source = replace(source, offset=said_at(lender.surroundings.layout, source.offset))
    step = min(to.width, 2)
    made: list[Instruction] = []
    for n in range(0, to.width, step):
        target = to if to.is_zero else replace(to, index=to.index + n, width=step)
        value = replace(source, offset=source.offset + 4 * n, width=min(source.width, step))
        operands: dict[str, Operand] = {**ins.operands, "Rd": target, "src": value}
        made.append(line(ins, "LDC", ("64",) if to.width == 4 else ins.modifiers, operands))
    return made


def _load_uniform(ins: Instruction, lender: ScratchNames) -> Lines:
    """LDCU with a fixed offset as ULDC of constant words, wider ones in pairs."""
    source, to = ins.get("src"), ins.get("Rd")
    if not isinstance(source, Const) or not isinstance(to, Reg) or source.ur is not None:
        return None
    if (source.index is not None and not source.index.is_zero) or source.place & 3:
        return None
    if to.is_zero or ins.modifiers != {1: (), 2: ("64",), 4: ("128",)}.get(to.width):
        return None
    words = [(source.bank, source.place + 4 * i) for i in range(to.width)]
    step = min(to.width, 2)
    for n in range(0, to.width, step):
        known = all(w in lender.regs.consts for w in words[n : n + step])
        if not known and not source.bank and not lender.constant(words[n][1], step):
            return None
    made: list[Instruction] = []
    for n in range(0, to.width, step):
        operands: dict[str, Operand] = {
            **ins.operands,
            "Rd": replace(to, index=to.index + n, width=step),
            "src": Const(source.bank, words[n][1], width=step),
        }
        made.append(line(ins, "ULDC", ("64",) if step == 2 else (), operands))
    return made


def _sum(ins: Instruction, lender: ScratchNames) -> Lines:
    """A sum of 64 bits as IADD3 and IADD3.X, of the scalar unit as UIADD3 and UIADD3.X."""
    if ins.modifiers != ("64",):
        return None
    uniform = ins.mnemonic == "UIADD3"
    if uniform and not is_zero(ins["Rc"]):
        return None
    to, a, b = ins["Rd"], both(ins["Ra"]), both(ins["Rb"])
    into, out = ins.get("Pp"), ins.get("Pu")
    if not isinstance(to, Reg) or to.is_zero or a is None or b is None:
        return None
    if not isinstance(into, Pred) or not into.is_false or not isinstance(out, Pred):
        return None
    carry = lender.predicate(uniform)
    if carry is None:
        return None
    high_a, high_b = lender.value(a[1]), lender.value(b[1])
    if is_zero(high_b) and not is_zero(high_a):
        high_a, high_b = ZERO, high_a
    low: dict[str, Operand] = {
        "Rd": replace(to, width=1), "Ra": a[0], "Rb": b[0], "Rc": ZERO,
        "Pu": carry, "Pv": TRUE, "Pp": FALSE, "Pq": FALSE,
    }  # fmt: skip
    high: dict[str, Operand] = {
        **low, "Rd": replace(to, index=to.index + 1, width=1), "Ra": high_a, "Rb": high_b,
        "Pu": out, "Pp": carry,
    }  # fmt: skip
    name = "UIADD3" if uniform else "IADD3"
    return [line(ins, name, (), low), line(ins, name, ("X",), high)]


def _compare(ins: Instruction, lender: ScratchNames) -> Lines:
    """A comparison of 64 bits: the low words, without sign, and then the high ones."""
    kind = next((m for m in ins.modifiers if m in ("S64", "U64")), None)
    if kind is None:
        return None
    a, b = both(ins["Ra"]), both(ins["Rb"])
    out, into = ins["Pu"], ins["Pp"]
    if a is None or b is None or not isinstance(out, Pred) or not isinstance(into, Pred):
        return None
    if out.index == 7 or not isinstance(ins["Pq"], Pred):
        return None
    carry: Pred | None = out
    if out.index in (into.index, ins.guard.index):
        carry = lender.predicate(out.file == "UP")
    if carry is None:
        return None
    compare, combine = ins.modifiers[0], ins.modifiers[-1]
    unsigned = ("U32",) if kind == "U64" else ()
    low: dict[str, Operand] = {
        "Ra": a[0], "Rb": b[0], "Pu": carry, "Pv": TRUE, "Pp": TRUE, "Pq": TRUE,
    }  # fmt: skip
    high: dict[str, Operand] = {**ins.operands, "Ra": a[1], "Rb": b[1], "Pq": carry}
    return [
        line(ins, ins.mnemonic, (compare, "U32", "AND"), low),
        line(ins, ins.mnemonic, (compare, *unsigned, combine, "EX"), high),
    ]


def _extreme(ins: Instruction, lender: ScratchNames) -> Lines:
    """The smaller or larger of two numbers of 64 bits: a comparison and two choices."""
    if ins.modifiers not in (("S64",), ("U64",)):
        return None
    to, which = ins["Rd"], ins["Pp"]
    a, b = both(ins["Ra"]), both(ins["Rb"])
    others = all(isinstance(p, Pred) and p.index == 7 for p in (ins["Pu"], ins["Pv"], which))
    if not others or not isinstance(to, Reg) or to.is_zero or a is None or b is None:
        return None
    carry = lender.predicate()
    if carry is None:
        return None
    compare = "GT" if isinstance(which, Pred) and which.inv else "LT"
    unsigned = ("U32",) if ins.has("U64") else ()
    low: dict[str, Operand] = {
        "Ra": a[0], "Rb": b[0], "Pu": carry, "Pv": TRUE, "Pp": TRUE, "Pq": TRUE,
    }  # fmt: skip
    high: dict[str, Operand] = {**low, "Ra": a[1], "Rb": b[1], "Pq": carry}
    made = [
        line(ins, "ISETP", (compare, "U32", "AND"), low),
        line(ins, "ISETP", (compare, *unsigned, "AND", "EX"), high),
    ]
    for n in range(2):
        operands: dict[str, Operand] = {
            "Rd": replace(to, index=to.index + n, width=1), "Ra": a[n], "Rb": b[n], "Pp": carry,
        }  # fmt: skip
        made.append(line(ins, "SEL", (), operands))
    return made


def _halves(ins: Instruction, _: ScratchNames) -> Lines:
    """An instruction that treats both words alike, as one instruction for each word; CS2R if they
    are 0."""
    if not ins.has("64"):
        return None
    if ins.mnemonic == "MOV" and is_zero(ins["Rb"]):
        return [line(ins, "CS2R", (), {"Rd": ins["Rd"], "sr": Special(RZ, "SRZ")})]
    parts: tuple[dict[str, Operand], dict[str, Operand]] = {}, {}
    for role, operand in ins.operands.items():
        wide = isinstance(operand, Reg) and not operand.is_zero and operand.width == 2
        wide = wide or is_zero(operand) or (isinstance(operand, Imm) and role != "mask")
        halves = both(operand) if wide else (operand, operand)
        if halves is None:
            return None
        for part, half in zip(parts, halves, strict=True):
            part[role] = half
    modifiers = tuple(m for m in ins.modifiers if m != "64")
    return [replace(ins, modifiers=modifiers, operands=part) for part in parts]


def _constant(ins: Instruction, _: ScratchNames) -> Lines:
    """A move as HFMA2."""
    if ins.modifiers or not is_zero(ins["Ra"]) or not is_zero(ins["Rb"]):
        return None
    return [replace(ins, modifiers=("MMA",))]


def _signed(ins: Instruction, _: ScratchNames) -> Lines:
    """Removes the signed modifier, which is the default."""
    if not ins.has("S32"):
        return None
    return [replace(ins, modifiers=tuple(m for m in ins.modifiers if m != "S32"))]


def _logic(ins: Instruction, _: ScratchNames) -> Lines:
    """The second table is 0 if its result is unused."""
    out = ins["Pv"]
    if not isinstance(out, Pred) or out.index != 7 or not isinstance(ins["lut2"], Imm):
        return None
    return [replace(ins, operands={**ins.operands, "lut2": replace(ins["lut2"], value=0)})]


FORMS: Final[Mapping[str, Callable[[Instruction, ScratchNames], Lines]]] = {
    "LDC": _load,
    "LDCU": _load_uniform,
    "IADD": _sum,
    "UIADD3": _sum,
    "ISETP": _compare,
    "UISETP": _compare,
    "IMNMX": _extreme,
    "MOV": _halves,
    "UMOV": _halves,
    "SEL": _halves,
    "USEL": _halves,
    "HFMA2": _constant,
    "VIMNMX": _signed,
    "PLOP3": _logic,
}

__all__ = ["FORMS"]
