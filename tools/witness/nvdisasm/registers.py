"""Compares the registers that each instruction reads and writes with nvdisasm's life ranges
(``-plr``).

::

    # executables, libraries, cubins, wheels, folders
    python -m tools.witness.nvdisasm.registers FILE...
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from sassxlate.disasm.containers import parse_cubin
from sassxlate.disasm.sass import BadWord, decode_section
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.disasm.sass.tables.spec import GENERATION_OF
from tools.coverage import corpus as sass_corpus
from tools.witness.nvdisasm import witness as sass_witness

Register: TypeAlias = tuple[str, int]
Form: TypeAlias = tuple[str, int]  # mnemonic and opcode
_FILES: Mapping[str, str] = {"GPR": "R", "PRED": "P", "UGPR": "UR", "UPRED": "UP"}
# Control transfers show the life ranges of the code after them.
_ELSEWHERE = frozenset({"CALL", "RET", "BRX", "BRXU"})


@dataclass(frozen=True, slots=True)
class Touched:
    """The registers that an instruction reads and writes."""

    reads: frozenset[Register]
    writes: frozenset[Register]


@dataclass(frozen=True, slots=True)
class Difference:
    """An instruction for which nvdisasm's registers differ."""

    arch: int
    instruction: Instruction
    ours: Touched
    theirs: Touched

    def __str__(self) -> str:
        reads = sorted(self.ours.reads ^ self.theirs.reads)
        writes = sorted(self.ours.writes ^ self.theirs.writes)
        return f"sm_{self.arch} {self.instruction.text}: reads {reads}, writes {writes}"


def life_ranges(witness: sass_witness.Witness, cubin: Path) -> dict[str, dict[int, Touched]]:
    """Section name -> offset -> registers, from the columns that nvdisasm draws."""
    return {
        section: {
            offset: Touched(_marked(found, "vx"), _marked(found, "^x"))
            for offset, found in marks.items()
        }
        for section, marks in _columns(witness, cubin).items()
    }


def live_before(
    witness: sass_witness.Witness, cubin: Path
) -> dict[str, dict[int, frozenset[Register]]]:
    """Section name -> offset -> the registers whose ranges begin before the instruction."""
    return {
        section: {offset: _marked(found, ":vx") for offset, found in marks.items()}
        for section, marks in _columns(witness, cubin).items()
    }


def _marked(marks: Mapping[Register, str], wanted: str) -> frozenset[Register]:
    return frozenset(register for register, mark in marks.items() if mark in wanted)


def _columns(
    witness: sass_witness.Witness, cubin: Path
) -> dict[str, dict[int, dict[Register, str]]]:
    """Section name -> offset -> the mark in each register's column: ``^`` written, ``v`` read,
    ``x`` both, ``:`` in between."""
    done = subprocess.run(
        [witness.path, "-c", "-plr", str(cubin)], capture_output=True, text=True, check=True
    )
    out: dict[str, dict[int, dict[Register, str]]] = {}
    names: list[str] = []
    columns: dict[int, Register] = {}
    current: dict[int, dict[Register, str]] = {}
    for line in done.stdout.splitlines():
        section = re.match(r"^\.text\.(\S+):", line)
        if section:
            current = out.setdefault(section[1], {})
        _, bar, tail = line.partition("// |")
        if not bar:
            continue
        tail = f"|{tail}"
        if re.search(r"\b(GPR|PRED)\b", tail):
            names = re.findall(r"\bU?(?:GPR|PRED)\b", tail)
        elif re.search(r"#\s+\d", tail):
            columns = {
                group.start() + number.end() - 1: (_FILES[name], int(number[0]))
                for name, group in zip(names, re.finditer(r"\|[^|]*(?=\|)", tail), strict=True)
                for number in re.finditer(r"\d+", group[0])
            }
        else:
            place = re.match(r"^\s+/\*([0-9a-f]{4,})\*/", line)
            if place:
                current[int(place[1], 16)] = {
                    reg: tail[at]
                    for at, reg in columns.items()
                    if at < len(tail) and not tail[at].isspace()
                }
    return out


def touched(inst: Instruction) -> Touched:
    """Our reading, without the convergence barriers, which nvdisasm does not show."""
    return Touched(
        frozenset((r.file, r.index) for r in inst.reads if r.file != "B"),
        frozenset((r.file, r.index) for r in inst.writes if r.file != "B"),
    )


