"""Measures how well `sassxlate diff` pairs blocks.

::

    python -m tools.figures.diff [--mutants N] [FOLDER...]

Reads the kernels that ``fixtures`` holds for sm_80 and sm_90, and those of every ``X.sm_80`` below
the folders that has an ``X.sm_90`` beside it.  Prints, of the kernels of ``tests/cfg/blocks.toml``
that were paired by hand, the pairs found and those that are wrong; of all kernels the share of
blocks that is paired, and whether a kernel differs from itself; and of mutants (:func:`mutant`),
whose pairs are known because this tool made them, the share found.  ``--mutants``: of how many
kernels of two blocks or more, drawn by lot.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sassxlate.cfg.diff.align import Alignment, align
from sassxlate.cfg.diff.fingerprint import is_call, normal_form
from sassxlate.cfg.diff.text import same, to_text
from sassxlate.cfg.view.picture import Line, Node, Picture
from sassxlate.errors import SassxlateError
from sassxlate.lowering.report.graphs import graphs

ROOT = Path(__file__).resolve().parents[2]
TRUTH = ROOT / "tests" / "cfg" / "blocks.toml"
ARCHS = ("sm_80", "sm_90")
Pairs = frozenset[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Read:
    """A kernel paired by hand: its pairs of blocks, and pairs that are neither right nor
    wrong; ``draw`` is the number of the random sample it is from."""

    name: str
    draw: int
    same: Pairs
    unsure: Pairs


def pictures(left: Path, right: Path) -> dict[str, tuple[Picture, Picture]]:
    """The kernels that both files have, by name."""
    sides: list[dict[str, Picture]] = []
    for file, arch in zip((left, right), ARCHS, strict=True):
        try:
            sides.append({g.picture.name: g.picture for g in graphs(str(file), (), arch)})
        except SassxlateError as error:
            if error.code != "SX0802":  # a program may have no kernels of its own
                raise
            sides.append({})
    return {name: (one, sides[1][name]) for name, one in sides[0].items() if name in sides[1]}


def own_files() -> Iterator[tuple[Path, Path]]:
    """The files of this repository that hold kernels for both architectures."""
    for file in sorted((ROOT / "fixtures" / "kernels" / ARCHS[0]).glob("*.cubin")):
        yield file, ROOT / "fixtures" / "kernels" / ARCHS[1] / file.name
    for name in ("collatz", "reduction", "saxpy"):
        program = ROOT / "fixtures" / "programs" / name
        yield program, program


def folder_files(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Programs below a folder that are built for both."""
    for file in sorted(folder.rglob(f"*.{ARCHS[0]}")):
        other = file.with_suffix(f".{ARCHS[1]}")
        if other.is_file():
            yield file, other


def truth(
    folders: Sequence[Path], known: Mapping[tuple[Path, str], tuple[Picture, Picture]]
) -> Iterator[tuple[tuple[Picture, Picture], Read]]:
    """The hand-paired kernels that are available."""
    for entry in tomllib.loads(TRUTH.read_text())["kernel"]:
        places = [ROOT / entry["own"][0]] if "own" in entry else []
        places += [f / f"{entry['program']}.{ARCHS[0]}" for f in folders if "program" in entry]
        found = [known[p, entry["kernel"]] for p in places if (p, entry["kernel"]) in known]
        if found:
            unsure = _pairs(found[0], entry.get("unsure", ""))
            pairs_of = _pairs(found[0], entry["same"])
            yield found[0], Read(entry["kernel"], entry["draw"], pairs_of, unsure)


def _pairs(kernel: tuple[Picture, Picture], text: str) -> Pairs:
    """Offsets of blocks to their numbers."""
    starts = [{node.start: node.index for node in side.nodes} for side in kernel]
    out: list[tuple[int, int]] = []
    for item in text.split():
        ends = [[int(x, 16) for x in side.split("-")] for side in item.split(":")]
        first = [at[end[0]] for at, end in zip(starts, ends, strict=True)]
        last = [at[end[-1]] for at, end in zip(starts, ends, strict=True)]
        if last[0] - first[0] != last[1] - first[1]:
            raise ValueError(f"{kernel[0].name}: {item} has two lengths")
        out += [(first[0] + k, first[1] + k) for k in range(last[0] - first[0] + 1)]
    return frozenset(out)


