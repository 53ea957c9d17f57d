"""The search's code on whole waves, beside the rules': for blocks made to confuse it, in which
registers are one another's, constants are at edges and guards come and go.  And its rewrites on
random code, without a proof."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

import pytest

pytest.importorskip("z3", reason="the solver")

from sassxlate.disasm.rdna3 import can_encode, reads, writes
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, V
from sassxlate.disasm.sass.instruction import RegRef
from sassxlate.errors import SassxlateError
from sassxlate.llm.language.question import question_of
from sassxlate.lowering.emulate.runner import EmulatedDevice
from sassxlate.lowering.optimize.draft import Draft, DraftLine, legal, source
from sassxlate.lowering.optimize.regions import CutRegion, is_macro, rules_code
from sassxlate.lowering.optimize.rewrites.match import rewritten
from sassxlate.lowering.optimize.rewrites.pattern import Rewrite, kind, rewrites, words
from sassxlate.lowering.optimize.search import improved
from sassxlate.lowering.region.text import RegionText, answer_text, read_code
from sassxlate.lowering.verify.steps.prover import Prover
from tests.lowering.optimize.test_rewrites import some_constants, stated
from tests.lowering.optimize.test_search import KERNELS, questions, register_map
from tests.lowering.optimize.waves import State, Unfit, Wave, random_state, touched

_EDGES = (
    "0 1 2 3 4 5 7 8 15 16 23 24 31 32 33 63 64 255 256 65535 65536 16777215 16777216 8388607 "
    "2147483647 -1 -2 -8 -16 -17 -31 -32 -128 -256 -65536 -8388608 -2147483648"
).split()
_NAME = re.compile(r"[vulpqc]\d+")
_HEADS = ("gfx1100", "in", "out", "keep", "free", "bank")
_FEW = ("sm_80/carry_chains", "sm_90/predicated_stores", "sm_90/byte_lanes", "sm_80/uniform_loop",
        "sm_120/funnel_shifts", "sm_120/lane_flags", "sm_90/half_pairs")  # fmt: skip


# --- blocks --------------------------------------------------------------------------------------


def changed(text: str, rng: random.Random) -> str:
    """A question's text with other operands, guards and lines, and another set of live results."""
    lines = [line.split() for line in text.split("\n")]
    body = [line for line in lines if line[0] not in _HEADS]
    heads = {line[0]: line for line in lines if line[0] in _HEADS}
    names = sorted({w for line in body for w in line if _NAME.fullmatch(w)})
    for _ in range(rng.randint(1, 4)):
        _change(body, names, rng)
    names = sorted({w for line in body for w in line if _NAME.fullmatch(w) and w[0] != "c"})
    out = [w for w in heads["out"][1:] if w in names and rng.random() < 0.8]
    out += [w for w in names if w not in out and rng.random() < 0.3]
    kept = [w for w in names if w[0] == "p" and rng.random() < 0.4]
    made = [["gfx1100"], ["in"], ["out", *out], *([["keep", *kept]] if kept else [])]
    made += [line for line in lines if line[0] == "bank"]
    return "\n".join(map(" ".join, [*made, heads["free"], *body]))


def _change(body: list[list[str]], names: Sequence[str], rng: random.Random) -> None:
    n = rng.randrange(len(body))
    line, pick = body[n], rng.random()
    single = [
        i for i, w in enumerate(line)
        if _NAME.fullmatch(w) and line[i + 1 : i + 2] != [":2"]
    ]  # fmt: skip
    numbers = [i for i, w in enumerate(line) if re.fullmatch(r"#-?\d+", w)]
    if pick < 0.55 and single:
        at = rng.choice(single)
        line[at] = rng.choice([name for name in names if name[0] == line[at][0]])
    elif pick < 0.75 and numbers:
        line[rng.choice(numbers)] = f"#{rng.choice(_EDGES)}"
    elif pick < 0.83:
        masks = [name for name in names if name[0] == "p"]
        if line[0] == "@":
            del line[: 3 if line[1] == "!" else 2]
        elif masks:
            line[:0] = ["@", *rng.choice(([], ["!"])), rng.choice(masks)]
    elif pick < 0.9:
        body.insert(rng.randrange(len(body)), body.pop(n))
    elif pick < 0.95:
        body.insert(rng.randrange(len(body) + 1), list(line))
    elif len(body) > 1:
        del body[n]


