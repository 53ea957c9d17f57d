"""LLVM's description of an opcode, as machine IR must spell it.

A disassembler names the encoding (V_ADD_NC_U32_e32_gfx11), the passes work on pseudos
(V_ADD_U32_e32).  Most encodings are the pseudo's name and the processor's; `_RENAMED` has the
others.  Which registers an opcode uses without saying so is asked of llc, which refuses an
instruction that lacks one; its answers are kept in the user's cache.  A mistake here cannot stay
unseen: llc makes the same bytes of the machine IR again (`verdicts.encoded_back`), and its verifier
counts definitions and operands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from tools.rocm import folder
from tools.rocm.packages import LLVM_TOOLS
from tools.witness.judge.llvm_tools import complaints, run
from tools.witness.judge.machine_code import JudgeError

_RENAMED = (
    (r"^([A-Z]\w+?)\1(_\w+)$", r"\1\2"),  # V_FMA_F16V_FMA_F16_gfx9_fake16_e64
    (r"^(S_(?:BUFFER_)?LOAD)_B32_", r"\1_DWORD_"),
    (r"^(S_(?:BUFFER_)?LOAD)_B64_", r"\1_DWORDX2_"),
    (r"^(S_(?:BUFFER_)?LOAD)_B128_", r"\1_DWORDX4_"),
    (r"^(S_(?:BUFFER_)?LOAD)_B256_", r"\1_DWORDX8_"),
    (r"^(S_(?:BUFFER_)?LOAD)_B512_", r"\1_DWORDX16_"),
    (r"^V_ADD_CO_CI_", "V_ADDC_"),
    (r"^V_SUB_CO_CI_", "V_SUBB_"),
    (r"^V_SUBREV_CO_CI_", "V_SUBBREV_"),
    (r"^V_(ADD|SUB|SUBREV)_NC_U32_", r"V_\1_U32_"),
    (r"^V_CLS_I32_", "V_FFBH_I32_"),
    (r"^V_CLZ_I32_U32_", "V_FFBH_U32_"),
    (r"^V_CTZ_I32_B32_", "V_FFBL_B32_"),
    (r"^S_CLS_I32$", "S_FLBIT_I32"),
    (r"^S_CLZ_I32_U32$", "S_FLBIT_I32_B32"),
    (r"^S_CTZ_I32_B32$", "S_FF1_I32_B32"),
    (r"^S_CTZ_I32_B64$", "S_FF1_I32_B64"),
    (r"^S_(AND|OR)_NOT1_", r"S_\1N2_"),
    (r"^(V_CMPX_\w+)_e(32|64)$", r"\1_nosdst_e\2"),
    (r"^(DS_(?!B?PERMUTE|SWIZZLE|NOP|GWS|BVH|\w+ADDTID|\w+_D16)\w+)$", r"\1_gfx9"),  # without M0
    (r"^V_(READLANE|WRITELANE)_B32_e64$", r"V_\1_B32"),
)
_PROCESSOR = re.compile(r"_gfx11(_w32)?$")
_KEPT = re.compile(r"^V_DUAL_")  # LLVM pairs instructions late: there is no pseudo
_NO_DEFINITION = re.compile(
    r"^(S_(CMP|CMPK|BITCMP|CBRANCH|BRANCH|WAITCNT|ENDPGM|BARRIER|SETREG|NOP|SLEEP|SENDMSG(?!_RTN)"
    r"|TRAP|SETPC|CODE_END|SETHALT|CLAUSE|DELAY|ICACHE|DCACHE|VERSION|INST_PREFETCH|SET_INST|ROUND"
    r"|DENORM|SETPRIO|WAIT_IDLE|INCPERFLEVEL|DECPERFLEVEL|TTRACEDATA)"
    r"|V_CMP\w*_e32|V_CMPX_|V_NOP|BUFFER_GL|\w+_STORE_|DS_WRITE|DS_NOP)"
)
_TWO_DEFINITIONS = re.compile(
    r"^(V_(ADDC?|SUBB?|SUBB?REV)(_CO)?_U32_e64$|V_(ADDC|SUBB|SUBBREV)_U32_e64"
    r"|V_(ADD|SUB|SUBREV)_CO_U32_e64|V_MAD_[UI]64|V_DIV_SCALE|V_SWAP|V_DUAL_)"
)
_ATOMIC = re.compile(r"^(DS|GLOBAL|FLAT|BUFFER)_")
_RETURNS = re.compile(r"_RTN|_READ|_LOAD|_BPERMUTE|_PERMUTE|_SWIZZLE|_CONSUME|_APPEND|_ORDERED")
_CARRY = re.compile(r"^V_(ADD|SUB|SUBREV)_U32_e64$")
_SIGNED = re.compile(r"^S_(MOVK|CMOVK|ADDK|MULK|CMPK_\w+)_I32$")
_OP_SEL = re.compile(
    r"^V_(ADD|SUB)_NC_[UI]16_|^V_(FMA|MAD|MIN3|MAX3|MED3|DIV_FIXUP)_[FIU]16_"
    r"|^V_(ALIGNBIT|ALIGNBYTE|PACK_B32_F16|MAD_[UI]32_[UI]16)"
)
_MISSING = re.compile(r"missing implicit register operand '(.*)'")
_LINE = re.compile(r":(\d+):\d+: error: |:(\d+):\d+: ")
# What is likely, to ask less: an operand too few is asked for, one too many is not.
_LIKELY = (
    (r"^(V|DS|GLOBAL|FLAT|SCRATCH|BUFFER)_", "implicit $exec"),
    (r"^V_(?!CVT_\w*_[IU]\d+_).*_F(16|32|64)_(fake16_)?e(32|64)$", "implicit $mode"),
    (
        r"^V_(FMAMK|FMAAK|PK_FMA|PK_MUL|PK_ADD)_F|^V_DUAL_.*(ADD|MUL|FMAC|FMAMK|FMAAK)_F32",
        "implicit $mode",
    ),
    (r"^V_CMP_\w*_e32$", "implicit-def $vcc"),
    (r"^V_CMPX_", "implicit-def $exec"),
    (r"^V_DUAL_.*CNDMASK|^S_CBRANCH_VCC", "implicit $vcc"),
    (r"^S_(CMPK?|BITCMP|LSH|ASH|BFE|ABS|ADD|SUB|AND|OR|XOR|MIN|MAX)", "implicit-def $scc"),
    (r"^S_\w+_SAVEEXEC", "implicit-def $exec"),
    (r"^S_\w+_SAVEEXEC", "implicit $exec"),
    (r"^(SCRATCH|FLAT)_", "implicit $flat_scr"),
)
_MOST_QUESTIONS = 4000


@dataclass(frozen=True, slots=True)
class Opcode:
    """``defines`` counts the leading operands that are written; ``implicit`` are operands that
    machine IR writes out after the others."""

    pseudo: str
    defines: int
    implicit: tuple[str, ...]


def pseudo(encoding: str) -> str:
    """The name that LLVM's passes know an encoding by."""
    if _KEPT.match(encoding):
        return encoding
    name = _PROCESSOR.sub("", encoding)
    for old, new in _RENAMED:
        name = re.sub(old, new, name)
    return name