def pairs(found: Alignment) -> Pairs:
    """An alignment's pairs alone."""
    return frozenset((p.left, p.right) for p in found.pairs)


# --- mutants ------------------------------------------------------------------------------------
_NAME = re.compile(r"\b(UR|UP|R|P|B)(\d+)\b|\b([vs])(\d+)\b")
_NUMBER = re.compile(r"(?<![\w.])(-?)(0x[0-9a-f]+|\d+)\b(?!\.)")
_GOES = re.compile(r"(?:@\S+ )?(?:BRA|BSSY|CALL|BRX|JMP|WARPSYNC\.COLLECTIVE)\b")
_MANY = {"R": 255, "UR": 63, "P": 7, "UP": 7, "B": 16, "v": 256, "s": 104}
KINDS = ("registers", "constants", "order", "all")


def mutant(picture: Picture, kind: str, seed: int) -> tuple[Picture, list[int]]:
    """A kernel that does the same with other registers, with other constants, with its blocks in
    another order, or all of that; and where each block went."""
    some = random.Random(f"{seed} {kind} {picture.name}")
    count = len(picture.nodes)
    order = [*range(count)]
    if kind in ("order", "all"):
        runs = _runs(picture)
        rest = runs[1:]
        some.shuffle(rest)
        order = [i for run in (*runs[:1], *rest) for i in run]
    place = [0] * count
    for new, old in enumerate(order):
        place[old] = new
    starts: dict[int, int] = {}
    at = 0
    for old in order:
        starts[picture.nodes[old].start] = at
        at += 16 * max(1, len(picture.nodes[old].lines))
    change = _Change(some, kind, starts)
    nodes = tuple(
        _moved(picture.nodes[old], new, starts[picture.nodes[old].start], change.text)
        for new, old in enumerate(order)
    )
    arcs = sorted(
        (replace(a, src=place[a.src], dst=place[a.dst]) for a in picture.arcs),
        key=lambda a: (a.src, a.kind != "fall"),
    )
    return replace(picture, nodes=nodes, arcs=tuple(arcs), loops=()), place


def _runs(picture: Picture) -> list[list[int]]:
    """Blocks that move together: the return point of a call stays after the call."""
    out: list[list[int]] = []
    after_call = False
    for node in picture.nodes:
        if after_call:
            out[-1].append(node.index)
        else:
            out.append([node.index])
        after_call = bool(node.lines) and is_call(node.lines[-1].text)
    return out


def _moved(node: Node, index: int, start: int, text: Callable[[str], str]) -> Node:
    lines = tuple(Line(start + 16 * n, text(line.text)) for n, line in enumerate(node.lines))
    return Node(index, start, lines)


class _Change:
    """Renames and revalues texts, the same everywhere in a kernel."""

    def __init__(self, some: random.Random, kind: str, starts: Mapping[int, int]) -> None:
        self.kind, self.starts, self.some = kind, starts, some
        self.names = {f: some.sample(range(n), n) for f, n in _MANY.items()}
        self.values: dict[str, str] = {}

    def text(self, text: str) -> str:
        if self.kind in ("registers", "all"):
            text = _NAME.sub(self._name, text)
        if _GOES.match(text):
            return _NUMBER.sub(self._target, text)
        return _NUMBER.sub(self._value, text) if self.kind in ("constants", "all") else text

    def _name(self, match: re.Match[str]) -> str:
        file, number = match[1] or match[3], int(match[2] or match[4])
        return f"{file}{self.names[file][number]}"

    def _target(self, match: re.Match[str]) -> str:
        return f"{match[1]}{self.starts.get(int(match[2], 0), int(match[2], 0)):#x}"

    def _value(self, match: re.Match[str]) -> str:
        old = match[2]
        if old not in self.values:
            self.values[old] = f"{self.some.randrange(3, 1 << 16):#x}"
        return match[1] + self.values[old]


# --- figures ------------------------------------------------------------------------------------
def percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def hand_checked(read: Sequence[tuple[tuple[Picture, Picture], Read]]) -> Iterator[str]:
    """The pairs found in each hand-paired kernel, and in all of a sample together; also if
    the right side is a mutant."""
    for draw in sorted({known.draw for _, known in read}):
        yield from _of_a_draw(draw, [one for one in read if one[1].draw == draw])


