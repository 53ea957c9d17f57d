"""The expected results of each kernel of ``fixtures/kernels``, as plain Python over words.

For differential tests: launch the kernel over ``Contract.inputs(seed)`` with ``out`` filled by
``Contract.start``, and pass its output to ``Contract.differences``.  All kernels have the
parameters ``(const uint32_t *a, const uint32_t *b, uint32_t *out, int n)``, one-dimensional grids,
and read at most ``words`` words of ``a`` and ``b``.  The contracts hold on real GPUs (checked on
sm_90), except for the payloads of NaNs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sassxlate.runtime_shim.driver import Words
from sassxlate.runtime_shim.selftest.contracts import arithmetic as rules
from sassxlate.runtime_shim.selftest.contracts import control
from sassxlate.runtime_shim.selftest.contracts.arithmetic import GARBAGE, Grid, Thread
from sassxlate.runtime_shim.selftest.contracts.numbers import M32

_CORNERS = (0, 1, 2, 31, 32, 33, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, M32)
_FLOAT_CORNERS = (
    *(0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x00800000, 0x3F800000),
    *(0xBF800000, 0x3F7FFFFF, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000),
    *(0x4B000001, 0x4EFFFFFF, 0x4F000000, 0xCF000000, 0x5F000000, 0x3F000000, 0x40490FDB),
)
_DOUBLE_CORNERS = (
    *(0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 5e-324, -5e-324, 4.5e-310, 3.0, 0.1),
    *(2.2250738585072014e-308, 1.7976931348623157e308, 1e308),
)


def _random_words(rng: np.random.Generator, count: int) -> Words:
    words = rng.integers(0, 1 << 32, count, dtype=np.uint32)
    words >>= rng.choice(np.array([0, 0, 0, 5, 17, 27], dtype=np.uint32), count)
    corners = rng.random(count) < 0.15
    words[corners] = rng.choice(np.array(_CORNERS, dtype=np.uint32), int(corners.sum()))
    return words


def _random_floats(rng: np.random.Generator, count: int) -> Words:
    words = rng.integers(0, 1 << 32, count, dtype=np.uint32)
    near_one = rng.random(count) < 0.4
    words[near_one] = words[near_one] & 0x80FFFFFF | 0x3F000000
    words[rng.random(count) < 0.1] &= 0x807FFFFF  # denormals
    corners = rng.random(count) < 0.3
    words[corners] = rng.choice(np.array(_FLOAT_CORNERS, dtype=np.uint32), int(corners.sum()))
    return words


def _random_doubles(rng: np.random.Generator, count: int) -> Words:
    bits = rng.integers(0, 1 << 64, count // 2, dtype=np.uint64)
    near_one = rng.random(count // 2) < 0.4
    bits[near_one] = bits[near_one] & 0x800FFFFFFFFFFFFF | 0x3FF0000000000000
    corners = rng.random(count // 2) < 0.25
    values = bits.view(np.float64)
    values[corners] = rng.choice(np.array(_DOUBLE_CORNERS), int(corners.sum()))
    return values.view(np.uint32)


def _random_halves(rng: np.random.Generator, count: int) -> Words:
    halves = rng.integers(0, 1 << 16, 2 * count, dtype=np.uint16) & 0x83FF
    halves |= rng.integers(2, 18, 2 * count, dtype=np.uint16) << 10  # 2^-13 to 2^3
    return halves.view(np.uint32)


_INPUTS = {
    "words": _random_words,
    "floats": _random_floats,
    "doubles": _random_doubles,
    "halves": _random_halves,
}


def _each_thread(thread: Thread) -> Grid:
    def run(a: list[int], b: list[int], n: int, grid: int, block: int, out: list[int]) -> None:
        for i in range(min(n, grid * block)):
            thread(i, a, b, n, out)

    return run


@dataclass(frozen=True, slots=True)
class Contract:
    """The launch of one kernel, and its expected output.

    ``kinds`` names the types of the words of a row of ``out``, repeated cyclically: ``u``
    a word, ``f`` a float, ``dd`` the halves of a double, ``h`` two halves, ``e`` one half.
    """

    name: str
    rule: Grid
    grid: int
    block: int
    n: int
    out_words: int
    values: str = "words"
    kinds: str = "u"
    start: int = GARBAGE
    shared_bytes: int = 0

    @property
    def words(self) -> int:
        """The length of ``a`` and of ``b``."""
        return self.grid * self.block * (2 if self.values == "doubles" else 1)

    def inputs(self, seed: int = 0) -> tuple[Words, Words]:
        """Seeded ``a`` and ``b`` with the corner cases of their kind."""
        rng = np.random.default_rng([seed, *self.name.encode()])
        make = _INPUTS[self.values]
        return make(rng, self.words), make(rng, self.words)

    def expected(self, a: Words, b: Words) -> Words:
        """The whole of ``out`` after the launch."""
        out = [self.start] * self.out_words
        self.rule(a.tolist(), b.tolist(), self.n, self.grid, self.block, out)
        return np.array([word & M32 for word in out], dtype=np.uint32)

    def _plain(self, out: Words) -> Words:
        """``out`` with every NaN replaced by one."""
        plain = out.copy()
        kinds = np.resize(np.array(list(self.kinds)), plain.size)
        floats = (kinds == "f") & np.isnan(plain.view(np.float32))
        plain[floats] = 0x7FFFFFFF
        if "d" in self.kinds:
            plain.view(np.float64)[np.isnan(plain.view(np.float64))] = np.nan
        for kind, places in (("h", (0, 1)), ("e", (0,))):
            halves = plain.view(np.uint16).reshape(-1, 2)
            for place in places:
                column = halves[:, place]
                column[(kinds == kind) & np.isnan(column.view(np.float16))] = 0x7FFF
        return plain

    def differences(self, actual: Words, expected: Words) -> list[int]:
        """The indices at which a launch's output differs; all NaNs are equal."""
        return np.flatnonzero(self._plain(actual) != self._plain(expected)).tolist()


