"""One recorded dispatch, run again in this process: ``child RECORD CHECKOUT OPTIONS``, where the
options are `asked.Asked` as JSON.

Prints a line of JSON: how many words differ, the first of them, and what single instructions did.
Exit status 75: an address is taken in this process, and another one may be luckier.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from tools.witness.executor import memory, record

TAKEN = 75
_SHOWN = 8
_WAVES = 4


def main() -> None:
    file, checkout, options = sys.argv[1:]
    dispatch = record.read(Path(file))
    try:
        memory.place(dispatch)
    except memory.TakenError:
        raise SystemExit(TAKEN) from None
    from tools.witness.executor.single import Singles
    from tools.witness.executor.tinygrad import run

    asked = json.loads(options)
    singles = Singles(
        asked["often"], frozenset(asked["correct"]), asked["attribute"], frozenset(asked["waves"])
    )
    run(dispatch, Path(checkout), singles)
    words = memory.differences(dispatch)
    writers = (singles.stored.get(word.address) for word in words)
    print(
        json.dumps(
            {
                "kernel": dispatch.kernel,
                "groups": dispatch.groups,
                "workgroup": dispatch.workgroup,
                "differ": len(words),
                "words": [asdict(word) for word in words[:_SHOWN]],
                "waves": list(dict.fromkeys(w for w in writers if w is not None))[:_WAVES],
                "wrong": [asdict(one) for one in singles.wrong],
                "near": [asdict(one) for one in singles.near],
                "looked_at": singles.counts.total(),
                "unknown": dict(singles.unknown),
                "corrected": dict(singles.corrected),
            }
        )
    )


if __name__ == "__main__":
    main()
