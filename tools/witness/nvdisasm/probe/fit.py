"""Inference of a row's bits, values and scheduling from nvdisasm's answers: see `__main__.py`."""

from __future__ import annotations

import collections
import itertools
import random
from collections.abc import Iterable, Iterator, Sequence

from sassxlate.disasm.sass.codec.decode import row_of
from tools.witness.nvdisasm import witness as sass_witness
from tools.witness.nvdisasm.sweep import place

from .rows import CONTROL, OPCODE, SIMPLE, Question, Questions, Target, each, invent, log, pext

_FULL = (1 << 128) - 1
_USCHED = (0, 1, 8, 15, 16, 17, 22, 27, 28, 31)
_PRODUCT = 4096  # values of a group that are all tried
_LARGEST = 13  # bits of a group
_SEED = 20


def chosen(target: Target, rng: random.Random, count: int) -> Iterator[Question]:
    """Base words with any combination of what can combine."""
    for _ in range(count if target.bases and target.parts else 0):
        word = rng.choice(target.bases)
        for mask in target.parts:
            word = word & ~mask | place(mask, rng.choice(target.values[mask] or [0]))
        yield word, 0


def single_words(target: Target) -> Iterator[Question]:
    """Every value of each part, in base words."""
    for base in target.bases[:3]:
        for mask in target.parts:
            for value in range(1 << min(mask.bit_count(), 9)):
                yield base & ~mask | place(mask, value), mask


def spread(target: Target, count: int) -> None:
    """Keep some base words, as different in what they choose as can be."""
    union = 0
    for mask in target.parts:
        union |= mask
    by_choice: dict[int, int] = {}
    for word in target.bases:
        by_choice.setdefault(word & union, word)
    different = list(by_choice.values())
    target.bases = (different + [w for w in target.bases if w not in different])[:count]


def bits_of(questions: Questions, targets: Sequence[Target]) -> None:
    """Each bit by itself: what a row does not name is ignored or not."""
    wanted = [(t, b) for t in targets for b in t.bases[:2]]
    flips = [1 << i for i in range(128) if not OPCODE >> i & 1 and not CONTROL >> i & 1]
    questions.ask(base ^ bit for _, base in wanted for bit in flips)
    for target, base in wanted:
        row = target.row
        unnamed = row.zero_mask
        for part in (*row.row.free, *row.row.ones):
            unnamed |= part.mask
        for bit in flips:
            if bit & row.match_mask:
                continue
            text = questions.known[base ^ bit]
            plain = text is not None and not sass_witness.doubtful(text)
            if bit & unnamed:
                if text != questions.known[base]:
                    target.reserved |= bit
                    target.notes.append(f"bit {bit.bit_length() - 1}: {text}")
                else:
                    target.ignored |= bit
            elif not plain and not any(bit & mask for mask in target.parts):
                target.notes.append(f"operand bit {bit.bit_length() - 1} rejects")
            if bit & ~unnamed:
                (target.good.__setitem__(base ^ bit, text or "") if plain
                 else target.bad.add(base ^ bit))  # fmt: skip
        target.ignored &= ~target.reserved


def control_of(questions: Questions, targets: Sequence[Target]) -> None:
    """Barriers, stall and reuse: sets of values that are taken."""
    clear = ~CONTROL & _FULL

    def words(base: int) -> dict[tuple[str, int], int]:
        base &= clear
        out: dict[tuple[str, int], int] = {}
        for v in range(8):
            out["w", v] = base | (0x701 | v << 5) << 105
            out["r", v] = base | (0x0E1 | v << 8) << 105
            for u in _USCHED:
                out["o", v << 5 | u] = base | (0x7E0 | u) << 105 | v << 122
        return out

    questions.ask(w for t in targets for base in t.bases[:3] for w in words(base).values())
    for target in targets:
        found: set[tuple[str, int]] = set()
        every: list[set[tuple[str, int]]] = []
        for base in target.bases[:3]:
            good = {key for key, word in words(base).items() if questions.known[word] is not None}
            every.append(good)
            found |= good
        if any(good != found for good in every):
            target.notes.append("scheduling depends on modifiers")
        taken = 0
        for v in range(8):
            for u in range(32):
                like = u if u in _USCHED else 8 if u < 16 else 22 if u < 28 else 28
                if ("o", v << 5 | like) in found:
                    taken |= 1 << (v << 5 | u)
        write = sum(1 << v for v in range(8) if ("w", v) in found)
        read = sum(1 << v for v in range(8) if ("r", v) in found)
        target.control = f"{write:02x}{read:02x}{taken:x}"


def projections(words: Iterable[int], mask: int) -> set[int]:
    """The values of a part in words."""
    return {pext(w & mask, mask) for w in {w & mask for w in words}}


def predicted(groups: Sequence[tuple[int, int]], word: int) -> bool:
    """Whether the groups found so far take a word."""
    return all(bitmap >> pext(word, mask) & 1 for mask, bitmap in groups)


def unexplained(target: Target) -> list[int]:
    """Rejected words that the groups take."""
    return [w for w in target.bad if predicted(target.groups, w)]


