"""The Qwen2 architecture in NumPy: inference of a small model on a CPU, without a framework.

Weights are those of a Hugging Face checkpoint (``config.json``, ``*.safetensors``), so that
``transformers`` reads and trains the same files.  Several sequences continue at once: a step is one
product of a few rows with each matrix, which reads the weights once for all of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sassxlate.errors import ModelError, Where
from sassxlate.llm.inference import safetensors

Floats = NDArray[Any]  # float32 throughout; arithmetic's types say float64 here and there
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Config:
    """Sizes; the names in ``config.json`` are those of transformers' Qwen2Config."""

    vocab: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    intermediate: int
    context: int
    rope_theta: float = 10_000.0
    epsilon: float = 1e-6
    tied: bool = True

    @property
    def head(self) -> int:
        """The number of floats of a head."""
        return self.hidden // self.heads

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        kv = self.kv_heads * self.head
        attention = self.hidden * (2 * self.hidden + 2 * kv) + self.hidden + 2 * kv
        layer = attention + 3 * self.hidden * self.intermediate + 2 * self.hidden
        ends = self.vocab * self.hidden * (1 if self.tied else 2) + self.hidden
        return self.layers * layer + ends

    def to_json(self) -> dict[str, Any]:
        """``config.json`` as transformers reads it."""
        return {
            "architectures": ["Qwen2ForCausalLM"],
            "model_type": "qwen2",
            "vocab_size": self.vocab,
            "hidden_size": self.hidden,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "intermediate_size": self.intermediate,
            "max_position_embeddings": self.context,
            "rope_theta": self.rope_theta,
            "rms_norm_eps": self.epsilon,
            "tie_word_embeddings": self.tied,
            "hidden_act": "silu",
            "use_sliding_window": False,
            "attention_dropout": 0.0,
        }


def read_json(folder: Path) -> dict[str, Any]:
    """A checkpoint's config.json.  ModelError SX1001 if there is none, SX1003 if it is invalid."""
    path = folder / "config.json"
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelError("SX1001", f"no model: {error.strerror}", Where(str(path))) from error
    except ValueError as error:
        raise ModelError("SX1003", f"no JSON: {error}", Where(str(path))) from None
    if not isinstance(data, dict):
        raise ModelError("SX1003", "no JSON object", Where(str(path)))
    return cast("dict[str, Any]", data)


