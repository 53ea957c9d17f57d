"""The kernels around a word: one warp per block, a record per lane, 4 KiB of memory per warp.

They fill the code of ``fixtures/silicon/sm_90/warps.cubin`` (ours, nvcc 13.0.88, for its sections,
96 registers, shared memory, stack and constants).  A lane's record is 24 words:

    0-15   R4 to R19: A, B, C and what the destination held before
    16-19  R20, R21: an address; UR14, UR15 (of lane 0): the uniform part of one
    20     predicates P0 to P6; the lanes without P6 skip the word, under BSSY
    21-23  UR8, UR9 (of lane 0; its bit 3 is UP3 too), one not used

and what it leaves eight: R16 to R19, the predicates, UR10, UR11 and UP3 as bit 3.
UR10 and UR11 start as lane 0's R16 and R17.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.sass.codec.assembler import assemble_listing

CUBIN = Path(__file__).resolve().parents[3] / "fixtures" / "silicon" / "sm_90" / "warps.cubin"
RECORD, RESULT = 24, 8  # words per lane
REGION = 4096  # bytes per warp
SHARED_BASE = 0x400  # where a kernel's shared memory begins on sm_90
LOCAL_ROOM = 256  # bytes below the stack's top that the template uses
CONSTANTS = 0x228  # where the kernel's 1 KiB of constants lie in bank 0
SLOT = "slot"
_WAIT = "[B012345:R-:W-:Y:S15]"
_NOP = f"{_WAIT} NOP ;"
# After the word: longer than any instruction without its own barrier takes.
_AFTER = 48

_HEAD = f"""
{_WAIT} ULDC.64 UR12, c[0x0][0x208] ;
[B------:R-:W0:-:S07] S2R R0, SR_CTAID.X ;
[B------:R-:W1:-:S07] S2R R3, SR_LANEID ;
[B------:R-:W2:-:S07] LDC.64 R40, c[0x0][0x210] ;
[B------:R-:W3:-:S07] LDC.64 R42, c[0x0][0x218] ;
[B------:R-:W4:-:S07] LDC.64 R44, c[0x0][0x220] ;
[B------:R-:W5:-:S07] LDC R1, c[0x0][0x28] ;
{_WAIT} LEA R0, R0, R3, 0x5 ;
{_WAIT} IADD3 R1, R1, -{LOCAL_ROOM:#x}, RZ ;
{_WAIT} IMAD.WIDE.U32 R40, R0, {4 * RECORD:#x}, R40 ;
{_WAIT} IMAD.WIDE.U32 R42, R0, {4 * RESULT:#x}, R42 ;
{_WAIT} IMAD.WIDE.U32 R44, R0, {REGION // 32:#x}, R44 ;
"""
_LOADS = [
    f"{_WAIT[:9]}R-:W0:-:S04] LDG.E.128 R{4 + 4 * i}, desc[UR12][R40.64+{16 * i:#x}] ;"
    for i in range(6)
]
_SCALARS = [
    *(f"{_WAIT[:9]}R-:W0:Y:S15] R2UR UR{u}, R{r} ;"
      for u, r in ((14, 22), (15, 23), (8, 25), (9, 26), (10, 16), (11, 17))),
    f"{_WAIT} ULOP3.LUT UP3, URZ, UR9, 0x8, URZ, 0xc0, !UPT ;",
]  # fmt: skip
_TAIL = f"""
{_WAIT} P2R R28, PR, RZ, 0x7f ;
{_WAIT} USEL UR6, URZ, 0x8, !UP3 ;
{_WAIT} MOV R31, UR6 ;
{_WAIT} MOV R29, UR10 ;
{_WAIT} MOV R30, UR11 ;
[B012345:R0:W-:Y:S04] STG.E.128 desc[UR12][R42.64], R16 ;
[B012345:R0:W-:Y:S04] STG.E.128 desc[UR12][R42.64+0x10], R28 ;
"""


_WINDOW = [
    "[B------:R-:W0:-:S07] S2R R47, SR_SWINLO ;",
    "[B------:R-:W1:-:S07] S2R R21, SR_SWINHI ;",
    f"{_WAIT} IADD3 R20, R20, R47, RZ ;",
]
# Waits for asynchronous copies.
_COPIED = ["[B------:R-:W0:-:S02] LDGDEPBAR ;", f"{_WAIT} DEPBAR.LE SB0, 0x0 ;", *[_NOP] * 4]


_SYNCED = {
    op: [f"[B012345:R0:W-:Y:S15] SYNCS.CCTL.{op} ;", *[_NOP] * 4, f"{_WAIT} NANOSLEEP 0x3e8 ;"]
    for op in ("IVALL", "WBALL")
}


def _copies(load: str, store: str) -> list[str]:
    """Eight quads from one place to another; ``{}`` is the offset."""
    out: list[str] = []
    for i in range(8):
        out.append(f"[B012345:R-:W0:-:S04] {load.format(f'{16 * i:#x}')} ;")
        out.append(f"[B012345:R0:W-:-:S04] {store.format(f'{16 * i:#x}')} ;")
    return out


def _around(space: str) -> tuple[list[str], list[str]]:
    """The code that fills a warp's memory before the word, and the code that reads it
    afterwards."""
    far_in, far_out = "LDG.E.128 R48, desc[UR12][R44.64+{}]", "STG.E.128 desc[UR12][R44.64+{}], R48"
    if space in ("shared", "copy", "window", "barrier"):
        at = f"{_WAIT} LEA R46, R3, {SHARED_BASE:#x}, 0x7 ;"
        return (
            [at, *_copies(far_in, "STS.128 [R46+{}], R48"), f"{_WAIT} WARPSYNC.ALL ;", _NOP],
            [f"{_WAIT} WARPSYNC.ALL ;", _NOP, *_copies("LDS.128 R48, [R46+{}]", far_out)],
        )
    if space == "local":
        return (
            _copies(far_in, "STL.128 [R1+{}], R48"),
            _copies("LDL.128 R48, [R1+{}]", far_out),
        )
    return [], []


def listing(space: str) -> list[str]:
    """The instructions, one per line, with SLOT where the word goes; ``space`` may be empty."""
    fill, drain = _around(space)
    done: list[str] = []
    if space == "barrier":  # barriers have a cache of their own
        fill, done = [*fill, *_SYNCED["IVALL"]], _SYNCED["WBALL"]
    moved = {
        "local": [f"{_WAIT} IADD3 R20, R20, R1, RZ ;"],
        "window": _WINDOW,  # the generic address of shared memory
    }.get(space, [])
    done = _COPIED if space == "copy" else done
    return [
        *(line for line in _HEAD.splitlines() if line), *fill, *_LOADS, *_SCALARS, *moved,
        f"{_WAIT} R2P PR, R24, 0x7f ;",
        f"{_WAIT} BSSY B0, `(.L1) ;",
        f"{_WAIT} @!P6 BRA `(.L1) ;",
        _NOP, SLOT, *[_NOP] * _AFTER, *done,
        ".L1:",
        f"{_WAIT} BSYNC B0 ;",
        _NOP, *(line for line in _TAIL.splitlines() if line), *drain,
        f"{_WAIT} EXIT ;",
    ]  # fmt: skip


@cache
def template(space: str) -> tuple[bytes, int]:
    """The cubin, and where in the file its slot is."""
    data = CUBIN.read_bytes()
    (kernel,) = parse_cubin(data).kernels
    lines = listing(space)
    place = 16 * [line for line in lines if not line.endswith(":")].index(SLOT)
    text = [_NOP if line == SLOT else line.replace("+0x0]", "]") for line in lines]
    code = assemble_listing(text, 90)[""]
    assert len(code) <= len(kernel.code)
    code += assemble_listing([_NOP], 90)[""] * ((len(kernel.code) - len(code)) // 16)
    at = data.index(kernel.code)
    return data[:at] + code + data[at + len(code) :], at + place


def patched(word: int, space: str) -> bytes:
    """The cubin with a word in its slot."""
    data, slot = template(space)
    return data[:slot] + word.to_bytes(16, "little") + data[slot + 16 :]
