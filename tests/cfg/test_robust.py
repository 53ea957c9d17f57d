"""Graphs of code that no compiler made: unknown words, branches that lead out, damaged files, names
of every kind; through the commands and all their formats."""

from __future__ import annotations

import html
import json
import random
import re
import struct
import xml.etree.ElementTree as ET
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from sassxlate.cli import cli
from sassxlate.disasm.containers import Kernel, load
from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.sass.codec.assembler import assemble_listing

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "fixtures" / "kernels"
BENCH = ROOT / "fixtures" / "bench"
CFG = ("text", "dot", "json", "svg", "html")
DIFF = ("text", "json", "html")
UNKNOWN = b"\xff" * 8 + b"\x12\x34\x56\x78\x9a\xbc\xde\xf0"
EVIL = {
    "long": "_Z" + "x" * 4000,
    "html": "a<script>alert(1)</script>&amp;\"'><img src=x onerror=alert(2)>",
    "json": '</script><!--]]>\\"\u2028',
    "lines": "a\nb\r\nc\td\x1b[31m\x07",
    "bidi": "safe\u202egnp.exe\u2066\u200f",
}


def invoke(*args: str) -> tuple[int, str, str]:
    """(status, stdout, stderr) of a command; an error without a type fails the test."""
    done = CliRunner().invoke(cli, args)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


@cache
def cubin(name: str, arch: str = "sm_80") -> tuple[bytes, Kernel, int]:
    """A kept cubin's bytes, its kernel, and the offset of the kernel's code."""
    path = KERNELS / arch / f"{name}.cubin"
    kernel = next(iter(load(str(path)).cubins()))[1].kernels[0]
    data = path.read_bytes()
    return data, kernel, data.index(kernel.code)


def patched(name: str, words: dict[int, bytes], arch: str = "sm_80") -> bytes:
    """The cubin with other words at offsets of its code."""
    data, _, at = cubin(name, arch)
    out = bytearray(data)
    for offset, word in words.items():
        out[at + offset : at + offset + len(word)] = word
    return bytes(out)


def offset_of(name: str, mnemonic: str, nth: int = 0) -> int:
    """The offset of an instruction by its mnemonic, from the listing."""
    status, out, _ = invoke("cfg", str(KERNELS / "sm_80" / f"{name}.cubin"), "-k", "*")
    assert status == 0
    found = re.findall(rf"/\*([0-9a-f]+)\*/ (?:@\S+ )?{re.escape(mnemonic)}", out)
    return int(found[nth], 16)


def sound(kind: str, text: str) -> None:
    """The output is well formed and contains no foreign markup."""
    if kind == "json":
        assert json.loads(text)["schema"].startswith("sassxlate.")
    elif kind == "svg":
        ET.fromstring(text)
    elif kind == "html":
        assert text.count("<script") == text.count("</script>") <= 3
        assert "<img" not in text
        assert "<!--" not in text
    elif kind == "dot":
        assert text.count("{") - text.count("\\{") == text.count("}") - text.count("\\}")


def all_formats(path: Path, statuses: set[int], *more: str) -> dict[str, tuple[str, str]]:
    """The output of `cfg` and of `diff` with itself for a file, by format."""
    out: dict[str, tuple[str, str]] = {}
    for kind in CFG:
        status, text, said = invoke("cfg", str(path), "-k", "*", "--format", kind, *more)
        assert status in statuses, (kind, status, said)
        sound(kind, text)
        out[kind] = text, said
    for kind in DIFF:
        status, text, said = invoke("diff", str(path), str(path), "--format", kind, *more)
        assert status == 0, (kind, status, said)
        sound(kind, text)
        out[f"diff {kind}"] = text, said
    assert json.loads(out["diff json"][0])["kernels"][0]["same"] is True
    return out


