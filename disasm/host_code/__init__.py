"""Machine code of x86-64 host programs: which functions launch which kernels."""

from sassxlate.disasm.host_code.launches import HostGraph, host_graph

__all__ = ["HostGraph", "host_graph"]
