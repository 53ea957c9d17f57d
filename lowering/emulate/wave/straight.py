"""Instructions that the next one always follows, and that touch only registers and memory."""

from __future__ import annotations

from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.lowering.emulate.wave import alu, cross_lane, matrix
from sassxlate.lowering.emulate.wave.access import memory
from sassxlate.lowering.emulate.wave.context import Context

# No effect: waits (loads are done at once), hints, and caches, which do not exist here.
NOTHING = frozenset(
    "s_nop s_waitcnt s_waitcnt_vscnt s_waitcnt_vmcnt s_waitcnt_lgkmcnt s_waitcnt_expcnt "
    "s_waitcnt_depctr s_delay_alu s_clause s_setprio s_set_inst_prefetch_distance s_wait_idle "
    "s_icache_inv s_round_mode s_denorm_mode s_version s_ttracedata s_ttracedata_imm s_wakeup "
    "s_incperflevel s_decperflevel s_wait_event v_nop ds_nop".split()
)
FENCES = frozenset({"buffer_gl0_inv", "buffer_gl1_inv", "s_dcache_inv", "s_gl1_inv"})


def emit_straight(c: Context, inst: Inst) -> bool:
    """Emits the instruction; False if it is of another kind.

    Raises:
        EmulatorError: SX0620, the instruction or a modifier of it is not supported.
    """
    op = inst.op
    row = alu.lookup(op)
    if row is not None:
        alu.emit(c, inst, row)
    elif op in NOTHING:
        pass
    elif op in cross_lane.EMITTERS:
        cross_lane.EMITTERS[op](c, inst)
    elif op in matrix.EMITTERS:
        matrix.EMITTERS[op](c, inst)
    elif op.startswith(("global_", "flat_", "scratch_", "ds_")):
        memory.emit_vmem(c, inst)
    elif op.startswith("s_load_"):
        memory.emit_smem(c, inst)
    elif op in FENCES:
        kind = "" if op == "buffer_gl1_inv" else 'syncscope("singlethread") '
        c.fn.do(f"fence {kind}seq_cst")
    else:
        return False
    return True