def _of_threads(
    name: str, thread: Thread, width: int = 1, values: str = "words", kinds: str = "u"
) -> Contract:
    # 300 of 384 threads: a ragged warp, and two whole warps with nothing to do.
    rule = _each_thread(thread)
    return Contract(name, rule, 3, 128, 300, 384 * width, values=values, kinds=kinds)


CONTRACTS: dict[str, Contract] = {
    contract.name: contract
    for contract in (
        _of_threads("divergent_if", rules.divergent_if),
        _of_threads("nested_break", rules.nested_break),
        _of_threads("early_exit", rules.early_exit),
        _of_threads("jump_table", rules.jump_table),
        _of_threads("double_math", rules.double_math, 8, values="doubles", kinds="dd"),
        _of_threads("local_array", rules.local_array),
        _of_threads("predicated_stores", rules.predicated_stores, 16),
        _of_threads("multiply_high", rules.multiply_high, 6),
        _of_threads("funnel_shifts", rules.funnel_shifts, 8),
        _of_threads("permute_bytes", rules.permute_bytes, 8),
        _of_threads("calls", rules.calls),
        _of_threads("carry_chains", rules.carry_chains, 10),
        _of_threads("wide_constants", rules.wide_constants, 14),
        _of_threads("byte_lanes", rules.byte_lanes, 10),
        _of_threads("float_rules", rules.float_rules, 8, values="floats", kinds="fffffuff"),
        _of_threads("conversions", rules.conversions, 12, values="floats", kinds="ffffuuuufuef"),
        _of_threads("constant_tables", rules.constant_tables),
        _of_threads("half_pairs", rules.half_pairs, 4, values="halves", kinds="h"),
        Contract("uniform_loop", _each_thread(rules.uniform_loop), 2, 96, 192, 192),
        Contract(
            *("shuffle_after_division", rules.shuffle_after_division, 3, 64, 192, 768),
            values="floats",
            kinds="f",
        ),
        Contract("divergent_ballot", rules.divergent_ballot, 3, 128, 384, 384),
        Contract("shared_atomics", rules.shared_atomics, 3, 128, 384, 48),
        Contract("global_atomics", rules.global_atomics, 3, 128, 384, 400, start=0),
        Contract("cas64_loop", rules.cas64_loop, 3, 128, 384, 16, start=0),
        Contract("uniform_barrier", rules.uniform_barrier, 4, 128, 512, 512),
        Contract("spin_lock", rules.spin_lock, 2, 64, 100, 4, start=0),
        Contract("dynamic_shared", rules.dynamic_shared, 3, 160, 480, 480, shared_bytes=640),
        Contract("warp_match", rules.warp_match, 2, 128, 256, 1024),
        Contract("spin_before_work", control.lock, 2, 64, 100, 4, start=0),
        Contract("spin_backoff", control.lock, 2, 64, 100, 4, start=0),
        Contract("lock_in_function", control.lock_in_function, 2, 64, 100, 4, start=0),
        Contract("lane_flags", control.lane_flags, 2, 128, 256, 256),
        Contract("split_warp_sync", control.split_warp_sync, 2, 128, 256, 256),
        Contract("group_votes", control.group_votes, 2, 128, 256, 256),
        Contract("shuffle_forms", control.shuffle_forms, 2, 128, 256, 256),
        Contract("vote_forms", control.vote_forms, 2, 128, 256, 256),
        Contract("barrier_reduce", control.barrier_reduce, 3, 128, 384, 384),
        Contract("named_barriers", control.named_barriers, 3, 128, 384, 384),
        Contract("async_copies", control.async_copies, 3, 128, 384, 384),
        Contract("arrive_barriers", control.arrive_barriers, 3, 128, 384, 384),
        Contract("divergent_barrier", control.divergent_barrier, 3, 128, 384, 384),
        _of_threads("function_pointers", control.function_pointers),
        Contract("mutual_recursion", _each_thread(control.mutual_recursion), 2, 96, 192, 192),
        Contract("far_breaks", control.far_breaks, 2, 96, 192, 192),
        Contract("exit_in_regions", control.exit_in_regions, 2, 96, 192, 192),
    )
}