def registers_named(text: str) -> set[tuple[str, int]]:
    """``R4-7 P0`` as (file, index) pairs; ValueError for anything else than R, UR, P, UP, B."""
    out: set[tuple[str, int]] = set()
    for item in text.split():
        match = re.fullmatch(r"(U?[RPB])(\d+)(?:-(\d+))?", item)
        if match is None:
            raise ValueError(f"{item} names no register")
        first = int(match[2])
        out |= {(match[1], i) for i in range(first, int(match[3] or first) + 1)}
    return out


def compare(
    witness: sass_witness.Witness,
    cubin: Path,
    forms: set[Form],
    counts: collections.Counter[str] | None = None,
) -> Iterator[Difference]:
    """The differences in a cubin; ``forms`` and ``counts`` collect what was compared."""
    parsed = parse_cubin(cubin.read_bytes())
    ranges = life_ranges(witness, cubin)
    for kernel in parsed.kernels:
        theirs = ranges.get(kernel.name, {})
        for inst in decode_section(kernel.code, parsed.arch).instructions:
            if isinstance(inst, BadWord) or inst.offset not in theirs:
                continue
            if inst.mnemonic in _ELSEWHERE:
                continue
            if counts is not None:
                counts["instructions"] += 1
            forms.add((inst.mnemonic, inst.word & 0xFFF | inst.word >> 79 & 0x1000))
            if touched(inst) != theirs[inst.offset]:
                yield Difference(parsed.arch, inst, touched(inst), theirs[inst.offset])


def expected(difference: Difference) -> bool:
    """Whether the difference is one of nvdisasm's known omissions.

    Its columns leave out the predicates of R2P, P2R, UP2UR and UR2UP and uniform registers from
    UR63 on, and show the predicate that LDGSTS reads as written.
    """
    if difference.instruction.mnemonic in ("R2P", "P2R", "UP2UR", "UR2UP", "LDGSTS"):
        return True
    ours = difference.ours
    low = Touched(
        frozenset(r for r in ours.reads if r[0] != "UR" or r[1] < 63),
        frozenset(r for r in ours.writes if r[0] != "UR" or r[1] < 63),
    )
    return low == difference.theirs


def cubins(paths: Sequence[Path]) -> Iterator[tuple[str, int, bytes]]:
    """Name, architecture and bytes of the distinct cubins of files, wheels and folders."""
    seen: set[bytes] = set()
    for file, loaded in sass_corpus.opened(paths):
        for origin, entry in loaded.entries():
            key = hashlib.sha256(entry.payload).digest()
            if entry.kind == "elf" and entry.arch in GENERATION_OF and key not in seen:
                seen.add(key)
                yield f"{file}: {origin}", entry.arch, entry.payload


def main(arguments: Sequence[str]) -> int:
    """Print every difference, and by architecture the number of forms compared."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--arch", type=int, action="append", help="only this one; may be repeated")
    parser.add_argument("--limit", type=int, default=4 << 20, help="bytes of the largest cubin")
    parser.add_argument("--forms", action="store_true", help="name the forms")
    options = parser.parse_args(arguments)
    witness = sass_witness.find()
    forms: dict[int, set[Form]] = collections.defaultdict(set)
    counts: dict[int, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        for name, arch, payload in cubins(options.files):
            if len(payload) > options.limit or (options.arch and arch not in options.arch):
                continue
            Path(file.name).write_bytes(payload)
            counts[arch]["cubins"] += 1
            try:
                found = list(compare(witness, Path(file.name), forms[arch], counts[arch]))
            except subprocess.CalledProcessError as error:
                counts[arch]["refused"] += 1
                print(f"{name}: nvdisasm: {error.stderr.strip()}", flush=True)
                continue
            for difference in found:
                kind = "expected" if expected(difference) else "wrong"
                counts[arch][kind] += 1
                if kind == "wrong":
                    print(f"{name}: {difference}", flush=True)
    for arch, some in sorted(forms.items()):
        count = counts[arch]
        print(
            f"sm_{arch}: {len(some)} forms in {count['instructions']:,} instructions of "
            f"{count['cubins']} cubins, {count['expected']} known omissions, "
            f"{count['wrong']} differ, {count['refused']} cubins refused by nvdisasm"
        )
        if options.forms:
            print("    " + " ".join(f"{mnemonic}/{opcode:x}" for mnemonic, opcode in sorted(some)))
    return int(any(count["wrong"] for count in counts.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
