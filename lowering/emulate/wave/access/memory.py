"""Loads, stores and atomics: global, flat, scratch, LDS and scalar memory."""

from __future__ import annotations

import re

from sassxlate.disasm.rdna3.instruction import Arg, I, Inst
from sassxlate.lowering.emulate.image.abi import WaveLayout
from sassxlate.lowering.emulate.wave.access import vector_access
from sassxlate.lowering.emulate.wave.access.helpers import atomic_helpers, lds_atomics
from sassxlate.lowering.emulate.wave.access.vector_access import Address, Alignment, VectorAccess
from sassxlate.lowering.emulate.wave.context import Context, is_off
from sassxlate.lowering.llvm.ir_text import Val, const

_SPACE = {"global": "g", "flat": "f", "scratch": "s", "ds": "l"}


_PLAIN = {
    **{f"b{8 * n}": VectorAccess(n) for n in (1, 2, 4, 8, 12, 16)},
    "u8": VectorAccess(1), "i8": VectorAccess(1, True), "u16": VectorAccess(2), "i16":
    VectorAccess(2, True),
}  # fmt: skip


def shape_of(op: str) -> VectorAccess | None:
    """The shape of a load or store by its mnemonic without space and direction."""
    if op in _PLAIN:
        return _PLAIN[op]
    half = 1 if "_hi" in op else 0
    width = re.sub(r"_?d16_?|_?hi_?", "", op)
    base = _PLAIN.get(width)
    return VectorAccess(base.bytes, base.signed, half) if base and "d16" in op else None


def alignment(c: Context, bytes_: int) -> Alignment:
    """CUDA's natural alignment, and dwords for 12 bytes; or the hardware's, which is none: the fast
    forms are for whole dwords then."""
    if c.align == "unaligned":
        return Alignment(1, min(bytes_, 4))
    least = 4 if bytes_ == 12 else bytes_
    return Alignment(least, least)


_ACCESS = re.compile(r"(global|flat|scratch|ds)_(load|store)_(?!addtid|lds|xchg)")


def has_alignment(op: str) -> bool:
    """Whether an instruction is a vector load or store, which `CompileOptions.align` decides on:
    atomics are aligned in every mode."""
    return _ACCESS.match(op) is not None


# --- addresses -----------------------------------------------------------------------------


def vector_address(c: Context, inst: Inst, addr: Arg, saddr: Arg | None, space: str) -> Address:
    """The lanes' addresses of a global or flat access."""
    offset = c.displacement(inst, 64)
    if saddr is not None and not is_off(saddr):
        base = c.d.add(c.read64(inst, saddr), offset)
        return Address(space, c.read32(inst, addr), None, base)
    return Address(space, c.read32(inst, addr, 0), c.read32(inst, addr, 1), offset)


def scratch_address(c: Context, inst: Inst, addr: Arg, saddr: Arg | None) -> Address:
    """Offsets are added in 32 bits."""
    total = c.displacement(inst, 32)
    for part in (saddr, addr):
        if part is not None and not is_off(part):
            total = c.d.add(c.read32(inst, part), total)
    return Address("s", total, None, const(0, 64))


def lds_address(c: Context, inst: Inst, addr: Arg, offset: Val) -> Address:
    """Address and offset are added in 32 bits, so a negative address may wrap into range:
    LLVM folds such sums into the offset for everything after Southern Islands."""
    return Address("l", c.d.add(c.read32(inst, addr), offset), None, const(0, 64))


# --- accesses --------------------------------------------------------------------------------


def load(c: Context, inst: Inst, shape: VectorAccess, address: Address) -> list[Val]:
    """The dwords that the active lanes read; a glc load never reuses an older load's value."""
    words = vector_access.load(c, address, shape, alignment(c, shape.bytes), inst.glc)
    if inst.glc:
        c.fn.do('fence syncscope("singlethread") seq_cst')
    return words


def store(c: Context, shape: VectorAccess, address: Address, data: list[Val]) -> None:
    vector_access.store(c, address, shape, alignment(c, shape.bytes), data)


def _write_loaded(c: Context, inst: Inst, dst: Arg, shape: VectorAccess, words: list[Val]) -> None:
    if shape.half is not None:
        old = c.read32(inst, dst)
        low = c.d.extract(words[0], 0, 16)
        if shape.half:
            words = [c.d.concat(low, c.d.extract(old, 0, 16))]
        else:
            words = [c.d.concat(c.d.extract(old, 16, 16), low)]
    for i, word in enumerate(words):
        c.write32(inst, dst, word, i)


