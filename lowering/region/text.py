"""A block as the model's prompt, and its answer, as words.

The prompt is canonical: two blocks that differ in the numbers of registers, in labels and
addresses alone have one prompt (:mod:`.canonical_names`).  It says the target's instruction set,
what is read before it is written (``in``), what is read after it (``out``), which predicates must
keep the bits of lanes that wait elsewhere (``keep``), how many temporaries are free, and the SASS,
one instruction per line::

    gfx1100
    in v1 v2 c0 c1
    out v0
    free t24 s20
    IMAD .WIDE v0 :2 v2 #4 c0 :2
    IADD3 v0 v0 v1 Z

An operand's signs precede it.  A predicate is named by its role unless it has its usual value:
true, or false for a carry or a combination.
The answer is RDNA3, where ``;`` ends the code of each SASS instruction (which may be empty)::

    v_mov_b32 t0 #4 v_mad_i64_i32 v0 :2 null v2 t0 c0 :2 ;
    v_add_nc_u32 v0 v0 v1 ;

Operands follow the mnemonic in LLVM's order, wider ones with their number of registers; then
``+ N`` is the offset or immediate, ``+1 N`` the second offset, ``neg:3`` and the like are fields of
:class:`~sassxlate.disasm.rdna3.instruction.Inst`.  ``.pred p0`` narrows EXEC to a predicate's lanes
(``.pred ! p0`` to the others), ``.switch`` goes from one to another, ``.endpred`` widens it again.
The line of a macro (:mod:`.macro`) begins with ``.macro`` and ends with what its code overwrites
besides its results; its answer is ``.macro ;``, with guards if need be, and stands for the rules'
code of it.
:func:`read_code` is the exact inverse of :func:`code_words`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from sassxlate.cfg.liveness import live_before
from sassxlate.disasm.rdna3 import OPS
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, Item, S, Sp, V
from sassxlate.disasm.sass.instruction import (
    Const,
    Imm,
    Instruction,
    Mem,
    Name,
    Operand,
    Pred,
    Reg,
    RegRef,
    Special,
)
from sassxlate.errors import EncodeError
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.directives import guard_words, macro_code, macro_line, read_guard
from sassxlate.lowering.region.macro import MACRO
from sassxlate.lowering.region.numbers import Bits, is_number, number, value_of
from sassxlate.lowering.region.operands import counts
from sassxlate.lowering.region.places import VTEMPS, Names, canonical_names, place_of, words_of
from sassxlate.lowering.region.region import Region
from sassxlate.lowering.region.restated import Restated, joined, lower
from sassxlate.lowering.region.subset import (
    BITS,
    FLAGS,
    OFFSETS,
    SPECIALS,
    in_subset,
    subset_operations,
)
from sassxlate.lowering.region.uniform import with_uniform
from sassxlate.lowering.target import TARGETS

END: Final = ";"  # of the code of one SASS instruction
DIRECTIVES: Final = (".pred", ".switch", ".endpred", "!")
HEADERS: Final = (
    *dict.fromkeys(t.language for t in TARGETS.values()),
    "in",
    "out",
    "keep",
    "free",
    "bank",
)
# What is added or combined where no predicate is named is nothing.
USUALLY_FALSE: Final = frozenset("IADD3 UIADD3 IMAD UIMAD LOP3 ULOP3 LEA ULEA".split())
_DEFAULTS: Final = {"op_sel_hi": 7}
Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RegionText:
    """The prompt, line by line, and the meaning of the names in its answer.

    If instructions are expressed in older forms, ``known`` has the mapping (:mod:`.restated`).
    """

    lines: tuple[Words, ...]
    names: Names
    block: Region
    regs: RegisterMap
    live_out: frozenset[RegRef]
    known: Restated | None = None

    @property
    def parts(self) -> tuple[int, ...]:
        """The number of lines per instruction, if some are expressed in older forms."""
        return self.known.parts if self.known is not None else ()

    @property
    def groups(self) -> int:
        """The number of groups of code in an answer, one for each line of SASS."""
        return sum(self.parts) if self.parts else len(self.block.instructions)

    @property
    def words(self) -> Words:
        return tuple(word for line in self.lines for word in line)

    @property
    def text(self) -> str:
        """The canonical form: equal texts are one prompt."""
        return "\n".join(map(" ".join, self.lines))


def region_text(
    block: Region,
    regs: RegisterMap,
    live_out: frozenset[RegRef],
    known: Restated | None = None,
) -> RegionText:
    """The prompt for a block (see :mod:`sassxlate.lowering.optimize.regions` for the choice),
    exactly or in the forms of ``known``.

    Raises EncodeError SX0541 or SX0542 for a block that cannot be expressed.
    """
    sass = block.instructions
    if known is not None and any(i.offset in block.macros for i in sass):
        raise EncodeError("SX0542", "a macro has no older form")
    lines_of = sass if known is None else known.lines
    places = regs if known is None else known.regs
    here = canonical_names(lines_of, places, frozenset() if known is None else known.lent)
    written = frozenset[RegRef]().union(*(i.writes for i in sass))
    live_in = live_out
    for ins in reversed(sass):
        live_in = live_before(ins, live_in)
    read = frozenset[RegRef]().union(*(i.reads for i in sass)) | (live_out & written)
    inputs = _listed(live_in & read, regs, here)
    inputs += sorted((n for n in here.place if n[0] == "c"), key=_order)
    lines: list[Words] = [(regs.target.language,), ("in", *inputs)]
    lines.append(("out", *_listed(live_out & written, regs, here)))
    masks = frozenset(r for r in written if r.file in ("P", "UP"))
    keep = _listed(block.merged & masks, regs, here)
    if keep:
        lines.append(("keep", *keep))
    lines += (_bank(b, block) for b in _banks(lines_of, places))
    lines.append(("free", f"t{VTEMPS}", "s20"))
    lines += (_line(i, block, places, here) for i in lines_of)
    return RegionText(tuple(lines), here, block, regs, live_out, known)


def _listed(refs: Iterable[RegRef], regs: RegisterMap, here: Names) -> list[str]:
    """Names of registers; those that only describe a memory access have none."""
    found: list[str] = []
    for ref in refs:
        kind, at = place_of(ref, regs)
        name = here.name.get(V(at) if kind in "vl" else S(at))
        if name is not None:
            found.append(name)
    return sorted(found, key=_order)


def _order(name: str) -> tuple[str, int]:
    return name[0], int(name[1:])


def _banks(sass: Iterable[Instruction], regs: RegisterMap) -> list[int]:
    """The banks whose address the code may have to load."""
    found = {
        o.bank
        for i in sass
        for o in i.operands.values()
        if isinstance(o, Const)
        and o.bank
        and (o.index is not None or any((o.bank, w) not in regs.consts for w in words_of(o)))
    }
    return sorted(found)


def _bank(bank: int, block: Region) -> Words:
    """The offset in the kernarg segment of a bank's address."""
    offset = block.around.bank_table.get(bank)
    if offset is None:
        raise EncodeError("SX0542", f"constant bank {bank} is not known here")
    return "bank", f"c[{bank}]", *number(offset)


