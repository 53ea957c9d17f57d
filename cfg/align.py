"""Which blocks of two graphs are the same code, though registers have other names, blocks another
order and constants other values.

Each block is a bag of normalised instructions (mnemonic, modifiers, kinds of operands).  Blocks are
alike as far as their bags are (cosine, rare instructions weigh more), as their neighbours are (two
rounds along the arcs), and a little as their places in the order of addresses are.  Pairs are then
taken greedily, the most alike first, each block once; the order of instructions inside a pair is
:func:`lines`' concern.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np
import numpy.typing as npt

from .picture import Node, Picture

_LEAST = 0.45  # how alike two blocks are at least, to be a pair
_ROUNDS = 2
_NEIGHBOURS, _PLACE = 0.35, 0.08  # weights; the bags have the rest

_NUMBER = re.compile(r"[-+]?\b0x[0-9a-f]+\b|(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?\b")
_REGISTER = re.compile(r"\b(UR|UP|R|P|B)\d+\b|\b([vs])(?:\d+|\[\d+:\d+\])")
_CONSTANT = re.compile(r"c\[[^\]]*\]\[[^\]]*\]")
# Hints, and how the same operand is said on another architecture or in another encoding.
_NOISE = re.compile(
    r"\bdesc\[\w+\](?=\[)|\.reuse|_e32|_e64|\.RELIABLE|\.RECONVERGENT|\.DEFER_BLOCKING"
)
_TABLE = re.compile(r"\bU?LOP3\.LUT\b.*, (0x[0-9a-f]+)(?=, !?U?P\w$)|\bU?PLOP3\.LUT\b")
# What compilers write in the one or the other way, of the same work: finds pairs, excuses nothing.
_SAME = {"IMAD.MOV.U32": "MOV", "IMAD.MOV": "MOV", "UIMAD.MOV.U32": "UMOV", "IMAD.SHL.U32": "SHF",
         "IMAD.IADD": "IADD3", "VIADD": "IADD3", "LDC": "MOV", "ULDC": "UMOV", "ULDC.64": "UMOV",
         "LDC.64": "MOV", "HFMA2.MMA": "MOV", "CS2R": "MOV", "LDCU": "UMOV", "LDCU.64": "UMOV",
         "IADD": "IADD3", "SYNC": "BSYNC"}  # fmt: skip


def normal(text: str) -> str:
    """An instruction without the names of registers, the values of constants and places.

    What it does stays: modifiers, signs and complements, RZ and PT, truth tables.
    """
    text = _CONSTANT.sub("c", _NOISE.sub("", text))
    table = _TABLE.search(text)
    if table is None or table[1]:
        text = _NUMBER.sub("n", text) + (f" {table[1]}" if table else "")
    return _REGISTER.sub(lambda m: m[1] or m[2], text)


def family(text: str) -> str:
    """What an instruction is about: its mnemonic without modifiers."""
    text = text.split(" ", 1)[1] if text.startswith("@") else text
    first = text.split(" ", 1)[0]
    return _SAME.get(first, first).split(".")[0]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two blocks by index, and how alike they are: from 0 to 1, 1 where nothing differs but
    names, order of blocks and values."""

    left: int
    right: int
    alike: float


@dataclass(frozen=True, slots=True)
class Alignment:
    """Pairs in the order of the left graph, and the blocks that have no other."""

    pairs: tuple[Pair, ...]
    only_left: tuple[int, ...]
    only_right: tuple[int, ...]

    @property
    def alike(self) -> float:
        """Of both graphs' blocks the share that is paired, each as far as it is alike."""
        count = 2 * len(self.pairs) + len(self.only_left) + len(self.only_right)
        return 2 * sum(p.alike for p in self.pairs) / count if count else 1.0


def align(left: Picture, right: Picture) -> Alignment:
    """The pairs of two graphs of the same instruction set."""
    n, m = len(left.nodes), len(right.nodes)
    if not n or not m:
        return Alignment((), tuple(range(n)), tuple(range(m)))
    bags = _bags([*left.nodes, *right.nodes])
    own = bags[:n] @ bags[n:].T
    place = 1 - np.abs(np.linspace(0, 1, n)[:, None] - np.linspace(0, 1, m)[None, :])
    base = ((1 - _NEIGHBOURS - _PLACE) * own + _PLACE * place).astype(np.float32)
    score = (base + _NEIGHBOURS * own).astype(np.float32)
    for _ in range(_ROUNDS):
        score = (base + _NEIGHBOURS * _around(left, right, score)).astype(np.float32)
    # The entries are the entries, whatever stands in them.
    score[0, 0] = 2.0
    return _chosen(left, right, score)


