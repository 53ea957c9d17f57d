"""``python -m tools.site FOLDER``: the documentation as a static, searchable site (extra ``docs``).

Every warning of Sphinx is an error.  ``--stage FOLDER`` keeps the Markdown that it reads.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tools.site import build


def main() -> int:
    """The exit status: Sphinx's own, 2 where it is not installed."""
    parser = argparse.ArgumentParser(prog="python -m tools.site", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the site is written")
    parser.add_argument("--stage", type=Path, help="keep what Sphinx reads here")
    given = parser.parse_args()
    if not build.is_possible():
        print("tools.site: Sphinx is missing: pip install '.[docs]'", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as made:
        stage = given.stage or Path(made) / "stage"
        shutil.rmtree(stage, ignore_errors=True)
        build.write(stage)
        return build.sphinx(stage, given.folder)


if __name__ == "__main__":
    sys.exit(main())
