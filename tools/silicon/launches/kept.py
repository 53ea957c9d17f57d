"""The stored part of a run: a digest of each case's memory, and the forms that were reached.

``fixtures/silicon/sm_90/launches/digests.txt``: a line per case, ``digest name``; only cases that
the repository can make again.  ``fixtures/coverage/launched.txt``: a line per form of control flow
or hint, ``launches all apart mixed none form``: in how many launches whose memory was the
interpreter's it was executed, and by how many warps, how (:data:`.interpreted.OUTCOMES`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tools.coverage.tables import LAUNCHED

from .cases import OWN, cases
from .interpreted import interpreted
from .measure import digest

DIGESTS = OWN / "digests.txt"


def write(results: Sequence[Path]) -> str:
    """From the lines of runs; of a case that was run again the last counts."""
    forms: dict[str, list[int]] = {}
    digests: list[str] = []
    known = {c.name: c for c in cases()}
    count = 0
    lines = (json.loads(text) for path in results for text in path.read_text().splitlines())
    for line in {line["name"]: line for line in lines}.values():
        case = known.get(line["name"])
        if case is None:
            continue
        if line["verdict"] == "differ":  # the interpreter's current result
            left = interpreted(case)
            if digest(left.memory) == line["digest"]:
                line |= {"verdict": "equal", "forms": left.forms}
        if line["verdict"] != "equal":
            print(line["name"], line["verdict"])
            continue
        count += 1
        for form, outcomes in line["forms"].items():
            into = forms.setdefault(form, [0] * 5)
            for at, n in enumerate((1, *outcomes)):
                into[at] += n
        made = not case.where.startswith("file:build")
        if made and "digest" in line and "payload" not in line:
            digests.append(f"{line['digest']} {line['name']}")
    DIGESTS.write_text("\n".join(digests) + "\n")
    LAUNCHED.write_text(
        "".join(f"{' '.join(map(str, n))} {form}\n" for form, n in sorted(forms.items()))
    )
    return f"{count} launches, {len(forms)} forms, {len(digests)} digests"


def digests() -> dict[str, str]:
    """By the name of the case."""
    pairs = (line.split(" ", 1) for line in DIGESTS.read_text().splitlines())
    return {name: digest for digest, name in pairs}


__all__ = ["DIGESTS", "digests", "write"]