def _bags(nodes: Sequence[Node]) -> npt.NDArray[np.float32]:
    """A unit vector a block over instructions, whole and by family."""
    words: dict[str, int] = {}
    rows: list[Counter[int]] = []
    for node in nodes:
        bag: Counter[int] = Counter()
        for line in node.lines:
            for word in (normal(line.text), "~" + family(line.text)):
                bag[words.setdefault(word, len(words))] += 1
        rows.append(bag)
    out = np.zeros((len(nodes), max(1, len(words))), np.float32)
    for i, bag in enumerate(rows):
        for number, count in bag.items():
            out[i, number] = np.sqrt(count)
    seen = (out > 0).sum(axis=0)
    out *= np.log(1 + len(nodes) / np.maximum(seen, 1)).astype(np.float32)
    length = np.linalg.norm(out, axis=1, keepdims=True)
    return (out / np.where(length > 0, length, 1)).astype(np.float32)


def _around(
    left: Picture, right: Picture, score: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """How alike successors and predecessors are: for each block of the left's the best of the
    right's, their mean.  Two blocks without any count as alike."""
    total = np.zeros_like(score)
    bounded = np.minimum(score, np.float32(1))
    for forward in (True, False):
        ours, theirs = _neighbours(left, forward), _neighbours(right, forward)
        best = np.zeros((score.shape[1], score.shape[0]), np.float32)  # right by left
        turned = np.ascontiguousarray(bounded.T)
        for j, some in enumerate(theirs):
            if some:
                best[j] = turned[some].max(axis=0)
        best = np.ascontiguousarray(best.T)
        alone = np.array([not some for some in theirs])
        for i, some in enumerate(ours):
            total[i] += best[some].mean(axis=0) if some else alone
    return (total / 2).astype(np.float32)


def _neighbours(picture: Picture, forward: bool) -> list[list[int]]:
    out: list[set[int]] = [set() for _ in picture.nodes]
    for arc in picture.arcs:
        out[arc.src if forward else arc.dst].add(arc.dst if forward else arc.src)
    return [sorted(some) for some in out]


def _chosen(left: Picture, right: Picture, score: npt.NDArray[np.float32]) -> Alignment:
    flat = np.flatnonzero(score >= _LEAST)
    order = flat[np.argsort(-score.ravel()[flat], kind="stable")]
    free_left, free_right = set(range(score.shape[0])), set(range(score.shape[1]))
    pairs: list[Pair] = []
    wide = int(score.shape[1])
    for at in order:
        i, j = divmod(int(at), wide)
        if i in free_left and j in free_right:
            free_left.discard(i)
            free_right.discard(j)
            pairs.append(Pair(i, j, alike(left.nodes[i], right.nodes[j])))
    pairs.sort(key=lambda p: p.left)
    return Alignment(tuple(pairs), tuple(sorted(free_left)), tuple(sorted(free_right)))


def alike(a: Node, b: Node) -> float:
    """How alike two blocks are, in the order of their instructions."""
    x, y = [normal(t.text) for t in a.lines], [normal(t.text) for t in b.lines]
    return 1.0 if x == y else SequenceMatcher(None, x, y, autojunk=False).ratio()


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a pair: on the left, on the right, or on both; ``same`` but for names and
    values."""

    left: int | None
    right: int | None
    same: bool


def lines(a: Node, b: Node) -> list[Row]:
    """The instructions of two blocks beside each other."""
    x, y = [normal(t.text) for t in a.lines], [normal(t.text) for t in b.lines]
    out: list[Row] = []
    for tag, i, i2, j, j2 in SequenceMatcher(None, x, y, autojunk=False).get_opcodes():
        if tag == "equal":
            out += [Row(i + k, j + k, True) for k in range(i2 - i)]
        else:
            out += [Row(k, None, False) for k in range(i, i2)]
            out += [Row(None, k, False) for k in range(j, j2)]
    return out
