"""The forms that translations consist of, counted over programs."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from sassxlate.disasm.containers import load
from sassxlate.disasm.rdna3.instruction import Inst, Item, Label
from sassxlate.errors import SassxlateError
from sassxlate.lowering.pipeline import translate_kernel

from .cases import Form, form_of

HEADER = """\
# Instructions that the lowering emits, by form, with how often each occurs in the translations of
# fixtures/kernels, of fixtures/silicon's words, and of 221 programs of HeCBench, cuda-samples and
# polybenchGpu (CUDA 13.0, sm_80 and sm_90).  Written by `python -m tools.witness.pcode forms`.
"""


def scan(items: Sequence[Item], counts: Counter[Form]) -> None:
    """Adds a program's instructions; MODE is what the pairs around an instruction set."""
    how, denormals = 0, 15
    for item in items:
        if isinstance(item, Label):
            how, denormals = 0, 15
            continue
        assert isinstance(item, Inst)
        if item.op == "s_round_mode":
            how = item.imm
        elif item.op == "s_denorm_mode":
            denormals = item.imm
        if item.dpp:  # which lanes are read is no arithmetic, and in no pseudocode
            continue
        counts[form_of(item, how, denormals)] += 1


def _words(counts: Counter[Form]) -> None:
    """The measured words of one instruction each."""
    root = Path(__file__).resolve().parents[3]
    from tests.lowering.verify.one import block_of

    text = (root / "fixtures" / "silicon" / "sm_90" / "forms.txt").read_text()
    for line in text.splitlines()[1:]:
        try:
            block = block_of(int(line.split(" ")[0], 16))
        except SassxlateError:
            continue
        scan([placed.inst for part in block.rdna for placed in part], counts)


def count(files: Sequence[Path]) -> Counter[Form]:
    """Forms of the kernels in the files, each distinct kernel once, and of the measured words."""
    counts: Counter[Form] = Counter()
    _words(counts)
    seen: set[bytes] = set()
    for path in files:
        for _, cubin in load(path).cubins():
            for kernel in cubin.kernels:
                key = hashlib.sha256(kernel.code + str(kernel.arch).encode()).digest()
                if key in seen:
                    continue
                seen.add(key)
                try:
                    translated = translate_kernel(cubin, kernel.name)
                except SassxlateError:
                    continue
                scan(translated.items, counts)
    return counts
