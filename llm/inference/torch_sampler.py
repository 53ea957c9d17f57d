"""Samples a model's answers to many questions fast, with torch, mostly on a GPU.

It needs only torch and NumPy.  A slot is an answer under construction, with its place in a cache of
keys and values.  All slots take one step together; slots whose answers ended are given
to the next questions, which are read together and sorted by length.  Nothing is constrained:
the judge drops text that is not an answer.  An answer's first sample is the likeliest
word at each place, as :class:`.model.Session` gives it; further ones are drawn.

This measures how fast a checkpoint answers, and how many first answers equal the known ones::

    python -m sassxlate.llm.inference.torch_sampler MODEL SHARD --questions 4096 --samples 8
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from sassxlate.errors import ModelError
from sassxlate.llm.inference.qwen2 import Floats, Qwen2
from sassxlate.llm.language.tokenizer import ANSWER, BOS, EOS, PAD

Tensor: TypeAlias = Any  # torch's type: type checkers need not have it installed
Tokens: TypeAlias = "tuple[int, ...]"
TEMPERATURE = 0.7
SLOTS_GPU, SLOTS_CPU = 1024, 32
CHECK = 8  # steps between checks for finished answers
_GRAIN = 64  # tokens: keys are read up to a multiple of it
_CACHE = 24 << 30  # most bytes of keys and values on a GPU
_AHEAD = 16  # slots' worth of answers whose questions are sorted together


def has_gpu() -> bool:
    """Whether torch is installed and has a GPU."""
    try:
        return bool(importlib.import_module("torch").cuda.is_available())
    except ImportError:
        return False


@dataclass(frozen=True, slots=True)
class _Layer:
    norm1: Tensor
    qkv: Tensor
    qkv_bias: Tensor
    out: Tensor
    norm2: Tensor
    gate_up: Tensor
    down: Tensor


@dataclass(slots=True)
class _Question:
    """A question and its requested answers; ``left`` are those still missing."""

    number: int
    tokens: Sequence[int]
    most: int
    left: int
    answers: dict[int, Tokens] = field(default_factory=dict[int, "Tokens"])


class TorchSampler:
    """A checkpoint of the block language, ready to answer."""

    def __init__(
        self,
        folder: Path,
        device: str = "auto",
        seed: int = 0,
        slots: int = 0,
        temperature: float = TEMPERATURE,
    ) -> None:
        """``slots``: answers under construction at once; 0: as many as suit the device.

        Raises ModelError as Qwen2.load does; SX1002 without torch.
        """
        try:
            torch = importlib.import_module("torch")
        except ImportError as error:
            raise ModelError("SX1002", f"sampling needs torch: {error}") from None
        self.torch: Any = torch
        self.nn: Any = importlib.import_module("torch.nn.functional")
        gpu = torch.cuda.is_available() if device == "auto" else device.startswith("cuda")
        self.device = ("cuda" if gpu else "cpu") if device == "auto" else device
        self.slots = slots or (SLOTS_GPU if gpu else SLOTS_CPU)
        self.temperature = temperature
        self.random = torch.Generator(device=self.device).manual_seed(seed)
        self.dtype = torch.bfloat16 if gpu else torch.float32
        model = Qwen2.load(folder)
        self.config = c = model.config

        def matrix(array: Floats) -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(array)).to(self.device, self.dtype)

        def exact(array: Floats) -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

        self.embedding = matrix(model.embedding)
        self.head = matrix(model.head)
        self.norm = exact(model.norm)
        self.cos, self.sin = exact(model.cos), exact(model.sin)
        self.layers = [
            _Layer(
                exact(x.norm1), matrix(x.qkv), matrix(x.qkv_bias), matrix(x.out),
                exact(x.norm2), matrix(x.gate_up), matrix(x.down),
            )
            for x in model.layers
        ]  # fmt: skip
        # Control tokens are never sampled.
        self.unsaid = torch.zeros(c.vocab, device=self.device)
        self.unsaid[[n for n in (PAD, BOS, ANSWER) if n < c.vocab]] = -torch.inf

    def answers(
        self,
        questions: Sequence[Sequence[int]],
        samples: int,
        most: Sequence[int],
        stop: Callable[[], bool] = lambda: False,
    ) -> Iterator[tuple[int, list[Tokens]]]:
        """The answers to each question, by its number, in the order in which they are done.

        ``most`` is the limit on the words of each answer; an answer that does not end within it is
        dropped, and so are questions that leave no room.  After ``stop`` no new answer begins.
        """
        room = self.config.context
        waiting = [
            _Question(n, tokens, min(limit, room - len(tokens)), samples)
            for n, (tokens, limit) in enumerate(zip(questions, most, strict=True))
        ]
        for q in waiting:
            if q.most < 2 or not q.tokens:
                yield q.number, []
        waiting = [q for q in waiting if q.most >= 2 and q.tokens]
        slots = min(self.slots, samples * len(waiting))
        step = max(1, _AHEAD * self.slots // max(1, samples))
        for at in range(0, len(waiting), step):
            if stop():
                return
            part = sorted(waiting[at : at + step], key=lambda q: -len(q.tokens) - q.most)
            with self.torch.inference_mode():
                yield from self._part(part, slots, samples, stop)

    def _part(
        self, part: list[_Question], slots: int, samples: int, stop: Callable[[], bool]
    ) -> Iterator[tuple[int, list[Tokens]]]:
        c = self.config
        longest = max(len(q.tokens) + q.most for q in part)
        longest = min(-(-longest // _GRAIN) * _GRAIN, -(-c.context // _GRAIN) * _GRAIN)
        each = 2 * c.layers * c.kv_heads * c.head * longest * (2 if self.device != "cpu" else 4)
        run = _Run(self, max(1, min(slots, _CACHE // each)), longest)
        queue = [(q, sample) for q in part for sample in range(samples)][::-1]
        while queue or run.used:
            # A prefill only pays for many questions at once.
            if queue and (not run.used or len(run.free) * 8 >= run.slots) and not stop():
                take = min(len(queue), len(run.free))
                run.begin([queue.pop() for _ in range(take)])
            elif not run.used:
                return
            run.steps(CHECK)
            for question, sample, answer in run.ended():
                if answer is not None:
                    question.answers[sample] = answer
                question.left -= 1
                if not question.left:
                    yield question.number, [a for _, a in sorted(question.answers.items())]

    # --- the model -------------------------------------------------------------------------------

    def normed(self, x: Tensor, weight: Tensor) -> Tensor:
        """Divided by the root mean square of the last axis, times ``weight``."""
        wide = x.float()
        scale = self.torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.config.epsilon)
        return (wide * scale * weight).to(self.dtype)

    def turns(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """The rotary factors for queries and keys at places (rows, length)."""
        return self.cos[places][:, :, None], self.sin[places][:, :, None]

    def split(
        self, x: Tensor, layer: _Layer, turns: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries and keys, turned, and values: (rows, length, heads, head) of ``x`` (rows,
        length, hidden)."""
        c = self.config
        made = x @ layer.qkv + layer.qkv_bias
        kv = c.kv_heads * c.head
        both = made[..., : c.hidden + kv].unflatten(-1, (c.heads + c.kv_heads, c.head)).float()
        cos, sin = turns
        low, high = both.chunk(2, -1)
        turned = self.torch.cat((low * cos - high * sin, high * cos + low * sin), -1)
        turned = turned.to(self.dtype)
        values = made[..., c.hidden + kv :].unflatten(-1, (c.kv_heads, c.head))
        return turned[..., : c.heads, :], turned[..., c.heads :, :], values

    def wide(self, x: Tensor, layer: _Layer) -> Tensor:
        """The second half of a layer."""
        gate, up = (self.normed(x, layer.norm2) @ layer.gate_up).chunk(2, -1)
        return x + (self.nn.silu(gate) * up) @ layer.down


