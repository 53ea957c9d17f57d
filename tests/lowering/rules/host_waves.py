"""Waves that call the driver's functions, checked against a model of each lane's results.

A kernel around the rule's code fills R4 to R13, local memory and EXEC from one record per wave,
runs the code and stores the results.  Each lane of each wave calls a function of its own, or none.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.rdna3 import assemble
from sassxlate.disasm.rdna3.instruction import I, Inst, Item, S, Sp, V
from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.encode import assemble as sass
from sassxlate.disasm.sass.instruction import Instruction, RegRef
from sassxlate.lowering.abi.hostcalls import ARGUMENTS, FUNCTIONS, MNEMONIC
from sassxlate.lowering.abi.kernarg import bank_layout
from sassxlate.lowering.builder.kernel_builder import KernelBuilder
from sassxlate.lowering.emulate.runner import EmulatedDevice, Setup, run_code
from sassxlate.lowering.passes import made_safe
from sassxlate.lowering.rules.control.hostcall import (
    CHARGE,
    CHARGED,
    FREE_AT,
    HEAD,
    HEADER,
    LIMIT,
    charge_of,
)
from sassxlate.lowering.rules.control.printing import END, LOST, MASK, NEXT, RING, UNIT
from sassxlate.lowering.select.instruction import one
from sassxlate.lowering.verify.rules.one_instruction import registers, routines_of

from .host_texts import formats, printed

LANES, FIRST, COUNT = 32, 4, 10  # registers R4 to R13; R12 and R13 are the function's address
WORDS = ARGUMENTS // 4
ROWS, TAKEN = 1 + COUNT, 1 + COUNT + WORDS  # rows of a record that come back, and that go in
HEAP = 528  # offset of the first block: their bytes are 32-byte aligned, as on an H200
# High words of addresses in the lane's local memory and in the block's shared memory.
LOCAL, SHARED = 0xFFFFFFFF, 0xFFFFFFFE
STRING = ARGUMENTS  # offset in local memory of a string, "?oc" with a letter of the lane
IN_SHARED = b"in shared!!\0"
_EXEC, _AT, _DATA = Sp("exec_lo"), V(254), V(253)
_SOURCE, _TARGET = S(28, 2), S(30, 2)
Words = NDArray[np.uint32]
Wide = NDArray[np.uint64]
Rewrite = Callable[[Sequence[Item]], Sequence[Item]]


def call(names: Sequence[str]) -> Instruction:
    """A call through a register in a kernel that names these functions."""
    ins = decode(sass("CALL.ABS.NOINC R12 ;", 90, 0), 0, 90)
    refs = {RegRef("R", r) for n in names for r in FUNCTIONS[n].arguments}
    made = {RegRef("R", r) for n in names for r in FUNCTIONS[n].results}
    every = frozenset(RegRef("R", FIRST + i) for i in range(COUNT))
    return replace(ins, mnemonic=MNEMONIC, reads=ins.reads | refs | made | every,
                   writes=ins.writes | made)  # fmt: skip


def code_of(names: Sequence[str], called: bool = False) -> KernelBuilder:
    """The rule's code; ``called``: as in a kernel with several calls."""
    ins = call(names)
    state = KernelBuilder("waves", 90, bank_layout(90), registers(ins, "apart"), {}, frozenset())
    state.externs = tuple(names)
    state.outlining = called
    one(state, ins, converged=False)
    return state


def _as_it_is(items: Sequence[Item]) -> Sequence[Item]:
    return items