def test_unknown_word(tmp_path: Path) -> None:
    place = offset_of("nested_break", "BRA", 1) - 32
    path = tmp_path / "x.cubin"
    path.write_bytes(patched("nested_break", {place: UNKNOWN}))
    said = all_formats(path, {3})
    for kind in CFG:
        text, message = said[kind]
        assert "SX0201" in message
        assert f"/*{place:04x}*/" in message
        assert "SX0201" in html.unescape(text)
        assert UNKNOWN[::-1].hex() in text  # the word as a number
    data = json.loads(said["json"][0])["kernels"][0]
    assert any("1 of" in note and "unknown" in note for note in data["notes"])
    block = next(b for b in data["blocks"] if any(i["offset"] == place for i in b["instructions"]))
    assert block["instructions"][-1]["offset"] == place
    assert not [e for e in data["edges"] if e["from"] == block["index"]]
    # The code before it, and code reached by other paths, is still drawn.
    whole = json.loads(invoke("cfg", str(KERNELS / "sm_80/nested_break.cubin"), "-k", "*",
                              "--format", "json")[1])["kernels"][0]  # fmt: skip
    texts = {i["text"] for b in whole["blocks"] for i in b["instructions"]}
    drawn = {i["text"] for b in data["blocks"] for i in b["instructions"]}
    assert len(texts - drawn) <= 1


