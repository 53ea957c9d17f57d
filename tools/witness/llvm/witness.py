"""LLVM as a witness of the gfx1100 decoder: whole files, and the opcode space of every format.

::

    # every instruction of code objects (linked or
    python -m tools.witness.llvm.witness compare FILE...
                                                      # not), of HIP sources (compiled with -O0 to
                                                      # -O3) and of recorded programs (.jsonl.gz)
    # N words a format: random ones,
    python -m tools.witness.llvm.witness sweep [FORMAT...] --words N
                                                                # and legal ones with flipped bits
    # by format the opcodes that LLVM and we know
    python -m tools.witness.llvm.witness opcodes

Each prints a table and the words that differ.  A word that LLVM prints is ``equal``, ``differs``,
or refused by us; of the refused the sweep tells apart those where LLVM itself prints a warning
(``warned``), whose text its assembler refuses (``unreadable``) or assembles to other bytes, because
bits were ignored (``lossy``), and the rest (``gap``).  ``alone``: words that only we accept;
``theirs``: LLVM's text assembles to another word, ours to this one; ``nobodys``: LLVM's text
assembles to another word, and its assembler knows no text for this one.
The disassembler is a libLLVM (``SASSXLATE_LIBLLVM`` or the Rust toolchain's), the assembler clang.
"""

from __future__ import annotations

import argparse
import base64
import collections
import gzip
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from sassxlate import toolchain
from sassxlate.disasm.containers.code_object import is_code_object, read
from sassxlate.disasm.containers.offload_bundle import find_bundles, unbundle
from sassxlate.disasm.rdna3 import OPS, decode, encode, format_inst
from sassxlate.disasm.rdna3.samples import sample
from sassxlate.errors import SassxlateError
from tools.witness.llvm import llvm as witness

ROOT = Path(__file__).resolve().parents[3]


# Format: (mask and value of the first word, place and width of the opcode in it).
FORMATS: dict[str, tuple[int, int, int, int]] = {
    "SOP2": (0xC0000000, 0x80000000, 23, 7),
    "SOPK": (0xF0000000, 0xB0000000, 23, 5),
    "SOP1": (0xFF800000, 0xBE800000, 8, 8),
    "SOPC": (0xFF800000, 0xBF000000, 16, 7),
    "SOPP": (0xFF800000, 0xBF800000, 16, 7),
    "SMEM": (0xFC000000, 0xF4000000, 18, 8),
    "VOP2": (0x80000000, 0x00000000, 25, 6),
    "VOP1": (0xFE000000, 0x7E000000, 9, 8),
    "VOPC": (0xFE000000, 0x7C000000, 17, 8),
    "VOP3": (0xFC000000, 0xD4000000, 16, 10),
    "VOP3P": (0xFF000000, 0xCC000000, 16, 7),
    "VINTERP": (0xFF000000, 0xCD000000, 16, 7),
    "LDSDIR": (0xFF000000, 0xCE000000, 20, 2),
    "VOPD": (0xFC000000, 0xC8000000, 17, 9),
    "DS": (0xFC000000, 0xD8000000, 18, 8),
    "FLAT": (0xFC030000, 0xDC000000, 18, 7),
    "SCRATCH": (0xFC030000, 0xDC010000, 18, 7),
    "GLOBAL": (0xFC030000, 0xDC020000, 18, 7),
    "MUBUF": (0xFC000000, 0xE0000000, 18, 8),
    "MTBUF": (0xFC000000, 0xE8000000, 15, 4),
    "MIMG": (0xFC000000, 0xF0000000, 18, 8),
    "EXP": (0xFC000000, 0xF8000000, 0, 1),
}
SHORT = ("VOP1", "VOP2", "VOPC")
MEMORY = ("FLAT", "GLOBAL", "SCRATCH", "DS", "MUBUF", "MTBUF", "MIMG")
WARNED = re.compile(r"Warning|Invalid|Error|src_lds_direct")
COLUMNS = (
    "words", "neither", "equal", "differs", "theirs", "nobodys", "warned", "unreadable", "lossy",
    "gap", "alone",
)  # fmt: skip


class NoWitness(Exception):
    """No libLLVM with the AMDGPU target."""


Disassemble = Callable[[bytes], tuple[int, str]]


def find() -> Disassemble:
    """LLVM's disassembler for gfx1100; NoWitness where there is none."""
    found = witness.disassembler()
    if found is None:
        raise NoWitness("no libLLVM with the AMDGPU target; set SASSXLATE_LIBLLVM")
    return found


def ours(code: bytes) -> tuple[int, str]:
    """(size, text) of the first instruction; size 0 and the error where it is refused.

    Zeros are not an instruction, but a listing has LLVM's name for them.
    """
    if code[:4] == bytes(4):
        return 4, "v_illegal"
    try:
        inst, size = decode(code, strict=True)
        return size, format_inst(inst)
    except SassxlateError as error:
        return 0, f"{error.code} {error.message}"


