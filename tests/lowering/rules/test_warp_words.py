"""Words that reach other lanes or memory, translated and run on the emulated device, against their
semantics, which an H200 confirmed (``test_sass_warps.py``).

A result in a uniform register counts if all lanes execute the word:
after a divergent path lanes may see its old value, and no compiler reads it there.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.semantics.warp_state import LANES, Bytes, Mask, Words, executing
from sassxlate.errors import LoweringError
from sassxlate.lowering.emulate.runner import EmulatedDevice, run_code_object
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.rules.memory.atomic128 import LOCKS
from tools.silicon.warps import fixture
from tools.silicon.warps.inputs import constants, made
from tools.silicon.warps.measure import access_size
from tools.silicon.warps.state import Warps, meant
from tools.silicon.warps.template import RECORD, REGION, RESULT, patched
from tools.silicon.warps.words import Word

WARPS = 16
_UNIFORM = slice(5, 8)  # of a result: the uniform registers


@dataclass(frozen=True, slots=True)
class Ran:
    """What a translated word left: the lanes' results (warp, lane, word) and the memory."""

    real: Words
    after: Bytes
    before: Warps


def ran(
    word: Word,
    run: Callable[[bytes, str, int, int, bytes, EmulatedDevice], None] = run_code_object,
) -> Ran:
    """Runs the translation of a word; raises LoweringError if it is refused."""
    (kernel,) = (cubin := parse_cubin(patched(word.word, word.space))).kernels
    done = translate_kernel(replace(cubin, kernels=(kernel,)), kernel.name)
    device = EmulatedDevice(1 << 22)
    field = device.alloc((WARPS + 2) * REGION) + REGION
    ins = decode(word.word, 0, 90, strict=False)
    size = access_size(ins)
    records, memory = made(ins, word.kind, word.space, WARPS, field, size, fixture.SEED)
    source, target = device.alloc(records.tobytes()), device.alloc(WARPS * LANES * RESULT * 4)
    assert records.shape[-1] == RECORD
    device.write(field, memory.tobytes())
    locks = device.alloc(bytes(4 * LOCKS))
    words = constants(fixture.SEED)
    given = struct.pack("<QQQ", source, target, field) + words.tobytes()
    segment = done.launch.kernarg(given, (LANES, 1, 1), (WARPS, 1, 1), {"locks": locks})
    run(done.code_object, kernel.name, WARPS, LANES, segment, device)
    shape = (WARPS, LANES, RESULT)
    real = np.frombuffer(device.read(target, WARPS * LANES * RESULT * 4), "<u4").reshape(shape)
    after = np.frombuffer(device.read(field, memory.size), np.uint8).reshape(memory.shape)
    return Ran(real, after, Warps(records, memory.copy(), words, field, word.space))


def _wrong(word: Word) -> str:
    """The difference of the translation of a word; raises LoweringError if it is refused."""
    found = ran(word)
    real, after, warps = found.real, found.after, found.before
    ins = decode(word.word, 0, 90, strict=False)
    differ: Mask = np.not_equal(real, meant(word.word, 90, warps))
    whole: Mask = np.asarray(executing(ins, warps).all(axis=1, keepdims=True))
    differ[..., _UNIFORM] &= whole[..., None]
    if word.kind.startswith("collide"):
        differ[:] = False
    bytes_: Mask = np.not_equal(after, warps.memory)
    for w, lane in np.argwhere(differ.any(axis=-1))[:1]:
        return f"{word.text}: warp {w} lane {lane}: {real[w, lane].tolist()}"
    return f"{word.text}: {bytes_.sum()} bytes of memory" if bytes_.any() else ""


_QUICK = re.compile(
    r"(SHFL\.(UP|IDX) P3, R16, R4, R8, R12|MATCH\.(ANY|ALL P3,) R16, R4|REDUX\.MIN\.S32 UR10, R4"
    r"|R2UR P3, UR10, R4|@P0 VOTE\.EQ R16, P3, !P1|REDG\.E\.ADD\.(F32|F16x2)\.RN\.STRONG\.GPU desc"
    r"\[UR12\]\[R20\.64\], R8|ATOMG\.E\.ADD\.(F32\.FTZ|F64)\.RN\.STRONG\.GPU PT, R16, desc\[UR12\]"
    r"\[R20\.64\], R8|ATOMS\.CAS R16, \[R20\.X4\], R8, R12|LDG\.E\.S8 R16, \[R20\.U32\+UR14\+0x40\]"
    r"|STS\.128 \[R20\.X16\+UR14\+0x20\], R8|LDC\.S16 R16, c\[0x0\]\[R21\+0x240\]"
    r"|LDGSTS\.E\.(BYPASS\.128|64)\.ZFILL \[R26\+0x10\], desc\[UR12\]\[R20\.64\+(0x3|-0xd)\](, P0)?"
    r"|LDGSTS\.E\.\S*ZFILL \[R26\], \[R20.*|LDG\.E\.128 R16, desc\[UR12\]\[R20\.64\+0x10\], !P1"
    r"|LDG\.E P3, .*|ATOMG\.E\.ADD\.64\.STRONG\.GPU P3, .*"
    r"|ATOMG\.E\.(CAS|EXCH)\.128\.STRONG\.GPU P3, .*|ATOMS\.POPC\.INC\.32 R16, \[R20\+UR14\])"
)


def _judge(words: list[Word]) -> Counter[str]:
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    for word in words:
        try:
            found = _wrong(word)
        except LoweringError:
            counts["refused"] += 1
            continue
        counts["differ" if found else "equal"] += 1
        wrong += [found] * bool(found)
    print(dict(counts))
    assert not wrong, "\n".join(wrong)
    return counts


# Atomics on shared memory that an H200 leaves to the loop after them, and the translation does.
_LEFT = re.compile(r"(@\S+ )?ATOM\.E\.(MIN\.64|AND\.64|ADD\.F).*")


def all_words() -> list[Word]:
    words = [m.word for m in fixture.measured() if m.word.kind.partition(" ")[0] != "misaligned"]
    return [w for w in words if w.space != "window" or not _LEFT.fullmatch(w.text)]


def test_some_words() -> None:
    chosen = [
        w for w in all_words() if _QUICK.fullmatch(w.text) and w.space in ("", "shared", "copy")
    ]
    counts = _judge(chosen)
    assert counts["equal"] >= 24
    assert not counts["refused"]


@pytest.mark.sweep
def test_many_words() -> None:
    assert _judge(all_words()[::11])["equal"] > 120
