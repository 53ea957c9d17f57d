"""Whether what a program printed agrees with what it printed on an NVIDIA GPU.

What differs between two runs there (timings, mostly) is not compared; nor is what names the device.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest

from sassxlate.disasm.amdgpu_machines import RDNA3

_RELATIVE, _ABSOLUTE = 1e-3, 1e-5
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_TOKEN = re.compile(rf"(?<![\w.]){_NUMBER}(?![\w.])|\S+")
_IS_NUMBER = re.compile(rf"{_NUMBER}\Z")
_EDGES = "()[]{}<>,;:|=%\"'"
# Figures of speed and of the device: their numbers are the machine's.
_TIMING = re.compile(
    r"time|speed|second|elapsed|bandwidth|throughput|latency|took|clock|[kmgt]?flop"
    r"|\b(?:[num]s|us|msec|usec|sec|[gm]i?b/s|[gm]ops|hz|fps)\b|/s(?:ec)?\b|per sec|lookups",
    re.IGNORECASE,
)
_DEVICE = re.compile(
    "|".join(RDNA3) + r"|GPU Device|Emulated card|compute capab|multi-?processors?\b|\bSMs?\b|H200"
    r"|Hopper|Ampere|NVIDIA|compute units|num_?Blocks|occupancy|\bcores\b|host CPUs|memory clock"
    r"|device name|\bpci|OS_System|total memory|\.sm_\d+",
    re.IGNORECASE,
)
# What the libraries below a program say: ours, and a ROCr with assertions, where a program ends
# with streams or events that it has not destroyed.
_OF_LIBRARIES = ("sassxlate:", "Warning: Resource leak detected by SharedSignalPool")
# A program's report of its own error: it must be as small as there, but digits may differ.
_ERROR = re.compile(r"\berror|\brmse?\b|norm\b|deviation|difference", re.IGNORECASE)
_MARGIN, _SMALL = 10, 1e-3


def difference(ours: str, theirs: Sequence[str], ignore: str = "") -> str:
    """Empty if ``ours`` agrees with the runs ``theirs``; otherwise the first lines that do not.

    Lines in which the regular expression ``ignore`` is found are not compared.

    Numbers with a fraction agree to three digits, for sums whose order is open and for
    approximations that differ between makers; all else agrees to the letter.
    """
    skip = re.compile(ignore or r"(?!)")
    mine, *runs = ([line for line in _lines(t) if not skip.search(line)] for t in (ours, *theirs))
    if not runs:
        return ""
    if any(len(run) != len(runs[0]) for run in runs):
        # How much it prints varies there: what every run has must be here.
        common = set(runs[0]).intersection(*runs[1:])
        missing = [line for line in runs[0] if line in common and line not in set(mine)]
        missing = [line for line in missing if not _close_to_any(line, mine)]
        return f"missing: {missing[0]!r}" if missing else ""
    first = _first_difference(mine, runs)
    if not first:
        return ""
    # Blocks print in no order.
    return first if _first_difference(sorted(mine), [sorted(run) for run in runs]) else ""


def _lines(text: str) -> list[str]:
    found: list[str] = []
    for line in re.split(r"[\r\n]+", text):
        plain = " ".join(line.split())
        if plain and not _DEVICE.search(plain) and not plain.startswith(_OF_LIBRARIES):
            found.append(plain)
    return found


def _first_difference(mine: Sequence[str], runs: Sequence[Sequence[str]]) -> str:
    for ours, *theirs in zip_longest(mine, *runs, fillvalue=""):
        if ours == theirs[0] or _same(ours, theirs):
            continue
        return f"{ours!r} for {theirs[0]!r}"
    return ""


def _close_to_any(line: str, others: Sequence[str]) -> bool:
    return any(_same(other, [line]) for other in others)


def _same(ours: str, theirs: Sequence[str]) -> bool:
    timing = any(_TIMING.search(line) for line in theirs)
    mine = _tokens(ours)
    runs = [_tokens(line) for line in theirs]
    if any(len(run) != len(mine) for run in runs):
        varies = len({len(run) for run in runs}) > 1
        return varies or (timing and _words(mine) == _words(runs[0]))
    error = any(_ERROR.search(line) for line in theirs)
    for token, *others in zip(mine, *runs, strict=True):
        if token == others[0] or any(other != others[0] for other in others):
            continue
        if timing and _is_number(token) and _is_number(others[0]):
            continue
        if not _close(token, others[0]) and not (error and _no_larger(token, others[0])):
            return False
    return True


def _no_larger(ours: str, theirs: str) -> bool:
    if not (_IS_NUMBER.match(ours) and _IS_NUMBER.match(theirs)):
        return False
    a, b = abs(float(ours)), abs(float(theirs))
    return a <= max(_MARGIN * b, _ABSOLUTE) and a <= max(b, _SMALL)


def _tokens(line: str) -> list[str]:
    return [token.strip(_EDGES) for token in _TOKEN.findall(line)]


def _words(tokens: Sequence[str]) -> list[str]:
    return [token for token in tokens if not _is_number(token)]


def _is_number(token: str) -> bool:
    return bool(_IS_NUMBER.match(token)) or token in ("nan", "inf", "-nan", "-inf")


def _close(ours: str, theirs: str) -> bool:
    if not (_IS_NUMBER.match(ours) and _IS_NUMBER.match(theirs)):
        return ours.lstrip("-") == theirs.lstrip("-") == "nan"
    if not re.search(r"[.eE]", ours + theirs):
        return False  # integers that differ
    a, b = float(ours), float(theirs)
    return abs(a - b) <= _RELATIVE * max(abs(a), abs(b)) + _ABSOLUTE
