"""The counter of blocks: the counts are those of a loop with a known trip count."""

from __future__ import annotations

from sassxlate.disasm.rdna3 import assemble
from sassxlate.disasm.rdna3.instruction import I, Inst, Label, LabelRef, S, Sp, V
from sassxlate.lowering.emulate import counts
from sassxlate.lowering.emulate.compiler import compile_kernel
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.emulate.runner import EmulatedDevice, LoadedImage, Setup, run_image

VCC = Sp("vcc_lo")
_LOOP = (
    Inst("s_mov_b32", (S(4), I(0))),
    Label("loop"),
    Inst("v_add_nc_u32", (V(1), V(1), V(0))),
    Inst("s_add_u32", (S(4), S(4), I(1))),
    Inst("s_cmp_lt_u32", (S(4), I(7))),
    Inst("s_cbranch_scc1", (LabelRef("loop"),)),
    Inst("v_lshlrev_b32", (V(2), I(2), V(0))),
    Inst("v_cmp_gt_u32", (VCC, I(16), V(0))),
    Inst("s_cbranch_vccz", (LabelRef("skip"),)),
    Inst("ds_store_b32", (V(2), V(1))),
    Label("skip"),
    Inst("s_endpgm", ()),
)


def test_counts_of_a_loop() -> None:
    code = assemble(_LOOP).data
    flow = counts.flow_of(code, 0)
    image = compile_kernel(code, 0, CompileOptions(counts=True))
    numbers = counts.counters(flow)
    assert image.counts == len(flow.blocks) == len(numbers)
    # Three workgroups of two waves; of each group the second wave has no thread below 16.
    run_image(LoadedImage(image), Setup(lds_size=256), 3, 64, b"", EmulatedDevice(), counts=numbers)
    done = counts.executed(flow, numbers)
    assert dict(done.static) == {"salu": 3, "valu": 3, "branch": 3, "lds": 1}
    assert dict(done.dynamic) == {
        "salu": 6 * (1 + 2 * 7), "valu": 6 * 7 + 12, "branch": 6 * 7 + 6 + 6, "lds": 3,
    }  # fmt: skip


def test_classes() -> None:
    names = {
        "v_dual_mul_f32": "valu", "v_cndmask_b32": "valu", "s_and_b32": "salu",
        "s_load_b64": "smem",
        "s_cbranch_execz": "branch", "s_endpgm": "branch", "s_waitcnt": "wait", "s_barrier": "wait",
        "s_waitcnt_vscnt": "wait", "s_delay_alu": "hint", "s_clause": "hint", "ds_load_b32": "lds",
        "buffer_gl0_inv": "wait", "global_load_b32": "vmem", "scratch_store_b32": "vmem",
        "s_set_inst_prefetch_distance": "hint", "s_mov_b32": "salu", "s_sendmsg": "wait",
    }  # fmt: skip
    assert {op: counts.class_of(op) for op in names} == names