@cache
def _texts(names: tuple[str, ...]) -> tuple[tuple[int, str], ...]:
    found = {
        (int(name[3:].partition("/")[0]), question.text)
        for name in names
        for _, _, question in questions(name, 24)
    }
    return tuple(sorted(found))


def confusing(names: tuple[str, ...], rng: random.Random) -> Iterator[RegionText]:
    """Changed questions whose code a search may replace, without end."""
    texts = _texts(names)
    while True:
        arch, text = rng.choice(texts)
        try:
            asked = question_of(changed(text, rng), arch)
            code = rules_code(asked.block, asked.regs)
        except (SassxlateError, ValueError):
            continue
        own = zip(asked.block.instructions, code, strict=True)
        if not any(is_macro(ins, items, asked.regs) for ins, items in own):
            yield asked


# --- waves ---------------------------------------------------------------------------------------


def _start(asked: RegionText, rng: random.Random, vectors: set[int], scalars: set[int]) -> State:
    """What a block may find: uniform registers and predicates are one for all active lanes."""
    regs, live = asked.regs, asked.block.live_in(asked.live_out)
    made = random_state(rng, vectors, scalars)
    on = made.active
    for index, at in regs.ur_lanes.items():
        if RegRef("UR", index) in live and at in vectors:
            row = made.vectors[at]
            made.vectors[at] = [row[0] if on >> n & 1 else row[n] for n in range(32)]
    for index, place in regs.up.items():
        if RegRef("UP", index) in live and place.index in scalars:
            bits = rng.getrandbits(32)
            made.scalars[place.index] = rng.choice((bits | on, bits & ~on))
    return made


def differences(
    asked: RegionText, rules: Sequence[Inst], found: Sequence[Inst], rng: random.Random, runs: int
) -> list[str]:
    """Where a wave can tell the two apart, or either breaks what holds for every block: waiting
    lanes, EXEC and registers that the SASS does not write keep their values."""
    block, regs = asked.block, asked.regs
    vectors, scalars = touched(rules, found)
    written = frozenset[RegRef]().union(*(ins.writes for ins in block.instructions))
    every = written | asked.live_out | block.live_in(asked.live_out)
    vector = {regs.r[r.index]: r for r in every if r.file == "R" and r.index in regs.r}
    vector |= {regs.ur_lanes[r.index]: r for r in every if r.file == "UR"
               and r.index in regs.ur_lanes}  # fmt: skip
    scalar = {regs.ur[r.index]: r for r in every if r.file == "UR" and r.index in regs.ur}
    scalar |= {regs.p[r.index].index: r for r in every if r.file == "P"}
    scalar |= {regs.up[r.index].index: r for r in every if r.file == "UP"}
    vectors |= vector.keys()
    scalars |= scalar.keys()
    one, other = (Wave(code, vectors, scalars) for code in (rules, found))
    free = {*regs.stemps, regs.save_exec.index}
    device = EmulatedDevice(1 << 20)
    bad: list[str] = []
    for _ in range(runs):
        start, seed = _start(asked, rng, vectors, scalars), rng.getrandbits(32)
        a, b = one.run(start, seed, device), other.run(start, seed, device)
        on = start.active
        bad += ["memory"] * (a.log != b.log) + ["EXEC"] * (b.active != on)
        for at in vectors:
            ref = vector.get(at)
            if at >= regs.vtemp_base and ref is None:
                continue
            for n in range(32):
                same = a.vectors[at] if on >> n & 1 else start.vectors[at]
                dead = on >> n & 1 and ref in written and ref not in asked.live_out
                if not dead and b.vectors[at][n] != same[n]:
                    bad.append(f"v{at}, lane {n}: {same[n]:#x} {b.vectors[at][n]:#x}")
                    break
        for at in scalars - free:
            ref = scalar.get(at)
            was, same, got = start.scalars[at], a.scalars[at], b.scalars[at]
            if ref is None or ref not in written:
                wrong = was ^ got
            elif ref.file == "UR":
                wrong = same ^ got if ref in asked.live_out else 0
            else:
                wrong = (same ^ got) & on if ref in asked.live_out else 0
                wrong |= (was ^ got) & ~on & 0xFFFFFFFF if ref in block.merged else 0
            if wrong:
                bad.append(f"s{at} {ref}: {was:#x} {same:#x} {got:#x}")
        if bad:
            break
    return bad