# --- SASS ------------------------------------------------------------------------------------


def _line(ins: Instruction, block: Region, regs: RegisterMap, here: Names) -> Words:
    said = _instruction(ins, block, regs, here)
    macro = block.macros.get(ins.offset)
    return said if macro is None else macro_line(said, macro, regs, here)


def _instruction(ins: Instruction, block: Region, regs: RegisterMap, here: Names) -> Words:
    out: list[str] = []
    if not ins.guard.is_true:
        out += ["@", *_pred(ins.guard, regs, here)]
    out += [ins.mnemonic, *(f".{m}" for m in ins.modifiers)]
    usual = ins.mnemonic in USUALLY_FALSE
    for role, operand in ins.operands.items():
        if isinstance(operand, Pred):
            false = usual and role in ("Pp", "Pq")
            if not (operand.is_false if false else operand.is_true):
                out += [f"{role}=", *_pred(operand, regs, here)]
            continue
        out += _operand(operand, block, regs, here)
    return tuple(out)


def _pred(pred: Pred, regs: RegisterMap, here: Names) -> list[str]:
    sign = ["!"] if pred.inv else []
    if pred.index == 7:
        return [*sign, "T"]
    _, at = place_of(RegRef(pred.file, pred.index), regs)
    return [*sign, here.name[S(at)]]


def _signs(operand: Reg | Imm | Const) -> list[str]:
    return [
        word
        for word, flag in (("-", "neg"), ("|", "abs"), ("~", "inv"))
        if getattr(operand, flag, False)
    ]