@functools.cache
def kernel(names: tuple[str, ...], rewrite: Rewrite, called: bool) -> bytes:
    """The code that :func:`run` launches: the rule's, with registers read before and stored after
    it."""
    state = code_of(names, called)
    regs = state.regs
    size = TAKEN * LANES * 4
    items: list[Item] = [
        Inst("s_load_b64", (_SOURCE, S(0, 2), Sp("null")), imm=0),
        Inst("s_load_b64", (_TARGET, S(0, 2), Sp("null")), imm=8),
        Inst("s_waitcnt", (), imm=0),
        Inst("s_mul_i32", (S(34), S(13), I(size))),
    ]
    for pair in (_SOURCE, _TARGET):
        low, high = S(pair.index), S(pair.index + 1)
        items += [Inst("s_add_u32", (low, low, S(34))), Inst("s_addc_u32", (high, high, I(0)))]
    items += [Inst("v_mov_b32", (regs.tid, V(0))), Inst("v_lshlrev_b32", (_AT, I(2), V(0)))]
    for i in range(COUNT):
        items += [
            Inst("global_load_b32", (_DATA, _AT, _SOURCE), imm=128 * (1 + i)),
            Inst("s_waitcnt", (), imm=0),
            Inst("v_mov_b32", (V(regs.r[FIRST + i]), _DATA)),
        ]
    items += [
        Inst("s_mov_b64", (S(38, 2), Sp("src_private_base", 2))),
        Inst("s_mov_b64", (S(40, 2), Sp("src_shared_base", 2))),
    ]

    def generic(high: V) -> list[Item]:
        """The high words of addresses in local and shared memory."""
        return [
            Inst("v_cmp_eq_u32", (S(36), I(LOCAL), high)),
            Inst("v_cndmask_b32", (high, high, S(39), S(36))),
            Inst("v_cmp_eq_u32", (S(36), I(SHARED), high)),
            Inst("v_cndmask_b32", (high, high, S(41), S(36))),
        ]

    for place in (5, 7):  # the format's and the arguments' address
        items += generic(V(regs.r[place]))
    for n in range(WORDS):
        items += [
            Inst("v_add_nc_u32", (V(252), I(128 * (ROWS + n)), _AT)),
            Inst("global_load_b32", (_DATA, V(252), _SOURCE)),
            Inst("s_waitcnt", (), imm=0),
            *(generic(_DATA) if n % 2 else ()),
            Inst("scratch_store_b32", (Sp("off"), _DATA, Sp("off")), imm=4 * n),
        ]
    items += [
        Inst("v_add_nc_u32", (_DATA, I(int.from_bytes(b"@oc\0", "little")), V(0))),
        Inst("scratch_store_b32", (Sp("off"), _DATA, Sp("off")), imm=STRING),
        Inst("v_mov_b32", (_AT, I(0))),
    ]
    for n in range(0, len(IN_SHARED), 4):
        items += [
            Inst("v_mov_b32", (_DATA, I(int.from_bytes(IN_SHARED[n : n + 4], "little")))),
            Inst("ds_store_b32", (_AT, _DATA), imm=n),
        ]
    items += [Inst("v_lshlrev_b32", (_AT, I(2), V(0)))]
    items += [
        Inst("s_mov_b32", (regs.live, I(0xFFFFFFFF))),
        Inst("s_load_b32", (S(34), _SOURCE, Sp("null")), imm=0),
        Inst("s_waitcnt", (), imm=0),
        Inst("s_mov_b32", (_EXEC, S(34))),
        *rewrite(state.items),
        Inst("s_waitcnt", (), imm=0),
        Inst("s_waitcnt_vscnt", (Sp("null"),), imm=0),
        Inst("s_mov_b32", (S(35), _EXEC)),
        Inst("s_mov_b32", (_EXEC, I(0xFFFFFFFF))),
        Inst("v_mov_b32", (_DATA, S(35))),
        Inst("global_store_b32", (_AT, _DATA, _TARGET), imm=0),
    ]
    for i in range(COUNT):
        items += [
            Inst("v_mov_b32", (_DATA, V(regs.r[FIRST + i]))),
            Inst("global_store_b32", (_AT, _DATA, _TARGET), imm=128 * (1 + i)),
        ]
    for row, name in enumerate(("src_private_base", "src_shared_base")):
        items += [
            Inst("s_mov_b64", (S(38, 2), Sp(name, 2))),
            Inst("v_mov_b32", (_DATA, S(39))),
            Inst("global_store_b32", (_AT, _DATA, _TARGET), imm=128 * (ROWS + row)),
        ]
    items.append(Inst("s_endpgm", ()))
    if called and "vprintf" in names:
        routines = routines_of(state, call(names))
        assert routines
        items += routines
    items = made_safe(items)
    return assemble(items).data


