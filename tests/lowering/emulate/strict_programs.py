"""Small kernels that break one rule of strict mode each, and versions that keep it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sassxlate.disasm.rdna3 import assemble, depctr_imm, waitcnt_imm
from sassxlate.disasm.rdna3.instruction import I, Inst, Item, Label, LabelRef, S, Sp, V
from sassxlate.lowering.codeobject.code_object import KernelImage, write
from sassxlate.lowering.emulate.strict_hazards import Check
from sassxlate.lowering.target import DEFAULT

NULL = Sp("null")
LDS_SIZE, SCRATCH_SIZE = 1024, 64
KERNEL = "k"


def wait(vm: int = 63, lgkm: int = 63) -> Inst:
    return Inst("s_waitcnt", (), imm=waitcnt_imm(vm, lgkm))


STORES_DONE = Inst("s_waitcnt_vscnt", (NULL,), imm=0)
VALU_DONE = Inst("s_waitcnt_depctr", (), imm=depctr_imm(va_vdst=0))
# s[2:3] is the buffer, v1 the lane's place in it, v[8:9] its address, v2 to v5 are 0.
PROLOGUE: tuple[Item, ...] = (
    Inst("s_load_b64", (S(2, 2), S(0, 2))),
    Inst("v_lshlrev_b32", (V(1), I(2), V(0))),
    wait(lgkm=0),
    Inst("v_mov_b32", (V(9), S(3))),
    Inst("v_add_co_u32", (V(8), Sp("vcc_lo"), S(2), V(1))),
    Inst("v_add_co_ci_u32", (V(9), Sp("vcc_lo"), I(0), V(9), Sp("vcc_lo"))),
    *(Inst("v_mov_b32", (V(i), I(0))) for i in range(2, 6)),
)


def load(register: int, at: int = 0) -> Inst:
    return Inst("global_load_b32", (V(register), V(1), S(2, 2)), at)


def store(register: int, at: int = 0) -> Inst:
    return Inst("global_store_b32", (V(1), V(register), S(2, 2)), at)


def use(register: int) -> Inst:
    return Inst("v_add_nc_u32", (V(20), I(1), V(register)))


def lds_load(register: int, at: int = 0) -> Inst:
    return Inst("ds_load_b32", (V(register), V(1)), at)


LDS_STORE = Inst("ds_store_b32", (V(1), V(2)))
SCRATCH_STORE = Inst("scratch_store_b32", (Sp("off"), V(2), Sp("off")), 4)
BARRIER = Inst("s_barrier")


@dataclass(frozen=True, slots=True)
class Rule:
    """A kernel's body with the place, by index, of the instruction that `broken` leaves out.

    ``at`` indexes the offending instruction of the broken body, ``register`` its register.
    """

    name: str
    check: Check
    body: tuple[Item, ...]
    fix: int
    at: int
    text: str

    @property
    def broken(self) -> tuple[Item, ...]:
        return self.body[: self.fix] + self.body[self.fix + 1 :]


def _rule(name: str, check: Check, text: str, at: int, *body: Item) -> Rule:
    """The wait that the rule is about is marked by its comment."""
    fix = next(i for i, x in enumerate(body) if x.comment == "fix")
    return Rule(name, check, body, fix, at, text)


def fix(item: Inst) -> Inst:
    from dataclasses import replace

    return replace(item, comment="fix")


RULES: tuple[Rule, ...] = (
    _rule("read of a load", Check.VM, "v2 is used", 1, load(2), fix(wait(vm=0)), use(2)),
    _rule("too large a count", Check.VM, "v3 is used", 3,
          load(2), load(3), wait(vm=1), fix(wait(vm=0)), use(3)),
    _rule("write to a load's result", Check.VM, "v2 is used", 1,
          load(2), fix(wait(vm=0)), Inst("v_mov_b32", (V(2), I(1)))),
    _rule("store of a load's result", Check.VM, "v2 is used", 1,
          load(2), fix(wait(vm=0)), store(2)),
    _rule("a wide load's last register", Check.VM, "v7 is used", 1,
          Inst("global_load_b128", (V(4, 4), V(2), S(2, 2))), fix(wait(vm=0)),
          use(7)),
    _rule("an atomic's old value", Check.VM, "v3 is used", 1,
          Inst("global_atomic_add_u32", (V(3), V(1), V(2), S(2, 2)), glc=True),
          fix(wait(vm=0)), use(3)),
    _rule("a scratch load", Check.VM, "v2 is used", 3,
          SCRATCH_STORE, STORES_DONE, Inst("scratch_load_b32", (V(2), Sp("off"), Sp("off")), 4),
          fix(wait(vm=0)), use(2)),
    _rule("half of a register", Check.VM, "v2 is used", 1,
          Inst("global_load_d16_hi_b16", (V(2), V(1), S(2, 2))), fix(wait(vm=0)), use(2)),
    _rule("an LDS load", Check.LDS, "v2 is used", 2,
          LDS_STORE, lds_load(2), fix(wait(lgkm=0)), use(2)),
    _rule("an LDS atomic", Check.LDS, "v3 is used", 1,
          Inst("ds_add_rtn_u32", (V(3), V(1), V(2))), fix(wait(lgkm=0)), use(3)),
    _rule("LDS in order", Check.LDS, "v3 is used", 4,
          LDS_STORE, lds_load(2), lds_load(3), wait(lgkm=1), fix(wait(lgkm=0)), use(3)),
    _rule("a bpermute", Check.LDS, "v3 is used", 1,
          Inst("ds_bpermute_b32", (V(3), V(1), V(2))), fix(wait(lgkm=0)), use(3)),
    _rule("a scalar load", Check.SMEM, "s4 is used", 1,
          Inst("s_load_b32", (S(4), S(2, 2))), fix(wait(lgkm=0)),
          Inst("s_add_u32", (S(5), S(4), I(1)))),
    _rule("scalar loads in any order", Check.SMEM, "s4 is used", 3,
          Inst("s_load_b32", (S(4), S(2, 2))), Inst("s_load_b32", (S(6), S(2, 2))),
          wait(lgkm=1), fix(wait(lgkm=0)), Inst("v_mov_b32", (V(6), S(4)))),
    _rule("an address that is loading", Check.SMEM, "s4 is used", 1,
          Inst("s_load_b64", (S(4, 2), S(0, 2))), fix(wait(lgkm=0)),
          Inst("global_load_b32", (V(6), V(1), S(4, 2)))),
    _rule("a flat load needs vmcnt", Check.VM, "v2 is used", 2,
          Inst("flat_load_b32", (V(2), V(8, 2))), wait(lgkm=0), fix(wait(vm=0)), use(2)),
    _rule("a flat load needs lgkmcnt", Check.LDS, "v2 is used", 2,
          Inst("flat_load_b32", (V(2), V(8, 2))), wait(vm=0), fix(wait(lgkm=0)), use(2)),
    _rule("after a branch", Check.VM, "v2 is used", 5,
          load(2), fix(wait(vm=0)), Inst("s_cmp_eq_u32", (S(2), S(2))),
          Inst("s_cbranch_scc0", (LabelRef("next"),)),
          Inst("s_nop"), Label("next"), use(2)),
    _rule("around a loop", Check.VM, "v2 is used", 2,
          Inst("s_mov_b32", (S(6), I(2))), Label("again"), use(2), load(2),
          Inst("s_sub_u32", (S(6), S(6), I(1))), Inst("s_cmp_lg_u32", (S(6), I(0))),
          fix(wait(vm=0)), Inst("s_cbranch_scc1", (LabelRef("again"),)), wait(vm=0)),
    _rule("a transcendental", Check.TRANS, "v3 is read", 1,
          Inst("v_rcp_f32", (V(3), V(2))), fix(VALU_DONE), use(3)),
    _rule("a transcendental, 4 VALUs on", Check.TRANS, "v3 is read", 5,
          Inst("v_sqrt_f32", (V(3), V(2))), *(use(4) for _ in range(4)), fix(VALU_DONE), use(3)),
    _rule("v_cmpx, v_permlane", Check.PERMLANE, "v_permlane follows v_cmpx", 1,
          Inst("v_cmpx_lt_u32", (V(1), I(64))), fix(Inst("v_mov_b32", (V(2), V(2)))),
          Inst("v_permlane16_b32", (V(3), V(2), S(2), S(3)))),
    _rule("LDS after a barrier", Check.BARRIER, "s_barrier before", 1,
          LDS_STORE, fix(wait(lgkm=0)), BARRIER),
    _rule("a store after a barrier", Check.BARRIER, "s_barrier before", 1,
          store(2), fix(STORES_DONE), BARRIER),
    _rule("a load after a barrier", Check.BARRIER, "s_barrier before", 1,
          load(2), fix(wait(vm=0)), BARRIER),
    _rule("a release without its wait", Check.INVALIDATE, "a cache is invalidated", 1,
          store(2), fix(STORES_DONE), Inst("buffer_gl1_inv"), Inst("buffer_gl0_inv")),
    _rule("an acquire without its wait", Check.INVALIDATE, "a cache is invalidated", 1,
          load(2), fix(wait(vm=0)), Inst("buffer_gl0_inv")),
    _rule("registers back too soon", Check.DEALLOC, "registers are deallocated", 1,
          SCRATCH_STORE, fix(STORES_DONE), Inst("s_sendmsg", (), imm=3)),
)  # fmt: skip

# Bodies that look wrong but are right.
SOUND: dict[str, tuple[Item, ...]] = {
    "loads come back in order": (load(2), load(2), wait(vm=0), use(2)),
    "the older of two": (load(2), load(3), wait(vm=1), use(2), wait(vm=0)),
    "LDS in order, a scalar load beside": (
        LDS_STORE, Inst("s_load_b32", (S(4), S(2, 2))), lds_load(2), lds_load(3), wait(lgkm=1),
        use(2), wait(lgkm=0),
    ),
    "what a store has read may be overwritten": (
        store(2), Inst("v_mov_b32", (V(2), I(1))), Inst("v_mov_b32", (V(1), I(0))),
    ),
    "a transcendental 5 VALUs on": (
        Inst("v_rcp_f32", (V(3), V(2))), *(use(4) for _ in range(6)), use(3),
    ),
    "a transcendental before an access to memory": (
        Inst("v_rcp_f32", (V(3), V(2))), store(3), use(3),
    ),
    "a delay is a hint": (use(2), Inst("s_delay_alu", (), imm=1), use(20)),
}  # fmt: skip


def code_object(
    body: Sequence[Item], vgprs: int = 32, uniform: Sequence[int] = ()
) -> tuple[bytes, int]:
    """(a code object of the body between prologue and end, the offset of its first item)."""
    items = [*PROLOGUE, *body, Inst("s_endpgm")]
    program = assemble(items)
    image = KernelImage(
        name=KERNEL, code=program.data, vgprs=vgprs, sgprs=32, group_segment=LDS_SIZE,
        private_segment=SCRATCH_SIZE, kernarg_size=8,
        source=f"uniform {' '.join(f'{at:x}' for at in uniform)}\n" if uniform else "",
    )  # fmt: skip
    return write([image], DEFAULT), program.offsets[len(PROLOGUE)]


def offset_of(body: Sequence[Item], index: int) -> int:
    """The byte offset of an item of a body, from the kernel's start."""
    items = [*PROLOGUE, *body, Inst("s_endpgm")]
    return assemble(items).offsets[len(PROLOGUE) + index]


