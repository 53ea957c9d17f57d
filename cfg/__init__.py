"""Control-flow graphs of SASS kernels and the analyses that stand on them."""

from .build import build
from .liveness import Liveness, liveness
from .model import Block, Cfg, Edge
from .uniformity import Region, Uniformity, analyse, regions

__all__ = [
    "Block",
    "Cfg",
    "Edge",
    "Liveness",
    "Region",
    "Uniformity",
    "analyse",
    "build",
    "liveness",
    "regions",
]
