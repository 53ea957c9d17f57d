"""Features of an instruction for comparing blocks, from strict to vague.

:func:`normal_form` drops register names and constant values and nothing else: two instructions
are equal under it if they do the same to other operands.  :func:`fingerprint` adds vaguer features,
which find the block that another compiler or architecture made of the same source.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

_NUMBER = re.compile(r"[-+]?\b0x[0-9a-f]+\b|(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?\b")
_REGISTER = re.compile(r"\b(UR|UP|R|P|B)\d+\b|\b([vs])(?:\d+|\[\d+:\d+\])")
_CONSTANT = re.compile(r"c\[[^\]]*\]\[[^\]]*\]")
_SPECIAL = re.compile(r"\bSR_\w+(?:\.\w+)?")
# Hints, and spellings of the same operand on another architecture or in another encoding.
_NOISE = re.compile(
    r"\bdesc\[\w+\](?=\[)|\.reuse|_e32|_e64|\.RELIABLE|\.RECONVERGENT|\.DEFER_BLOCKING"
)
_TABLE = re.compile(r"\bU?LOP3\.LUT\b.*, (0x[0-9a-f]+)(?=, !?U?P\w$)|\bU?PLOP3\.LUT\b")
# Mnemonics that compilers choose between for the same work: the longest matching prefix counts,
# without the U of the uniform data path.
_SAME: Mapping[str, str] = {
    "IMAD.MOV": "MOV", "IMAD.U32": "MOV", "LDC": "MOV", "LDCU": "MOV", "CS2R.32": "MOV",
    "R2UR": "MOV", "IMAD.IADD": "ADD", "IMAD.X": "ADD", "IADD3": "ADD", "IADD": "ADD",
    "VIADD": "ADD", "IMAD.SHL": "SHL", "SHF.L": "SHL", "SHL": "SHL", "SYNC": "BSYNC",
    "REDG": "RED", "ATOMG": "ATOM", "VOTEU": "VOTE", "VIMNMX": "IMNMX", "SYNCS": "ATOMS",
    "s_call_b64": "CALL", "s_swappc_b64": "CALL",
    # How the lanes that a shuffle or a vote needs are gathered: sm_80 calls a function for it.
    "WARPSYNC.COLLECTIVE": "CALL", "ENDCOLLECTIVE": "RET",
}  # fmt: skip
_ZERO_PRODUCT = re.compile(r"^HFMA2(?:\.MMA)? \w+, -RZ, RZ,")
_PLAIN = frozenset({"MOV", "NOP", "YIELD", "S_NOP", "S_WAITCNT", "S_DELAY_ALU"})
_TARGETS = ("BRA", "BSSY", "CALL", "JMP", "WARPSYNC", "s_branch", "s_cbranch", "s_call", "BRX")
_COMMON = frozenset({"0x0", "0x1", "0x2", "0x4", "0", "1", "2", "4", "-0x1", "-1", "0xffffffff"})


def normal_form(text: str) -> str:
    """An instruction without register names, constant values and addresses.

    Its operation stays: modifiers, signs and complements, RZ and PT, truth tables.
    """
    text = _CONSTANT.sub("c", _NOISE.sub("", text))
    table = _TABLE.search(text)
    text = _REGISTER.sub(lambda m: m[1] or m[2], text)
    if table is None:
        return _NUMBER.sub("n", text)
    return f"{_NUMBER.sub('n', text)} {table[1]}" if table[1] else text


def family(text: str) -> tuple[str, tuple[str, ...]]:
    """The family of an instruction (without its guard), and its modifiers."""
    if _ZERO_PRODUCT.match(text):
        return "MOV", ()
    whole = _NOISE.sub("", text.split(" ", 1)[0])
    if whole.startswith("U") and whole.split(".")[0] != "U":
        whole = whole[1:]
    parts = whole.split(".")
    for n in range(len(parts), 0, -1):
        said = _SAME.get(".".join(parts[:n]))
        if said is not None:
            return said, tuple(parts[n:])
    return parts[0], tuple(parts[1:])


def is_call(text: str) -> bool:
    """Whether control goes to a function and returns to the next instruction."""
    return family(text.split(" ", 1)[-1] if text.startswith("@") else text)[0] == "CALL"


@lru_cache(maxsize=1 << 16)
def fingerprint(text: str) -> tuple[tuple[str, float], ...]:
    """Features of an instruction, each with its weight."""
    guard, body = text.split(" ", 1) if text.startswith("@") and " " in text else ("", text)
    name, modifiers = family(body)
    much = 0.3 if name.upper() in _PLAIN else 1.0
    found = [(normal_form(text), much), (f"~{name}", much)]
    found += [(f"~{name}.{m}", 0.4 * much) for m in modifiers]
    found += [(f".{m}", 0.3) for m in modifiers if len(m) > 3]
    if guard:
        found.append((f"@{name}", 0.3))
    found += [(m[0], 1.0) for m in _SPECIAL.finditer(body)]
    if not body.startswith(_TARGETS):
        values = _NUMBER.findall(_CONSTANT.sub("c", body))
        found += [(f"#{v.lstrip('+')}", 0.4) for v in values if v.lstrip("+") not in _COMMON]
    return tuple(found)
