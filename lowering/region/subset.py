"""The RDNA3 that a model may write: the instructions, and their fields.

It is the code that rules write before waits and hazards, without anything that the verifier does
not check or that is outside the block's control: no branches, no EXEC except through guards, no
other lanes, no waits, no cache bits except the one by which an atomic returns the old value.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from sassxlate.disasm.rdna3 import OPS, OpInfo
from sassxlate.disasm.rdna3.instruction import I, Inst, Item, Label, S, Sp, V
from sassxlate.lowering.regalloc.register_map import RegisterMap

_KINDS: Final = frozenset({"salu", "valu", "smem", "lds", "flat", "global", "scratch"})
_MODES: Final = frozenset({"s_round_mode", "s_denorm_mode"})
# Other lanes, EXEC, registers chosen by M0, and instructions without semantics.
_NOT: Final = (
    "v_readlane", "v_writelane", "v_permlane", "v_cmpx", "v_dual", "v_wmma", "v_swaprel",
    "v_movrel", "v_pipeflush", "v_nop", "v_cube", "v_dot2acc", "s_movrel", "s_wqm", "s_quadmask",
    "s_getreg", "s_bitreplicate", "s_cbranch", "s_buffer", "s_atc", "ds_permute", "ds_bpermute",
    "ds_swizzle", "ds_gws", "ds_nop", "ds_append", "ds_consume", "ds_ordered", "ds_bvh",
    "ds_add_gs", "ds_sub_gs", "ds_store_addtid", "ds_load_addtid", "global_load_addtid",
    "global_store_addtid", "ds_mskor", "ds_condxchg", "s_subvector",
)  # fmt: skip
SPECIALS: Final = (
    "vcc_lo", "vcc", "exec_lo", "null", "off", "scc", "src_shared_base", "src_private_base",
    "src_shared_limit", "src_private_limit",
)  # fmt: skip
GUARDS: Final = {  # word: (mnemonic, whether the predicate is inverted)
    "s_and_saveexec_b32": (".pred", False),
    "s_and_not0_saveexec_b32": (".pred", True),
    "s_and_b32": (".switch", False),
    "s_and_not1_b32": (".switch", True),
}
EXEC: Final = Sp("exec_lo")
# Fields other than operands: the word for each, and its largest value.
BITS: Final = {
    "neg": 15, "abs": 15, "op_sel": 15, "op_sel_hi": 7, "neg_hi": 7, "omod": 3,
}  # fmt: skip
FLAGS: Final = ("clamp", "glc")
OFFSETS: Final = {"imm": "+", "imm2": "+1"}


def in_language(row: OpInfo) -> bool:
    """Whether the subset has an instruction."""
    if row.op in _MODES:
        return True
    if row.kind not in _KINDS or row.op.startswith(_NOT):
        return False
    if row.kind == "smem" and not row.load:
        return False
    return "exec" not in row.writes and not row.is_wmma


@cache
def subset_operations() -> tuple[str, ...]:
    """The mnemonics of the subset, in order."""
    return tuple(sorted(row.op for row in OPS.values() if in_language(row)))


@cache
def _operations() -> frozenset[str]:
    return frozenset(subset_operations())


def guard(item: Inst, regs: RegisterMap) -> tuple[str, bool, S | None] | None:
    """The opening, switching or closing of a guard: the directive, whether its predicate is
    inverted, and the predicate."""
    save = regs.save_exec
    if item.op == "s_mov_b32" and item.args == (EXEC, save):
        return ".endpred", False, None
    found = GUARDS.get(item.op)
    if found is None:
        return None
    heads = (save,) if found[0] == ".pred" else (EXEC, save)
    mask = item.args[-1]
    if item.args[:-1] == heads and isinstance(mask, S):
        return found[0], found[1], mask
    return None


def guard_inst(word: str, inverted: bool, mask: S | None, regs: RegisterMap) -> Inst:
    """The instruction for a guard's directive."""
    save = regs.save_exec
    if mask is None:
        return Inst("s_mov_b32", (EXEC, save))
    op = next(op for op, what in GUARDS.items() if what == (word, inverted))
    return Inst(op, (save, mask) if word == ".pred" else (EXEC, save, mask))


def in_subset(item: Item, regs: RegisterMap) -> bool:
    """Whether an instruction is in the subset, apart from the names of its registers."""
    if isinstance(item, Label):
        return False
    if guard(item, regs) is not None:
        return True
    if item.op not in _operations() or item.fence or item.dlc or item.slc:
        return False
    if item.dpp or item.y is not None or item.gds or item.more:
        return False
    row = OPS[item.op]
    if item.glc and not row.atomic:
        return False
    if item.op == "v_readfirstlane_b32" and not item.uniform:
        return False
    for operand, arg in zip(row.args, item.args, strict=False):
        if isinstance(arg, Sp) and "w" in operand.role and arg.name == "exec_lo":
            return False
    return all(
        isinstance(a, V | S | I) or (isinstance(a, Sp) and a.name in SPECIALS) for a in item.args
    )
