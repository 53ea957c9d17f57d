"""Text of the immediates of program control: waits, delays, messages, hardware registers."""

from __future__ import annotations

from typing import Final

from sassxlate.disasm.rdna3.tables.layout import NO_IMMEDIATE
from sassxlate.disasm.rdna3.tables.opcodes import OpInfo

_HEX: Final = frozenset(
    ["s_set_inst_prefetch_distance", "s_clause", "s_wait_event", "s_round_mode", "s_ttracedata_imm"]
)
_INSTID: Final = (
    "",
    "VALU_DEP_1",
    "VALU_DEP_2",
    "VALU_DEP_3",
    "VALU_DEP_4",
    "TRANS32_DEP_1",
    "TRANS32_DEP_2",
    "TRANS32_DEP_3",
    "FMA_ACCUM_CYCLE_1",
    "SALU_CYCLE_1",
    "SALU_CYCLE_2",
    "SALU_CYCLE_3",
)
_INSTSKIP: Final = ("", "NEXT", "SKIP_1", "SKIP_2", "SKIP_3", "SKIP_4")
_MESSAGES: Final = {
    1: "MSG_INTERRUPT",
    2: "MSG_HS_TESSFACTOR",
    3: "MSG_DEALLOC_VGPRS",
    5: "MSG_STALL_WAVE_GEN",
    6: "MSG_HALT_WAVES",
    9: "MSG_GS_ALLOC_REQ",
    128: "MSG_RTN_GET_DOORBELL",
    129: "MSG_RTN_GET_DDID",
    130: "MSG_RTN_GET_TMA",
    131: "MSG_RTN_GET_REALTIME",
    132: "MSG_RTN_SAVE_WAVE",
    133: "MSG_RTN_GET_TBA",
    134: "MSG_RTN_GET_TBA_TO_PC",
}
_HWREG: Final = {
    1: "HW_REG_MODE",
    2: "HW_REG_STATUS",
    3: "HW_REG_TRAPSTS",
    5: "HW_REG_GPR_ALLOC",
    6: "HW_REG_LDS_ALLOC",
    7: "HW_REG_IB_STS",
    15: "HW_REG_SH_MEM_BASES",
    18: "HW_REG_PERF_SNAPSHOT_PC_LO",
    19: "HW_REG_PERF_SNAPSHOT_PC_HI",
    20: "HW_REG_FLAT_SCR_LO",
    21: "HW_REG_FLAT_SCR_HI",
    23: "HW_REG_HW_ID1",
    24: "HW_REG_HW_ID2",
    27: "HW_REG_PERF_SNAPSHOT_DATA",
    29: "HW_REG_SHADER_CYCLES",
}
_VERSIONS: Final = {
    0: "UC_VERSION_GFX7",
    4: "UC_VERSION_GFX10",
    6: "UC_VERSION_GFX11",
    9: "UC_VERSION_GFX12",
}
_VERSION_FLAGS: Final = (
    (0x2000, "UC_VERSION_W64_BIT"),
    (0x4000, "UC_VERSION_W32_BIT"),
    (0x8000, "UC_VERSION_MDP_BIT"),
)
# (name, place, width) of the fields of s_waitcnt_depctr, in LLVM's order.
_DEPCTR: Final = (
    ("hold_cnt", 7, 1),
    ("sa_sdst", 0, 1),
    ("va_vdst", 12, 4),
    ("va_sdst", 9, 3),
    ("va_ssrc", 8, 1),
    ("va_vcc", 1, 1),
    ("vm_vsrc", 2, 3),
)
_DEPCTR_ALL: Final = sum((1 << w) - 1 << lo for _, lo, w in _DEPCTR)
DEPCTR_IDLE: Final = 0xFF9F  # no field waits


def waitcnt_imm(vm: int = 63, lgkm: int = 63, exp: int = 7) -> int:
    """The immediate of s_waitcnt that waits until each counter is at most the given number."""
    return min(vm, 63) << 10 | min(lgkm, 63) << 4 | min(exp, 7)


def waitcnt_fields(imm: int) -> tuple[int, int, int]:
    """(vmcnt, lgkmcnt, expcnt) of the immediate of s_waitcnt; 63, 63, 7 do not wait."""
    return imm >> 10 & 63, imm >> 4 & 63, imm & 7


def depctr_imm(**fields: int) -> int:
    """The immediate of s_waitcnt_depctr: ``depctr_imm(va_vdst=0)``; other fields do not wait."""
    out = DEPCTR_IDLE
    for name, lo, width in _DEPCTR:
        if name in fields:
            mask = (1 << width) - 1
            out = out & ~(mask << lo) | (fields.pop(name) & mask) << lo
    if fields:
        raise ValueError(f"no field {sorted(fields)} in s_waitcnt_depctr")
    return out