def read_config(folder: Path) -> Config:
    """The sizes of a checkpoint.

    Raises ModelError: SX1001, there is none; SX1003, it is invalid; SX1004, it is not a Qwen2.
    """
    path = folder / "config.json"
    data = read_json(folder)
    if data.get("model_type") != "qwen2":
        text = f"a {data.get('model_type')} model; this reads qwen2, transformers reads any"
        raise ModelError("SX1004", text, Where(str(path)))
    try:
        rope: dict[str, Any] = data.get("rope_parameters") or {}
        out = Config(
            vocab=int(data["vocab_size"]),
            hidden=int(data["hidden_size"]),
            layers=int(data["num_hidden_layers"]),
            heads=int(data["num_attention_heads"]),
            kv_heads=int(data["num_key_value_heads"]),
            intermediate=int(data["intermediate_size"]),
            context=int(data.get("max_position_embeddings", 32768)),
            rope_theta=float(data.get("rope_theta") or rope.get("rope_theta") or 10_000.0),
            epsilon=float(data.get("rms_norm_eps", 1e-6)),
            tied=bool(data.get("tie_word_embeddings", False)),
        )
        fits = out.hidden % out.heads == 0 and out.heads % out.kv_heads == 0 and out.head % 2 == 0
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        text = f"the sizes are not right: {error!r}"
        raise ModelError("SX1003", text, Where(str(path))) from None
    if not fits or min(out.vocab, out.layers, out.intermediate, out.context) < 1:
        raise ModelError("SX1003", "the sizes do not fit together", Where(str(path)))
    return out


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer's matrices, for multiplication from the right; those with the same input are
    joined."""

    norm1: Floats
    qkv: Floats
    qkv_bias: Floats
    out: Floats
    norm2: Floats
    gate_up: Floats
    down: Floats


class Qwen2:
    """A model for inference.  ``weights`` are by Hugging Face's names."""

    def __init__(self, config: Config, weights: Mapping[str, Floats], place: str = "") -> None:
        self.config = config
        self._place = place

        def get(name: str, *shape: int) -> Floats:
            array = weights.get(name)
            if array is None:
                raise ModelError("SX1003", f"no tensor {name!r}", Where(place or None))
            if array.shape != shape or array.dtype.kind != "f":
                text = f"{name!r} is {array.shape} of {array.dtype}, not {shape}"
                raise ModelError("SX1003", text, Where(place or None))
            return array.astype(np.float32, copy=False)

        c = config
        kv = c.kv_heads * c.head
        self.embedding = get("model.embed_tokens.weight", c.vocab, c.hidden)
        self.norm = get("model.norm.weight", c.hidden)
        head = self.embedding if c.tied else get("lm_head.weight", c.vocab, c.hidden)
        self.head = np.ascontiguousarray(head.T)
        self.layers: list[Layer] = []
        for n in range(c.layers):
            at = f"model.layers.{n}."
            mine = f"{at}self_attn."
            qkv = [
                get(f"{mine}{x}_proj.weight", c.hidden if x == "q" else kv, c.hidden) for x in "qkv"
            ]
            bias = [get(f"{mine}{x}_proj.bias", c.hidden if x == "q" else kv) for x in "qkv"]
            wide = [
                get(f"{at}mlp.{x}_proj.weight", c.intermediate, c.hidden) for x in ("gate", "up")
            ]
            self.layers.append(
                Layer(
                    get(f"{at}input_layernorm.weight", c.hidden),
                    np.ascontiguousarray(np.concatenate(qkv).T),
                    np.concatenate(bias),
                    np.ascontiguousarray(get(f"{mine}o_proj.weight", c.hidden, c.hidden).T),
                    get(f"{at}post_attention_layernorm.weight", c.hidden),
                    np.ascontiguousarray(np.concatenate(wide).T),
                    np.ascontiguousarray(
                        get(f"{at}mlp.down_proj.weight", c.hidden, c.intermediate).T
                    ),
                )
            )
        steps = np.arange(c.context, dtype=np.float64)[:, None]
        rates = c.rope_theta ** (-np.arange(0, c.head, 2, dtype=np.float64) / c.head)
        self.cos = np.cos(steps * rates).astype(np.float32)
        self.sin = np.sin(steps * rates).astype(np.float32)

    @classmethod
    def load(cls, folder: Path) -> Qwen2:
        """A checkpoint's model.  Raises ModelError as read_config and safetensors.read do."""
        config = read_config(folder)
        files = sorted(folder.glob("*.safetensors"))
        if not files:
            raise ModelError("SX1001", "no *.safetensors in it", Where(str(folder)))
        weights: dict[str, NDArray[Any]] = {}
        for file in files:
            weights |= safetensors.read(file)
        return cls(config, weights, str(folder))

    def normed(self, x: Floats, weight: Floats) -> Floats:
        """Rows divided by their root mean square, times ``weight``."""
        scale = np.einsum("ij,ij->i", x, x) / x.shape[1] + self.config.epsilon
        out: Floats = x / np.sqrt(scale)[:, None] * weight
        return out

    def turned(self, x: Floats, places: Ints) -> Floats:
        """Rotary embedding of ``x`` (rows, heads, head) at the rows' places."""
        half = self.config.head // 2
        cos, sin = self.cos[places][:, None], self.sin[places][:, None]
        low, high = x[..., :half], x[..., half:]
        out = np.empty_like(x)
        out[..., :half] = low * cos - high * sin
        out[..., half:] = high * cos + low * sin
        return out


def _softmax(x: Floats) -> Floats:
    """The softmax of the last axis, in place."""
    x -= x.max(axis=-1, keepdims=True)
    np.exp(x, out=x)
    x /= x.sum(axis=-1, keepdims=True)
    return x


