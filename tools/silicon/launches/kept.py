"""What is kept of a run: a digest of each case's memory, and the forms that were reached.

``fixtures/silicon/sm_90/launches/digests.txt``: a line a case, ``digest name``; only cases that the
repository can make again.  ``fixtures/coverage/launched.txt``: a line a form of control flow or
hint, ``launches all apart mixed none form``: in how many launches whose memory was the
interpreter's it was executed, and by how many warps, how (:data:`.interpreted.OUTCOMES`).
"""

from __future__ import annotations

import json
from pathlib import Path

from coverage_tables import LAUNCHED

from .cases import OWN, cases

DIGESTS = OWN / "digests.txt"


def write(results: Path) -> str:
    """From the lines of a run."""
    forms: dict[str, list[int]] = {}
    digests: list[str] = []
    again = {c.name for c in cases() if not c.where.startswith("file:build")}
    count = 0
    for text in results.read_text().splitlines():
        line = json.loads(text)
        if line["verdict"] != "equal":
            continue
        count += 1
        for form, outcomes in line["forms"].items():
            into = forms.setdefault(form, [0] * 5)
            for at, n in enumerate((1, *outcomes)):
                into[at] += n
        if line["name"] in again and "digest" in line and "payload" not in line:
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