@dataclass(frozen=True, slots=True)
class Heap:
    """The layout of a heap in memory: blocks in order of their addresses, and the free lists."""

    base: int
    data: Words

    @property
    def next(self) -> int:
        return int(self.data[2]) | int(self.data[3]) << 32

    @property
    def charged(self) -> int:
        return self._wide(CHARGED)

    @property
    def limit(self) -> int:
        return self._wide(LIMIT)

    def _wide(self, offset: int) -> int:
        return int(self.data[offset // 4]) | int(self.data[offset // 4 + 1]) << 32

    def charge(self, offset: int) -> int:
        """The charge of the block there, in bytes."""
        return int(self.data[(offset + CHARGE) // 4])

    def block(self, offset: int) -> int:
        """The size of the block there, in bytes."""
        return 1 << int(self.data[offset // 4])

    def blocks(self) -> list[int]:
        """Offsets of all blocks; they are contiguous."""
        out: list[int] = []
        at = HEAP
        while at < self.next:
            out.append(at)
            at += self.block(at)
        return out

    def free(self) -> dict[int, int]:
        """The free blocks: offset -> its list.  A block in two lists is an error."""
        out: dict[int, int] = {}
        for number in range(32):
            at = 16 * int(self.data[HEAD // 4 + 2 * number])
            while at:
                assert at not in out, f"block {at:#x} is free twice"
                out[at] = number
                at = 16 * int(self.data[at // 4 + 1])
        return out


def new_heap(sizes: Sequence[int], free: Sequence[bool], room: int, spare: int) -> Words:
    """A heap of ``room`` bytes with blocks of these classes, some of them free; blocks in use are
    charged, and ``spare`` bytes are left below the limit."""
    charged = 0
    data = np.zeros(room // 4, dtype=np.uint32)
    data[0], data[FREE_AT // 4] = FUNCTIONS["malloc"].number, FUNCTIONS["free"].number
    at = HEAP
    for size, is_free in zip(sizes, free, strict=True):
        data[at // 4] = size
        if is_free:
            head = HEAD // 4 + 2 * size
            data[at // 4 + 1] = data[head]
            data[head] = at // 16
        else:
            charge = charge_of((1 << size) - HEADER)
            data[(at + CHARGE) // 4] = charge
            charged += charge
        at += 1 << size
    data[2], data[4] = at, room
    _pair(data, CHARGED // 4, charged)
    _pair(data, LIMIT // 4, charged + spare)
    return data


@dataclass(frozen=True, slots=True)
class Queue:
    """What a launch left in a queue: the calls without room, the ring's bytes, the records."""

    lost: int
    room: int
    records: tuple[bytes, ...]


def _queue_of(head: bytes, ring: bytes) -> Queue:
    def wide(at: int) -> int:
        return int.from_bytes(head[at : at + 8], "little")

    out: list[bytes] = []
    at = wide(END) - len(ring)
    while at < wide(NEXT):
        start = at % len(ring)
        kind, _, size = np.frombuffer(ring, np.uint32, 3, start)
        size = int(size) if kind == FUNCTIONS["vprintf"].number else UNIT
        assert size >= UNIT
        assert size % UNIT == 0
        out.append((ring[start:] + ring[:start])[:size])
        at += size
    assert at == wide(NEXT) <= wide(END)
    return Queue(int.from_bytes(head[LOST : LOST + 4], "little"), len(ring), tuple(out))


@dataclass(frozen=True, slots=True)
class Ran:
    """The results of a launch: registers and EXEC of each wave, queues, the heap before and
    after."""

    before: Words  # [wave, row, lane]
    after: Words
    queues: Mapping[str, Queue]
    texts: Mapping[int, bytes]  # strings and formats by their address
    high: Mapping[int, int]  # of LOCAL and SHARED, the high words of addresses there
    was: Heap
    heap: Heap


def run(
    names: Sequence[str], masks: Words, called: Words, seed: int, *, ring: int = 1 << 20,
    room: int = 1 << 20, spare: int = 1 << 40, asks: Words | None = None,
    rewrite: Rewrite = _as_it_is, routine: bool = False,
) -> Ran:  # fmt: skip
    """One wave per row of ``masks`` (running lanes) and ``called`` (index in ``names``, per lane);
    ``asks``: the sizes for malloc, if not random; ``routine``: printf's code is called."""
    waves = len(masks)
    random = np.random.default_rng(seed)
    device = EmulatedDevice((1 << 22) + 3 * waves * TAKEN * LANES * 4 + room + 3 * ring)
    frees = int((called == names.index("free")).sum()) if "free" in names else 0
    sizes = random.integers(5, 9, frees + 64)
    free = np.zeros(len(sizes), dtype=bool)
    free[frees:] = True
    order = random.permutation(len(sizes))
    sizes, free = sizes[order], free[order]
    forms = formats(random, 64)
    texts = {device.alloc(form + b"\0", 1): form for form in forms}
    strings = {device.alloc(form + b"\0", 1): form for form in (b"", b"x", b"banana", b"%d%s" * 30)}
    pointers = [0, *strings, LOCAL << 32 | STRING, SHARED << 32, SHARED << 32 | 3]
    heap = device.alloc(room, 4096)
    start = new_heap(sizes.tolist(), free.tolist(), room, spare)
    device.write(heap, start.tobytes())
    queues: dict[str, int] = {}
    rings: dict[str, int] = {}
    for name in ("vprintf", "__assertfail"):
        head = np.zeros(HEAD // 4, dtype=np.uint32)
        head[0] = FUNCTIONS[name].number
        rings[name] = device.alloc(ring, 64)
        device.write(rings[name], bytes(ring))
        # The first records go to the ring's end.
        _pair(head, NEXT // 4, 3 * ring - 5 * UNIT)
        _pair(head, END // 4, 4 * ring - 5 * UNIT)
        _pair(head, RING // 4, rings[name])
        _pair(head, MASK // 4, ring - 1)
        queues[name] = device.alloc(HEAD)
        device.write(queues[name], head.tobytes())
    places = {**queues, "malloc": heap, "free": heap + FREE_AT}
    held = iter(o for o in Heap(heap, start).blocks() if o not in Heap(heap, start).free())
    before = random.integers(0, 1 << 32, (waves, TAKEN, LANES), dtype=np.uint32)
    chosen = np.array(pointers, dtype=np.uint64)[
        random.integers(0, len(pointers), (waves, WORDS // 2, LANES))
    ]
    before[:, ROWS::2] = (chosen & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    before[:, ROWS + 1 :: 2] = (chosen >> np.uint64(32)).astype(np.uint32)
    before[:, 0] = masks
    for wave in range(waves):
        for lane in range(LANES):
            name = names[int(called[wave, lane])]
            column = before[wave, 1:, lane]
            _pair(column, 8, places[name])
            if name in ("vprintf", "__assertfail"):
                text = int(random.choice([*texts]))
                _pair(column, 0, text)
                _pair(column, 2, text)
                if name == "vprintf":
                    form = [text, text, text, text, text, 0, LOCAL << 32 | STRING, SHARED << 32]
                    _pair(column, 0, int(random.choice(np.array(form, dtype=np.uint64))))
                    _pair(column, 2, LOCAL << 32 if random.random() < 0.7 else 0)
            elif name == "malloc":
                _pair(column, 0, _size(random) if asks is None else int(asks[wave, lane]))
            else:
                _pair(column, 0, heap + next(held) + HEADER if random.random() < 0.9 else 0)
    source, target = device.alloc(before.tobytes()), device.alloc(before.nbytes)
    setup = Setup(kernarg_sgpr=0, wg_sgpr=(13, 14, 15), scratch_size=ARGUMENTS + 16, lds_size=64)
    arguments = source.to_bytes(8, "little") + target.to_bytes(8, "little")
    run_code(kernel(tuple(names), rewrite, routine), waves, LANES, arguments, device, setup)
    left = {
        name: _queue_of(device.read(place, HEAD), device.read(rings[name], ring))
        for name, place in queues.items()
    }
    after = np.frombuffer(device.read(target, before.nbytes), dtype=np.uint32)
    all_rows = after.reshape(before.shape)
    after = all_rows[:, :ROWS]
    high = {LOCAL: int(all_rows[0, ROWS, 0]), SHARED: int(all_rows[0, ROWS + 1, 0])}
    left_heap = np.frombuffer(device.read(heap, room), dtype=np.uint32)
    was, is_ = Heap(heap, start), Heap(heap, left_heap)
    return Ran(before, after, left, {**texts, **strings}, high, was, is_)


def _pair(column: Words, at: int, value: int) -> None:
    column[at], column[at + 1] = value & 0xFFFFFFFF, value >> 32


def _size(random: np.random.Generator) -> int:
    kind = random.random()
    if kind < 0.05:
        return int(random.choice([1 << 31, 1 << 32, (1 << 40) + 8, 0x7FFFFF00, 1 << 63]))
    if kind < 0.1:
        return int(random.choice([0, 1, 15, 16, 17, 112, 113, 1008]))
    return int(random.integers(1, 500))


def check(ran: Ran, names: Sequence[str], called: Words) -> None:
    """Each lane that ran got its result; all others are unchanged."""
    before, after = ran.before, ran.after
    want = before[:, :ROWS].copy()
    runs = (before[:, 0, 0, None] >> np.arange(LANES, dtype=np.uint32) & 1).astype(bool)
    assert (after[:, 0] == before[:, 0]).all(), "EXEC"

    def lanes(name: str) -> NDArray[np.bool_]:
        return runs & (called == names.index(name)) if name in names else np.zeros_like(runs)

    printing, taking, giving = lanes("vprintf"), lanes("malloc"), lanes("free")
    calls = [_call(ran, wave, lane) for wave, lane in np.argwhere(printing).tolist()]
    want[:, 1][printing] = [count & 0xFFFFFFFF for count, _ in calls]
    given = _pointers(after)[taking]
    for row in (1, 2):
        want[:, row][taking] = after[:, row][taking]
    if "vprintf" in names:  # the kernel replaced the markers
        mine = called == names.index("vprintf")
        for row in (2, 4):
            for marker, word in ran.high.items():
                want[:, row][mine & (want[:, row] == marker)] = word
    different = np.argwhere(want[:, 1:] != after[:, 1:])
    assert not len(different), f"wave, register, lane {different[0]}"
    _kept(ran.queues["vprintf"], [record for _, record in calls if record])
    _kept(ran.queues["__assertfail"], list(_assertions(ran, lanes("__assertfail"))))
    _memory(ran, given, _pointers(before)[taking], _pointers(before)[giving])


def _pointers(rows: Words) -> Wide:
    return rows[:, 1].astype(np.uint64) | rows[:, 2].astype(np.uint64) << np.uint64(32)


def _kept(queue: Queue, asked: Sequence[bytes]) -> None:
    """Each record of the queue is of one call; those that are missing found no room."""
    found = Counter(_compared(record) for record in queue.records)
    assert queue.lost == len(asked) - found.total()
    assert not found - Counter(asked)
    if queue.lost:
        # Of a record without room at least this much is known of its size.
        sizes = [UNIT + len(r) - 8 for r in (Counter(asked) - found).elements()]
        assert sum(map(len, queue.records)) + min(sizes) + 2 * UNIT > queue.room


def _compared(record: bytes) -> bytes:
    """A record as the model gives it."""
    if record[0] == FUNCTIONS["__assertfail"].number:
        return record[:56]
    packed = int.from_bytes(record[4:8], "little")
    body = record[UNIT:]
    return record[:8] + body[:packed] + body[packed:].rstrip(b"\0")


def _call(ran: Ran, wave: int, lane: int) -> tuple[int, bytes]:
    """The result of a printf, and its record; none without a format."""
    r = ran.before[wave, 1:, lane]
    own = {LOCAL << 32 | STRING: bytes([64 + lane]) + b"oc", SHARED << 32: IN_SHARED[:-1]}
    own[SHARED << 32 | 3] = IN_SHARED[3:-1]
    texts = {**ran.texts, **own}
    words = np.ascontiguousarray(r[COUNT:])
    form = int(r[0]) | int(r[1]) << 32
    if not form:
        return -1, b""
    given = words.tobytes() if r[3] == LOCAL else None
    want = printed(texts[form], given, texts.__getitem__)
    packed = min(-(-want.used // 8) * 8, ARGUMENTS)
    for marker, word in ran.high.items():
        words[words == marker] = word
    arguments = words.tobytes() if given else bytes(ARGUMENTS)
    head = np.array([FUNCTIONS["vprintf"].number, packed], dtype=np.uint32).tobytes()
    return want.count, head + arguments[:packed] + want.text.rstrip(b"\0")


def _assertions(ran: Ran, lanes: NDArray[np.bool_]) -> Iterator[bytes]:
    """Function, line, texts, block and thread."""
    for wave, lane in np.argwhere(lanes).tolist():
        r = [int(word) for word in ran.before[wave, 1:, lane]]
        words = (2, r[4], *r[0:4], *r[6:8], wave, 0, 0, lane, 0, 0)
        yield np.array(words, dtype=np.uint32).tobytes()


def _memory(ran: Ran, given: Wide, asked: Wide, freed: Wide) -> None:
    """Every block is free, in the list of its size, or owned by exactly one lane."""
    was, heap = ran.was, ran.heap
    blocks = heap.blocks()
    assert heap.next <= len(heap.data) * 4
    held = set(was.blocks()) - set(was.free())
    held -= {int(p) - heap.base - HEADER for p in freed if p}
    most = was.charged + sum(charge_of(n) for p, n in zip(given, asked.tolist(), strict=True) if p)
    for pointer, size in zip(given.tolist(), asked.tolist(), strict=True):
        at = pointer - heap.base - HEADER
        need = max(32, 1 << (size + HEADER - 1).bit_length())
        if not pointer:
            full = heap.next + need > len(heap.data) * 4
            assert (
                size > 0x7FFFFEFF
                or (full and need not in map(heap.block, heap.free()))
                or most + charge_of(size) > heap.limit
            )
            continue
        assert pointer % 32 == 0
        assert at not in held, f"the block at {at:#x} is given twice"
        assert heap.block(at) == need
        assert heap.charge(at) == charge_of(size) >= size
        held.add(at)
    assert heap.charged == sum(map(heap.charge, held)) <= heap.limit == was.limit
    free = heap.free()
    if not len(freed):  # no block is taken from the end while one of the size is free
        fresh = {heap.block(at) for at in blocks if at >= was.next}
        assert fresh.isdisjoint(map(heap.block, free))
    assert held.isdisjoint(free)
    assert held | set(free) == set(blocks)
    assert all(heap.block(at) == 1 << number for at, number in free.items())
