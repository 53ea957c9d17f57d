"""Instructions to compare: forms that the lowering emits, their operands, and the emulator.

A form is an instruction without registers and immediates: mnemonic, kinds of operands, modifiers,
rounding and denormal mode.  Cases of one kernel are run over the same vectors, 32 lanes a wave.
"""

from __future__ import annotations

import random
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.rdna3 import can_encode
from sassxlate.disasm.rdna3.codec.assemble import assemble
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, Item, S, Sp, V
from sassxlate.lowering.emulate.compiler import compile_kernel
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.emulate.runner import EmulatedDevice, LoadedImage, Setup, run_image

from .described import description, roles
from .language import views

ROOT = Path(__file__).resolve().parents[3]


CLASSES = ("words", "floats", "doubles", "halves")
LANES = 32
Vectors = NDArray[np.uint32]  # (class, vector, word)


@dataclass(frozen=True, slots=True)
class Form:
    """``args`` are kinds: v2 and s1 with a count of registers, i for an immediate, or a name."""

    op: str
    args: tuple[str, ...] = ()
    mods: tuple[tuple[str, int], ...] = ()
    round: int = 0  # both rounding fields of MODE, as s_round_mode has them
    denormals: int = 15

    @property
    def text(self) -> str:
        mods = "".join(f" {k}:{v}" for k, v in self.mods)
        mods += f" round:{self.round}" if self.round else ""
        mods += f" denorm:{self.denormals}" if self.denormals != 15 else ""
        return f"{self.op} {' '.join(self.args)}{mods}"


def parse(line: str) -> Form:
    """The form of a line of `Form.text`."""
    words = line.split()
    args: list[str] = []
    mods: list[tuple[str, int]] = []
    how, denormals = 0, 15
    for word in words[1:]:
        name, colon, n = word.partition(":")
        if not colon:
            args.append(word)
        elif name == "round":
            how = int(n)
        elif name == "denorm":
            denormals = int(n)
        else:
            mods.append((name, int(n)))
    return Form(words[0], tuple(args), tuple(mods), how, denormals)


_MODS = ("neg", "abs", "clamp", "op_sel", "op_sel_hi", "neg_hi", "glc")


def form_of(inst: Inst, how: int, denormals: int) -> Form:
    """The form of an instruction."""
    kinds: list[str] = []
    for arg in inst.args:
        if isinstance(arg, V | S):
            kinds.append(f"{type(arg).__name__.lower()}{arg.n}")
        elif isinstance(arg, Sp):
            kinds.append(arg.name)
        else:
            kinds.append("i" if isinstance(arg, I) else "label")
    values = [(m, int(getattr(inst, m))) for m in _MODS]
    mods = [(m, n) for m, n in values if n != (7 if m == "op_sel_hi" else 0)]
    if inst.dpp:
        mods.append(("dpp", 1))
    if inst.y is not None:
        mods.append(("dual", 1))
    if inst.omod:
        mods.append(("omod", inst.omod))
    return Form(inst.op, tuple(kinds), tuple(mods), how, denormals)


# --- operands ------------------------------------------------------------------------------------


def source_class(op: str, name: str) -> str:
    """The class of inputs of an operand, by how the description looks at it."""
    text = description(op)
    kinds = set(views(text, name))
    if name == "S" or op.startswith("v_fma_mix"):
        return "floats"
    for kind, found in (("f64", "doubles"), ("f32", "floats"), ("f16", "halves")):
        if kind in kinds:
            return found
    return "halves" if "f16" in op and not kinds & {"u32", "i32"} else "words"


@dataclass(frozen=True, slots=True)
class Case:
    """A form with registers; ``loads`` say where each word of its inputs comes from."""

    form: Form
    inst: Inst
    vector_loads: tuple[tuple[int, int, int], ...]  # (VGPR, class, word)
    scalar_loads: tuple[tuple[int, int, int], ...]  # (SGPR, class, word), of the wave's first lane
    vgprs: tuple[int, ...]  # written
    sgprs: tuple[int, ...]