class _Run:
    """The slots, and their keys and values."""

    def __init__(self, sampler: TorchSampler, slots: int, longest: int) -> None:
        self.m, self.slots, self.longest = sampler, slots, longest
        c, torch = sampler.config, sampler.torch
        shape = (c.layers, slots, c.kv_heads, longest, c.head)
        device = sampler.device
        self.keys = torch.zeros(shape, dtype=sampler.dtype, device=device)
        self.values = torch.zeros(shape, dtype=sampler.dtype, device=device)
        self.places = torch.zeros(slots, dtype=torch.long, device=device)  # place of the next token
        self.tokens = torch.zeros(slots, dtype=torch.long, device=device)  # the next one
        self.said = torch.zeros((slots, longest + 1), dtype=torch.long, device=device)
        self.counts = torch.zeros(slots, dtype=torch.long, device=device)
        self.heat = torch.zeros((slots, 1), device=device)
        self.rows = torch.arange(slots, device=device)
        self.columns = torch.arange(longest, device=device)
        self.jobs: list[tuple[_Question, int] | None] = [None] * slots
        self.limits = np.zeros(slots, np.int64)
        self.lengths = np.zeros(slots, np.int64)  # as ``places``, on the host, without a transfer

    @property
    def free(self) -> list[int]:
        return [n for n, job in enumerate(self.jobs) if job is None]

    @property
    def used(self) -> int:
        return sum(job is not None for job in self.jobs)

    def begin(self, jobs: Sequence[tuple[_Question, int]]) -> None:
        """Assigns free slots to answers, and reads their questions, each once."""
        m, c, torch = self.m, self.m.config, self.m.torch
        slots = self.free[: len(jobs)]
        unique = {id(q): q for q, _ in jobs}
        row_of = {key: n for n, key in enumerate(unique)}
        length = max(len(q.tokens) for q in unique.values())
        padded = np.full((len(unique), length), PAD, np.int64)
        for n, q in enumerate(unique.values()):
            padded[n, : len(q.tokens)] = q.tokens
        tokens = torch.from_numpy(padded).to(m.device)
        source = torch.tensor([row_of[id(q)] for q, _ in jobs], device=m.device)
        target = torch.tensor(slots, device=m.device)
        x = m.embedding[tokens]
        turns = m.turns(torch.arange(length, device=m.device)[None])
        group = c.heads // c.kv_heads
        for n, layer in enumerate(m.layers):
            q, k, v = m.split(m.normed(x, layer.norm1), layer, turns)
            q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
            self.keys[n, target, :, :length] = k[source]
            self.values[n, target, :, :length] = v[source]
            k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
            mixed = m.nn.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + mixed.transpose(1, 2).reshape(len(unique), length, c.hidden) @ layer.out
            x = m.wide(x, layer)
        ends = torch.tensor([len(q.tokens) for q in unique.values()], device=m.device)
        last = x[torch.arange(len(unique), device=m.device), ends - 1]
        logits = (m.normed(last, m.norm) @ m.head).float()[source]
        heat = [m.temperature if sample else 0.0 for _, sample in jobs]
        self.heat[target, 0] = torch.tensor(heat, device=m.device)
        self.places[target] = ends[source]
        self.counts[target] = 0
        for slot, job in zip(slots, jobs, strict=True):
            self.jobs[slot] = job
            self.limits[slot] = job[0].most
            self.lengths[slot] = len(job[0].tokens)
        self._take(logits, target)

    def _take(self, logits: Tensor, slots: Tensor) -> None:
        """The next token of some slots: the likeliest, or a drawn one (Gumbel's way)."""
        m, torch = self.m, self.m.torch
        noise = torch.rand(logits.shape, generator=m.random, device=m.device)
        noise = -torch.log(-torch.log(noise.clamp_(1e-20, 1 - 1e-7)))
        chosen = (logits + m.unsaid + self.heat[slots] * noise).argmax(-1)
        self.tokens[slots] = chosen
        self.said[slots, self.counts[slots].clamp(max=self.longest)] = chosen
        self.counts[slots] += 1

    def steps(self, count: int) -> None:
        """Adds this many tokens to each slot; finished slots run on without effect."""
        m, c, torch = self.m, self.m.config, self.m.torch
        busy = [n for n, job in enumerate(self.jobs) if job is not None]
        group = c.heads // c.kv_heads
        top = min(int(self.lengths[busy].max()) + count, self.longest)
        top = min(-(-top // _GRAIN) * _GRAIN, self.longest)
        columns = self.columns[:top]
        for _ in range(count):
            places = self.places.clamp(max=top - 1)
            turns = m.turns(places.clamp(max=c.context - 1)[:, None])
            mask = (columns <= places[:, None])[:, None, None]
            x = m.embedding[self.tokens][:, None]
            for n, layer in enumerate(m.layers):
                q, k, v = m.split(m.normed(x, layer.norm1), layer, turns)
                self.keys[n, self.rows, :, places] = k[:, 0]
                self.values[n, self.rows, :, places] = v[:, 0]
                q = q.view(self.slots, c.kv_heads, group, c.head)
                keys, values = self.keys[n, :, :, :top], self.values[n, :, :, :top]
                mixed = m.nn.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
                x = x + mixed.reshape(self.slots, 1, c.hidden) @ layer.out
                x = m.wide(x, layer)
            logits = (m.normed(x[:, 0], m.norm) @ m.head).float()
            self.places = torch.minimum(self.places + 1, self.places.new_tensor(self.longest - 1))
            self._take(logits, self.rows)
        self.lengths[busy] = np.minimum(self.lengths[busy] + count, self.longest - 1)

    def ended(self) -> Iterator[tuple[_Question, int, Tokens | None]]:
        """Answers that ended since the last call; None for one that did not end within its
        limit."""
        torch = self.m.torch
        counts = self.counts.clamp(max=self.longest + 1)
        columns = torch.arange(self.longest + 1, device=self.m.device)
        ends = (self.said == EOS) & (columns < counts[:, None])
        found = torch.stack((ends.any(1).long(), ends.int().argmax(1), counts)).cpu().numpy()
        done = [
            n
            for n, job in enumerate(self.jobs)
            if job is not None and (found[0, n] or found[2, n] >= self.limits[n])
        ]
        if not done:
            return
        said = self.said[torch.tensor(done, device=self.m.device)].cpu().numpy()
        for row, slot in zip(said, done, strict=True):
            job = self.jobs[slot]
            assert job is not None
            self.jobs[slot] = None
            end = int(found[1, slot]) + 1
            whole = bool(found[0, slot]) and end <= self.limits[slot]
            yield *job, tuple(int(t) for t in row[:end]) if whole else None


__all__ = ["TEMPERATURE", "TorchSampler", "has_gpu"]
