# The solver's C functions, of which lowering/verify/made.py uses some.
from typing import Any

def __getattr__(name: str) -> Any: ...
