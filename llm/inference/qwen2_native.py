"""A small Qwen2 on a CPU, in generated machine code: as :mod:`.qwen2` does in NumPy, but faster.

Only llvmlite is needed.  Weights are packed once, in the order in which they are read; rows
are contiguous in permanent buffers.  A CPU that can multiply bfloat16 does so if the
weights are bfloat16: the other factors are rounded to it, and all else is float32.  If two
words are so close that this rounding may decide, :meth:`Fast.again` computes the right one.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sassxlate.errors import ModelError
from sassxlate.llm.inference import native_code
from sassxlate.llm.inference.native_code import LANES, Kind, Sizes, Tile
from sassxlate.llm.inference.qwen2 import Config, Floats, Layer, Qwen2
from sassxlate.llm.inference.safetensors import rounded

_AVX512: Final = ("avx512f", "avx512bw", "avx512dq", "avx512vl")
_HOSTS: Final[tuple[tuple[tuple[str, ...], Kind, Tile], ...]] = (  # the best first
    ((*_AVX512, "avx512bf16"), "bf16", Tile(6, 4)),
    (_AVX512, "f32", Tile(6, 4)),
    (("avx2", "fma"), "f32", Tile(6, 1)),
)
_LINE: Final = 64  # bytes
# How near two logits may be to each other.  Logits of one model differ from float32's by a
# thousandth of the likeliest word's (root mean square), so words further apart stay in order.
NEAR: Final = 2**-9
_AGAIN: Final = 8  # sequences recomputed at once: they may be long
_ARGUMENTS: Final = {
    "product": 7, "add_product": 7, "normed": 4, "gated": 4, "turned": 10, "mixed": 11,
}  # fmt: skip
Array = NDArray[Any]


def kinds_of_host() -> list[tuple[Kind, Tile]]:
    """The kinds of code that this CPU can run, the fastest first; none if it lacks even AVX2."""
    import llvmlite.binding as llvm

    try:
        features = llvm.get_host_cpu_features()
    except RuntimeError:  # not x86, and LLVM cannot tell
        return []
    return [(kind, tile) for needs, kind, tile in _HOSTS if all(map(features.get, needs))]


def fits(config: Config, tile: Tile) -> bool:
    """Whether a model's sizes are whole vectors and panels."""
    parts = (config.intermediate, config.head // 2)
    return config.hidden % tile.panel == 0 and all(n % LANES == 0 for n in parts)


def fast(model: Qwen2) -> Fast | None:
    """The same model in code for this CPU; None if there is none for it, or for the sizes, or
    LLVM refuses it."""
    for kind, tile in kinds_of_host():
        if fits(model.config, tile) and (kind == "f32" or _in_bf16(model)):
            with contextlib.suppress(RuntimeError):
                return Fast(model, kind, tile)
    return None


def _in_bf16(model: Qwen2) -> bool:
    """Whether all matrices are of bfloat16s."""
    found = [model.head, *(m for one in model.layers for m in (one.qkv, one.out, one.down))]
    found += [one.gate_up for one in model.layers]
    return not any((m.view(np.uint32) & 0xFFFF).any() for m in found)


def _zeros(shape: Sequence[int], kind: Any) -> Array:
    """Zeros aligned to a cache line."""
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    whole = np.zeros(size + _LINE, np.uint8)
    first = -whole.ctypes.data % _LINE
    out: Array = whole[first : first + size].view(kind).reshape(shape)
    return out


def _pages(shape: Sequence[int]) -> Array:
    """Zeros of float32 in small pages, so that only used memory is allocated: a slot has room for
    the longest possible sequence, and most are short."""
    size = int(np.prod(shape)) * 4
    memory = mmap.mmap(-1, max(size, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without huge pages
            memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, np.float32, size // 4).reshape(shape)


@dataclass(frozen=True, slots=True)
class _Matrix:
    """A packed matrix: panels of (steps, columns), and the bias of a product's columns."""

    data: Array
    bias: Array
    steps: int
    panels: int
    width: int  # of a product's rows


@dataclass(frozen=True, slots=True)
class _Packed:
    norm1: Array
    qkv: _Matrix
    out: _Matrix
    norm2: Array
    gate_up: _Matrix
    down: _Matrix


class Fast:
    """A model's packed weights, and the code for it."""

    def __init__(self, model: Qwen2, kind: Kind, tile: Tile) -> None:
        c = model.config
        self.model, self.tile = model, tile
        self.kind: Kind = kind
        sizes = Sizes(c.hidden, c.intermediate, c.heads, c.kv_heads, c.head, c.epsilon)
        kinds: tuple[Kind, ...] = (kind, "exact") if kind == "bf16" else (kind,)
        made = {k: _compiled(native_code.module(k, tile, sizes)) for k in kinds}
        self._engines = [engine for engine, _ in made.values()]
        self.code = {k: functions for k, (_, functions) in made.items()}
        self.layers = [self._layer(layer) for layer in model.layers]
        self.norm, self.head = model.norm, self._matrix(model.head)
        self.cos, self.sin = model.cos, model.sin

    def near(self, best: float, next_: float) -> bool:
        """Whether, by their logits, rounding may have decided between the two likeliest words."""
        return self.kind == "bf16" and best - next_ < NEAR * max(abs(best), abs(next_))

    def again(self, sequences: Sequence[Sequence[int]]) -> Floats:
        """The logits after sequences, computed from their beginnings as in float32."""
        made: list[Floats] = []
        for first in range(0, len(sequences), _AGAIN):
            part = sequences[first : first + _AGAIN]
            session = FastSession(self, len(part), max(map(len, part)), "exact")
            made.append(session.advance((), part).copy())
        return np.concatenate(made)

    def _layer(self, layer: Layer) -> _Packed:
        return _Packed(
            layer.norm1, self._matrix(layer.qkv, layer.qkv_bias), self._matrix(layer.out),
            layer.norm2, self._matrix(layer.gate_up), self._matrix(layer.down),
        )  # fmt: skip

    def _matrix(self, weights: Floats, bias: Floats | None = None) -> _Matrix:
        """Packs a right-hand factor: (inputs, columns)."""
        inputs, columns = weights.shape
        panel = self.tile.panel
        panels = -(-columns // panel)
        together = 2 if self.kind == "bf16" else 1
        data = _zeros((panels, inputs // together, panel, together),
                      np.uint16 if self.kind == "bf16" else np.float32)  # fmt: skip
        for n in range(panels):
            part = weights[:, n * panel : (n + 1) * panel]
            made = rounded(part) if self.kind == "bf16" else part
            data[n, :, : part.shape[1]] = made.reshape(-1, together, part.shape[1]).swapaxes(1, 2)
        added = _zeros((panels * panel,), np.float32)
        if bias is not None:
            added[:columns] = bias
        return _Matrix(data, added, inputs // together, panels, panels * panel)


def _compiled(text: str) -> tuple[Any, dict[str, Callable[..., None]]]:
    """The engine that owns a module's code, and its functions."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    parsed = llvm.parse_assembly(text)
    target = llvm.Target.from_triple(llvm.get_process_triple())
    machine = target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2,
        jit=True,
    )  # fmt: skip
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(parsed, builder)
    engine = llvm.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    made: dict[str, Callable[..., None]] = {}
    for name, count in _ARGUMENTS.items():
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * count)
        made[name] = kind(engine.get_function_address(name))
    return engine, made


class FastSession:
    """As :class:`.qwen2.Session`: sequences being generated.

    Keys are kept as (layer, slot, head, block of 16 places, number, place), values as (layer, slot,
    head, place, number).
    """

    def __init__(self, fast: Fast, slots: int, length: int, kind: Kind | None = None) -> None:
        c = fast.model.config
        self.fast = fast
        self.kind: Kind = kind or fast.kind
        self.code = fast.code[self.kind]
        self.capacity = min(length, c.context)
        self.blocks = -(-self.capacity // LANES)
        shape = (c.layers, slots, c.kv_heads, self.blocks * LANES * c.head)
        self.keys, self.values = _pages(shape), _pages(shape)
        self.lengths = np.zeros(slots, np.int64)
        self.order = np.arange(slots)  # by slot: its place in keys and values
        self.scores = _zeros((c.heads // c.kv_heads * self.blocks * LANES,), np.float32)
        self.used = self._rows = 0
        self._room(slots)

    def _room(self, rows: int) -> None:
        """Makes room for so many rows, in whole tiles."""
        if rows <= self._rows:
            return
        f, c, tall = self.fast, self.fast.model.config, self.fast.tile.rows
        self._rows = rows = -(-max(rows, 2 * self._rows) // tall) * tall
        widest = max(m.width for m in (f.layers[0].qkv, f.layers[0].gate_up, f.head))
        narrow = np.float32 if f.kind == "f32" else np.uint16
        numbers = rows * native_code.parts(self.kind) * max(c.hidden, c.intermediate)
        self._x = _zeros((rows, c.hidden), np.float32)
        self._wide = _zeros((rows * widest,), np.float32)
        self._factors = _zeros((numbers,), narrow)

    def add(self, tokens: Sequence[int]) -> Floats:
        """As :meth:`.qwen2.Session.add`."""
        logits: Floats = self.advance((), (tokens,))[0]
        return logits

    def step(self, tokens: Sequence[int]) -> Floats:
        """As :meth:`.qwen2.Session.step`."""
        return self.advance(tokens)

    def drop(self, slot: int) -> None:
        """As :meth:`.qwen2.Session.drop`."""
        last = self.used - 1
        self.order[[slot, last]] = self.order[[last, slot]]
        self.lengths[slot] = self.lengths[last]
        self.used = last

    def advance(self, tokens: Sequence[int], new: Sequence[Sequence[int]] = ()) -> Floats:
        """As :meth:`.qwen2.Session.advance`; the result is valid until the next call."""
        f, c = self.fast, self.fast.model.config
        ids, places, slots, last = self._begun(tokens, new)
        rows = len(ids)
        self._room(rows)
        self._x[:rows] = f.model.embedding[ids]
        chosen = np.arange(rows)
        wide, factors, order = _at(self._wide), _at(self._factors), (_at(slots), _at(places))
        for i, layer in enumerate(f.layers):
            cache = _at(self.keys[i]), _at(self.values[i])
            self._normed(layer.norm1, rows)
            self._product(layer.qkv, rows)
            self.code["turned"](
                wide, *cache, _at(f.cos), _at(f.sin), *order, rows, layer.qkv.width, self.blocks
            )
            if i == c.layers - 1:  # of the others nothing but keys and values is asked again
                chosen, rows = last, len(last)
                self._x[:rows] = self._x[last]
            self.code["mixed"](
                wide, *cache, *order, _at(chosen), _at(self.scores), factors, rows,
                layer.qkv.width, self.blocks,
            )  # fmt: skip
            self._product(layer.out, rows, adds=True)
            self._normed(layer.norm2, rows)
            self._product(layer.gate_up, rows)
            self.code["gated"](wide, factors, rows, layer.gate_up.width)
            self._product(layer.down, rows, adds=True)
        self._normed(f.norm, rows)
        self._product(f.head, rows)
        for one in new:
            self.lengths[self.used] = len(one)
            self.used += 1
        self.lengths[: len(tokens)] += 1
        logits: Floats = self._wide[: rows * f.head.width].reshape(rows, -1)[:, : c.vocab]
        return logits

    def _begun(
        self, tokens: Sequence[int], new: Sequence[Sequence[int]]
    ) -> tuple[Array, Array, Array, Array]:
        """Sets the token, place and slot of each row; returns the rows whose logits are needed."""
        n, used = len(tokens), self.used
        if n not in (0, used) or (n and int(self.lengths[:n].max()) >= self.capacity):
            raise ModelError("SX1006", f"a sequence passes {self.capacity} tokens")
        sizes = [len(one) for one in new]
        if used + len(new) > len(self.lengths) or not all(0 < z <= self.capacity for z in sizes):
            raise ModelError("SX1006", f"{max(sizes)} tokens do not fit in {self.capacity}")
        ids = np.asarray([*tokens, *(t for one in new for t in one)], np.int64)
        places = np.concatenate([self.lengths[:n], *map(np.arange, sizes)])
        mine = np.repeat(self.order[used : used + len(new)], sizes)
        last = [*range(n), *(n + int(end) - 1 for end in np.cumsum(sizes, dtype=np.int64))]
        slots = np.concatenate([self.order[:n], mine])
        return ids, places, slots, np.asarray(last, np.int64)

    def _normed(self, weight: Array, rows: int) -> None:
        self.code["normed"](_at(self._x), _at(weight), _at(self._factors), rows)

    def _product(self, m: _Matrix, rows: int, adds: bool = False) -> None:
        """The product of the factors; the result is in the wide buffer, or added to the rows."""
        to = self._x if adds else self._wide
        call = self.code["add_product" if adds else "product"]
        call(_at(self._factors), _at(m.data), _at(to), _at(m.bias), rows, m.steps, m.panels)


def _at(array: Array) -> int:
    return array.ctypes.data


__all__ = ["NEAR", "Fast", "FastSession", "fast", "fits", "kinds_of_host"]