_FIRST_V, _FIRST_S, _OLD = 20, 20, 6


def make(form: Form, chance: random.Random, vectors: Vectors) -> Case:
    """Registers and immediates for a form."""
    printed = roles(form.op, len(form.args)).names
    if form.op.startswith(("v_readlane", "v_readfirstlane")):
        printed = ("D0", "S0", "S1")
    for _ in range(200):
        args: list[Arg] = []
        vloads: list[tuple[int, int, int]] = []
        sloads: list[tuple[int, int, int]] = []
        out_v: list[int] = []
        out_s: list[int] = []
        v, s, word = _FIRST_V, _FIRST_S, 0
        for i, kind in enumerate(form.args):
            name = printed[i] if i < len(printed) else f"S{i}"
            is_dst = name in ("D0", "MASK")
            group = CLASSES.index("words" if is_dst and name != "D0" else
                                  source_class(form.op, name))  # fmt: skip
            at = _OLD if is_dst else word
            if kind[0] in "vs" and kind[1:].isdigit():
                n = int(kind[1:])
                if kind[0] == "v":
                    args.append(V(v, n))
                    vloads += [(v + j, group, (at + j) % 8) for j in range(n)]
                    out_v += range(v, v + n) if is_dst else ()
                    v += n
                else:
                    s += s & 1 if n > 1 else 0
                    args.append(S(s, n))
                    sloads += [(s + j, group, (at + j) % 8) for j in range(n)]
                    out_s += range(s, s + n) if is_dst else ()
                    s += n
            elif kind == "i":
                args.append(I(_immediate(form, name, group, chance, vectors)))
            else:
                args.append(Sp(kind, 2 if kind.startswith("src_") else 1))
            if not is_dst:
                word += 2
        if form.op.startswith("v_div_scale"):  # the scaled operand is one of the other two
            args[2] = args[chance.choice((3, 4))]
        mods = {k: bool(n) if k in ("clamp", "glc") else n for k, n in form.mods}
        imm = chance.choice([0, 1, -1, 0x7FFF, -0x8000, chance.randint(-0x8000, 0x7FFF)])
        inst = Inst(form.op, tuple(args), **mods)  # type: ignore[arg-type]
        if "SIMM16" in description(form.op):
            inst = Inst(form.op, tuple(args), imm, **mods)  # type: ignore[arg-type]
        if can_encode(inst) is None:
            return Case(form, inst, tuple(vloads), tuple(sloads), tuple(out_v), tuple(out_s))
    raise ValueError(f"no registers for {form.text}")


_INLINE = (0x3F800000, 0xBF800000, 0x3F000000, 0x40000000, 0x40800000, 0x3E22F983)


def _immediate(form: Form, name: str, group: int, chance: random.Random, vectors: Vectors) -> int:
    if chance.random() < 0.5:
        inline = [*range(-16, 65)] if CLASSES[group] == "words" else [*_INLINE, 0, 1]
        return chance.choice(inline) & 0xFFFFFFFF
    return int(vectors[group, chance.randrange(vectors.shape[1]), chance.randrange(8)])


# --- the emulator --------------------------------------------------------------------------------

_SCALARS = 48  # words of scalars a wave: 40 of the classes, EXEC, VCC, SCC
EXEC, VCC, SCC = 40, 41, 42
_KEEP = (60, 61, 62)  # SGPRs that keep SCC, EXEC and VCC


def scalars(vectors: Vectors) -> Vectors:
    """(wave, word): the contents of SGPRs; EXEC full in half of the waves."""
    waves = vectors.shape[1] // LANES
    out = np.zeros((waves, _SCALARS), dtype=np.uint32)
    out[:, :40] = vectors[:, ::LANES, :].transpose(1, 0, 2).reshape(waves, 40)
    out[:, EXEC] = vectors[0, ::LANES, 9]
    out[::2, EXEC] = 0xFFFFFFFF
    out[:, VCC] = vectors[0, 1::LANES, 9]
    out[:, SCC] = vectors[0, ::LANES, 8] & 1
    return out