def _stored(c: Context, inst: Inst, src: Arg, shape: VectorAccess) -> list[Val]:
    words = [c.read32(inst, src, i) for i in range(max(1, shape.bytes // 4))]
    if shape.half:
        words = [c.d.lshr(words[0], const(16, 32))]
    return words


def emit_vmem(c: Context, inst: Inst) -> None:
    """global_*, flat_*, scratch_* and ds_* loads, stores and atomics."""
    family, _, rest = inst.op.partition("_")
    space = _SPACE[family]
    if family == "ds":
        _ds(c, inst, rest)
        return
    kind, _, what = rest.partition("_")
    has_data = kind != "load"
    has_dst = kind == "load" or (kind == "atomic" and inst.glc)
    args = list(inst.args)
    dst = args.pop(0) if has_dst else None
    addr = args.pop(0)
    data = args.pop(0) if has_data else None
    saddr = args.pop(0) if args else None
    if space == "s":
        where = scratch_address(c, inst, addr, saddr)
    else:
        where = vector_address(c, inst, addr, saddr, space)
    if kind == "atomic":
        assert data is not None
        _atomic(c, inst, space, what, where, [data], dst)
        return
    shape = shape_of(what)
    if shape is None:
        raise c.error(inst, "this memory instruction is not supported")
    if data is not None:
        store(c, shape, where, _stored(c, inst, data, shape))
    else:
        assert dst is not None
        _write_loaded(c, inst, dst, shape, load(c, inst, shape, where))


# --- LDS -------------------------------------------------------------------------------------


def _ds(c: Context, inst: Inst, rest: str) -> None:
    if inst.gds:
        raise c.error(inst, "the global data share is not supported")
    kind, _, what = rest.partition("_")
    if "2addr" in rest and kind in ("load", "store"):
        _ds_two(c, inst, kind, rest)
        return
    if kind in ("load", "store") and (shape := shape_of(what)):
        data = inst.args[0] if kind == "load" else inst.args[1]
        addr = inst.args[1] if kind == "load" else inst.args[0]
        where = lds_address(c, inst, addr, c.displacement(inst, 32))
        if kind == "load":
            _write_loaded(c, inst, data, shape, load(c, inst, shape, where))
        else:
            store(c, shape, where, _stored(c, inst, data, shape))
        return
    _ds_atomic(c, inst, rest)


def _ds_two(c: Context, inst: Inst, kind: str, rest: str) -> None:
    bytes_ = 8 if rest.endswith("b64") else 4
    unit = bytes_ * (64 if "stride64" in rest else 1)
    shape = VectorAccess(bytes_)
    if kind == "load":
        words: list[Val] = []
        for which in (0, 1):
            offset = c.displacement(inst, 32, which, unit)
            where = lds_address(c, inst, inst.args[1], offset)
            words += load(c, inst, shape, where)
        for i, word in enumerate(words):
            c.write32(inst, inst.args[0], word, i)
        return
    for which, arg in enumerate(inst.args[1:3]):
        where = lds_address(c, inst, inst.args[0], c.displacement(inst, 32, which, unit))
        store(c, shape, where, _stored(c, inst, arg, shape))


def _ds_exchange_two(c: Context, inst: Inst, rest: str, dst: Arg, args: list[Arg]) -> None:
    """ds_storexchg_2addr*: both addresses and data are read before the results are written."""
    width = 64 if rest.endswith("b64") else 32
    unit = width // 8 * (64 if "stride64" in rest else 1)
    n = width // 32
    where = [lds_address(c, inst, args[0], c.displacement(inst, 32, i, unit)) for i in (0, 1)]
    data = [[c.read32(inst, arg, i) for i in range(n)] for arg in args[1:]]
    old: list[Val] = []
    for address, words in zip(where, data, strict=True):
        old += _exchange(c, "l", "swap", width, address, words)
    for i, word in enumerate(old):
        c.write32(inst, dst, word, i)


def _ds_atomic(c: Context, inst: Inst, rest: str) -> None:
    op = rest.replace("_rtn", "")
    args = list(inst.args)
    dst = args.pop(0) if "_rtn" in rest else None
    if "2addr" in rest and dst is not None:
        _ds_exchange_two(c, inst, rest, dst, args)
        return
    if not args:
        raise c.error(inst, "this LDS instruction is not supported")
    where = lds_address(c, inst, args[0], c.displacement(inst, 32))
    _atomic(c, inst, "l", op, where, args[1:], dst)


# --- atomics ---------------------------------------------------------------------------------

_ATOMIC = {
    "add_u": "add", "sub_u": "sub", "rsub_u": "rsub", "csub_u": "csub", "inc_u": "inc",
    "dec_u": "dec", "min_i": "min_i", "min_u": "min_u", "max_i": "max_i", "max_u": "max_u",
    "and_b": "and", "or_b": "or", "xor_b": "xor", "swap_b": "swap", "storexchg_b": "swap",
    "cmpswap_b": "cmpswap", "cmpstore_b": "cmpswap", "cmpswap_f": "cmp_f", "cmpstore_f": "cmp_f",
    "add_f": "add_f", "min_f": "min_f", "max_f": "max_f", "mskor_b": "mskor", "wrap_b": "wrap",
}  # fmt: skip


def _atomic(
    c: Context, inst: Inst, space: str, what: str, where: Address, data: list[Arg], dst: Arg | None
) -> None:
    match = re.fullmatch(r"([a-z]+_[a-z])(32|64)", what)
    op = _ATOMIC.get(match[1]) if match else None
    if match is None or op is None or space == "s":
        raise c.error(inst, "this atomic is not supported")
    width = int(match[2])
    n = width // 32
    words = _operands(c, inst, op, n, data)
    if c.d.avx512 and lds_atomics.handles(space, op, width):
        word = lds_atomics.emit(c, op, where.lo, words[0], kept=dst is not None)
        if dst is not None and word is not None:
            c.write32(inst, dst, word, 0)
        return
    old = _exchange(c, space, op, width, where, words)
    if dst is not None:
        for i, word in enumerate(old):
            c.write32(inst, dst, word, i)


def _exchange(
    c: Context, space: str, op: str, width: int, where: Address, words: list[Val]
) -> list[Val]:
    """An atomic's old values."""
    helper = atomic_helpers.atomic(c.module, space, op, width)
    buf = vector_access.data_buffer(c)
    for i, word in enumerate(words):
        vector_access.put(c, buf, word, 128 * i)
    vector_access.call(c, helper, where.full(c), buf, c.state.exec_mask())
    return [vector_access.get(c, buf, 128 * i) for i in range(width // 32)]


def _operands(c: Context, inst: Inst, op: str, n: int, data: list[Arg]) -> list[Val]:
    """The dwords of the first operand, then those of the second."""
    if op not in atomic_helpers.TWO_OPERANDS:
        return [c.read32(inst, data[0], i) for i in range(n)]
    if len(data) == 1:  # global: new value, then comparand, in one tuple
        return [c.read32(inst, data[0], i) for i in range(2 * n)]
    return [c.read32(inst, arg, i) for arg in data for i in range(n)]


# --- scalar memory ---------------------------------------------------------------------------


def _own_argument(c: Context, inst: Inst, base: Arg, offset: Val, size: int) -> bool:
    """Whether bytes are among a launch's arguments, which the host has: ``base`` has the address
    that the wave was started with."""
    if c.kernarg is None or offset.const is None or offset.const % 4:
        return False
    pair, known = c.kernarg
    first = [c.state.first.get(c.read32(inst, base, part).ref) for part in (0, 1)]
    return first == [pair, pair + 1] and offset.const + size <= known


def emit_smem(c: Context, inst: Inst) -> None:
    """s_load_b32 to b512: dwords at a scalar address."""
    match = re.fullmatch(r"s_load_b(\d+)", inst.op)
    if match is None:
        raise c.error(inst, "this scalar load is not supported")
    n = int(match[1]) // 32
    d = c.d
    dst, base, *rest = inst.args
    address, offset = c.read64(inst, base), c.displacement(inst, 64)
    register: Val | None = None
    for extra in rest[:1]:
        if isinstance(extra, I):
            offset = d.add(offset, const(extra.value, 64))
        elif not is_off(extra):
            register = d.zext(c.read32(inst, extra), 64)
            address = d.add(address, register)
    own = register is None and _own_argument(c, inst, base, offset, 4 * n)
    if own:
        start = vector_access.member(c, WaveLayout.ARGUMENTS, "ptr")
        p = c.fn.emit(f"getelementptr i8, ptr {start}, i64 {offset.ref}")
    else:
        p = vector_access.scalar_pointer(c, address, offset, 4 * n)
    for i in range(n):
        q = c.fn.emit(f"getelementptr i8, ptr {p}, i64 {4 * i}")
        if own and c.fn.around is not None:
            word = c.fn.around.enter(c.fn, f"load i32, ptr {q}, align 4, !invariant.load !0")
        else:
            word = c.fn.emit_new(f"load volatile i32, ptr {q}, align 4")
        c.write32(inst, dst, Val(word, 32, False), i)
