"""Text to words: what is printed is read back to the same bits."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from sassxlate.cli import asm, disasm
from sassxlate.disasm.containers import parse_cubin
from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.assembler import assemble_listing
from sassxlate.disasm.sass.codec.control_brackets import control_text, hidden_text
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.errors import DecodeError
from tools.generate import sass_golden

FILES = sorted(sass_golden.GOLDEN.glob("sm_*.txt"))
KERNELS = Path(__file__).resolve().parents[3] / "fixtures" / "kernels"
SCHEDULING = (1 << 17) - 1 << 105  # without the reuse bits, which the operands show


def _with_control(inst: Instruction) -> str:
    return f"{control_text(inst.control)[:-1]}{hidden_text(inst)}] {inst.text} ;"


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_golden_words(path: Path) -> None:
    """Every form of compiled code: identical with scheduling, identical outside it without."""
    arch = int(path.stem.removeprefix("sm_"))
    wrong: list[str] = []
    for word, text in sass_golden.read_golden(path):
        inst = decode(word, 0, arch)
        if assemble(_with_control(inst), arch) != word:
            wrong.append(f"{word:#034x} {_with_control(inst)}")
        if not hidden_text(inst) and (assemble(text, arch) ^ word) & ~SCHEDULING:
            wrong.append(f"{word:#034x} {text}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_listings(arch: str) -> None:
    """A kernel's printed listing, labels and callees' names in it, is read back whole."""
    for name in ("calls", "jump_table", "divergent_ballot", "float_rules"):
        path = KERNELS / arch / f"{name}.cubin"
        cubin = parse_cubin(path.read_bytes())
        for options in (["--control"], ["--control", "--encoding"]):
            printed = CliRunner().invoke(disasm.command, [str(path), *options]).output
            sections = assemble_listing(printed.splitlines(), cubin.arch)
            assert sections == {kernel.name: kernel.code for kernel in cubin.kernels}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("FROB R1, R2 ;", "SX0206"),
        ("IADD3 R1, R2 ;", "SX0206"),
        ("IADD3.FTZ R1, R2, R3, R4 ;", "SX0206"),
        ("IADD3 R1, R2, R3, R256 ;", "SX0206"),
        ("LDG.E R1, [R2.64+0x1000000] ;", "SX0206"),
        ("HMMA.16816.F64 R20, R12, R16, R20 ;", "SX0206"),
        ("@UP0 IADD3 R1, R2, R3, R4 ;", "SX0206"),
        ("", "SX0206"),
    ],
)
def test_refused(text: str, code: str) -> None:
    """A text without an instruction is an error, never another instruction."""
    with pytest.raises(DecodeError) as caught:
        assemble(text, 80)
    assert caught.value.code == code


def test_other_architecture() -> None:
    """An operand kind that the architecture lacks is refused."""
    assert decode(assemble("IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28]", 80), 0, 80).mnemonic == "IMAD"
    with pytest.raises(DecodeError):
        assemble("IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28]", 100)


def test_labels() -> None:
    """Branches forwards and backwards by label; unknown labels and lines are errors."""
    lines = [".L_x_0:", "@P0 BRA `(.L_x_1) ;", "BRA `(.L_x_0) ;", ".L_x_1:", "EXIT ;"]
    (code,) = assemble_listing(lines, 90).values()
    words = [int.from_bytes(code[i : i + 16], "little") for i in range(0, len(code), 16)]
    texts = [decode(word, 16 * i, 90).text for i, word in enumerate(words)]
    assert texts == ["@P0 BRA 0x20", "BRA 0x0", "EXIT"]
    for bad in (["BRA `(nowhere) ;"], ["this is not assembly"]):
        with pytest.raises(DecodeError) as caught:
            assemble_listing(bad, 90)
        assert caught.value.code == "SX0207"


def test_command(tmp_path: Path) -> None:
    """``sassxlate asm``: words in hexadecimal, or bytes in a file."""
    source, out = tmp_path / "a.sass", tmp_path / "a.bin"
    source.write_text("MOV R1, 0x2a ;\nEXIT ;\n")
    shown = CliRunner().invoke(asm.command, [str(source), "--arch", "sm_80"])
    assert shown.exit_code == 0
    words = [int(line, 16) for line in shown.output.split()]
    assert [decode(w, 0, 80).text for w in words] == ["MOV R1, 0x2a", "EXIT"]
    done = CliRunner().invoke(asm.command, [str(source), "--arch", "sm_80", "-o", str(out)])
    assert done.exit_code == 0
    assert out.read_bytes() == b"".join(w.to_bytes(16, "little") for w in words)
