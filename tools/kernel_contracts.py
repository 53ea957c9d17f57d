"""What each kernel of ``fixtures/kernels`` computes: see ``runtime_shim/selftest_contracts.py``.

It is part of the package, for ``sassxlate selftest``.
"""

import sys
from pathlib import Path

# Where the package is not installed, as on a machine that has only a GPU and NumPy.
sys.path.append(str(Path(__file__).resolve().parent.parent))

from sassxlate.runtime_shim.selftest_contracts import CONTRACTS, Contract

__all__ = ["CONTRACTS", "Contract"]
