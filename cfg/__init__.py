"""Control-flow graphs of SASS kernels and the analyses that stand on them."""

from .build import build
from .collective import Collective, Collectives, collectives
from .liveness import Liveness, liveness
from .model import Block, Cfg, Edge
from .regions import Region, regions
from .uniformity import Uniformity, analyse

__all__ = [
    "Block",
    "Cfg",
    "Collective",
    "Collectives",
    "Edge",
    "Liveness",
    "Region",
    "Uniformity",
    "analyse",
    "build",
    "collectives",
    "liveness",
    "regions",
]
