"""Immediates: proved for all values at once, if the code depends on them only in its literals.

The instruction is translated with many values.  Values whose code has one shape, with literals that
are the value or a simple function of it, form a class: there the immediate becomes a register that
both sides read, and one proof covers all.  Values whose code has another shape (the rule handles
them separately) are proved one by one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S
from sassxlate.disasm.sass.instruction import Const, Imm, Instruction
from sassxlate.errors import SassxlateError
from sassxlate.lowering.target import DEFAULT, Target
from sassxlate.lowering.verify.block.block import BlockPair
from sassxlate.lowering.verify.block.check import verify
from sassxlate.lowering.verify.rdna3.execute import Placed
from sassxlate.lowering.verify.rules.forms import EDGES, FormCase, with_immediate
from sassxlate.lowering.verify.rules.one_instruction import Surroundings, translated
from sassxlate.lowering.verify.verdict import Proved, Refuted

_ONES = 0xFFFFFFFF
_SPARE = (
    30,
    31,
    32,
    33,
    34,
    35,
)  # registers that rules never get; derived values
_VALUE, _BANK = S(28), 17  # the value and the next word; a bank that no program uses
_PRODUCTS, _ADDEND = ("v_mad_u64_u32", "v_mad_i64_i32"), 4  # 32-bit operands except the addend
_LEAST = 12  # values of one shape needed to call it the general shape
_SPECIAL = 70  # values that a rule may handle separately: powers of two and their negatives
_FEW = 24  # most values proved one by one
_MORE = (
    0x1234567, 0xDEADBEEF, 0x7654321, 0x89ABCDEF, 0x13579BDF, 0xFDB97531, 0x00ABCDEF, 0x76543210,
    0x0F1E2D3C, 0xC3D2E1F0, 0x2468ACE1, 0x9E3779B9,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Function:
    """A literal as a function of the value, in Python and as an instruction."""

    of: Callable[[int], int]
    op: str = ""
    args: tuple[Arg, ...] = ()


_FUNCTIONS = (
    _Function(lambda v: v),
    _Function(lambda v: ~v & _ONES, "s_not_b32", (_VALUE,)),
    _Function(lambda v: -v & _ONES, "s_sub_u32", (I(0), _VALUE)),
    _Function(lambda v: v & 31, "s_and_b32", (_VALUE, I(31))),
    _Function(lambda v: v & 63, "s_and_b32", (_VALUE, I(63))),
    _Function(lambda v: v & 0xFF, "s_and_b32", (_VALUE, I(0xFF))),
    _Function(lambda v: v & 0xFFFF, "s_and_b32", (_VALUE, I(0xFFFF))),
    _Function(lambda v: v & 0x7FFFFFFF, "s_and_b32", (_VALUE, I(0x7FFFFFFF))),
    _Function(lambda v: v ^ 0x80000000, "s_xor_b32", (_VALUE, I(0x80000000))),
    _Function(lambda v: v | 0x80000000, "s_or_b32", (_VALUE, I(0x80000000))),
    _Function(lambda v: v >> 16, "s_lshr_b32", (_VALUE, I(16))),
    _Function(lambda v: v << 16 & _ONES, "s_lshl_b32", (_VALUE, I(16))),
    _Function(lambda v: v & 0xFFFF0000, "s_and_b32", (_VALUE, I(0xFFFF0000))),
    _Function(lambda v: v << 1 & _ONES, "s_lshl_b32", (_VALUE, I(1))),
)


def _shape(code: Sequence[Placed]) -> tuple[tuple[object, ...], tuple[int, ...]]:
    """The code without its literals, and the literals."""
    literals: list[int] = []
    shape: list[object] = []
    for step in code:
        inst = step.inst
        args = [None if isinstance(a, I) else a for a in inst.args]
        literals += [a.value for a in inst.args if isinstance(a, I)]
        shape.append(replace(inst, args=tuple(a for a in args if a is not None), origin=None))
        shape.append(tuple(a is None for a in args))
    return tuple(shape), tuple(literals)


def for_all(
    case: FormCase, surroundings: Surroundings, timeout_ms: int, target: Target = DEFAULT
) -> tuple[str, str, str] | None:
    """(a difference, the number of values proved, the assumptions); None if a value is undecided.

    ``all``: every value that the field can hold; those that the rule handles separately were proved
    one by one.  Otherwise the number of values that were proved one by one.
    """
    classes: dict[tuple[object, ...], list[tuple[int, Instruction, BlockPair]]] = defaultdict(list)
    top = 1 << case.field.width
    for value in sorted({v % top for v in (*EDGES, *_MORE)}):
        ins = with_immediate(case, value)
        if ins is None:
            continue
        try:
            block = translated(ins, surroundings, target)
        except SassxlateError:
            continue
        classes[_shape(block.rdna[0])[0]].append((value, ins, block))
    if not classes:
        return None
    modulo: set[str] = set()
    single: list[BlockPair] = []
    covered: set[int] = set()  # values of ``single`` that a general proof covers, too
    general = whole = False
    for members in classes.values():
        made = _general(case, members) if len(members) >= _LEAST else None
        verdict = None if made is None else verify(made, timeout_ms=timeout_ms, vectors=64)
        if isinstance(verdict, Proved):
            general = True
            modulo |= set(verdict.modulo)
            members = members[:2]  # to check that the literal is read as the value
            covered |= {id(block) for _, _, block in members}
        elif len(members) > _SPECIAL:
            whole = True
        single += [block for _, _, block in members]
    general &= not whole
    if not general:
        every = [block for members in classes.values() for _, _, block in members]
        single = every[:: max(1, len(every) // _FEW)]
    for block in single:
        verdict = verify(block, timeout_ms=timeout_ms)
        if isinstance(verdict, Refuted):
            return f"{block.sass[0].text}: {verdict.summary}", "", ""
        if isinstance(verdict, Proved):
            modulo |= set(verdict.modulo)
        elif not general or id(block) not in covered:
            return None
    return "", "all" if general else str(len(single)), ", ".join(sorted(modulo))


def _general(
    case: FormCase, members: Sequence[tuple[int, Instruction, BlockPair]]
) -> BlockPair | None:
    """The block with a register instead of the immediate; None if a literal is not a known function
    of it."""
    _, ins, block = members[0]
    operand = ins.get(case.immediate)
    if not isinstance(operand, Imm) or operand.bits != 32:
        return None
    values = [i.operands[case.immediate] for _, i, _ in members]
    numbers = [v.value for v in values if isinstance(v, Imm)]
    columns = list(zip(*(_shape(b.rdna[0])[1] for _, _, b in members), strict=True))
    places: list[Arg | None] = []
    prelude: list[Inst] = []
    made: dict[int, S] = {0: _VALUE}
    for column in columns:
        if len(set(column)) == 1:
            places.append(None)
            continue
        at = next((n for n, f in enumerate(_FUNCTIONS)
                   if all(f.of(v) == x & _ONES for v, x in zip(numbers, column, strict=True))),
                  None)  # fmt: skip
        if at is None:
            return None
        if at not in made:
            if len(made) > len(_SPARE):
                return None
            made[at] = S(_SPARE[len(made) - 1])
            function = _FUNCTIONS[at]
            prelude.append(Inst(function.op, (made[at], *function.args)))
        places.append(made[at])
    code = _replaced(block.rdna[0], places)
    if code is None:
        return None
    first = code[0].pc if code else 0
    code = [*(Placed(inst, first - 1, first) for inst in prelude), *code]
    constant = Const(_BANK, 0, neg=operand.neg, inv=operand.inv, width=2)
    general = replace(ins, operands={**ins.operands, case.immediate: constant})
    consts = {**block.regs.consts, (_BANK, 0): _VALUE, (_BANK, 4): S(29)}
    regs = replace(block.regs, consts=consts)
    return replace(block, sass=(general,), rdna=(code,), regs=regs)


def _replaced(code: Sequence[Placed], places: Sequence[Arg | None]) -> list[Placed] | None:
    """The code with registers instead of literals; None if one is read as 64 bits."""
    rest = iter(places)
    out: list[Placed] = []
    for step in code:
        args: list[Arg] = []
        for n, arg in enumerate(step.inst.args):
            place = next(rest) if isinstance(arg, I) else None
            wide = any(t in step.inst.op for t in ("64", "pk_", "16"))
            if step.inst.op in _PRODUCTS:
                wide = n == _ADDEND
            if place is not None and wide:
                return None
            args.append(arg if place is None else place)
        out.append(replace(step, inst=replace(step.inst, args=tuple(args))))
    return out
