"""The prompt of a model, as words."""

from __future__ import annotations

from dataclasses import replace

from sassxlate.disasm.sass.instruction import RegRef
from sassxlate.errors import EncodeError
from sassxlate.llm.language.older_forms.restate import has_macros, restated
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.region import Region
from sassxlate.lowering.region.text import RegionText, region_text


def question_words(
    block: Region,
    regs: RegisterMap,
    live_out: frozenset[RegRef],
    exact: RegionText | None = None,
) -> RegionText:
    """The question for a block as a model gets it: in forms of sm_80 and sm_90 if those of a later
    architecture have equivalents, and no macro is among them; ``exact`` is the exact question if it
    is at hand.  Raises EncodeError as :func:`region_text`."""
    known = None if has_macros(block) else restated(block, regs, live_out)
    if known is not None:
        try:
            return replace(region_text(known.block, regs, live_out, known), block=block)
        except EncodeError:  # too many names
            pass
    return exact or region_text(block, regs, live_out)