def _operand(operand: Operand, block: Region, regs: RegisterMap, here: Names) -> list[str]:
    match operand:
        case Reg():
            return [*_signs(operand), *_register(operand, regs, here), *_select(operand.select)]
        case Imm():
            return [*_signs(operand), *number(operand.value, 64 if operand.bits == 64 else 32)]
        case Const():
            words = _constant(operand, block, regs, here)
            return [*_signs(operand), *words, *_select(operand.select)]
        case Mem():
            out = ["["]
            for reg in (operand.base, operand.ureg):
                if reg is not None:
                    out += _register(reg, regs, here)
            if operand.scale != 1:
                out.append(f"*{operand.scale}")
            return [*out, *number(operand.offset), "]"]
        case Special() | Name():
            return [operand.name or f"SR{operand}"]
        case _:
            raise EncodeError("SX0542", f"{operand} cannot be said")


def _select(select: str) -> list[str]:
    return [f".{select}"] if select else []


def _register(reg: Reg, regs: RegisterMap, here: Names) -> list[str]:
    if reg.is_zero:
        return ["Z"]
    places: list[V | S] = []
    for i in range(reg.width):
        kind, at = place_of(RegRef(reg.file, reg.index + i), regs)
        places.append(V(at) if kind in "vl" else S(at))
    return _tuple(places, here)


def _tuple(places: Sequence[V | S], here: Names) -> list[str]:
    """The names of registers, one name with a width if they are adjacent."""
    if len(places) == 1:
        return [here.name[places[0]]]
    first = places[0]
    if all(p == type(first)(first.index + i) for i, p in enumerate(places)):
        return [here.name[first], f":{len(places)}"]
    return ["(", *(here.name[p] for p in places), ")"]


def _constant(c: Const, block: Region, regs: RegisterMap, here: Names) -> list[str]:
    grid = c.bank == 0 and not block.around.grid_words.keys().isdisjoint(words_of(c))
    if c.ur is not None or (c.place & 3 and c.index is None) or grid:
        raise EncodeError("SX0542", "this constant operand cannot be said")
    if c.index is not None:
        return [f"c[{c.bank}]", "[", *_register(c.index, regs, here), *number(c.offset), "]"]
    lay = block.around.layout
    windows = {lay.shared_window: "src_shared_base", lay.local_window: "src_private_base"}
    out: list[str] = []
    places: list[V | S] = []
    for at in words_of(c):
        window = windows.get(at - 4) or ("Z" if at in windows else None)
        if c.bank == 0 and window is not None:
            out.append(window)
            continue
        place = regs.consts.get((c.bank, at))
        if place is None:
            out += [f"c[{c.bank}]", *number(at)]
        else:
            places.append(S(place.index))
            out.append(here.name[places[-1]])
    if len(places) == c.width:
        return _tuple(places, here)
    return ["(", *out, ")"] if c.width > 1 else out


# --- RDNA3 -----------------------------------------------------------------------------------


def code_words(code: Sequence[Sequence[Item]], here: RegionText) -> list[Words]:
    """The code of each SASS instruction as words.

    Raises EncodeError SX0543 for code outside the subset, SX0541 for a register without a name.
    """
    out: list[Words] = []
    if here.known is not None:
        code = lower(code, here.block.around.layout, here.regs.target.kernarg)
    for n, group in enumerate(code):
        macro = here.block.macros.get(here.block.instructions[n].offset)
        if macro is not None:
            out.append((*macro_code(group, macro, here.regs, here.names), END))
            continue
        if here.parts:  # all of it at the last line
            out += [(END,)] * (here.parts[n] - 1)
        words: list[str] = []
        for item in group:
            words += _said(item, here)
        out.append((*words, END))
    return out


def answer_text(code: Sequence[Sequence[Item]], here: RegionText) -> str:
    """The same as text, one SASS instruction per line."""
    return "\n".join(map(" ".join, code_words(code, here)))


def _said(item: Item, here: RegionText) -> Iterator[str]:
    if not isinstance(item, Inst) or not in_subset(item, here.regs):
        raise EncodeError("SX0543", f"{getattr(item, 'op', 'a label')} is not in the language")
    opened = guard_words(item, here.regs, here.names)
    if opened is not None:
        yield from opened
        return
    row = OPS[item.op]
    yield item.op
    for i, arg in enumerate(item.args):
        wide = i < len(row.args) and row.args[i].n == 2
        yield from _arg(arg, 64 if wide else 32, here.names)
    for name, word in OFFSETS.items():
        value = getattr(item, name)
        if value:
            yield word
            yield from number(value)
    for name in BITS:
        value = getattr(item, name)
        if value != _DEFAULTS.get(name, 0):
            yield f"{name}:{value}"
    for flag in FLAGS:
        if getattr(item, flag):
            yield flag


