"""Straight-line RDNA3 on whole waves of the emulated device: two pieces of code, from one state.

The verifier proves code for one lane, with facts about the others; here all 32 lanes run, with the
stencils of the baseline tier.  Memory is a function of its address, and each access is logged: its
address and the data, of active lanes.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from sassxlate.disasm.rdna3 import info, reads, writes
from sassxlate.disasm.rdna3.codec.assemble import assemble
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, Sp, V
from sassxlate.lowering.emulate.options import CompileOptions, host_isa
from sassxlate.lowering.emulate.runner import (
    BaselineKernel,
    EmulatedDevice,
    LoadedPack,
    Setup,
    run_image,
)
from sassxlate.lowering.emulate.stencils import pack
from tests.lowering.emulate.baseline import first_pack, mode_of
from tests.lowering.emulate.harness import LANES, value

EXEC = Sp("exec_lo")
_OFF = Sp("off")
_MASKS = (0xFFFFFFFF, 0xFFFFFFFF, 1, 0x80000000, 0xF00FA5C3, 0xFFFF, 0xFFFFFFFE, 0x7FFFFFFF)
_LOG, _SIZE = 1 << 15, 1 << 16  # where the log begins after the registers; of both
_HASH = 0x9E3779B1 - (1 << 32)
# The harness's own registers.
_SCALARS, _VECTORS = 94, 200
_TABLE, _OUT, _AT = V(_VECTORS, 2), V(_VECTORS + 2, 2), V(_VECTORS + 4, 2)
_LOW, _HIGH, _X, _Y, _LANE = (V(_VECTORS + n) for n in range(6, 11))
_READ = _VECTORS + 12
_CARRY, _SCC, _LANES = S(_SCALARS), S(_SCALARS + 8), S(_SCALARS + 9)


class Unfit(Exception):
    """The code does not fit the harness."""


@dataclass(frozen=True, slots=True)
class State:
    """A wave before the code; ``vectors`` has a word for each lane."""

    active: int
    scc: int
    vcc: int
    vectors: dict[int, list[int]]
    scalars: dict[int, int]


@dataclass(frozen=True, slots=True)
class After:
    """A wave after the code, ``log`` its accesses to memory."""

    active: int
    vectors: dict[int, tuple[int, ...]]
    scalars: dict[int, int]
    log: bytes


def touched(*codes: Sequence[Inst]) -> tuple[set[int], set[int]]:
    """The VGPRs and the SGPRs that code reads or writes, besides the pair of the arguments."""
    refs = {ref for code in codes for inst in code for ref in reads(inst) | writes(inst)}
    vectors = {ref.number for ref in refs if ref.kind == "v"}
    return vectors, {ref.number for ref in refs if ref.kind == "s" and 2 <= ref.number < 106}


def word(rng: random.Random, pool: list[int]) -> int:
    """A random word, often one of the pool's or next to one, or at an edge; it goes there."""
    pick = rng.random()
    if pick < 0.25 and pool:
        return rng.choice(pool)
    if pick < 0.35:
        made = value(rng, "f64") >> 32 * rng.getrandbits(1) & 0xFFFFFFFF
    elif pick < 0.4 and pool:
        made = rng.choice(pool) + rng.choice((-1, 1)) & 0xFFFFFFFF
    else:
        made = value(rng, rng.choice(("b32", "b32", "f32")))
    pool.append(made)
    return made


def random_state(rng: random.Random, vectors: set[int], scalars: set[int]) -> State:
    pool: list[int] = []
    lanes = {n: [word(rng, pool) for _ in range(LANES)] for n in sorted(vectors)}
    words = {n: word(rng, pool) for n in sorted(scalars)}
    return State(rng.choice(_MASKS), rng.getrandbits(1), rng.getrandbits(32), lanes, words)