def definitions(name: str) -> int:
    """How many leading operands a pseudo writes."""
    if _NO_DEFINITION.match(name):
        return 0
    if _ATOMIC.match(name) and not _RETURNS.search(name):
        return 0
    if _TWO_DEFINITIONS.match(name) and not _CARRY.match(name):
        return 2
    return 1


def completed(name: str, operands: Sequence[str | int]) -> list[str | int]:
    """The operands of a pseudo, from those of its encoding: some that the encoding keeps in others'
    bits, or that the disassembler leaves out or gets wrong, as nothing of them is in the word."""
    made = list(operands)
    if _SIGNED.match(name):
        value = made[-1]
        assert isinstance(value, int)
        made[-1] = value - ((value & 0x8000) << 1)
    elif name.startswith("S_BITSET"):
        made.append(made[0])  # the register's other bits
    elif name.startswith("V_DUAL_"):
        first, _, second = name.partition("_X_")
        if "FMAC" in first:
            made[4] = made[0]
        if "FMAC" in second:
            made[-1] = made[1]
    elif _OP_SEL.match(name):
        made.append(0)  # op_sel, which is in the sources' modifiers
    elif name.startswith("V_FMA_MIX"):
        made += [0] * 2  # op_sel, op_sel_hi: likewise
    elif name.endswith("_dpp") and not name.endswith("_e64_dpp") and made[-1] == 0:
        made.pop()  # fetch from lanes that are off: pseudos do not say so
    elif name.startswith("V_PK_"):
        made += [0] * 4  # op_sel, op_sel_hi, neg_lo, neg_hi: likewise
    return made


@dataclass(slots=True)
class Opcodes:
    """What is known of opcodes so far."""

    implicit: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    def of(self, encoding: str) -> Opcode:
        """The description of an opcode of the disassembler."""
        name = pseudo(encoding)
        return Opcode(name, definitions(name), self.implicit.get(name, _guess(name)))

    def learn(self, encodings: Iterable[str], document: Callable[[Opcodes], str]) -> None:
        """Asks llc which implicit operands the opcodes of a document lack.  ``document`` writes an
        instruction with each of them, from what is known.

        Raises:
            JudgeError: llc does not know an opcode, or says something else.
        """
        names = {pseudo(encoding) for encoding in encodings}
        if names <= self.implicit.keys():
            return
        for _ in range(_MOST_QUESTIONS):
            text = document(self)
            done = run("llc", ["-run-pass=none", "-x=mir", "-o", "/dev/null"], text)
            if done.returncode == 0:
                break
            self._mend(text, done.stderr)
        else:
            raise JudgeError("llc asks for more and more operands")
        for name in names:
            self.implicit.setdefault(name, _guess(name))
        _keep(self.implicit)

    def _mend(self, text: str, complaint: str) -> None:
        missing, place = _MISSING.search(complaint), _LINE.search(complaint)
        line = text.splitlines()[int(place[1] or place[2]) - 1] if place else ""
        name = re.search(r"(?:= )?\b([A-Z][A-Za-z]*_\w+)", line.split(" = ")[-1])
        if missing is None or name is None:
            raise JudgeError(f"llc: {complaints(complaint)}: {line.strip()}")
        known = self.implicit.get(name[1], _guess(name[1]))
        if missing[1] in known:
            raise JudgeError(f"llc: {complaints(complaint)}: {line.strip()}")
        self.implicit[name[1]] = (*known, missing[1])


def _guess(name: str) -> tuple[str, ...]:
    return tuple(operand for pattern, operand in _LIKELY if re.search(pattern, name))


def _file() -> Path:
    return folder.base() / f"{LLVM_TOOLS}-implicit-operands.json"


def _keep(known: Mapping[str, tuple[str, ...]]) -> None:
    part = _file().with_suffix(".part")
    part.write_text(json.dumps(dict(sorted(known.items())), indent=0))
    part.rename(_file())


def remembered() -> Opcodes:
    """What earlier questions told."""
    try:
        known = cast(dict[str, list[str]], json.loads(_file().read_text()))
    except (OSError, ValueError):
        return Opcodes()
    return Opcodes({name: tuple(operands) for name, operands in known.items()})
