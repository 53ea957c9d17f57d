"""The launches: a cubin, one of its kernels, a shape and seeded inputs.

All kernels have the parameters (const u32 *a, const u32 *b, u32 *out, int n).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.sass.codec.assembler import assemble_listing
from sassxlate.runtime_shim.selftest.contracts.contracts import CONTRACTS
from tests.disasm.sass.interpreter import generated_cuda
from tools.silicon.launches import dressed, own, programs
from tools.silicon.warps.inputs import hashed

ROOT = Path(__file__).resolve().parents[3]
KERNELS = ROOT / "fixtures" / "kernels" / "sm_90"
OWN = ROOT / "fixtures" / "silicon" / "sm_90" / "launches"
CUDA = ROOT / "build" / "launches"  # what nvcc made of generated_cuda, not kept
SEEDS = {"random": 140, "jumps": 60, "saving": 40, "yielding": 100, "meeting": 100}
CUDA_SEEDS = 12
Words = NDArray[np.uint32]
Shape = tuple[int, int, int]

# Results or sources are ready late: scoreboard 0 or 1, which the next instruction waits for.
_LATE = frozenset(
    "S2R S2UR LDC LDG LD LDS LDL POPC FLO BREV SHFL MATCH REDUX VOTEU R2UR ATOMG ATOMS ATOM B2R "
    "LDGDEPBAR ELECT FENCE".split()
)
_LATE_SOURCES = frozenset("STG ST STS STL REDG BAR".split())


def scheduled(text: str) -> list[str]:
    """A listing whose instructions wait for all before them; those with brackets stay."""
    out: list[str] = []
    for line in text.splitlines():
        if not line or line.endswith(":") or line.startswith("["):
            out += [line] if line else []
            continue
        words = line.split()
        name = words[1 if words[0].startswith("@") else 0]
        head, read, write = name.partition(".")[0], "-", "-"
        if name.startswith("BMOV"):
            read, write = ("1", "-") if "CLEAR" not in name else ("-", "0")
        elif head in _LATE:
            write = "0"
        elif head in _LATE_SOURCES or name.startswith("CCTL.E"):
            read = "1"
        out.append(f"[B012345:R{read}:W{write}:Y:S15] {line.removesuffix(';').rstrip()} ;")
    return out


@cache
def template() -> tuple[bytes, int, int]:
    """The cubin, where its code is and how long it is."""
    data = (OWN / "template.cubin").read_bytes()
    (kernel,) = parse_cubin(data).kernels
    return data, data.index(kernel.code), len(kernel.code)


def with_code(text: str) -> bytes:
    """One of our cubins with a listing as its code."""
    return with_scheduled(assemble_listing(scheduled(text), 90)[""])


def with_scheduled(code: bytes) -> bytes:
    """The same, of instructions."""
    data, at, room = template()
    assert len(code) <= room, len(code)
    nop = assemble_listing(["[B------:R-:W-:Y:S15] NOP ;"], 90)[""]
    code += nop * ((room - len(code)) // 16)
    return data[:at] + code + data[at + room :]


@dataclass(frozen=True, slots=True)
class Case:
    """``where``: what :meth:`cubin` makes the cubin of; ``traps``: the launch ends in a trap."""

    name: str
    where: str
    kernel: str
    grid: int
    block: int
    n: int
    shared: int = 0
    traps: bool = False

    def cubin(self) -> bytes:
        kind, _, rest = self.where.partition(":")
        match kind:
            case "file":
                return (ROOT / rest).read_bytes()
            case "own":
                return with_code(dict(own.kernels())[rest])
            case _:
                return with_code(dressed.kernel(int(rest), kind))

    @property
    def shape(self) -> tuple[Shape, Shape]:
        """The shape of the grid and of a block."""
        return (self.grid, 1, 1), (self.block, 1, 1)

    def arguments(self, places: Sequence[int]) -> list[bytes]:
        """With the memory of :meth:`inputs` at ``places``."""
        return [*(at.to_bytes(8, "little") for at in places), self.n.to_bytes(4, "little")]

    def params(self, places: Sequence[int]) -> bytes:
        """The same as one piece of the constant bank."""
        return b"".join(self.arguments(places))

    def inputs(self) -> tuple[Words, ...]:
        """``a``, ``b`` and ``out`` before the launch."""
        threads = self.grid * self.block
        seed = int.from_bytes(self.name.encode(), "little") % (1 << 31)
        if self.kernel in CONTRACTS:
            contract = CONTRACTS[self.kernel]
            a, b = contract.inputs(int(self.name.rpartition("#")[2]))
            return a, b, np.full(contract.out_words, contract.start, np.uint32)
        many = generated_cuda.WORDS if self.kernel.startswith("fuzz") else own.WORDS
        words = hashed(seed, 2, 2 * threads).astype(np.uint32)
        a, b = words
        some = hashed(seed + 1, 2 * threads) % np.uint64(5)
        a = a >> np.array([0, 0, 5, 20, 28], np.uint32)[some]
        out = np.full(threads * many, 0xABCD, np.uint32)
        return a, b, out


@dataclass(frozen=True, slots=True)
class Recorded:
    """A launch of a program, kept in a file (:mod:`.programs`)."""

    name: str
    path: Path
    about: Mapping[str, Any]
    where: str = "file:build"
    traps: bool = False

    @property
    def kernel(self) -> str:
        return str(self.about["kernel"])

    @property
    def shared(self) -> int:
        return int(self.about["shared"])

    @property
    def shape(self) -> tuple[Shape, Shape]:
        grid, block = (tuple(map(int, self.about[key])) for key in ("grid", "block"))
        return (grid[0], grid[1], grid[2]), (block[0], block[1], block[2])

    def _part(self, name: str) -> bytes:
        with np.load(self.path) as data:
            return bytes(data[name].tobytes())

    def cubin(self) -> bytes:
        return self._part("cubin")

    def inputs(self) -> tuple[Words, ...]:
        many = 1 + max((piece for _, piece, _ in self.about["pointers"]), default=-1)
        parts = [self._part(f"piece{n}") for n in range(many)]
        return tuple(np.frombuffer(p + bytes(-len(p) % 4), np.uint32).copy() for p in parts)

    def params(self, places: Sequence[int]) -> bytes:
        out = bytearray(self._part("params"))
        pointers: list[tuple[int, int, int]] = self.about["pointers"]
        for at, piece, offset in pointers:
            out[at : at + 8] = (places[piece] + offset).to_bytes(8, "little")
        return bytes(out)

    def arguments(self, places: Sequence[int]) -> list[bytes]:
        whole = self.params(places)
        (kernel,) = (k for k in parse_cubin(self.cubin()).kernels if k.name == self.kernel)
        parts = sorted(kernel.params, key=lambda p: p.index)
        return [whole[p.offset : p.offset + p.size] for p in parts]


AnyCase: TypeAlias = Case | Recorded


def _own() -> Iterator[Case]:
    for name, _ in own.kernels():
        yield Case(name, f"own:{name}", "launch_probe", 3, own.THREADS, 0, traps=name[-1] == "-")


# Of fixtures/silicon/sm_90/launches/effects.cu: threads per block.
_EFFECTS = {
    "copy_groups": 128, "memory_barriers": 128, "dependent": 96, "asserted": 64,
    "counted_barriers": 128,
}  # fmt: skip
LINKED = ("calls", "function_pointers", "mutual_recursion")  # built with -rdc


def cases() -> list[AnyCase]:
    """All that can be launched here; names are unique."""
    found: list[AnyCase] = []
    for name, contract in CONTRACTS.items():
        shape = contract.grid, contract.block, contract.n, contract.shared_bytes
        folder = KERNELS.relative_to(ROOT)
        found += [Case(f"{name}#{s}", f"file:{folder}/{name}.cubin", name, *shape) for s in (0, 1)]
        if name in LINKED:
            file = f"file:{OWN.relative_to(ROOT)}/{name}.cubin"
            found += [Case(f"linked {name}#{s}", file, name, *shape) for s in (0, 1)]
    effects = OWN / "effects.cubin"
    for kernel in parse_cubin(effects.read_bytes()).kernels:
        block = _EFFECTS.get(kernel.name, 64)
        file = f"file:{effects.relative_to(ROOT)}"
        found.append(Case(f"effects {kernel.name}", file, kernel.name, 4, block, 64))
    found += _own()
    for kind, count in SEEDS.items():
        for seed in range(count):
            if not dressed.settled(seed, kind):
                continue
            found.append(Case(f"{kind} {seed}", f"{kind}:{seed}", "launch_probe", 2, 80, 160))
    for path in sorted(CUDA.glob("cuda*.cubin")):
        file = f"file:{path.relative_to(ROOT)}"
        for kernel in parse_cubin(path.read_bytes()).kernels:
            found.append(Case(f"{path.stem} {kernel.name}", file, kernel.name, 3, 96, 288))
    for name, about in programs.kept(CUDA / "programs"):
        path = CUDA / "programs" / f"{name}.npz"
        found.append(Recorded(f"program {name}", path, about))
    return found