class Wave:
    """Code, ready to run on states with these registers."""

    _packs: tuple[LoadedPack, ...] = ()

    def __init__(self, code: Sequence[Inst], vectors: set[int], scalars: set[int]) -> None:
        """Unfit for more than the harness can take."""
        self.vectors, self.scalars = sorted(vectors), sorted(scalars)
        if max(self.vectors, default=0) >= _VECTORS or max(self.scalars, default=0) >= _SCALARS:
            raise Unfit("the harness's own registers")
        self.items: list[Inst] = []
        self.logged = 0
        self._begin()
        for inst in code:
            if info(inst.op).kind in ("smem", "lds", "global", "flat", "scratch"):
                self._access(inst)
            else:
                self.items.append(inst)
        self._end()
        self.kernel = self._built()

    def _built(self) -> BaselineKernel:
        options = CompileOptions()
        code, isa = assemble(self.items).data, host_isa()
        packs = Wave._packs or (first_pack(isa),)
        kernel = BaselineKernel(packs, code, 0, mode_of(options), False)
        if kernel.missing:
            packs += (LoadedPack(pack.make(kernel.missing, isa, tables=False).data),)
            kernel = BaselineKernel(packs, code, 0, mode_of(options), False)
        Wave._packs = packs
        assert kernel.entry is not None, kernel.why
        return kernel

    def run(self, state: State, seed: int, device: EmulatedDevice) -> After:
        """``seed``: of the words of the kernarg segment.  The device is of a megabyte."""
        device._next = 0  # pyright: ignore[reportPrivateUsage]  # each run begins anew
        table, out = device.base + (1 << 18), device.base + (1 << 19)
        head = [state.active, state.scc, state.vcc, 0, *(state.scalars[s] for s in self.scalars)]
        rows = [state.vectors[v] for v in self.vectors]
        data = struct.pack(f"<{len(head)}I", *head).ljust(1024, b"\0")
        device.write(table, data + b"".join(struct.pack("<32I", *row) for row in rows))
        device.write(out, bytes(_SIZE))
        segment = struct.pack("<QQ", table, out) + random.Random(seed).randbytes(8192 - 16)
        run_image(self.kernel, Setup(kernarg_sgpr=0), 1, LANES, segment, device)
        made = device.read(out, _SIZE)
        every = list(struct.iter_unpack("<32I", made[:_LOG]))
        count = len(self.vectors)
        return After(
            every[count][0],
            dict(zip(self.vectors, every, strict=False)),
            {s: row[0] for s, row in zip(self.scalars, every[count + 1 :], strict=False)},
            made[_LOG:],
        )

    # -- before and after the code

    def _add(self, op: str, *args: Arg, imm: int = 0) -> None:
        self.items.append(Inst(op, args, imm))

    def _begin(self) -> None:
        s = [S(_SCALARS + n) for n in range(4)]
        for n, pair in ((0, S(_SCALARS, 2)), (8, S(_SCALARS + 2, 2))):
            self._add("s_load_b64", pair, S(0, 2), imm=n)
        self._add("v_lshlrev_b32", _LANE, I(2), V(0))
        # Both areas begin at whole 64 KiB: there are no carries.
        self._add("v_add_nc_u32", V(_TABLE.index), s[0], _LANE)
        self._add("v_mov_b32", V(_TABLE.index + 1), s[1])
        self._add("v_add_nc_u32", V(_OUT.index), s[2], _LANE)
        self._add("v_mov_b32", V(_OUT.index + 1), s[3])
        head = S(_SCALARS, 2)
        for n, scalar in enumerate(self.scalars):
            self._add("s_load_b32", S(scalar), head, imm=16 + 4 * n)
        for n, at in ((8, Sp("vcc_lo")), (4, _SCC), (0, _LANES)):
            self._add("s_load_b32", at, head, imm=n)
        for n, vector in enumerate(self.vectors):
            self._add("v_add_nc_u32", _LOW, I(1024 + 128 * n), V(_TABLE.index))
            self._add("v_mov_b32", _HIGH, V(_TABLE.index + 1))
            self._add("global_load_b32", V(vector), V(_LOW.index, 2), _OFF)
        self._add("s_cmp_lg_u32", _SCC, I(0))
        self._add("s_mov_b32", EXEC, _LANES)

    def _end(self) -> None:
        self._add("s_mov_b32", _LANES, EXEC)
        self._add("s_mov_b32", EXEC, I(-1))
        at = 0
        for vector in self.vectors:
            at = self._store(V(vector), at)
        for scalar in (_LANES, *(S(n) for n in self.scalars)):
            self._add("v_mov_b32", _X, scalar)
            at = self._store(_X, at)
        if at > _LOG or _LOG + 128 * self.logged > _SIZE or 16 + 4 * len(self.scalars) > 1024:
            raise Unfit("too many registers or accesses")
        self._add("s_endpgm")

    def _store(self, source: V, at: int) -> int:
        self._add("v_add_nc_u32", V(_AT.index), I(at), V(_OUT.index))
        self._add("v_mov_b32", V(_AT.index + 1), V(_OUT.index + 1))
        self._add("global_store_b32", _AT, source, _OFF)
        return at + 128

    # -- memory

    def _access(self, inst: Inst) -> None:
        row = info(inst.op)
        names = [arg.field for arg in row.args]
        if row.atomic and row.kind != "lds" and not inst.glc:
            names = names[1:]
        args = dict(zip(names, inst.args, strict=False))
        if row.kind == "smem":
            self._scalar_load(inst, args)
            return
        to = args.get("vdst")
        width = to.n if isinstance(to, V) else 0
        offsets = (inst.imm, inst.imm2) if "2addr" in inst.op else (inst.imm,)
        scale = (8 if inst.op.endswith("64") else 4) if len(offsets) == 2 else 1
        scale *= 64 if "stride64" in inst.op else 1
        each = width // len(offsets)
        for n, offset in enumerate(offsets):
            self._address(row.kind, args.get("addr"), args.get("saddr"), offset * scale)
            self._log(_LOW)
            self._log(_HIGH)
            for k in range(each):
                self._read(V(_READ + n * each + k), 4 * k)
        for name in ("data", "data0", "data1"):
            data = args.get(name)
            for k in range(data.n if isinstance(data, V) else 0):
                self._data(inst.op, V(data.index + k) if isinstance(data, V) else _X)
        for k in range(width):
            assert isinstance(to, V)
            self._result(inst.op, V(to.index + k), V(_READ + k))

    def _log(self, source: V) -> None:
        self._store(source, _LOG + 128 * self.logged)
        self.logged += 1

    def _address(self, kind: str, where: Arg | None, base: Arg | None, offset: int) -> None:
        """The address, in two words."""
        vector = where if isinstance(where, V) else None
        self._add("v_mov_b32", _LOW, V(vector.index) if vector else I(0))
        wide = vector is not None and vector.n == 2
        self._add("v_mov_b32", _HIGH, V(vector.index + 1) if vector and wide else I(0))
        if isinstance(base, S):
            high: Arg = S(base.index + 1) if base.n == 2 else I(0)
            self._add("v_add_co_u32", _LOW, _CARRY, S(base.index), _LOW)
            self._add("v_add_co_ci_u32", _HIGH, _CARRY, high, _HIGH, _CARRY)
        if kind in ("lds", "scratch"):
            self._add("v_mov_b32", _HIGH, I(1 if kind == "lds" else 2))
        self._add("v_mov_b32", _X, I(offset))
        self._add("v_mov_b32", _Y, I(-1 if offset < 0 else 0))
        self._add("v_add_co_u32", _LOW, _CARRY, _X, _LOW)
        self._add("v_add_co_ci_u32", _HIGH, _CARRY, _Y, _HIGH, _CARRY)

    def _read(self, to: V, offset: int) -> None:
        """The word at the address and an offset."""
        self._add("v_add_nc_u32", _X, I(offset), _LOW)
        self._add("v_mov_b32", _Y, I(_HASH))
        self._add("v_mul_lo_u32", _X, _X, _Y)
        self._add("v_lshrrev_b32", _Y, I(13), _X)
        self._add("v_xor_b32", _X, _Y, _X)
        self._add("v_xor_b32", to, _HIGH, _X)

    def _data(self, op: str, source: V) -> None:
        mask = {"_b8": 0xFF, "b16": 0xFFFF}.get(op[-3:], -1)
        if "d16_hi" in op:
            raise Unfit(op)
        self._add("v_and_b32", _X, I(mask), source)
        self._log(_X)

    def _result(self, op: str, to: V, source: V) -> None:
        kind = op.removesuffix("_rtn").rpartition("_")[2]
        if "d16" in op:
            raise Unfit(op)
        if kind in ("u8", "i8", "u16", "i16"):
            extract = "v_bfe_u32" if kind[0] == "u" else "v_bfe_i32"
            self._add(extract, to, source, I(0), I(int(kind[1:])))
        else:
            self._add("v_mov_b32", to, source)

    def _scalar_load(self, inst: Inst, args: dict[str, Arg]) -> None:
        base, to = args["sbase"], args["sdata"]
        assert isinstance(base, S)
        if base == S(0, 2):  # the kernarg segment is real
            self.items.append(inst)
            return
        if not isinstance(to, S):
            raise Unfit(f"{inst.op} to {to}")
        kept, low, high, x = (S(_SCALARS + n) for n in range(1, 5))
        self._add("s_cselect_b32", kept, I(1), I(0))
        self._add("s_add_u32", low, S(base.index), I(inst.imm))
        self._add("s_addc_u32", high, S(base.index + 1), I(0))
        for k in range(to.n):
            self._add("s_add_u32", x, low, I(4 * k))
            self._add("s_mul_i32", x, x, I(_HASH))
            self._add("s_xor_b32", S(to.index + k), x, high)
        self._add("s_cmp_lg_u32", kept, I(0))


__all__ = ["After", "State", "Unfit", "Wave", "random_state", "touched", "word"]
