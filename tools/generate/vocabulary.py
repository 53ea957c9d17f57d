"""Writes llm/language/vocabulary.txt: every word of the model's language, one per line, by its
number.

SASS's words (mnemonics, modifiers, roles, selectors, names) are those of the forms that occur in
the corpora (fixtures/coverage/forms.xz).  A model counts on the numbers: with one trained, words
are only ever added at the end, which is what this program does where the file exists.

    python -m tools.generate.vocabulary
"""

from __future__ import annotations

import lzma
from pathlib import Path

from sassxlate.disasm.sass import BadWord, decode_section
from sassxlate.disasm.sass.instruction import Const, Instruction, Mem, Name, Pred, Reg, Special
from sassxlate.disasm.sass.tables.special_registers import _NAMES  # pyright: ignore[reportPrivateUsage]
from sassxlate.llm.language.tokenizer import CONTROL, PATH, SPELLING
from sassxlate.lowering.region.directives import CLOBBERS
from sassxlate.lowering.region.macro import MACRO
from sassxlate.lowering.region.numbers import NUMBER_WORDS
from sassxlate.lowering.region.places import CLASSES, FIXED
from sassxlate.lowering.region.subset import BITS, FLAGS, OFFSETS, SPECIALS, subset_operations
from sassxlate.lowering.region.text import DIRECTIVES, END, HEADERS
from sassxlate.lowering.rules import TABLE

ROOT = Path(__file__).resolve().parents[2]


def _sass() -> tuple[set[str], set[str], set[str]]:
    """(mnemonics, modifiers and selectors, roles and names) of the corpora's forms."""
    heads, mods, others = set[str](), set[str](), set[str]()
    text = lzma.decompress((ROOT / "fixtures/coverage/forms.xz").read_bytes()).decode()
    for line in text.splitlines():
        word, _, arches = line.split(" ", 2)
        arch = int(arches.split()[0])
        (ins,) = decode_section(
            int(word, 16).to_bytes(16, "little"), arch, strict=False
        ).instructions
        if isinstance(ins, BadWord) or ins.mnemonic not in TABLE:
            continue
        assert isinstance(ins, Instruction)
        heads.add(ins.mnemonic)
        mods.update(f".{m}" for m in ins.modifiers)
        for role, operand in ins.operands.items():
            match operand:
                case Pred():
                    others.add(f"{role}=")
                case Reg() | Const():
                    if operand.select:
                        mods.add(f".{operand.select}")
                case Mem():
                    others.add(f"*{operand.scale}")
                case Special() | Name():
                    others.add(operand.name)
                case _:
                    pass
    return heads, mods, others | set(_NAMES.values())


def words() -> list[str]:
    """All words in their order."""
    heads, mods, others = _sass()
    names = [f"{kind}{n}" for kind, count in CLASSES.items() for n in range(count)]
    names += ["t24", "s20"]
    fields = [f"{field}:{n}" for field, most in BITS.items() for n in range(most + 1)]
    groups = [
        CONTROL, SPELLING, HEADERS, (END, *DIRECTIVES), FIXED, SPECIALS, NUMBER_WORDS, names,
        [f":{n}" for n in range(2, 17)], ["Z", "T", "@", "-", "|", "~", "[", "]", "(", ")"],
        [f"c[{n}]" for n in range(5)], fields, FLAGS, list(OFFSETS.values()), subset_operations(),
        sorted(heads), sorted(mods), sorted(others), (MACRO, CLOBBERS),
    ]  # fmt: skip
    return list(dict.fromkeys(word for group in groups for word in group))


def main() -> None:
    old = PATH.read_text(encoding="utf-8").split("\n")[:-1] if PATH.exists() else []
    new = [*old, *(w for w in words() if w not in set(old))]
    PATH.write_text("\n".join(new) + "\n", encoding="utf-8")
    print(f"{len(new)} words, {len(new) - len(old)} new")


if __name__ == "__main__":
    main()