def _waitcnt(imm: int) -> str:
    vm, lgkm, exp = waitcnt_fields(imm)
    everything = (vm, lgkm, exp) == (63, 63, 7)
    parts: list[str] = []
    if vm != 63 or everything:
        parts.append(f"vmcnt({vm})")
    if exp != 7 or everything:
        parts.append(f"expcnt({exp})")
    if lgkm != 63 or everything:
        parts.append(f"lgkmcnt({lgkm})")
    return " ".join(parts)


def _depctr(imm: int) -> str:
    if imm & ~_DEPCTR_ALL:
        return f"{imm:#x}"
    fields = [(name, imm >> lo & (1 << w) - 1, (1 << w) - 1) for name, lo, w in _DEPCTR]
    busy = [field for field in fields if field[1] != field[2]] or fields
    return " ".join(f"depctr_{name}({value})" for name, value, _ in busy)


def _named(names: tuple[str, ...], value: int, what: str) -> str:
    return names[value] if value < len(names) else f"/* invalid {what} value */"


def _delay(imm: int) -> str:
    parts: list[str] = []
    if imm & 15:
        parts.append(f"instid0({_named(_INSTID, imm & 15, 'instid')})")
    if imm >> 4 & 7:
        parts.append(f"instskip({_named(_INSTSKIP, imm >> 4 & 7, 'instskip')})")
    if imm >> 7 & 15:
        parts.append(f"instid1({_named(_INSTID, imm >> 7 & 15, 'instid')})")
    return " | ".join(parts) or "0"


def message_number(text: str) -> int | None:
    """The number of ``sendmsg(NAME)``; None for any other text."""
    return next((n for n, name in _MESSAGES.items() if text == f"sendmsg({name})"), None)


def _message(imm: int) -> str:
    if imm & 255 in _MESSAGES:
        return f"sendmsg({_MESSAGES[imm & 255]})"  # the bits above are ignored
    return f"sendmsg({imm}, 0, 0)" if imm < 256 else str(imm)


def _version(imm: int) -> str:
    out = _VERSIONS.get(imm & 255, str(imm & 255))
    if imm & 0x1F00:
        return f"{imm:#x}"
    for bit, flag in _VERSION_FLAGS:
        if imm & bit:
            out = f"({out})|{flag}" if "|" in out else f"{out}|{flag}"
    return out


def _hwreg(imm: int) -> str:
    number, first, size = imm & 63, imm >> 6 & 31, (imm >> 11 & 31) + 1
    name = _HWREG.get(number, str(number))
    return f"hwreg({name})" if (first, size) == (0, 32) else f"hwreg({name}, {first}, {size})"


def swizzle_text(imm: int) -> str:
    """The offset of ds_swizzle_b32 as LLVM writes it."""
    if imm & 0xFF00 == 0x8000:
        return "swizzle(QUAD_PERM," + ",".join(str(imm >> 2 * i & 3) for i in range(4)) + ")"
    if imm >= 0xE000:
        return f"swizzle(FFT,{imm & 31})"
    if imm >= 0xC000:
        return f"swizzle(ROTATE,{imm >> 10 & 1},{imm >> 5 & 31})"
    if imm & 0x8000:
        return str(imm)
    and_, or_, xor = imm & 31, imm >> 5 & 31, imm >> 10 & 31
    if and_ == 31 and or_ == 0 and xor and xor & xor - 1 == 0:
        return f"swizzle(SWAP,{xor})"
    if and_ == 31 and or_ == 0 and xor and xor & xor + 1 == 0:
        return f"swizzle(REVERSE,{xor + 1})"
    group = 32 - and_
    if group > 1 and group & group - 1 == 0 and or_ < group and xor == 0:
        return f"swizzle(BROADCAST,{group},{or_})"
    return _bitmask(and_, or_, xor)


def _bitmask(and_: int, or_: int, xor: int) -> str:
    out = ""
    for bit in (16, 8, 4, 2, 1):
        if and_ & bit and not or_ & bit:
            out += "i" if xor & bit else "p"
        else:
            out += "1" if bool(or_ & bit) != bool(xor & bit) else "0"
    return f'swizzle(BITMASK_PERM,"{out}")'


def immediate_text(op: str, row: OpInfo, imm: int) -> str | None:
    """The immediate of a scalar instruction, None if it has none."""
    if row.kind == "message":
        return _message(imm & 0xFFFF)
    if ("SOPK" not in row.forms and "SOPP" not in row.forms) or op in NO_IMMEDIATE:
        return None
    raw = imm & 0xFFFF
    if op == "s_waitcnt":
        return _waitcnt(raw)
    if op == "s_waitcnt_depctr":
        return _depctr(raw)
    if op == "s_delay_alu":
        return _delay(raw)
    if op == "s_version":
        return _version(raw)
    if op.startswith(("s_getreg", "s_setreg")):
        return _hwreg(raw)
    if row.kind == "branch" or op == "s_call_b64":
        return str(raw)
    if op == "s_endpgm":
        return str(raw) if raw else ""
    if "SOPK" in row.forms or op in _HEX or raw > 64:
        return f"{raw:#x}"
    return str(raw)
