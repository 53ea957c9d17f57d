"""Words of other lanes, and LDSM, STSM and MOVM: 8 x 8 halves in memory and a warp's registers.

A warp's fragments are those of `disasm/sass/semantics/warp/matrix.py`.  All of its lanes take part;
if some are missing, the wave traps, as with the rules.
"""

from __future__ import annotations

from sassxlate.disasm.sass.instruction import Instruction, Mem
from sassxlate.disasm.sass.semantics.memory.memory import place
from sassxlate.lowering.llvm.ir_text import Val, const
from sassxlate.lowering.tier import memory
from sassxlate.lowering.tier.lane import Lane
from sassxlate.lowering.tier.refusal import FORM, refused


def of_quad(lane: Lane, word: Val, which: int) -> Val:
    """A word of lane ``which`` of this lane's four."""
    given = f"i32 poison, i32 {word.ref}, i32 {0x55 * which}, i32 15, i32 15, i1 true"
    kinds = "i32, i32, i32 immarg, i32 immarg, i32 immarg, i1 immarg"
    return Val(lane.intrinsic("i32", "amdgcn.update.dpp.i32", given, kinds), 32, False)


def of_lane(lane: Lane, word: Val, place_of: Val) -> Val:
    """A word of the lane with a number times four."""
    given = f"i32 {place_of.ref}, i32 {word.ref}"
    return Val(lane.intrinsic("i32", "amdgcn.ds.bpermute", given, "i32, i32"), 32, False)


def columns(lane: Lane) -> Val:
    """The number of lane 8 t of lane 4 g + t, times four: words of this lane's columns of B."""
    d = lane.d
    return d.shl(d.and_(lane.lane_number(), const(3, 32)), const(5, 32))


def _shape(ins: Instruction) -> tuple[int, bool]:
    """The number of matrices, and whether they are transposed."""
    if not ins.has("16") or not (ins.has("M88") or ins.has("MT88")):
        raise refused(FORM, f"this shape of {ins.mnemonic}", ins)
    return 4 if ins.has("4") else 2 if ins.has("2") else 1, ins.has("MT88")


def _places(lane: Lane, ins: Instruction, count: int, transposed: bool) -> list[list[Val]]:
    """The addresses of each matrix's word in this lane, or of its two halves: lane 8 m + r has the
    address of row r of matrix m; lane 4 g + t has word t of row g, or transposed element g of rows
    2 t and 2 t + 1."""
    d, mem = lane.d, ins.get("mem")
    if not isinstance(mem, Mem):
        raise refused(FORM, "the address mem", ins)
    at, me = place(d, mem, lane.reg, 32), lane.lane_number()
    g, t = d.lshr(me, const(2, 32)), d.and_(me, const(3, 32))
    out: list[list[Val]] = []
    for matrix in range(count):
        rows = [g] if not transposed else [d.shl(t, const(1, 32))]
        if transposed:
            rows.append(d.add(rows[0], const(1, 32)))
        within = d.shl(g, const(1, 32)) if transposed else d.shl(t, const(2, 32))
        out.append([])
        for row in rows:
            source = d.shl(d.add(row, const(8 * matrix, 32)), const(2, 32))
            out[-1].append(d.add(of_lane(lane, at, source), within))
    return out


def _pointer(lane: Lane, at: Val) -> tuple[str, int]:
    return lane.fn.emit(f"inttoptr i32 {at.ref} to ptr addrspace(3)"), 3


def ldsm(lane: Lane, ins: Instruction, *, volatile: bool) -> None:
    d = lane.d
    count, transposed = _shape(ins)
    out: list[Val] = []
    for places in _places(lane, ins, count, transposed):
        size = 4 // len(places)
        found = [memory.load(lane, _pointer(lane, at), size, None, volatile) for at in places]
        out.append(found[0] if len(found) == 1 else d.concat(found[1], found[0]))
    lane.give("Rd", out)


def stsm(lane: Lane, ins: Instruction, *, volatile: bool) -> None:
    d = lane.d
    count, transposed = _shape(ins)
    words = lane.words("Rb", count)
    for word, places in zip(words, _places(lane, ins, count, transposed), strict=True):
        bits = 32 // len(places)
        for n, at in enumerate(places):
            part = word if bits == 32 else d.extract(word, bits * n, bits)
            memory.store(lane, _pointer(lane, at), part, None, volatile)


def movm(lane: Lane, ins: Instruction) -> None:
    """Lane 4 g + t gets elements g of rows 2 t and 2 t + 1."""
    if not ins.has("16") or not ins.has("MT88"):
        raise refused(FORM, "this shape of MOVM", ins)
    d, word, me = lane.d, lane.word("Ra"), lane.lane_number()
    g, base = d.lshr(me, const(2, 32)), columns(lane)
    odd = d.shl(d.and_(g, const(1, 32)), const(4, 32))
    halves: list[Val] = []
    for row in (0, 1):
        source = d.add(
            d.add(base, const(16 * row, 32)), d.shl(d.lshr(g, const(1, 32)), const(2, 32))
        )
        halves.append(d.extract(d.lshr(of_lane(lane, word, source), odd), 0, 16))
    lane.give("Rd", [d.concat(halves[1], halves[0])])


__all__ = ["columns", "ldsm", "movm", "of_lane", "of_quad", "stsm"]
