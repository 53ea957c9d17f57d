"""The results of the passes, up to the selected code: frozen values, each with all that the next
pass needs.  :mod:`sassxlate.lowering.pipeline` has the passes in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sassxlate.cfg import Cfg, Liveness, Uniformity
from sassxlate.disasm.containers.values import Cubin, Kernel
from sassxlate.disasm.rdna3.instruction import Item
from sassxlate.lowering.abi.kernarg import LaunchInfo
from sassxlate.lowering.builder.kernel_builder import Spans
from sassxlate.lowering.convergence.plan import ConvergencePlan
from sassxlate.lowering.nans.bits import NanBits
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.region import RegionSite
from sassxlate.lowering.target import Target


@dataclass(frozen=True, slots=True)
class Source:
    """A kernel of a cubin, by name, and the processor that it is for.  ``placed``: each lane is
    followed through the code between blocks, too, when that is selected
    (lane_checks/between_blocks.py: slowly)."""

    cubin: Cubin
    name: str
    target: Target
    placed: bool = False


@dataclass(frozen=True, slots=True)
class Linked:
    """The kernel with the functions that it calls, and the addresses of its module."""

    kernel: Kernel
    target: Target
    placed: bool = False


@dataclass(frozen=True, slots=True)
class Graphed:
    """The control-flow graph of its decoded instructions."""

    kernel: Kernel
    cfg: Cfg
    target: Target
    placed: bool = False


@dataclass(frozen=True, slots=True)
class Analysed:
    """Facts about each block and instruction.  ``unread``: offsets of the instructions whose
    results no instruction reads."""

    kernel: Kernel
    cfg: Cfg
    live: Liveness
    uniformity: Uniformity
    unread: frozenset[int]
    nans: NanBits
    target: Target
    placed: bool = False


@dataclass(frozen=True, slots=True)
class Planned:
    """The points where lanes wait, and the lanes that they wait for."""

    analysed: Analysed
    plan: ConvergencePlan


@dataclass(frozen=True, slots=True)
class Allocated:
    """The register map.  ``temporaries``: VGPRs that it must at least keep free.  ``bank_table``
    has for each constant bank the offset of its pointer in the kernarg segment."""

    planned: Planned
    regs: RegisterMap
    launch: LaunchInfo
    bank_table: Mapping[int, int]
    temporaries: int


@dataclass(frozen=True, slots=True)
class Selected:
    """A kernel before waits and hazards.  ``vgprs`` counts those of the map and the temporaries
    that
    the code takes; ``spans`` the code of each SASS instruction, see :class:`Spans`; none after the
    check of lanes, which is the last to need them."""

    allocated: Allocated
    items: tuple[Item, ...]
    launch: LaunchInfo
    vgprs: int
    uses_private: bool
    rules_used: tuple[tuple[str, int], ...]
    pieces: tuple[RegionSite, ...]
    spans: Spans

    @property
    def kernel(self) -> Kernel:
        return self.allocated.planned.analysed.kernel

    @property
    def plan(self) -> ConvergencePlan:
        return self.allocated.planned.plan

    @property
    def regs(self) -> RegisterMap:
        return self.allocated.regs

    @property
    def nans(self) -> NanBits:
        return self.allocated.planned.analysed.nans
