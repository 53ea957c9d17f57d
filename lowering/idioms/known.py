"""The names of the sites that nvcc's ptxas writes for quotients and roots, by what they compute.

`known.json` has the digests of :meth:`.sites.Site.digests`.  `tools/generate/idioms.py` writes it
from what ptxas assembles, and compares each expression's values with the correctly rounded results.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

BY_WORD: Final = " BY 32"  # ends the name of a 64-bit division whose divisor's high word is 0


@cache
def known() -> Mapping[str, str]:
    """By digest: FDIV, FRCP, FSQRT, DDIV, DRCP or DSQRT, rounded to nearest, denormals kept, or
    UDIV64, UREM64, SDIV64 or SREM64, some of them by 32 bits, or those of 32 bits alone, which
    `inline` looks for."""
    data = json.loads(Path(__file__).with_name("known.json").read_text("utf-8"))
    return {digest: name for name, some in data["digests"].items() for digest in some}


__all__ = ["BY_WORD", "known"]