@dataclass(frozen=True, slots=True)
class Undefined:
    """A body whose last instruction depends on `what`, which `definition` would have defined."""

    name: str
    what: str
    body: tuple[Item, ...]
    definition: Item
    lane: int = 0


EXEC = Sp("exec_lo")
VCC = Sp("vcc_lo")


def _mov(register: int, value: int = 0) -> Inst:
    return Inst("v_mov_b32", (V(register), I(value)))


def _smov(register: int, value: int = 0) -> Inst:
    return Inst("s_mov_b32", (S(register), I(value)))


def _to_scalar(source: int) -> Inst:
    return Inst("v_readfirstlane_b32", (S(20), V(source)))


def wide_sum(result: int) -> Inst:
    """v[result:result+1] = 0 * v1 + v[21:22]."""
    return Inst("v_mad_u64_u32", (V(result, 2), NULL, I(0), V(1), V(21, 2)))


def store_at(register: int) -> Inst:
    return Inst("global_store_b32", (V(register), V(2), S(2, 2)))


_OUT = store_at(21)
UNDEFINED: tuple[Undefined, ...] = (
    Undefined("an address", "v21", (_OUT,), _mov(21)),
    Undefined("an address by way of sums", "v21",
              (Inst("v_add_nc_u32", (V(21), V(22), V(1))), _OUT), _mov(22)),
    Undefined("an address in some lanes", "v21",
              (Inst("s_mov_b32", (EXEC, I(0xFFFF))), _mov(21),
               Inst("s_mov_b32", (EXEC, I(-1 & 0xFFFFFFFF))), _OUT), _mov(21), 16),
    Undefined("a selected address", "v21",
              (_smov(20, 0xF0), Inst("v_cndmask_b32", (V(21), I(0), V(22), S(20))), _OUT),
              _mov(22), 4),
    Undefined("an LDS address", "v21", (Inst("ds_load_b32", (V(3), V(21))), wait(lgkm=0)),
              _mov(21)),
    Undefined("a base", "s23",
              (Inst("s_mov_b32", (S(22), S(2))), Inst("global_load_b32", (V(3), V(1), S(22, 2))),
               wait(vm=0)), Inst("s_mov_b32", (S(23), S(3)))),
    Undefined("a scalar load's base", "s23",
              (Inst("s_mov_b32", (S(22), S(2))), Inst("s_load_b32", (S(24), S(22, 2))),
               wait(lgkm=0)), Inst("s_mov_b32", (S(23), S(3)))),
    Undefined("a scalar comparison", "scc",
              (Inst("s_cmp_lt_u32", (S(20), I(5))), Inst("s_cbranch_scc1", (LabelRef("end"),)),
               Label("end")), _smov(20)),
    Undefined("a lane's value", "scc",
              (_to_scalar(22), Inst("s_cmp_eq_u32", (S(20), I(5))),
               Inst("s_cbranch_scc1", (LabelRef("end"),)), Label("end")), _mov(22)),
    Undefined("a vector comparison", "vcc_lo",
              (Inst("v_cmp_eq_u32", (VCC, I(5), V(22))),
               Inst("s_cbranch_vccnz", (LabelRef("end"),)), Label("end")), _mov(22)),
    Undefined("lanes to run", "exec_lo",
              (Inst("v_cmp_eq_u32", (S(20), I(5), V(22))),
               Inst("s_and_saveexec_b32", (S(21), S(20)))), _mov(22)),
    Undefined("lanes to run, compared", "exec_lo",
              (Inst("v_cmpx_eq_u32", (I(5), V(22))),), _mov(22)),
    Undefined("a mask", "exec_lo", (Inst("s_mov_b32", (EXEC, S(20))),), _smov(20, 1)),
    Undefined("through a loop", "v21",
              (_smov(6, 2), Label("again"), Inst("v_add_nc_u32", (V(22), I(0), V(22))),
               Inst("s_sub_u32", (S(6), S(6), I(1))), Inst("s_cmp_lg_u32", (S(6), I(0))),
               Inst("s_cbranch_scc1", (LabelRef("again"),)),
               Inst("v_and_b32", (V(21), I(0), V(22))), _OUT), _mov(22)),
    Undefined("the high half of an addend", "v25", (_mov(21), wide_sum(24), store_at(25)),
              _mov(22)),
    Undefined("the low half of an addend", "v24", (_mov(22), wide_sum(24), store_at(24)),
              _mov(21)),
    Undefined("through a lane of a spill", "scc",
              (Inst("v_writelane_b32", (V(23), S(20), I(3))),
               Inst("v_readlane_b32", (S(21), V(23), I(3))), Inst("s_cmp_eq_u32", (S(21), I(0))),
               Inst("s_cbranch_scc1", (LabelRef("end"),)), Label("end")), _smov(20)),
)  # fmt: skip