@dataclass
class Tally:
    """Counts by verdict, and the words of each verdict that needs looking at."""

    counts: collections.Counter[str] = field(default_factory=collections.Counter[str])
    rows: list[tuple[str, bytes, str, str]] = field(
        default_factory=list[tuple[str, bytes, str, str]]
    )

    def add(self, verdict: str, code: bytes, llvm: str, text: str) -> None:
        """Count a word; equal ones and those that both refuse are not kept."""
        self.counts[verdict] += 1
        if verdict not in ("equal", "neither", "warned"):
            self.rows.append((verdict, code, llvm, text))


def judge(tally: Tally, disassemble: Disassemble, code: bytes) -> int:
    """Compare one instruction; the size by LLVM, 0 if it has none."""
    tally.counts["words"] += 1
    our_size, text = ours(code)
    size, llvm = disassemble(code.ljust(16, b"\0"))  # LLVM crashes if a literal is cut off
    if size > len(code):
        size = 0
    if not size:
        tally.add("alone" if our_size else "neither", code[: our_size or 4], "", text)
    elif not our_size:
        verdict = "warned" if WARNED.search(llvm) else "refused"
        tally.add(verdict, code[:size], llvm, text)
    else:
        same = (size, llvm) == (our_size, text)
        warned = not same and WARNED.search(llvm) is not None
        tally.add("equal" if same else "warned" if warned else "differs", code[:size], llvm, text)
    return size


def explain(tally: Tally, verdicts: tuple[str, ...] = ("refused", "differs")) -> None:
    """Ask the assembler about the words that we refuse or print otherwise."""
    doubted: list[int] = []
    asked = [i for i, row in enumerate(tally.rows) if row[0] in verdicts]
    codes: list[bytes | None] = []
    for start in range(0, len(asked), 20_000):
        part = asked[start : start + 20_000]
        codes += witness.assemble_lines([tally.rows[i][2] for i in part])[0]
    for i, made in zip(asked, codes, strict=True):
        verdict, code, llvm, text = tally.rows[i]
        if verdict == "differs":
            if made != code:  # LLVM's text does not mean this word
                doubted.append(i)
            continue
        kind = "unreadable" if made is None else "gap" if made == code else "lossy"
        tally.counts[kind] += 1
        tally.rows[i] = (kind, code, llvm, text)
    codes = witness.assemble_lines([tally.rows[i][3] for i in doubted])[0]
    for i, made in zip(doubted, codes, strict=True):
        right = made is not None and tally.rows[i][1].startswith(made)
        tally.counts["differs"] -= 1
        tally.counts["theirs" if right else "nobodys"] += 1
        tally.rows[i] = ("theirs" if right else "nobodys", *tally.rows[i][1:])


def random_word(rng: Random, name: str, opcode: int) -> bytes:
    """Twelve bytes that begin with an instruction of a format, its fields random or sparse."""
    mask, value, lo, width = FORMATS[name]
    low, high, literal = (rng.getrandbits(32) for _ in range(3))
    for _ in range(rng.choice((0, 0, 1, 2))):
        low, high = low & rng.getrandbits(32), high & rng.getrandbits(32)
    low = low & ~mask | value
    if not mask >> lo & 1:
        low = low & ~(((1 << width) - 1) << lo) | opcode << lo
    literal = rng.choice((literal, rng.randrange(65), literal >> 16, 0xFFFFFFFF))
    if name == "SMEM" and rng.random() < 0.8:
        low &= ~0x38000
        high = high & 0x1FFFFF | rng.choice((124, 124, rng.randrange(106))) << 25
    if name in MEMORY and rng.random() < 0.7:
        high = high & ~(0x7F << 16) | 124 << 16
    if name in (*SHORT, "VOP3", "VOP3P") and rng.random() < 0.2:
        special = rng.choice((250, 233, 234, 255))
        control = rng.choice((rng.randrange(0x180), 0x140, 0x141, 0x150, 0x160))
        signs = rng.getrandbits(4) << 20 if name in SHORT else 0
        dpp = literal & 0xFF0C00FF | control << 8 | signs
        if name in SHORT:
            low = low & ~0x1FF | special
            high = dpp if special == 250 else literal
        else:
            high = high & ~0x1FF | special
            literal = dpp if special == 250 else literal
    return b"".join(x.to_bytes(4, "little") for x in (low, high, literal))


def _has(name: str, forms: Iterable[str]) -> bool:
    return name in forms or (name == "VOP3" and "VOP3SD" in forms)


