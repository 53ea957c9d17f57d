"""`disasm --find`: instructions by opcode, with the source lines that nvdisasm's listing has."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import cast

import pytest
from click.testing import CliRunner, Result

from sassxlate.cli import cli
from sassxlate.disasm.listing.cubin import Document, ListingOptions
from sassxlate.disasm.listing.find import find, opcodes

from .conftest import DATA

PLACE = re.compile(r"^ +/\*([0-9a-f]{4,})\*/ +(?:\[.*?\] +)?(.*?) ?;")
FILE = re.compile(r'//## File "(.*?)", line (\d+)')


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["disasm", *map(str, arguments)])


def listed(path: Path) -> dict[tuple[str, int], tuple[str, tuple[str, int] | None]]:
    """(function, offset) -> the instruction and its source line, of the listing with lines."""
    found: dict[tuple[str, int], tuple[str, tuple[str, int] | None]] = {}
    function, source = "", None
    options = ListingOptions(source="line")
    for line in Document(path.read_bytes(), options).lines():
        if line.startswith("\t.section\t.text."):
            function, source = line.split(".text.")[1].split(",")[0], None
        elif match := FILE.search(line):
            source = match[1], int(match[2])
        elif match := PLACE.match(line):
            found[function, int(match[1], 16)] = " ".join(match[2].split()), source
    return found


@pytest.mark.parametrize("name", ["lines_sm_90", "lines_relocatable_sm_120", "cuda13_sm_80"])
def test_all_opcodes_are_the_listing(name: str) -> None:
    """With the pattern * each instruction is there, with the line that the listing shows."""
    path = DATA / f"{name}.cubin"
    expected = listed(path)
    count = 0
    for one in find(Document(path.read_bytes()), ["*"]):
        for record in one.records:
            offset = int(str(record["offset"]), 16)
            text, source = expected[one.name, offset]
            assert " ".join(str(record["text"]).split()) == text.split(" (*")[0].strip()
            at = cast("dict[str, object] | None", record.get("source"))
            got = (at["file"], at["line"]) if at else None
            assert got == source, (one.name, hex(offset))
            count += 1
        assert one.total == len(one.records)
    assert count == len(expected)


def test_patterns_take_mnemonics_and_modifiers() -> None:
    path = DATA / "lines_sm_90.cubin"
    document = Document(path.read_bytes())

    def texts(*patterns: str) -> list[str]:
        return [str(r["text"]) for one in find(document, patterns) for r in one.records]

    stores = texts("stg")
    assert stores
    assert all("STG" in text for text in stores)
    assert set(texts("STG.E*")) <= set(stores)
    assert texts("STG.NOT") == []
    guarded = [text for text in texts("*") if text.startswith("@")]
    assert guarded  # the opcode is after the guard
    assert set(guarded) <= set(texts(*{text.split()[1].rstrip(";") for text in guarded}))


def test_command() -> None:
    path = DATA / "lines_sm_90.cubin"
    shown = run(path, "--find", "STG*", "--find", "LDG*")
    assert shown.exit_code == 0
    heads = [line for line in shown.stdout.splitlines() if not line.startswith(" ")]
    assert all(re.search(r", sm_90: \d+ of \d+ instructions$", line) for line in heads)
    assert re.search(r"^    /\*[0-9a-f]{4}\*/ .*STG.* ; // .*lines\.\w+:\d+$", shown.stdout, re.M)
    value = json.loads(run(path, "--find", "STG*", "--find", "LDG*", "--format", "json").stdout)
    count = sum(len(kernel["instructions"]) for kernel in value["kernels"])
    assert count == len(shown.stdout.splitlines()) - len(heads)
    assert run(path, "--find", "HMMA*").exit_code == 1
    assert run(path, "--find", "STG*", "--control").exit_code == 2


@pytest.mark.parametrize("name", ["lines_sm_90", "cuda13_sm_80", "cuda12_sm_80"])
def test_opcodes_are_counted(name: str) -> None:
    """As the listing has them, up to the last instruction that is no padding."""
    path = DATA / f"{name}.cubin"
    expected: dict[str, list[str]] = {}
    for (function, _), (text, _) in sorted(listed(path).items()):
        words = text.split()
        expected.setdefault(function, []).append(words[words[0].startswith("@")])
    counted = {one.name: one for one in opcodes(Document(path.read_bytes()))}
    assert counted.keys() == expected.keys()
    for function, texts in expected.items():
        while texts[-1] == "NOP":
            texts.pop()
        assert dict(counted[function].opcodes) == Counter(texts)
        assert counted[function].total == len(texts)


def test_count_command() -> None:
    path = DATA / "lines_sm_90.cubin"
    shown = run(path, "--count").stdout
    assert re.search(r", sm_90: \d+ instructions$", shown, re.M)
    numbers = [[int(line.split()[0]) for line in part.splitlines()[1:]]
               for part in re.split(r"^(?=\S)", shown, flags=re.M) if part]  # fmt: skip
    assert all(part == sorted(part, reverse=True) for part in numbers)
    value = json.loads(run(path, "--count", "--format", "json").stdout)
    assert [[*k["opcodes"].values()] for k in value["kernels"]] == numbers
    stores = json.loads(run(path, "--count", "--find", "STG", "--format", "json").stdout)
    assert all(opcode.startswith("STG") for k in stores["kernels"] for opcode in k["opcodes"])
    assert run(path, "--count", "--find", "HMMA*").exit_code == 1
    assert run(path, "--count", "--source").exit_code == 2