def _arg(arg: Arg, bits: Bits, here: Names) -> Iterator[str]:
    match arg:
        case V() | S():
            yield here.of(arg)
        case Sp():
            yield arg.name
        case I():
            yield from number(arg.value, bits)
            return
        case _:
            raise EncodeError("SX0543", f"{arg} is not in the language")
    if arg.n > 1:
        yield f":{arg.n}"


@cache
def _operations() -> frozenset[str]:
    return frozenset(subset_operations())


def read_code(words: Sequence[str], here: RegionText) -> tuple[tuple[Inst, ...], ...]:
    """The instructions of an answer, in the block's own registers, by SASS instruction.

    ``uniform`` is set on each v_readfirstlane whose value all active lanes are known to share.
    Whether the instructions encode, write only what they may, and implement the SASS is checked
    elsewhere (:mod:`sassxlate.lowering.verify.steps`).  Raises EncodeError SX0540 to SX0544.
    """
    groups: list[list[Inst]] = [[]]
    at = 0
    while at < len(words):
        word = words[at]
        if word == END:
            groups.append([])
            at += 1
        elif word == MACRO:
            groups[-1].append(_macro(here, len(groups) - 1))
            at += 1
        elif word.startswith("."):
            inst, at = read_guard(words, at, here.regs, here.names)
            groups[-1].append(inst)
        else:
            inst, at = _read_inst(words, at, here.names)
            groups[-1].append(inst)
    if groups.pop() or len(groups) != here.groups:
        raise EncodeError("SX0544", f"code of {len(groups)} instructions, not {here.groups}")
    for inst in (inst for group in groups for inst in group):
        if inst.op != MACRO and len(inst.args) not in counts(inst.op):
            raise EncodeError("SX0544", f"{inst.op} does not take {len(inst.args)} operands")
    if here.known is not None:
        groups = joined(groups, here.known, here.regs.vtemp_base)
    return with_uniform(groups, here.block.instructions, here.regs)


def _macro(here: RegionText, n: int) -> Inst:
    """What stands for the macro of the line that code is read for."""
    sass = here.block.instructions
    macro = here.block.macros.get(sass[n].offset) if n < len(sass) and not here.parts else None
    if macro is None:
        raise EncodeError("SX0543", f"instruction {n} is not a macro")
    return macro.inst


_WIDTHS: Final = {f":{n}": n for n in (2, 3, 4, 8, 16)}
_SPECIALS: Final = frozenset(SPECIALS)
_FIELDS: Final = {f"{name}:{n}": (name, n) for name, most in BITS.items() for n in range(most + 1)}
_OFFSET_WORDS: Final = {word: name for name, word in OFFSETS.items()}


def _read_inst(words: Sequence[str], at: int, here: Names) -> tuple[Inst, int]:
    op = words[at]
    if op not in _operations():
        raise EncodeError("SX0543", f"{op!r} is not in the language")
    row = OPS[op]
    at += 1
    args: list[Arg] = []
    changes: dict[str, int | bool] = {}
    while at < len(words):
        word = words[at]
        if is_number(word):
            wide = len(args) < len(row.args) and row.args[len(args)].n == 2
            value, at = value_of(words, at, 64 if wide else 32)
            args.append(I(value if wide else value & 0xFFFFFFFF))
        elif word in _SPECIALS or word in here.place:
            at += 1
            n = _WIDTHS.get(words[at], 1) if at < len(words) else 1
            at += n > 1
            args.append(Sp(word, n) if word in _SPECIALS else here.register(word, n))
        else:
            break
    while at < len(words):
        word = words[at]
        if word in _OFFSET_WORDS:
            changes[_OFFSET_WORDS[word]], at = value_of(words, at + 1)
        elif word in _FIELDS:
            name, value = _FIELDS[word]
            changes[name] = value
            at += 1
        elif word in FLAGS:
            changes[word] = True
            at += 1
        else:
            break
    return Inst(op, tuple(args), **changes), at  # type: ignore[arg-type]


__all__ = ["END", "RegionText", "answer_text", "code_words", "read_code", "region_text"]
