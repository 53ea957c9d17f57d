"""Several processes that train one model, one GPU each, as ``torchrun`` starts them.

Each takes its rows of every batch; gradients are averaged after each step, so that all have the
same weights.  The first one evaluates, writes, and decides the progress of the schedule, because
clocks differ.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sassxlate.errors import ModelError


@dataclass(frozen=True, slots=True)
class Ranks:
    """The rank of this process (0 is the first) and their number; ``group`` is the channel for
    numbers."""

    rank: int = 0
    world: int = 1
    group: Any = None
    torch: Any = None

    @property
    def first(self) -> bool:
        """Whether this process evaluates and writes."""
        return self.rank == 0

    def said(self, value: float) -> float:
        """The first process's value, in all processes."""
        if self.world == 1:
            return value
        told = self.torch.tensor([value], dtype=self.torch.float64)
        self.torch.distributed.broadcast(told, 0, group=self.group)
        return float(told[0])

    def averaged(self, parameters: Iterable[Any]) -> None:
        """The mean of all processes' gradients, in place: one message for all."""
        if self.world == 1:
            return
        grads: Sequence[Any] = [p.grad for p in parameters if p.grad is not None]
        flat = self.torch.cat([g.reshape(-1) for g in grads])
        self.torch.distributed.all_reduce(flat)
        flat /= self.world
        at = 0
        for grad in grads:
            grad.copy_(flat[at : at + grad.numel()].view_as(grad))
            at += grad.numel()

    def end(self) -> None:
        """Leaves the process group when all are done."""
        if self.world > 1:
            self.torch.distributed.barrier(group=self.group)
            self.torch.distributed.destroy_process_group()


def joined(torch: Any, device: str) -> tuple[Ranks, str]:
    """The rank of this process among those that ``torchrun`` started (alone without it), and its
    device.

    Raises ModelError SX1010 if the others cannot be reached, or there is no GPU for this one.
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        return Ranks(), device
    missing = [name for name in ("RANK", "LOCAL_RANK") if name not in os.environ]
    if missing:
        raise ModelError("SX1010", f"WORLD_SIZE is {world}, {missing[0]} is not set: use torchrun")
    rank, local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    cuda = device == "cuda"
    try:
        if cuda:
            torch.cuda.set_device(local)
        torch.distributed.init_process_group("nccl" if cuda else "gloo")
        group = torch.distributed.new_group(backend="gloo")
    except (RuntimeError, ValueError) as error:
        text = " ".join(str(error).split())[:200]
        raise ModelError("SX1010", f"process {rank} of {world}: {text}") from None
    return Ranks(rank, world, group, torch), f"cuda:{local}" if cuda else device


__all__ = ["Ranks", "joined"]