class Session:
    """Sequences being generated: at most ``slots`` of them, each of at most ``length`` tokens.

    Slots in use are always the first ones; :meth:`drop` moves the last into a freed place.
    """

    def __init__(self, model: Qwen2, slots: int, length: int) -> None:
        c = model.config
        self.model = model
        self.capacity = min(length, c.context)
        self.keys = np.zeros((c.layers, slots, c.kv_heads, self.capacity, c.head), np.float32)
        self.values = np.zeros_like(self.keys)
        self.lengths = np.zeros(slots, np.int64)
        self.used = 0

    def add(self, tokens: Sequence[int]) -> Floats:
        """Starts a sequence in the next slot; returns the logits after its last token."""
        logits: Floats = self.advance((), (tokens,))[0]
        return logits

    def step(self, tokens: Sequence[int]) -> Floats:
        """Adds one token to each slot in use; returns the logits after them: (used, vocab)."""
        return self.advance(tokens)

    def advance(self, tokens: Sequence[int], new: Sequence[Sequence[int]] = ()) -> Floats:
        """Adds one token to each slot in use (or to none), and new sequences in the next slots;
        returns the logits after the former, then after the last token of each of the latter.

        Together they are one product with each matrix, which would not be worth its cost for a few
        rows.
        """
        m, c, n = self.model, self.model.config, len(tokens)
        places = self.lengths[:n].copy()
        if n not in (0, self.used) or (n and int(places.max()) >= self.capacity):
            raise ModelError("SX1006", f"a sequence passes {self.capacity} tokens")
        beginning = self._beginning(n, new)
        x = m.embedding[np.asarray([*tokens, *(t for one in new for t in one)])]
        every = np.concatenate([places, *(np.arange(len(one)) for one in new)])
        last = [*range(n), *(part.stop - 1 for _, part, _ in beginning)]
        for i, layer in enumerate(m.layers):
            q, k, v = self._split(m.normed(x, layer.norm1), layer, every)
            mixed = np.empty((len(x), c.hidden), np.float32)
            if n:
                mixed[:n] = self._next(i, q[:n], k[:n], v[:n], places)
            for slot, part, hidden in beginning:
                mixed[part] = self._first(i, slot, q[part], k[part], v[part], hidden)
            if i == c.layers - 1:  # only keys and values of the others are used again
                x, mixed = x[last], mixed[last]
            x = self._wide(x + mixed @ layer.out, layer)
        self.lengths[:n] += 1
        for one in new:
            self.lengths[self.used] = len(one)
            self.used += 1
        logits: Floats = m.normed(x, m.norm) @ m.head
        return logits

    def _beginning(
        self, first: int, new: Sequence[Sequence[int]]
    ) -> list[tuple[int, slice, Floats]]:
        """For each new sequence its slot, its rows from ``first`` on, and the mask of its
        tokens."""
        out: list[tuple[int, slice, Floats]] = []
        for number, one in enumerate(new):
            size = len(one)
            if not 0 < size <= self.capacity or self.used + number >= self.keys.shape[1]:
                raise ModelError("SX1006", f"{size} tokens do not fit in {self.capacity}")
            hidden = np.triu(np.full((size, size), -np.inf, np.float32), 1)
            out.append((self.used + number, slice(first, first + size), hidden))
            first += size
        return out

    def _next(self, i: int, q: Floats, k: Floats, v: Floats, places: Ints) -> Floats:
        """Attention of one token for each slot in use."""
        c, n = self.model.config, len(q)
        kv, group = c.kv_heads, c.heads // c.kv_heads
        longest, rows = int(places.max()) + 1, np.arange(n)
        hidden = np.where(np.arange(longest) <= places[:, None], np.float32(0), -np.inf)
        self.keys[i, rows, :, places] = k
        self.values[i, rows, :, places] = v
        scores = q.reshape(n, kv, group, c.head) @ self.keys[i, :n, :, :longest].swapaxes(-1, -2)
        mixed = _softmax(scores + hidden.astype(np.float32)[:, None, None])
        out: Floats = (mixed @ self.values[i, :n, :, :longest]).reshape(n, c.hidden)
        return out

    def _first(self, i: int, slot: int, q: Floats, k: Floats, v: Floats, hidden: Floats) -> Floats:
        """Attention of a new sequence's tokens."""
        c, n = self.model.config, len(q)
        kv, group = c.kv_heads, c.heads // c.kv_heads
        self.keys[i, slot, :, :n] = k.transpose(1, 0, 2)
        self.values[i, slot, :, :n] = v.transpose(1, 0, 2)
        q = q.reshape(n, kv, group, c.head).transpose(1, 2, 0, 3)  # kv, group, n, head
        scores = q @ self.keys[i, slot, :, None, :n].swapaxes(-1, -2)
        mixed = _softmax(scores + hidden) @ self.values[i, slot, :, None, :n]
        return mixed.transpose(2, 0, 1, 3).reshape(n, c.hidden)

    def drop(self, slot: int) -> None:
        """Ends a sequence; the last slot's moves into its place."""
        last = self.used - 1
        if slot != last:
            n = int(self.lengths[last])
            self.keys[:, slot, :, :n] = self.keys[:, last, :, :n]
            self.values[:, slot, :, :n] = self.values[:, last, :, :n]
            self.lengths[slot] = n
        self.used = last

    def _split(self, x: Floats, layer: Layer, places: Ints) -> tuple[Floats, Floats, Floats]:
        """Queries (scaled, turned), keys (turned) and values: (rows, heads, head)."""
        m, c = self.model, self.model.config
        made = x @ layer.qkv + layer.qkv_bias
        kv = c.kv_heads * c.head
        rows = len(made)
        both = made[:, : c.hidden + kv].reshape(rows, c.heads + c.kv_heads, c.head)
        both = m.turned(both, places)
        q = both[:, : c.heads] * np.float32(c.head**-0.5)
        return q, both[:, c.heads :], made[:, c.hidden + kv :].reshape(rows, c.kv_heads, c.head)

    def _wide(self, x: Floats, layer: Layer) -> Floats:
        h = self.model.normed(x, layer.norm2) @ layer.gate_up
        wide = h.shape[1] // 2
        gate = h[:, :wide]
        gate = gate / (1 + np.exp(-gate)) * h[:, wide:]
        out: Floats = x + gate @ layer.down
        return out


