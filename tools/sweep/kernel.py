"""One kernel of the sweep: its text, its launch, and which results its truth holds for."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

THREADS = 128  # of a usual launch: two blocks of 64
GRID, BLOCK = (2, 1, 1), (THREADS // 2, 1, 1)
SEED = 1  # whose truth is kept

HEAD = """typedef unsigned char u8; typedef signed char i8; typedef unsigned short u16; typedef short i16;
typedef unsigned u32; typedef int i32; typedef unsigned long long u64; typedef long long i64;
#define IN(k) in[(k) * 128 + t]
#define IN64(k) ((u64)in[(k) * 128 + 128 + t] << 32 | in[(k) * 128 + t])
#define PUT(k, v) out[(k) * 128 + t] = (v)
#define GET(k) in[(k) * n + t]
#define SET(k, v) out[(k) * n + t] = (v)
#define PUT64(k, v) { u64 put = (v); out[(k) * 128 + t] = (u32)put; out[(k) * 128 + 128 + t] = (u32)(put >> 32); }
"""


def named(shape: str, seed: int, number: int) -> str:
    """A kernel's name, from which its inputs are drawn; those of the kept seed leave it out."""
    return f"{shape}_{number:04d}" if seed == SEED else f"{shape}_s{seed}_{number:04d}"


@dataclass(frozen=True, slots=True)
class Kernel:
    """``text`` defines ``extern "C" __global__ void NAME(const u32 *in, u32 *out, u32 n)``.

    ``in`` holds a stream of 128 words for each letter of ``profiles`` (see :mod:`.inputs`), ``out``
    one of 128 words for each of ``slots``, zero before the launch; ``n`` is 128.  With another
    ``grid`` or ``block`` the launch's number of threads stands for 128.  A slot is
    ``r`` (bits), ``f`` (floats), ``d`` (the low words of doubles, the next slot has the high ones),
    ``E`` (two halves) or ``B`` (two bf16): what a NaN is, when NaNs are compared as such.

    ``holds`` defines where a truth of sm_90 holds: ``all`` (every
    architecture and flags), ``exact`` (the same, but fast-math needs a truth of its own), ``code``
    (on sm_90 with the same flags, for compilers contract as they like).  ``bound`` is the
    largest error of an approximation: its words are kept, not digests.
    """

    name: str
    shape: str
    text: str
    slots: str
    profiles: str
    holds: str = "all"
    bound: str = ""
    headers: tuple[str, ...] = ()
    helpers: str = ""  # device functions that kernels of a group share
    shared: int = 0  # bytes of dynamic shared memory
    cooperative: bool = False
    prints: bool = False
    oldest: int = 75  # the first architecture that has it
    grid: tuple[int, int, int] = GRID
    block: tuple[int, int, int] = BLOCK
    uniform: bool = False  # its inputs are a block's: :mod:`.uniform`

    @property
    def source_crc(self) -> int:
        """CRC-32 of everything that decides the result."""
        said = "\0".join((self.text, self.slots, self.profiles, *self.headers, self.helpers))
        if self._reshaped:
            said += f"\0{self.grid} {self.block}"
        return zlib.crc32(said.encode())

    @property
    def _reshaped(self) -> bool:
        return (self.grid, self.block) != (GRID, BLOCK)

    @property
    def reads_doubles(self) -> bool:
        """Whether it computes with the bits of doubles, so that it is seen which NaN one is."""
        inside = self.text.replace("(u64)__double_as_longlong(", "")
        return any(f in inside for f in ("__double2hiint(", "__double_as_longlong(", "copysign("))

    def launch(self) -> dict[str, object]:
        """The launch for the driver, as JSON."""
        return {
            "name": self.name,
            "slots": self.slots,
            "profiles": self.profiles,
            "shared": self.shared,
            "cooperative": self.cooperative,
            "prints": self.prints,
            "keep": bool(self.bound),
            **({"grid": self.grid, "block": self.block} if self._reshaped else {}),
            **({"uniform": True} if self.uniform else {}),
        }


@dataclass(frozen=True, slots=True)
class Group:
    """Kernels of one shape that are compiled and loaded together."""

    name: str
    kernels: tuple[Kernel, ...] = field(repr=False)

    def source(self, arch: int) -> str:
        """The translation unit for an architecture (kernels that it lacks are left out)."""
        mine = self.on(arch)
        headers = dict.fromkeys(h for kernel in mine for h in kernel.headers)
        lines = [f"#include <{header}>" for header in headers]
        helpers = dict.fromkeys(kernel.helpers for kernel in mine)
        return "\n".join([*lines, HEAD, *helpers, *(kernel.text for kernel in mine)]) + "\n"

    def on(self, arch: int) -> tuple[Kernel, ...]:
        """Those that the architecture has."""
        return tuple(kernel for kernel in self.kernels if arch >= kernel.oldest)