# Bodies in which an undefined value occurs, but decides nothing.
DEFINED: dict[str, tuple[Item, ...]] = {
    "stored data": (store(22),),
    "a mask cut off": (
        Inst("s_and_b32", (S(21), S(20), I(0))), Inst("s_and_saveexec_b32", (S(22), S(21))),
    ),
    "a mask with a certain bit": (
        Inst("s_or_b32", (S(21), S(20), I(1))), Inst("s_cmp_lg_u32", (S(21), I(0))),
        Inst("s_cbranch_scc0", (LabelRef("end"),)), Label("end"),
    ),
    "the lane of a mask": (
        Inst("s_and_b32", (S(21), S(20), I(1))), Inst("s_lshr_b32", (S(21), S(21), I(1))),
        Inst("s_cmp_eq_u32", (S(21), I(0))), Inst("s_cbranch_scc0", (LabelRef("end"),)),
        Label("end"),
    ),
    "a value that is not selected": (
        _smov(20), Inst("v_cndmask_b32", (V(21), I(0), V(22), S(20))), _OUT,
    ),
    "the high half of an addend": (_mov(21), wide_sum(24), store_at(24)),
    "the high half of an addend, overwritten": (_mov(21), wide_sum(22), store_at(22)),
    "a register less itself": (Inst("v_xor_b32", (V(21), V(22), V(22))), _OUT),
    "lanes that do not run": (
        Inst("s_mov_b32", (EXEC, I(0xFF))), _mov(21), _OUT, Inst("s_mov_b32", (EXEC, I(0xF))),
        _OUT,
    ),
    "a rest that is cut off": (
        Inst("v_perm_b32", (V(21), V(22), V(1), I(0x07060100))),
        Inst("v_and_b32", (V(21), I(0xFC), V(21))), _OUT,
    ),
    "a loaded value": (
        Inst("ds_load_b32", (V(21), V(1))), wait(lgkm=0),
        Inst("v_and_b32", (V(21), I(12), V(21))), _OUT,
    ),
    "a lane that was written": (
        Inst("v_writelane_b32", (V(23), S(2), I(3))), Inst("v_readlane_b32", (S(21), V(23), I(3))),
        Inst("s_cmp_eq_u32", (S(21), I(0))), Inst("s_cbranch_scc1", (LabelRef("end"),)),
        Label("end"),
    ),
}  # fmt: skip
