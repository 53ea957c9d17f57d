"""Control-flow graphs of SASS kernels, and the analyses built on them."""

from sassxlate.cfg.build import build
from sassxlate.cfg.collective_sections import Collective, Collectives, collectives
from sassxlate.cfg.graph import Block, Cfg, Edge
from sassxlate.cfg.liveness import Liveness, liveness
from sassxlate.cfg.regions import Region, regions
from sassxlate.cfg.uniformity import Uniformity, analyse

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
