"""RDNA3's encodings as typed values, loaded from the generated ``opcodes.json``.

Five readers share these rows: the encoder, the decoder, the text, the reads and writes, and the
meanings (looked up by mnemonic).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from sassxlate.errors import EncodeError

TABLE_PATH: Final = Path(__file__).with_name("opcodes.json")


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand of an instruction, in LLVM's print order.

    ``role`` is ``r``, ``w`` or ``rw``.  ``cls`` is the class of allowed values: ``v`` a VGPR,
    ``src`` anything, ``s`` a scalar or a constant, ``sd`` a scalar register, ``sx`` one other than
    m0, ``vi`` a VGPR or an inline constant, ``i`` a literal.  ``n`` counts 32-bit registers.

    ``type`` is ``f16``, ``f32``, ``f64``, ``i16`` ... ``u64``, ``b8`` ... ``b512``, ``pk_f16``,
    ``pk_f16x2`` (constants in both halves), ``pk_b16``, ``pk_bf16``, ``mask`` (a lane mask: 32 bits
    in wave32), ``lane`` (a lane's number) or ``mix`` (f32 or f16, chosen by op_sel_hi).
    """

    field: str
    role: str
    cls: str
    n: int
    type: str

    @property
    def half(self) -> bool:
        """Whether the operand is 16 bits of a register, the half chosen by ``op_sel``."""
        return self.type in HALF_TYPES


HALF_TYPES: Final = frozenset({"f16", "bf16", "i16", "u16", "b16"})


@dataclass(frozen=True, slots=True)
class Field:
    """A bit field: ``kind`` is v, src, s, sd, sb (index / 2), sq (index / 4) or i (plain)."""

    kind: str
    lo: int
    width: int

    @property
    def mask(self) -> int:
        """Ones over the field's width, unshifted."""
        return (1 << self.width) - 1


@dataclass(frozen=True, slots=True)
class Format:
    """An encoding format: size in bytes, fixed bits, the opcode's place and the fields."""

    name: str
    size: int
    mask: int
    value: int
    op: Field
    fields: dict[str, Field]


@dataclass(frozen=True, slots=True)
class OpInfo:
    """The table's data on one mnemonic (without ``_e32``/``_e64``).

    ``kind`` is the unit and role: ``salu``, ``branch``, ``jump`` (PC in a register), ``wait``,
    ``barrier``, ``end``, ``message``, ``mode`` (writes MODE), ``hint``, ``smem``, ``inv`` (cache
    invalidation), ``valu``, ``lds``, ``flat``, ``global``, ``scratch``, ``buffer``, and of graphics
    ``interp``, ``ldsdir``, ``export``.  ``forms`` maps a format
    to the opcode there.  ``reads`` and ``writes`` are the implicit ones: scc, vcc, exec, m0, mode.
    ``load``/``store``/``atomic`` hold for lds, flat, global, scratch, buffer and smem; an atomic
    that returns the old value has ``glc`` set (LDS: has an operand ``vdst``).
    """

    op: str
    kind: str
    args: tuple[Operand, ...]
    forms: dict[str, int]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    flags: frozenset[str]
    load: bool
    store: bool
    atomic: bool
    formats: tuple[str, ...]  # the names of ``forms``, shortest first

    @property
    def is_trans(self) -> bool:
        """Whether the transcendental unit executes it (hazard: its result is late)."""
        return "trans" in self.flags

    @property
    def mixed(self) -> bool:
        """Whether it is v_fma_mix*, whose sources are f32 or f16 each."""
        return "mixed" in self.flags

    @property
    def is_wmma(self) -> bool:
        """Whether it is a matrix multiply."""
        return "wmma" in self.flags

    @property
    def is_vopd(self) -> bool:
        """Whether it is one half of a dual-issue instruction."""
        return "VOPD" in self.forms


def _access(op: str, kind: str, args: tuple[Operand, ...], flags: frozenset[str]) -> list[bool]:
    """(load, store, atomic) of a memory instruction."""
    if kind == "smem":
        return [bool(args) and args[0].role == "w", False, False]
    if kind not in ("lds", "flat", "global", "scratch", "buffer"):
        return [False, False, False]
    lane_exchange = op.startswith(("ds_swizzle", "ds_permute", "ds_bpermute"))
    if lane_exchange or op.startswith(("ds_nop", "ds_gws")):
        return [False, False, False]
    if "atomic" in flags:
        return [False, False, True]
    return ["_load_" in op, "_store_" in op, False]


def _row(op: str, raw: dict[str, Any]) -> OpInfo:
    args = tuple(
        Operand(f, r, c, int(n), t)
        for f, r, c, n, t in (item.split(":") for item in raw["args"].split())
    )
    flags = frozenset(raw.get("flags", ()))
    load, store, atomic = _access(op, raw["kind"], args, flags)
    reads, writes = tuple(raw.get("reads", ())), tuple(raw.get("writes", ()))
    forms: dict[str, int] = raw["forms"]
    access = load, store, atomic
    return OpInfo(op, raw["kind"], args, forms, reads, writes, flags, *access, tuple(forms))


@cache
def _images() -> dict[int, str]:
    data = json.loads(TABLE_PATH.read_text(encoding="utf-8"))
    return {int(opcode): name for opcode, name in data["images"].items()}


@cache
def _load() -> tuple[dict[str, Format], dict[str, OpInfo]]:
    data = json.loads(TABLE_PATH.read_text(encoding="utf-8"))
    formats = {
        name: Format(
            name,
            row["size"],
            row["mask"],
            row["value"],
            Field("i", *row["op"]),
            {k: Field(*v) for k, v in row["fields"].items()},
        )
        for name, row in data["formats"].items()
    }
    return formats, {op: _row(op, raw) for op, raw in data["ops"].items()}


FORMATS: Final[dict[str, Format]] = _load()[0]
OPS: Final[dict[str, OpInfo]] = _load()[1]
IMAGES: Final[dict[int, str]] = _images()  # opcode to name, for the error that refuses them


def info(op: str) -> OpInfo:
    """The table's row for a mnemonic.

    Raises:
        EncodeError: SX0501, RDNA3 has no such instruction.
    """
    row = OPS.get(op)
    if row is None:
        raise EncodeError("SX0501", f"RDNA3 has no instruction {op!r}")
    return row