def test_an_unknown_word_at_the_entry_and_everywhere(tmp_path: Path) -> None:
    path = tmp_path / "x.cubin"
    path.write_bytes(patched("calls", {0: UNKNOWN}))
    all_formats(path, {3})
    _, kernel, _ = cubin("calls")
    path.write_bytes(patched("calls", {0: UNKNOWN * (len(kernel.code) // 16)}))
    said = all_formats(path, {3})
    assert len(json.loads(said["json"][0])["kernels"][0]["blocks"]) == 1


def test_an_unknown_word_differs(tmp_path: Path) -> None:
    path = tmp_path / "x.cubin"
    path.write_bytes(patched("nested_break", {0x40: UNKNOWN}))
    known = str(KERNELS / "sm_80/nested_break.cubin")
    for kind in DIFF:
        status, text, said = invoke("diff", known, str(path), "--format", kind)
        assert status == 1
        assert "SX0201" in said
        sound(kind, text)
    assert f"+ ? 0x{UNKNOWN[::-1].hex()}" in invoke("diff", known, str(path))[1]


def test_a_branch_out_of_the_code(tmp_path: Path) -> None:
    _, kernel, _ = cubin("nested_break")
    at = offset_of("nested_break", "BRA")
    word = int.from_bytes(kernel.code[at : at + 16], "little")
    word |= 0xFFFF00 << 34  # its displacement
    path = tmp_path / "x.cubin"
    path.write_bytes(patched("nested_break", {at: word.to_bytes(16, "little")}))
    said = all_formats(path, {3})
    assert "SX0301" in said["text"][1]
    assert f"where control goes is not known at {at:#x}" in said["text"][0]


def test_an_indirect_branch_whose_targets_are_lost(tmp_path: Path) -> None:
    at = offset_of("jump_table", "BRX")
    data, kernel, _ = cubin("jump_table")
    targets = kernel.indirect_targets[at]
    record = at.to_bytes(4, "little")
    places = [m.start() for m in re.finditer(re.escape(record), data)]
    path = tmp_path / "x.cubin"
    for place in places:  # the attribute's record names the branch
        changed = bytearray(data)
        changed[place : place + 4] = (at - 16).to_bytes(4, "little")
        path.write_bytes(changed)
        status, text, said = invoke("cfg", str(path), "-k", "*")
        if "SX0302" in said:
            assert status == 3
            assert f"{at:#x}" in text
            assert f"block {targets[0]:04x}" not in text or "not reached" in text
            all_formats(path, {3})
            return
    pytest.fail("no record of the branch's targets")


def test_an_indirect_branch_with_zeros_for_targets() -> None:
    """As ptxas 11.8 lists some of sm_90: the kernel's constants have them."""
    at = offset_of("jump_table", "BRX")
    data, kernel, _ = cubin("jump_table")
    targets = kernel.indirect_targets[at]
    record = struct.pack(f"<{3 + len(targets)}I", at, 0, len(targets), *targets)
    assert data.count(record) == 1
    nothing = struct.pack(f"<{3 + len(targets)}I", at, 0, *(len(targets), *(0 for _ in targets)))
    (changed,) = parse_cubin(data.replace(record, nothing)).kernels
    assert set(changed.indirect_targets[at]) == set(targets)


IRREDUCIBLE = """
/*0000*/ ISETP.GE.AND P0, PT, R0, 0x1, PT ;
/*0010*/ @P0 BRA 0x40 ;
/*0020*/ IADD3 R1, R1, 0x1, RZ ;
/*0030*/ ISETP.GE.AND P1, PT, R1, 0x1, PT ;
/*0040*/ IADD3 R2, R2, 0x1, RZ ;
/*0050*/ ISETP.GE.AND P1, PT, R2, 0x9, PT ;
/*0060*/ @P1 BRA 0x20 ;
/*0070*/ EXIT ;
/*0080*/ IADD3 R3, R3, 0x1, RZ ;
/*0090*/ BRA 0x80 ;
"""


def test_a_loop_with_two_entries_and_blocks_that_nothing_reaches(tmp_path: Path) -> None:
    (code,) = assemble_listing(IRREDUCIBLE.splitlines(), 80).values()
    path = tmp_path / "x.cubin"
    path.write_bytes(patched("nested_break", {0: code}))
    data = json.loads(all_formats(path, {0})["json"][0])["kernels"][0]
    assert [b["start"] for b in data["blocks"]] == [0, 0x20, 0x40, 0x70]
    ways = {(e["from"], e["to"]): e["back"] for e in data["edges"]}
    assert set(ways) == {(0, 1), (0, 2), (1, 2), (2, 1), (2, 3)}
    assert not data["loops"]  # no block of it dominates the others
    # If a word is unknown, reachability is unknown, and everything is drawn.
    path.write_bytes(patched("nested_break", {0: code, 0x70: UNKNOWN}))
    data = json.loads(all_formats(path, {3})["json"][0])["kernels"][0]
    reached = {b["start"]: b["reachable"] for b in data["blocks"]}
    assert reached[0x70] is True
    assert reached[0x80] is False
    assert {"from": 4, "to": 4, "kind": "jump", "back": False} in data["edges"]


KILLED = """\
/*0000*/ BSSY B1, 0x50 ;
/*0010*/ WARPSYNC.COLLECTIVE R6, 0x40 ;
/*0020*/ SHFL.IDX P0, R8, R8, R9, R11 ;
/*0030*/ KILL ;
/*0040*/ BSYNC B1 ;
/*0050*/ IADD3 R2, R2, 0x1, RZ ;
/*0060*/ @P1 BRA 0x50 ;
/*0070*/ EXIT ;
"""


def test_blocks_after_a_collective_whose_lanes_end(tmp_path: Path) -> None:
    """No edge leads there and they have no dominator: their loop was an internal error."""
    (code,) = assemble_listing(KILLED.splitlines(), 90).values()
    path = tmp_path / "x.cubin"
    path.write_bytes(patched("nested_break", {0: code}, "sm_90"))
    data = json.loads(all_formats(path, {0})["json"][0])["kernels"][0]
    assert [b["start"] for b in data["blocks"]] == [0, 0x20, 0x40, 0x50, 0x70]
    assert {(e["from"], e["to"]) for e in data["edges"]} >= {(2, 3), (3, 3), (3, 4)}
    assert not data["loops"]


def test_one_block(tmp_path: Path) -> None:
    (code,) = assemble_listing(["/*0000*/ EXIT ;"], 80).values()
    path = tmp_path / "x.cubin"
    path.write_bytes(patched("nested_break", {0: code}))
    assert len(json.loads(all_formats(path, {0})["json"][0])["kernels"][0]["blocks"]) == 1


def section(data: bytes, name: bytes) -> int:
    """The place of an ELF section's header, by name."""
    table = int.from_bytes(data[40:48], "little")
    count, names = int.from_bytes(data[60:62], "little"), int.from_bytes(data[62:64], "little")
    strings = int.from_bytes(data[table + 64 * names + 24 :][:8], "little")
    for i in range(count):
        at = table + 64 * i
        start = strings + int.from_bytes(data[at : at + 4], "little")
        if data[start : data.index(b"\0", start)] == name:
            return at
    raise KeyError(name)


@pytest.mark.parametrize("size", [0, 8, 16, 24, 40])
def test_kernels_of_few_bytes(size: int, tmp_path: Path) -> None:
    """None, half a word, one, and some followed by half a word."""
    data = bytearray(cubin("divergent_if")[0])
    at = section(bytes(data), b".text.divergent_if")
    data[at + 32 : at + 40] = size.to_bytes(8, "little")
    path = tmp_path / "x.cubin"
    path.write_bytes(data)
    for kind in CFG:
        status, text, said = invoke("cfg", str(path), "-k", "*", "--format", kind)
        if "SX01" in said:  # the container is refused: that is a valid result, too
            assert status == 2
            continue
        assert status == (0 if size == 0 else 3), (kind, said)
        sound(kind, text)
    for kind in DIFF:
        status, text, said = invoke("diff", str(path), str(path), "--format", kind)
        assert status == (2 if "SX01" in said else 0), said


@pytest.mark.parametrize("which", EVIL)
@pytest.mark.parametrize("kernel", ["divergent_if", "alu"])
def test_names(which: str, kernel: str, tmp_path: Path) -> None:
    """Names that are hostile to a page, a picture or a terminal."""
    if kernel == "alu":
        data, old = (BENCH / "alu.hsaco").read_bytes(), _a_name(BENCH / "alu.hsaco")
    else:
        data, old = cubin(kernel)[0], kernel.encode()
    path = tmp_path / "x.bin"
    path.write_bytes(with_name(data, old, EVIL[which].encode()))
    for kind in CFG:
        status, text, said = invoke("cfg", str(path), "-k", "*", "--format", kind)
        assert status == 0, said
        sound(kind, text)
        assert not {*"\x1b\x07\r\u2028\u202e\u2066\u200f"} & {*text}, kind
        if kind == "json":
            name = json.loads(text)["kernels"][0]["name"]
            assert name.startswith(EVIL[which].split("\n")[0][:4])
            assert which != "long" or len(name) == 4002
    for kind in DIFF:
        status, text, said = invoke("diff", str(path), str(path), "--format", kind)
        assert status == 0, said
        sound(kind, text)


def _a_name(path: Path) -> bytes:
    status, out, _ = invoke("cfg", str(path), "-k", "*", "--format", "json")
    assert status == 0
    return str(json.loads(out)["kernels"][0]["name"]).encode()


def with_name(data: bytes, old: bytes, new: bytes) -> bytes:
    """An ELF file whose symbol ``old``, and the section of its code, are called ``new``: every
    string table that has the name goes to the end of the file, larger."""
    out = bytearray(data)
    table = int.from_bytes(data[40:48], "little")
    count = int.from_bytes(data[60:62], "little")
    for i in range(count):
        at = table + 64 * i
        if int.from_bytes(data[at + 4 : at + 8], "little") != 3:
            continue
        start = int.from_bytes(data[at + 24 : at + 32], "little")
        size = int.from_bytes(data[at + 32 : at + 40], "little")
        strings = data[start : start + size]
        if old + b"\0" not in strings:
            continue
        # Offsets of other names stay: the old table, followed by the new names.
        grown = bytearray(strings)
        moved: dict[int, int] = {}
        for found in re.finditer(re.escape(old) + b"\0", strings):
            begin = strings.rfind(b"\0", 0, found.start()) + 1
            moved[begin] = len(grown)
            grown += strings[begin : found.start()] + new.replace(b"\0", b"") + b"\0"
        _point(out, data, table, count, i, moved)
        out[at + 24 : at + 32] = len(out).to_bytes(8, "little")
        out[at + 32 : at + 40] = len(grown).to_bytes(8, "little")
        out += grown
    return bytes(out)


def _point(
    out: bytearray, data: bytes, table: int, count: int, strings: int, moved: dict[int, int]
) -> None:
    """Symbols and section headers that named the old places name the new."""
    names = int.from_bytes(data[62:64], "little")
    for i in range(count):
        at = table + 64 * i
        name = int.from_bytes(data[at : at + 4], "little")
        if strings == names and name in moved:
            out[at : at + 4] = moved[name].to_bytes(4, "little")
        kind = int.from_bytes(data[at + 4 : at + 8], "little")
        if kind in (2, 11) and int.from_bytes(data[at + 40 : at + 44], "little") == strings:
            start = int.from_bytes(data[at + 24 : at + 32], "little")
            size = int.from_bytes(data[at + 32 : at + 40], "little")
            for place in range(start, start + size, 24):
                name = int.from_bytes(data[place : place + 4], "little")
                if name in moved:
                    out[place : place + 4] = moved[name].to_bytes(4, "little")


# --- damage -------------------------------------------------------------------------------------
def judged(path: Path, kinds: tuple[str, ...]) -> None:
    """A damaged file gives a picture or a typed error, never anything else."""
    for kind in kinds:
        status, text, said = invoke("cfg", str(path), "-k", "*", "--format", kind)
        assert status in (0, 2, 3), (status, said)
        if status:
            assert re.search(r"sassxlate: SX\d{4}", said), said
        if status in (0, 3) and text:
            sound(kind, text)


def fuzz(path: Path, out: Path, rounds: int, seed: str, kinds: tuple[str, ...]) -> None:
    data = path.read_bytes()
    some = random.Random(f"{seed} {path.name}")
    changes: list[Callable[[bytes], bytes]] = [
        lambda d: d[: some.randrange(len(d))],
        lambda d: _flipped(d, some, 1),
        lambda d: _flipped(d, some, 20),
        lambda d: _overwritten(d, some),
    ]
    for _ in range(rounds):
        out.write_bytes(some.choice(changes)(data))
        judged(out, kinds)


def _flipped(data: bytes, some: random.Random, count: int) -> bytes:
    out = bytearray(data)
    for _ in range(count):
        out[some.randrange(len(out))] ^= 1 << some.randrange(8)
    return bytes(out)


def _overwritten(data: bytes, some: random.Random) -> bytes:
    at, size = some.randrange(len(data)), some.choice([1, 4, 16, 200])
    return data[:at] + some.randbytes(size) + data[at + size :]


FILES = [
    KERNELS / "sm_80" / "calls.cubin",
    KERNELS / "sm_90" / "jump_table.cubin",
    KERNELS / "sm_120" / "nested_break.cubin",
    BENCH / "alu.hsaco",
]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_damaged_files(path: Path, tmp_path: Path) -> None:
    fuzz(path, tmp_path / "x.bin", 12, "few", ("json",))


@pytest.mark.sweep
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_damaged_files_many(path: Path, tmp_path: Path) -> None:
    fuzz(path, tmp_path / "x.bin", 250, "many", ("text", "html", "svg"))


@pytest.mark.sweep
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_files_cut_at_many_places(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    out = tmp_path / "x.bin"
    for size in range(0, len(data), max(1, len(data) // 300)):
        out.write_bytes(data[:size])
        judged(out, ("json",))


@pytest.mark.sweep
@pytest.mark.parametrize("path", FILES[:3], ids=lambda p: p.stem)
def test_differences_of_damaged_files(path: Path, tmp_path: Path) -> None:
    some = random.Random(path.name)
    out = tmp_path / "x.bin"
    for _ in range(60):
        out.write_bytes(_flipped(path.read_bytes(), some, 6))
        for kind in DIFF:
            status, text, said = invoke("diff", str(path), str(out), "--format", kind)
            assert status in (0, 1, 2, 3), said
            if status > 1:
                assert re.search(r"sassxlate: SX\d{4}", said)
            elif text:
                sound(kind, text)