def pair_words(target: Target, rng: random.Random) -> Iterator[Question]:
    """For each pair of parts, their values in base words."""
    for a, b in itertools.combinations(target.parts, 2):
        product = list(itertools.product(target.values[a], target.values[b]))
        if len(product) > 256:
            product = rng.sample(product, 256)
        for base in target.bases[:3]:
            for va, vb in product:
                yield base & ~(a | b) | place(a, va) | place(b, vb), a | b


def never(target: Target, union: int) -> set[int]:
    """The values of some bits that were asked about by themselves and never printed."""
    asked = {value for value, good in target.tests[union].items() if not good}
    return asked - projections(target.good, union) if asked else asked


def fit(target: Target) -> None:
    """Groups that take everything printed: single parts, then what these leave of larger ones."""
    target.groups = []
    for union in sorted(target.tests, key=lambda mask: (mask.bit_count(), mask)):
        inside = [(mask, taken) for mask, taken in target.groups if not mask & ~union]
        left = {v for v in never(target, union) if predicted(inside, place(union, v))}
        if left and union.bit_count() <= _LARGEST:
            bitmap = (1 << (1 << union.bit_count())) - 1
            for value in left:
                bitmap &= ~(1 << value)
            target.groups.append((union, bitmap))


def joined(target: Target) -> list[list[int]]:
    """Parts that depend on each other, by the groups of pairs."""
    parent = {mask: mask for mask in target.parts}

    def root(mask: int) -> int:
        while parent[mask] != mask:
            mask = parent[mask]
        return mask

    pairs = {a | b: (a, b) for a, b in itertools.combinations(target.parts, 2)}
    for union, _ in target.groups:
        if union in pairs:
            a, b = pairs[union]
            parent[root(a)] = root(b)
    sets: dict[int, list[int]] = collections.defaultdict(list)
    for mask in target.parts:
        sets[root(mask)].append(mask)
    return [masks for masks in sets.values() if len(masks) > 2]


def product_words(target: Target, rng: random.Random) -> Iterator[Question]:
    """Every combination of values that depend on each other, in base words, or a sample."""
    for masks in joined(target):
        alone = [
            sorted(projections(target.good, mask) & set(target.values[mask])) for mask in masks
        ]
        total = 1
        for values in alone:
            total *= len(values)
        combos: Iterable[tuple[int, ...]] = itertools.product(*alone)
        if total > _PRODUCT:
            combos = {tuple(rng.choice(v) for v in alone) for _ in range(_PRODUCT)}
        union = sum(masks)
        for combo in combos:
            bits = sum(place(m, v) for m, v in zip(masks, combo, strict=True))
            if predicted(target.groups, bits | target.bases[0] & ~union):
                for base in target.bases[:2]:
                    yield base & ~union | bits, union


def probe(
    witness: sass_witness.Witness, generation: int, targets: list[Target], real: Sequence[int]
) -> None:
    """Find everything about the rows of a generation."""
    questions = Questions(witness, generation)
    rng = random.Random(_SEED + generation)
    by_row = {id(t.row): t for t in targets}
    for word in real:
        row = row_of(word, generation)
        target = by_row.get(id(row))
        if target and len(target.bases) < 40:
            target.bases.append(word & ~CONTROL | SIMPLE)
    each(questions, targets, lambda t: ((base, 0) for base in t.bases))
    each(questions, targets, lambda t: invent(t, rng, 64))
    each(questions, [t for t in targets if not t.good], lambda t: invent(t, rng, 1000))
    for target in targets:
        real_ones = [w for w in target.bases if w in target.good]
        target.bases = real_ones + [w for w in target.good if w not in real_ones]
        spread(target, 6)
        if not target.bases:
            target.notes.append("no word found that nvdisasm prints")
    targets = [t for t in targets if t.bases]
    log(f"sm_{generation}: {len(targets)} rows have words", questions)
    bits_of(questions, targets)
    log("bits", questions)
    control_of(questions, targets)
    log("scheduling", questions)
    each(questions, targets, single_words)
    each(questions, targets, lambda t: chosen(t, rng, 96 * min(len(t.parts), 4)))
    for target in targets:
        fit(target)
    hard = [t for t in targets if unexplained(t)]
    log(f"single values; {len(hard)} rows have values that depend on each other", questions)
    for _ in range(2):
        for target in hard:
            more = [w for w in target.good if w not in target.bases]
            target.bases = target.bases[:1] + rng.sample(more, min(3, len(more)))
        each(questions, hard, lambda t: pair_words(t, rng))
        for target in hard:
            fit(target)
        each(questions, hard, lambda t: product_words(t, rng))
        each(questions, hard, lambda t: chosen(t, rng, 400))
        for target in hard:
            fit(target)
        hard = [t for t in hard if unexplained(t)]
        log(f"combinations; {len(hard)} rows are left with some", questions)
    for target in hard:
        left = unexplained(target)
        target.notes.append(f"{len(left)} of {len(target.bad)} rejected words are taken")
