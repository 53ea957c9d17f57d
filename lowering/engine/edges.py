"""The code between blocks, shorter, and remembered like answers: what was found, by canonical form,
and apart from that its proof, in the store of proofs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from sassxlate.disasm.rdna3.instruction import Item
from sassxlate.errors import EncodeError
from sassxlate.lowering.engine.memo import Memo
from sassxlate.lowering.optimize.masks.canonical import canonical, read_result, result_words
from sassxlate.lowering.optimize.masks.simplify import STEPS, simplified
from sassxlate.lowering.select.stages import Selected
from sassxlate.lowering.verify.masks.operations import Unfollowed
from sassxlate.lowering.verify.steps.region_proofs import RegionProofs
from sassxlate.lowering.verify.verdict import Proved

_FORMAT: Final = 1  # changes with what is looked for, and with how a result is said


def shorter(selected: Selected, memo: Memo, proofs: RegionProofs | None) -> tuple[Item, ...] | None:
    """A kernel's code with shorter code between its blocks; None if none was found and proved.

    What was remembered is taken where its proof was, too; else it is looked for again.
    """
    items = selected.items
    try:
        text = canonical(items, selected.regs, selected.plan.cfg)
    except Unfollowed:
        return None
    key = hashlib.blake2b(f"edges {_FORMAT} {STEPS}\0{text}".encode(), digest_size=16).hexdigest()
    known = memo.find(key)
    if known is not None:
        found = _known(known, items, text, proofs)
        if found is not None:
            return found[0]
    made = simplified(items, selected.regs, selected.plan.cfg)
    if made is None:
        memo.keep(key, [])
        return None
    try:
        words = result_words(made.items, items)
        if read_result(words, items) != made.items:
            return made.items
    except EncodeError:
        return made.items
    memo.keep(key, [words])
    if proofs is not None:
        proofs.keep(_statement(text, words), Proved(()))
    return made.items


def _known(
    known: Sequence[tuple[str, ...]], items: Sequence[Item], text: str, proofs: RegionProofs | None
) -> tuple[tuple[Item, ...] | None] | None:
    """What is remembered, in a tuple; None if it has no proof, or cannot be read."""
    if not known:
        return (None,)
    (words,) = known
    if proofs is None or proofs.find(_statement(text, words)) is None:
        return None
    try:
        return (read_result(words, items),)
    except EncodeError:
        return None


def _statement(text: str, words: Sequence[str]) -> str:
    """What was proved: that this code runs the same lanes as that one."""
    return f"lanes\n{text}\n=> {' '.join(words)}"


__all__ = ["shorter"]