def random_weights(config: Config, seed: int) -> dict[str, Floats]:
    """An untrained model's weights, by Hugging Face's names."""
    rng = np.random.default_rng(seed)
    c, kv = config, config.kv_heads * config.head

    def some(*shape: int) -> Floats:
        return rng.standard_normal(shape, np.float32) * np.float32(0.02)

    out = {
        "model.embed_tokens.weight": some(c.vocab, c.hidden),
        "model.norm.weight": np.ones(c.hidden, np.float32),
    }
    if not c.tied:
        out["lm_head.weight"] = some(c.vocab, c.hidden)
    for n in range(c.layers):
        at = f"model.layers.{n}."
        for x, rows in (("q", c.hidden), ("k", kv), ("v", kv)):
            out[f"{at}self_attn.{x}_proj.weight"] = some(rows, c.hidden)
            out[f"{at}self_attn.{x}_proj.bias"] = some(rows)
        out[f"{at}self_attn.o_proj.weight"] = some(c.hidden, c.hidden)
        out[f"{at}mlp.gate_proj.weight"] = some(c.intermediate, c.hidden)
        out[f"{at}mlp.up_proj.weight"] = some(c.intermediate, c.hidden)
        out[f"{at}mlp.down_proj.weight"] = some(c.hidden, c.intermediate)
        out[f"{at}input_layernorm.weight"] = np.ones(c.hidden, np.float32)
        out[f"{at}post_attention_layernorm.weight"] = np.ones(c.hidden, np.float32)
    return out


def save(folder: Path, config: Config, weights: Mapping[str, Floats], bfloat: bool = True) -> None:
    """A checkpoint's ``config.json`` and ``model.safetensors``; a tied head is not written."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = {k: v for k, v in weights.items() if not (config.tied and k == "lm_head.weight")}
    safetensors.write(folder / "model.safetensors", kept, {"format": "pt"}, bfloat)
    (folder / "config.json").write_text(json.dumps(config.to_json(), indent=1) + "\n")


# `small` and `base` fit in 64 MB as bf16, `large` as int8.
SIZES: Mapping[str, Config] = {
    "tiny": Config(0, 64, 2, 4, 2, 192, 2048),
    "micro": Config(0, 256, 6, 4, 2, 768, 2048),
    "small": Config(0, 384, 8, 6, 2, 1152, 2048),
    "base": Config(0, 512, 10, 8, 2, 1408, 2048),
    "large": Config(0, 640, 14, 10, 2, 1664, 2048),
}
