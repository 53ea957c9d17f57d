"""The names of the sites that nvcc's ptxas writes for quotients and roots, by what they compute.

`known.json` has the digests of :meth:`.sites.Site.digests`.  `tools/generate/idioms.py` writes it
from what ptxas assembles, and compares each expression's values with the correctly rounded results.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path


@cache
def known() -> Mapping[str, str]:
    """By digest: FDIV, FRCP, FSQRT, DDIV, DRCP or DSQRT, rounded to nearest, denormals kept, or
    UDIV64, UREM64, SDIV64 or SREM64, or those of 32 bits, which `inline` looks for."""
    data = json.loads(Path(__file__).with_name("known.json").read_text("utf-8"))
    return {digest: name for name, some in data["digests"].items() for digest in some}


__all__ = ["known"]