def _flat(code: Sequence[Sequence[Inst]]) -> list[Inst]:
    return [inst for group in code for inst in group]


def _searched(
    names: tuple[str, ...], seed: int
) -> Iterator[tuple[RegionText, list[Inst], list[Inst], random.Random]]:
    """Changed questions, the rules' code, and the search's where it is cheaper."""
    rng = random.Random(seed)
    prover = Prover(timeout_ms=300, cut_ms=300)
    for asked in confusing(names, rng):
        code = rules_code(asked.block, asked.regs)
        try:
            rules = read_code(answer_text(code, asked).split(), asked)
        except SassxlateError:
            continue
        region = CutRegion(asked.block, asked.live_out, code)
        found = improved(region, asked.regs, asked, prover, rules)
        if found is not None:
            yield asked, _flat(rules), _flat(found.code), rng


def _compared(names: tuple[str, ...], seed: int, count: int) -> None:
    done = 0
    for asked, rules, found, rng in _searched(names, seed):
        try:
            bad = differences(asked, rules, found, rng, 4)
        except Unfit:
            continue
        assert not bad, "\n".join([asked.text, *map(str, rules), "--", *map(str, found), *bad])
        done += 1
        if done == count:
            return


def test_what_is_found_does_what_the_rules_code_does() -> None:
    _compared(_FEW, 1, 16)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(2, 12))
def test_what_is_found_in_all_kernels(seed: int) -> None:
    paths = sorted(KERNELS.glob("sm_*/*.cubin"))[seed % 5 :: 5]
    _compared(tuple(f"{p.parent.name}/{p.stem}" for p in paths), seed, 300)


def test_waves_tell_wrong_code() -> None:
    """An operand of the code is exchanged: most of such changes are seen."""
    seen = tried = 0
    for asked, rules, found, rng in _searched(_FEW, 2):
        places = [n for n, inst in enumerate(found) if inst.op.startswith("v_") and inst.y is None]
        if not places:
            continue
        at = rng.choice(places)
        args = found[at].args
        wrong = list(found)
        wrong[at] = replace(found[at], args=(*args[:-1], I(5)) if isinstance(args[-1], V) else args,
                            neg=0, op="v_mov_b32" if len(args) == 2 else found[at].op)  # fmt: skip
        if wrong[at] == found[at] or can_encode(wrong[at]) is not None:
            continue
        try:
            seen += bool(differences(asked, rules, wrong, rng, 3))
        except Unfit:
            continue
        tried += 1
        if tried == 12:
            break
    assert seen >= 8, (seen, tried)


# --- rewrites ------------------------------------------------------------------------------------

_VECTORS = [V(n) for n in range(10, 16)]
_NUMBERS = [S(n) for n in range(40, 46)]
_MASKS = [S(n) for n in range(50, 54)]
_OTHER = {
    "v_mov_b32": "vx", "v_not_b32": "vx", "v_cndmask_b32": "vvvm", "v_cmp_lt_u32": "mxv",
    "s_and_b32": "mmm", "s_not_b32": "mm", "s_add_u32": "sss", "v_add_nc_u32": "vxv",
    "v_and_b32": "vxv", "v_lshlrev_b32": "vxv", "v_xor_b32": "vxv", "v_min_u32": "vxv",
}  # fmt: skip