def mutants(rng: Random, name: str, count: int) -> Iterator[bytes]:
    """Legal instructions of a format with one to three bits flipped."""
    mask, value, _, _ = FORMATS[name]
    ops = [op for op, row in OPS.items() if _has(name, row.forms)]
    made = 0
    for attempt in range(count * 20):
        if not ops or made == count:
            return
        code = encode(sample(rng, ops[attempt % len(ops)]))
        word = int.from_bytes(code, "little")
        if word & mask != value:
            continue  # encoded in another of its formats
        for _ in range(rng.choice((1, 1, 2, 3))):
            word ^= 1 << rng.randrange(8 * len(code))
        made += 1
        yield (word & ((1 << 8 * len(code)) - 1)).to_bytes(len(code), "little").ljust(12, b"\0")


def sweep(names: list[str], words: int, seed: int, *, gaps: bool = True) -> dict[str, Tally]:
    """The verdicts by format; without ``gaps`` refused words stay ``refused``, which is faster."""
    disassemble = find()
    out: dict[str, Tally] = {}
    for name in names:
        rng = Random(f"{name} {seed}")
        tally = out[name] = Tally()
        opcodes = 1 << FORMATS[name][3]
        for i in range(words // 2):
            judge(tally, disassemble, random_word(rng, name, i % opcodes))
        for code in mutants(rng, name, words - words // 2):
            judge(tally, disassemble, code)
        explain(tally, ("refused", "differs") if gaps else ("differs",))
    return out


def _mnemonic(text: str) -> str:
    return text.split()[0].split("_e32")[0].split("_e64")[0].split("_dpp")[0]


def opcodes(name: str, tries: int = 120) -> tuple[dict[int, str], dict[int, str]]:
    """Opcode to mnemonic of a format: what LLVM prints without a warning, and what we print.

    Asked are a legal instruction of each of our opcodes, and random words of all opcodes.
    """
    disassemble = find()
    mask, value, lo, width = FORMATS[name]
    found: tuple[dict[int, str], dict[int, str]] = ({}, {})

    def ask(opcode: int, code: bytes) -> None:
        both = disassemble(code.ljust(16, b"\0")), ours(code)
        for known, (size, text) in zip(found, both, strict=True):
            if size and not WARNED.search(text):
                known.setdefault(opcode, _mnemonic(text))

    rng = Random(name)
    for op, row in OPS.items():
        opcode = row.forms.get(name, row.forms.get("VOP3SD") if name == "VOP3" else None)
        if opcode is not None and name not in ("VOPD", "EXP"):
            ask(opcode, encode(replace(sample(rng, op), enc="e64" if name == "VOP3" else "")))
    for opcode in range(1 << width):
        rng = Random(f"{name} {opcode}")
        for _ in range(tries):
            if opcode in found[0] and opcode in found[1]:
                break
            code = random_word(rng, name, opcode)
            low = int.from_bytes(code[:4], "little")
            here = low >> lo & (1 << width) - 1
            if low & mask == value and (mask >> lo & 1 or here == opcode):
                ask(opcode, code)
    return found


def _print_opcodes() -> None:
    print(f"{'':9}{'LLVM':>6}{'ours':>6}{'both':>6}  one alone, or another name")
    for name in FORMATS:
        llvm, own = opcodes(name)
        both = sum(own.get(opcode) == text for opcode, text in llvm.items())
        other = [
            f"{opcode}: {llvm.get(opcode, '-')} / {own.get(opcode, '-')}"
            for opcode in sorted({*llvm, *own})
            if llvm.get(opcode) != own.get(opcode)
        ]
        print(f"{name:9}{len(llvm):6}{len(own):6}{both:6}  {', '.join(other)}")


def codes_of(path: Path) -> Iterator[tuple[str, bytes]]:
    """(name, code) of a file: executable sections, or the programs of a recording."""
    if path.name.endswith(".jsonl.gz"):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                yield row["t"], base64.b64decode(row["code"])
        return
    data = path.read_bytes()
    if path.suffix == ".hip":
        for level in range(4):
            made, messages = witness.compile_hip(path, level)
            if made is None:
                raise SystemExit(f"{path}: {messages}")
            yield from _code_sections(f"{path.name} -O{level}", made, path)
        return
    if is_code_object(data) and data[:4] == b"\x7fELF":
        parts = [(path.name, data)]
    else:
        bundles = find_bundles(data)
        parts = [part for bundle in bundles for part in unbundle(bundle)]
        parts = [(name, part) for name, part in parts if "gfx1100" in name]
    if not parts:
        raise SystemExit(f"{path}: no code for gfx1100 and no recorded programs")
    for name, part in parts:
        yield from _code_sections(name, part, path)


def _code_sections(name: str, data: bytes, path: Path) -> Iterator[tuple[str, bytes]]:
    for section in read(data, str(path)).sections:
        if section.code and section.data:
            yield f"{name}:{section.name}", section.data


def witness_ignores(disassemble: Disassemble, code: bytes, made: bytes) -> bool:
    """Whether LLVM prints both words alike: they differ in bits that it ignores."""
    both = [disassemble(word.ljust(12, b"\0")) for word in (code, made)]
    return both[0] == both[1]


def compare(paths: list[Path]) -> Tally:
    """Every instruction of the files against LLVM's text, and LLVM's bytes of our text."""
    disassemble = find()
    tally = Tally()
    texts: dict[bytes, str] = {}
    for path in paths:
        for _, code in codes_of(path):
            at = 0
            while at < len(code):
                window = code[at : at + 12]
                size = judge(tally, disassemble, window) or 4
                text = ours(window)
                if text[0]:
                    texts[window[: text[0]]] = text[1]
                at += size
    codes, errors = witness.assemble_lines(list(texts.values()))
    for i, (code, made) in enumerate(zip(texts, codes, strict=True)):
        if made is not None and made != code and witness_ignores(disassemble, code, made):
            tally.counts["lossy"] += 1
        elif made != code:
            kind = "unreadable" if made is None else "bytes"
            tally.add(kind, code, texts[code], errors.get(i, made.hex() if made else ""))
    tally.counts["distinct"] = len(texts)
    return tally


def _version() -> str:
    path = Path(witness.library())
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    clang = toolchain.clang()
    assembler = f"clang {clang.version} ({clang.origin})" if clang else "none"
    version = ".".join(map(str, witness.library_version()))
    return f"disassembler: LLVM {version}, sha256 {digest}\nassembler: {assembler}"


def _print_rows(tally: Tally, kinds: tuple[str, ...], limit: int) -> None:
    for kind in kinds:
        rows = [row for row in tally.rows if row[0] == kind]
        for _, code, llvm, text in rows[:limit]:
            print(f"  {kind} {code.hex()}\n    LLVM {llvm}\n    ours {text}")


def _reasons(tally: Tally) -> Iterator[str]:
    """Why words are refused: our code and message, LLVM's mnemonic left out, by verdict."""
    found: collections.Counter[tuple[str, str]] = collections.Counter()
    for kind, _, _, text in tally.rows:
        if kind in ("unreadable", "lossy", "gap"):
            reason = re.sub(r" [a-z]\w+:", "", text)
            found[kind, re.sub(r"0x[0-9a-f]+|0b\d+|\d+$", "N", reason)] += 1
    for (kind, reason), count in found.most_common():
        yield f"  {count:7} {kind:10} {reason}"


def _table(rows: dict[str, Tally], columns: tuple[str, ...]) -> None:
    print(f"{'':9}" + "".join(f"{c:>11}" for c in columns))
    for name, tally in rows.items():
        print(f"{name:9}" + "".join(f"{tally.counts[c]:11,}" for c in columns))


def main(argv: list[str] | None = None) -> int:
    """Exit status 1 where text or bytes differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    files = commands.add_parser("compare", help="code objects and recorded programs")
    files.add_argument("files", nargs="+", type=Path)
    space = commands.add_parser("sweep", help="random and mutated words of every format")
    space.add_argument("formats", nargs="*", metavar="FORMAT", help=" ".join(FORMATS))
    space.add_argument("--words", type=int, default=10_000, help="a format (default: 10,000)")
    space.add_argument("--seed", type=int, default=1)
    commands.add_parser("opcodes", help="the opcodes of every format, by name")
    for command in (files, space):
        command.add_argument("--rows", type=int, default=5, help="words shown of each kind")
    args = parser.parse_args(argv)
    try:
        print(_version())
        if args.command == "compare":
            tally = compare(args.files)
            columns = (
                "words",
                "distinct",
                "equal",
                "differs",
                "warned",
                "refused",
                "neither",
                "alone",
            )
            _table({"": tally}, (*columns, "unreadable", "lossy", "bytes"))
            _print_rows(tally, ("differs", "refused", "alone", "unreadable", "bytes"), args.rows)
            return int(bool(tally.counts["differs"] or tally.counts["bytes"]))
        if args.command == "opcodes":
            _print_opcodes()
            return 0
        rows = sweep(args.formats or list(FORMATS), args.words, args.seed)
    except NoWitness as error:
        print(f"rdna3_witness: {error}", file=sys.stderr)
        return 2
    _table(rows, COLUMNS)
    for name, tally in rows.items():
        print(f"{name}:")
        for line in _reasons(tally):
            print(line)
        _print_rows(tally, ("differs", "nobodys", "gap", "alone"), args.rows)
    return int(any(t.counts["differs"] or t.counts["alone"] for t in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
