"""The inputs of a case, made on the CPU from its name alone; torch's Python."""

from __future__ import annotations

import importlib
from hashlib import blake2b
from typing import Any

from .declare import TYPES

torch: Any = importlib.import_module("torch")


def seed(name: str) -> int:
    """A seed of 31 bits from a case's name."""
    return int.from_bytes(blake2b(name.encode(), digest_size=4).digest(), "little") >> 1


def make(spec: str, dtype: str, generator: Any) -> Any:
    """The tensor that ``KIND LENGTH...`` describes (see `declare`), on the CPU."""
    kind, *lengths = spec.split()
    shape = [int(n) for n in lengths]
    if kind[0] == "i":
        return torch.randint(0, int(kind[1:]), shape, generator=generator)
    if kind == "m":
        return torch.rand(shape, generator=generator) < 0.5
    if kind == "f":
        return torch.randn(shape, generator=generator)
    wanted = getattr(torch, TYPES[dtype])
    if wanted.is_complex:
        parts = [_real(kind, shape, torch.float64, generator) for _ in range(2)]
        return torch.complex(*parts).to(wanted)
    return _real(kind, shape, wanted, generator)


def _real(kind: str, shape: list[int], wanted: Any, generator: Any) -> Any:
    """A tensor that is not complex."""
    count = 1
    for length in shape:
        count *= length
    if kind == "d":
        return (torch.randperm(count, generator=generator) - count // 2).reshape(shape).to(wanted)
    if wanted == torch.bool:
        return torch.rand(shape, generator=generator) < 0.5
    if not wanted.is_floating_point:
        low, high = (1, 9) if kind == "p" else (-50, 50)
        signed = wanted != torch.uint8
        low = low if signed else max(low, 0)
        made = torch.randint(low, high + 1, shape, generator=generator).to(wanted)
        if kind == "e":
            info = torch.iinfo(wanted)
            made.view(-1)[:4] = torch.tensor([info.min, info.max, 0, 1], dtype=wanted)
        return made
    wide = torch.randn(shape, generator=generator, dtype=torch.float64)
    if kind == "s":
        return (wide @ wide.T / shape[0] + torch.eye(shape[0], dtype=torch.float64)).to(wanted)
    if kind in "pu":
        wide = torch.rand(shape, generator=generator, dtype=torch.float64)
        wide = wide * 2.9 + 0.1 if kind == "p" else wide * 1.9 - 0.95
    if kind == "w":
        wide = wide / shape[-1] ** 0.5
    made = wide.to(wanted)
    if kind == "e":
        info = torch.finfo(wanted)
        edges = [float("inf"), -float("inf"), float("nan"), -0.0, 0.0, info.tiny / 4, info.max, 1.0]
        made.view(-1)[: len(edges)] = torch.tensor(edges, dtype=torch.float64).to(wanted)
    return made