def _other(rng: random.Random) -> Inst:
    """Any instruction on the registers that rewrites get."""
    op = rng.choice(list(_OTHER))

    def operand(sort: str) -> Arg:
        if sort == "x":
            return rng.choice([*_VECTORS, *_VECTORS, *_NUMBERS, I(0), I(1), I(31), I(-1)])
        return rng.choice({"v": _VECTORS, "m": _MASKS, "s": _NUMBERS}[sort])

    return Inst(op, tuple(map(operand, _OTHER[op])))


def _aliased(rule: Rewrite, rng: random.Random) -> dict[str, Arg]:
    """A register for each name; often one for two."""
    lines = (*rule.old, *rule.new)
    scalar = {a for at in lines if at.op.startswith("s_") for a in at.args if kind(a) == "word"}
    out: dict[str, Arg] = {}
    for arg in dict.fromkeys(arg for at in lines for arg in at.args):
        match kind(arg):
            case "pair":
                first = rng.randrange(10, 15)
                out[arg] = V(first, 2)
                out |= {word: V(first + k) for k, word in enumerate(words(arg))}
            case "mask":
                out[arg] = rng.choice(_MASKS)
            case "scalar":
                out[arg] = rng.choice(_NUMBERS)
            case "word" if "." not in arg:
                out[arg] = rng.choice(_NUMBERS if arg in scalar else [*_VECTORS * 3, *_NUMBERS])
            case _:
                pass
    return out


def _applied(
    rule: Rewrite, rng: random.Random, constants: Sequence[dict[str, int]]
) -> tuple[list[Inst], list[Inst], list[Arg]] | None:
    """Random code, and the same after the rewrite; what is live after it."""
    places, given = _aliased(rule, rng), rng.choice(constants)
    code: list[Inst] = []
    for at in rule.old:
        while rng.random() < 0.35:
            code.append(_other(rng))
        code.append(stated(at, places, given))
    while rng.random() < 0.4:
        code.append(_other(rng))
    if rng.random() < 0.5:
        code.insert(rng.randrange(len(code)), code.pop(rng.randrange(len(code))))
    if not all(legal(inst) and can_encode(inst) is None for inst in code):
        return None
    live: list[Arg] = [at for at in (*_VECTORS, *_NUMBERS, *_MASKS) if rng.random() < 0.5]
    lines = [DraftLine(inst, 0, reads(inst), writes(inst)) for inst in code]
    draft = Draft(lines, register_map(), 1, frozenset(r for at in live for r in source(at)), ())
    if not rewritten(draft, (rule,)):
        return None
    return code, [at.inst for at in draft.lines], live


def _tried(seed: int, count: int) -> None:
    rng = random.Random(seed)
    device = EmulatedDevice(1 << 20)
    for rule in rewrites():
        constants = [made for made, _ in zip(some_constants(rule), range(40), strict=False)]
        done = 0
        for _ in range(400 * count):
            found = _applied(rule, rng, constants)
            if found is None:
                continue
            old, new, live = found
            vectors, scalars = touched(old, new)
            vectors |= {at.index for at in _VECTORS}
            scalars |= {at.index for at in (*_NUMBERS, *_MASKS)}
            one, other = Wave(old, vectors, scalars), Wave(new, vectors, scalars)
            for _ in range(3):
                start = random_state(rng, vectors, scalars)
                a, b = one.run(start, seed, device), other.run(start, seed, device)
                for at in live:
                    same = (
                        a.vectors[at.index] == b.vectors[at.index]
                        if isinstance(at, V)
                        else isinstance(at, S)
                        and not (a.scalars[at.index] ^ b.scalars[at.index])
                        & (start.active if at in _MASKS else 0xFFFFFFFF)
                    )
                    assert same, (rule.name, at, old, new)
            done += 1
            if done == count:
                break
        assert done, rule.name


def test_rewrites_among_other_code() -> None:
    """Each row where its registers are one another's, between code that reads and writes them."""
    _tried(1, 1)


@pytest.mark.sweep
def test_rewrites_among_much_other_code() -> None:
    _tried(2, 60)
