"""What a declaration of the operator suite says: an operator, its inputs, dtypes and tolerance.

    Op("add", "a + b", ("n 33 17", "n 33 17"), NUMERIC, EXACT)

The call is a Python expression over the inputs ``a``, ``b``, ... with the names ``torch``, ``F``
(torch.nn.functional), ``dt`` (the case's dtype) and ``dev`` (the device's name), and with ``grad``,
``step`` and ``attention`` of `child`.  An input is a kind and a shape:

    n   normal numbers; integers -50 to 50; booleans at random
    p   positive: 0.1 to 3; integers 1 to 9
    u   between -0.95 and 0.95
    e   as n, with the type's edges: infinities, NaN, -0, denormals; the least and greatest integers
    d   distinct values in random order
    s   a symmetric positive definite matrix
    w   as n, divided by the square root of the last length: weights
    iK  int64 indices from 0 to K - 1, whatever the dtype
    f   normal numbers in float32, whatever the dtype
    m   booleans, whatever the dtype

A tolerance is in units of the result dtype's spacing at 1 (eps): |result - CPU's| is at most
units * eps * (|CPU's| + largest), where largest is the greatest finite |CPU's| of the tensor if
``of`` is "largest", else 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

INTS = ("i32", "i64", "i16", "i8", "u8")
FLOATS = ("f32", "f16", "f64", "bf16")
NUMERIC = (*FLOATS, "i32", "i64", "u8")
EVERY = (*FLOATS, *INTS, "b1", "c64")
COMPLEX = ("c64", "c128")
F32 = ("f32", "f64")
F16 = ("f32", "f16", "bf16")

TYPES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "i8": "int8",
    "u8": "uint8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "b1": "bool",
    "c64": "complex64",
    "c128": "complex128",
}
"""The short names of dtypes, and torch's."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a result may be from the CPU's, and why it may be."""

    units: float
    of: Literal["element", "largest"]
    reason: str


EXACT = Tolerance(0, "element", "copies, integers, or operations that IEEE 754 rounds correctly")
ROUNDED = Tolerance(
    2, "element", "the CPU's vector code may round twice or fuse where CUDA's does not"
)
LIBRARY = Tolerance(8, "element", "libdevice and SLEEF are each within 4 units of the true value")
FAST = Tolerance(
    64, "largest", "cancellation in a formula of several roundings, in another order on the CPU"
)
SUMS = Tolerance(32, "largest", "the order of a sum of up to 1,000 terms")
PRODUCTS = Tolerance(64, "largest", "the order of a dot product, with or without fused operations")
SOLVED = Tolerance(
    1000, "largest", "another factorisation; matrices have condition numbers of up to 100"
)
LOOSE = Tolerance(
    1000, "largest", "a series or continued fraction that the two implementations end differently"
)
H200_ONLY = Tolerance(
    -1, "element", "no CPU equivalent (random numbers): shape and dtype, and the H200's bits"
)


@dataclass(frozen=True, slots=True)
class Op:
    """One operator: its cases are one for each dtype."""

    name: str
    call: str
    inputs: tuple[str, ...]
    dtypes: tuple[str, ...]
    tolerance: Tolerance


@dataclass(frozen=True, slots=True)
class Case:
    """An operator with a dtype."""

    op: Op
    dtype: str

    @property
    def id(self) -> str:
        """Its name in results: operator and dtype."""
        return f"{self.op.name}/{self.dtype}"


def each(
    names: str, call: str, inputs: tuple[str, ...], dtypes: tuple[str, ...], tolerance: Tolerance
) -> tuple[Op, ...]:
    """The same declaration for several functions: ``NAME`` in the call stands for each."""
    return tuple(
        Op(name, call.replace("NAME", name), inputs, dtypes, tolerance) for name in names.split()
    )