def _of_a_draw(draw: int, read: Sequence[tuple[tuple[Picture, Picture], Read]]) -> Iterator[str]:
    total = dict.fromkeys(("same", "found", "wrong", "judged", "again"), 0)
    for (left, right), known in read:
        found = pairs(align(left, right))
        other, place = mutant(right, "all", 1)
        again = pairs(align(left, other))
        hit, wrong = found & known.same, found - known.same - known.unsure
        total["same"] += len(known.same)
        total["found"] += len(hit)
        total["wrong"] += len(wrong)
        total["judged"] += len(found - known.unsure)
        total["again"] += sum((i, place[j]) in again for i, j in known.same)
        yield (
            f"  {known.name[:44]:44} {len(left.nodes):4} {len(right.nodes):4} blocks: "
            f"{len(hit)} of {len(known.same)} pairs, {len(wrong)} wrong"
        )
    yield (
        f"read by a person, draw {draw}, {len(read)} kernels, {total['same']} pairs: "
        f"{percent(total['found'], total['same'])} found; of those found "
        f"{percent(total['judged'] - total['wrong'], total['judged'])} right; "
        f"{percent(total['again'], total['same'])} found in mutants"
    )


def paired(kernels: Sequence[tuple[Picture, Picture]]) -> Iterator[str]:
    """The share paired of all kernels, their similarity, and whether they differ from
    themselves."""
    blocks = matched = 0
    alike = 0.0
    begin = time.process_time()
    for left, right in kernels:
        found = align(left, right)
        blocks += len(left.nodes) + len(right.nodes)
        matched += 2 * len(found.pairs)
        alike += found.alike
    taken = time.process_time() - begin
    yield (
        f"{ARCHS[0]} beside {ARCHS[1]}, {len(kernels)} kernels, {blocks} blocks: "
        f"{percent(matched, blocks)} paired, alike {alike / max(1, len(kernels)):.3f} in the mean, "
        f"{1000 * taken / max(1, len(kernels)):.0f} ms per kernel"
    )
    sides = [side for kernel in kernels for side in kernel]
    selves = ((side, align(side, side)) for side in sides)
    empty = sum(same(a, a, f) and "@@" not in to_text(a, a, f) for a, f in selves)
    yield f"beside themselves, {len(sides)} kernels: {empty} differences are empty"


def mutated(kernels: Sequence[Picture]) -> Iterator[str]:
    """The blocks found in mutants: the block itself, or a twin that differs in names and values
    alone, which the mutant has changed."""
    for kind in KINDS:
        blocks = right = twins = 0
        for kernel in kernels:
            other, place = mutant(kernel, kind, 1)
            texts = [tuple(normal_form(line.text) for line in node.lines) for node in kernel.nodes]
            back = {new: old for old, new in enumerate(place)}
            blocks += len(texts)
            for i, j in pairs(align(kernel, other)):
                right += back[j] == i
                twins += back[j] != i and texts[back[j]] == texts[i]
        yield (
            f"mutants, {kind:9} of {len(kernels)} kernels, {blocks} blocks: "
            f"{percent(right, blocks)} found, a twin instead of {percent(twins, blocks)}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    parser.add_argument("--mutants", type=int, default=100)
    options = parser.parse_args()
    known: dict[tuple[Path, str], tuple[Picture, Picture]] = {}
    files = [*own_files(), *(pair for folder in options.folders for pair in folder_files(folder))]
    for n, (left, right) in enumerate(files):
        if sys.stderr.isatty():
            print(f"\r{n + 1} of {len(files)} files", end="", file=sys.stderr)
        known |= {(left, name): pair for name, pair in pictures(left, right).items()}
    if sys.stderr.isatty():
        print(file=sys.stderr)
    chosen = [pair[0] for pair in known.values() if len(pair[0].nodes) > 1]
    if len(chosen) > options.mutants:
        chosen = random.Random(1).sample(chosen, options.mutants)
    for line in hand_checked([*truth(options.folders, known)]):
        print(line, flush=True)
    for line in paired([*known.values()]):
        print(line, flush=True)
    for line in mutated(chosen):
        print(line, flush=True)


if __name__ == "__main__":
    main()
