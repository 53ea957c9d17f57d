"""The pages of the instruction set say what the tables say, and their examples are instructions."""

from __future__ import annotations

import functools
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from sassxlate.cli import cli
from sassxlate.disasm.sass import reference, tables
from sassxlate.disasm.sass.codec.decode import decode
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.disasm.sass.reference.numbers import generations
from sassxlate.disasm.sass.reference.picture import bitmap, fields
from sassxlate.disasm.sass.tables.spec import GENERATIONS

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))

if TYPE_CHECKING:
    from tools.generate import sass_golden
    from tools.witness.nvdisasm import witness as sass_witness
else:
    from tools.generate import sass_golden
    from tools.witness.nvdisasm import witness as sass_witness

LIMIT = 3_000_000  # bytes of all pages


@functools.cache
def examples(mnemonic: str) -> tuple[tuple[int, int, str], ...]:
    """`reference.example_words`, which many tests here read."""
    return tuple(reference.example_words(mnemonic))


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """All pages by file name."""
    return reference.all_pages()


def run(*args: str, status: int = 0) -> str:
    """The output of the command, on both streams."""
    done = CliRunner().invoke(cli, ["isa", *args])
    assert done.exit_code == status, done.output
    return done.output


def test_there_is_a_page_for_each_mnemonic(pages: dict[str, str]) -> None:
    mnemonics = {row.mnemonic for row in tables.ROWS}
    assert set(pages) == {f"{name}.md" for name in mnemonics} | {"README.md", "layout.md"}
    listed = re.findall(r"^  (\S+) +(\d+)  sm_", reference.listing(), re.MULTILINE)
    assert {name for name, _ in listed} == mnemonics
    assert sum(int(count) for _, count in listed) == len(tables.ROWS)
    for name in mnemonics:
        assert f"[{name}]({name}.md)" in pages["README.md"]
        forms = sum(row.mnemonic == name for row in tables.ROWS)
        assert pages[f"{name}.md"].count(f"\n## {forms}. `{name}") == 1
    assert sum(len(text.encode()) for text in pages.values()) < LIMIT


def test_links_lead_somewhere(pages: dict[str, str]) -> None:
    for text in pages.values():
        for target in re.findall(r"\]\(([^)#]+)", text):
            assert target in pages


def test_bits_add_up() -> None:
    """Each of the 128 bits is shown once, and each field has as many as it states."""
    for row in tables.ROWS:
        for generation in generations(row):
            text, keys = bitmap(row, generation)
            assert len(text) == 128
            for label, mask, _ in fields(row, generation):
                shown = sum(1 << i for i, key in enumerate(text[::-1]) if key == keys.get(label))
                assert shown == mask, (row.mnemonic, label)
            rest = {key for key in text if key not in keys.values()}
            assert rest <= set("01GC.-+!"), row.mnemonic


def test_every_form_has_an_example() -> None:
    """A word of each form in each generation that the decoder takes strictly, and the assembler
    makes again."""
    count = 0
    for name in reference.mnemonics():
        for generation, word, text in examples(name):
            count += 1
            assert decode(word, 0, generation).text == text
            assert text.partition(" ")[0].partition(".")[0] == name
    assert count == sum(len(generations(row)) for row in tables.ROWS)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_examples_assemble(generation: int) -> None:
    """The text of an example gives the word, except for its scheduling and bits that texts omit."""
    for name in reference.mnemonics(generation)[::7]:
        for arch, _, text in examples(name):
            if arch == generation:
                assert decode(assemble(text, arch), 0, arch, strict=False).text == text


@pytest.mark.parametrize("generation", GENERATIONS)
def test_nvdisasm_reads_the_examples(generation: int, witness: sass_witness.Witness) -> None:
    """As we do, but for a form that it doubts and one whose types it leaves out."""
    items = [
        (word, text)
        for name in reference.mnemonics(generation)
        for arch, word, text in examples(name)
        if arch == generation
    ]
    printed = witness.texts(generation, [word for word, _ in items], at_zero=True)
    other = [(text, want) for (_, text), want in zip(items, printed, strict=True) if want != text]
    assert {text.partition(" ")[0] for text, _ in other} <= {
        "OUT.CUT", "UF2FP.E4M3.F32.PACK_AB_MERGE_C",
    }, other  # fmt: skip
    assert len(items) > 600


def test_golden_words_are_of_listed_forms(pages: dict[str, str]) -> None:
    """Every golden mnemonic has a page that names the architecture."""
    for path in sorted(sass_golden.GOLDEN.glob("sm_*.txt")):
        names: set[str] = set()
        for _, text in sass_golden.read_golden(path):
            names.add(re.split(r"[. ;]", re.sub(r"^@\S+ ", "", text))[0])
        assert {n for n in names if n not in reference.mnemonics()} <= {""}
        assert len(names) > 50


def test_command_prints_a_page() -> None:
    printed = run("imad")
    assert printed == reference.page("IMAD")
    assert printed.startswith("# IMAD\n\ninteger; 25 forms; sm_75 to sm_121.\n")
    assert run("IMAD.WIDE", "LDG") == reference.page("IMAD") + "\n" + reference.page("LDG")
    assert "# The common layout" in run("layout")


def test_command_lists() -> None:
    every, hopper = run(), run("--arch", "sm_90a")
    assert "  IMUL " in every
    assert "  IMUL " not in hopper
    assert "  HGMMA " in hopper
    assert len(hopper.splitlines()) < len(every.splitlines())


def test_one_architecture() -> None:
    printed = run("--arch", "sm_86", "LDG")
    assert "sm_90" not in printed
    assert printed.count("\n## ") < reference.page("LDG").count("\n## ")
    refused = run("--arch", "sm_90", "IMUL", status=2)
    assert "SX0838" in refused
    assert "sm_100 to sm_103" in refused
    assert "SX0204" in run("--arch", "sm_42", "IMUL", status=3)


def test_unknown_mnemonics_name_those_alike() -> None:
    assert "SX0838: 'IMADD' is not a SASS instruction; do you mean IMAD" in run("IMADD", status=2)
    refused = run("qqqqqqqq", status=2)
    assert "SX0838" in refused
    assert "mean" not in refused


def test_command_writes_all_pages(tmp_path: Path, pages: dict[str, str]) -> None:
    folder = tmp_path / "new" / "sass"
    assert run("-o", str(folder)) == f"{len(pages)} pages in {folder}\n"
    assert {p.name: p.read_text() for p in folder.iterdir()} == pages
    (tmp_path / "file").touch()
    assert "SX0813" in run("-o", str(tmp_path / "file"), status=2)
    assert "SX0838" in run("-o", str(tmp_path / "other"), "IMADD", status=2)
    assert not (tmp_path / "other").exists()