@dataclass(frozen=True, slots=True)
class Outcome:
    """(vector, ...) of each written VGPR; (wave, ...) of SGPRs, then SCC, EXEC and VCC."""

    vgprs: Vectors
    sgprs: Vectors


def _program(cases: list[Case], columns: int) -> list[Item]:
    items: list[Item] = [
        Inst("s_lshl_b32", (S(15), S(14), I(7))),
        Inst("v_lshlrev_b32", (V(1), I(2), V(0))),
        Inst("v_add_nc_u32", (V(1), S(15), V(1))),
        Inst("s_mul_i32", (S(15), S(14), I(4 * _SCALARS))),
        Inst("s_load_b64", (S(4, 2), S(0, 2), Sp("null")), 8 * 40),
        Inst("s_add_u32", (S(4), S(4), S(15))),
        Inst("s_addc_u32", (S(5), S(5), I(0))),
    ]
    out = 41
    for case in cases:
        for register, group, word in case.vector_loads:
            items += [
                Inst("s_load_b64", (S(2, 2), S(0, 2), Sp("null")), 8 * (group * 10 + word)),
                Inst("global_load_b32", (V(register), V(1), S(2, 2))),
            ]
        scalar = [(r, group * 10 + word) for r, group, word in case.scalar_loads]
        scalar += [(106, VCC), (_KEEP[0], SCC), (_KEEP[1], EXEC)]
        for register, k in scalar:
            where = Sp("vcc_lo") if register == 106 else S(register)
            items.append(Inst("s_load_b32", (where, S(4, 2), Sp("null")), 4 * k))
        form = case.form
        items += [
            Inst("s_cmp_lg_u32", (S(_KEEP[0]), I(0))),
            Inst("s_mov_b32", (Sp("exec_lo"), S(_KEEP[1]))),
            Inst("s_round_mode", (), form.round),
            Inst("s_denorm_mode", (), form.denormals),
            case.inst,
            Inst("s_round_mode", (), 0),
            Inst("s_denorm_mode", (), 15),
            Inst("s_cselect_b32", (S(_KEEP[0]), I(1), I(0))),
            Inst("s_mov_b32", (S(_KEEP[1]), Sp("exec_lo"))),
            Inst("s_mov_b32", (S(_KEEP[2]), Sp("vcc_lo"))),
            Inst("s_mov_b32", (Sp("exec_lo"), I(0xFFFFFFFF))),
        ]
        for register in case.vgprs:
            items += _store(out, V(register))
            out += 1
        for register in (*case.sgprs, *_KEEP):
            items.append(Inst("v_mov_b32", (V(2), S(register))))
            items += _store(out, V(2))
            out += 1
    items.append(Inst("s_endpgm"))
    return items


def _store(column: int, value: V) -> list[Item]:
    return [
        Inst("s_load_b64", (S(2, 2), S(0, 2), Sp("null")), 8 * column),
        Inst("global_store_b32", (V(1), value, S(2, 2))),
    ]


def emulated(cases: list[Case], vectors: Vectors) -> list[Outcome]:
    """The emulator's result for each case, from encoded bytes."""
    n = vectors.shape[1]
    waves = n // LANES
    outs = sum(len(c.vgprs) + len(c.sgprs) + 3 for c in cases)
    program = assemble(_program(cases, outs))
    loaded = LoadedImage(compile_kernel(program.data, 0, CompileOptions()))
    device = EmulatedDevice((outs * n * 4 + vectors.nbytes + (1 << 20)) * 2)
    pointers = [
        device.alloc(np.ascontiguousarray(vectors[g, :, w]).tobytes())
        for g in range(4)
        for w in range(10)
    ]
    pointers.append(device.alloc(scalars(vectors).tobytes()))
    first = device.alloc(outs * n * 4)
    pointers += [first + k * n * 4 for k in range(outs)]
    kernarg = struct.pack(f"<{len(pointers)}Q", *pointers)
    setup = Setup(kernarg_sgpr=0, wg_sgpr=(14, None, None))
    run_image(loaded, setup, waves, LANES, kernarg, device)
    raw = np.frombuffer(device.read(first, outs * n * 4), dtype=np.uint32).reshape(outs, n)
    found: list[Outcome] = []
    at = 0
    for case in cases:
        v, s = len(case.vgprs), len(case.sgprs) + 3
        found.append(Outcome(raw[at : at + v].T, raw[at + v : at + v + s, ::LANES].T))
        at += v + s
    return found


def seed(text: str) -> random.Random:
    return random.Random(zlib.crc32(text.encode()))


def forms(path: Path) -> list[tuple[Form, int]]:
    """The recorded forms and how often each occurs."""
    lines = [line for line in path.read_text().splitlines() if line and line[0] != "#"]
    return [(parse(line.partition(" ")[2]), int(line.partition(" ")[0])) for line in lines]


def dump(counts: dict[Form, int]) -> str:
    return "".join(f"{counts[f]} {f.text}\n" for f in sorted(counts, key=lambda f: f.text))


# --- forms that are not recorded -----------------------------------------------------------------

_VECTOR = {"b64": "v2", "f64": "v2", "m": "s1"}
_SCALAR = {"b64": "s2", "b32": "s1"}
_HIDDEN = frozenset({"scc", "exec", "execm", "vcc", "lane", "neg", "imm", "immz"})
_CONSTANT = {"v_fmaak": 3, "v_fmamk": 2}  # the operand that is a literal


def meaning_forms() -> list[Form]:
    """Every row of the table of meanings once, with registers alone."""
    from sassxlate.disasm.rdna3.semantics import semantics_table

    out: list[Form] = []
    for op, row in semantics_table().items():
        kinds = _SCALAR if op.startswith("s_") else _VECTOR
        printed = [k for k in (*row.dst, *row.src) if k not in _HIDDEN and k[:4] != "acc:"]
        args = [kinds.get(k, "v1") for k in printed]
        if op[:7] in _CONSTANT:
            args[_CONSTANT[op[:7]]] = "i"
        mods = (("op_sel_hi", 0),) if op.startswith("v_fma_mix") else ()
        out.append(Form(op, tuple(args), mods))
    return out


_ATOMS = ("add_u", "sub_u", "min_i", "min_u", "max_i", "max_u", "and_b", "or_b", "xor_b", "inc_u",
          "dec_u")  # fmt: skip


def memory_forms() -> list[Form]:
    """Integer atomics of each width, in global memory and LDS, with and without a result; and a
    permutation of lanes."""
    out = [Form("ds_permute_b32", ("v1", "v1", "v1"))]
    for n, bits in ((1, 32), (2, 64)):
        data = f"v{n}"
        for name in (*_ATOMS, "swap_b"):
            op = f"global_atomic_{name}{bits}"
            out.append(Form(op, ("v2", data, "off")))
            out.append(Form(op, (data, "v2", data, "off"), (("glc", 1),)))
        for name in _ATOMS:
            out.append(Form(f"ds_{name}{bits}", ("v1", data)))
            out.append(Form(f"ds_{name.replace('_', '_rtn_')}{bits}", (data, "v1", data)))
        out.append(Form(f"ds_storexchg_rtn_b{bits}", (data, "v1", data)))
        out.append(Form(f"ds_cmpstore_b{bits}", ("v1", data, data)))
        swap = f"flat_atomic_cmpswap_b{bits}"
        out.append(Form(swap, (data, "v2", f"v{2 * n}"), (("glc", 1),)))
    return out
