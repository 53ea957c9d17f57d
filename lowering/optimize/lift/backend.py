"""LLVM's AMDGPU backend on lifted runs, and its code renamed to the block's registers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import llvmlite.binding as llvm

from sassxlate.disasm.containers.elf import SHT_SYMTAB, STT_FUNC, Elf
from sassxlate.disasm.rdna3 import OPS, RRef, decode, keeps_part, reads, writes
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, Sp, V
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO, VCC_LO
from sassxlate.errors import ModelError, SassxlateError
from sassxlate.lowering.optimize.cost import instruction
from sassxlate.lowering.optimize.draft import Draft, legal, line, moved, source
from sassxlate.lowering.optimize.lift.lift import LiftedRun, Refused, lift, masks_at, spans
from sassxlate.lowering.optimize.rename_registers import NoFit, placed
from sassxlate.lowering.target import DEFAULT

_EXEC = RRef("s", EXEC_LO)
_VCC, _VCC_HI = RRef("s", VCC_LO), RRef("s", VCC_LO + 1)
_OPTIONS = ("-amdgpu-enable-vopd=0", "-amdgpu-enable-delay-alu=0")


@cache
def _machine() -> llvm.TargetMachine:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for option in _OPTIONS:
        llvm.set_option("", option)
    try:
        target = llvm.Target.from_triple("amdgcn--amdpal")
    except RuntimeError as error:
        raise ModelError("SX1047", f"this LLVM has no AMDGPU backend: {error}") from error
    # All targets have its instructions; the registers are chosen anew.
    return target.create_target_machine(cpu=DEFAULT.name, features="-real-true16", opt=2)


def compiled(runs: Sequence[LiftedRun]) -> list[list[Inst]]:
    """LLVM's code for each run, in its own registers.  Raises RuntimeError if LLVM refuses."""
    declared = dict.fromkeys(d for run in runs for d in run.declarations)
    text = 'target triple = "amdgcn--amdpal"\n' + "".join(f"declare {d}\n" for d in declared)
    for run in runs:
        text += f"{run.signature} {{\n{run.body}\n}}\n"
    text += 'attributes #0 = { nounwind "target-features"="-real-true16" }\n'
    module = llvm.parse_assembly(text)
    machine = _machine()
    pto = llvm.create_pipeline_tuning_options(speed_level=2)
    builder = llvm.create_pass_builder(machine, pto)
    passes = llvm.create_new_function_pass_manager()
    passes.add_instruction_combine_pass()
    passes.add_reassociate_pass()
    passes.add_new_gvn_pass()
    passes.add_instruction_combine_pass()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)
    data = machine.emit_object(module)
    places = _functions(data)
    out: list[list[Inst]] = []
    for run in runs:
        code = places[run.name]
        at = 0
        made: list[Inst] = []
        while at < len(code):
            inst, size = decode(code, at)
            at += size
            made.append(inst)
        out.append(made)
    return out


def _functions(data: bytes) -> dict[str, bytes]:
    """The functions of a relocatable ELF file."""
    elf = Elf(data)
    return {
        symbol.name: bytes(elf.sections[symbol.shndx].data[symbol.value :][: symbol.size])
        for table in elf.sections
        if table.type == SHT_SYMTAB
        for symbol in elf.symbols(table)
        if symbol.kind == STT_FUNC and symbol.shndx
    }


# --- back ------------------------------------------------------------------------------------

_STRIPPED = frozenset({"s_delay_alu", "s_nop", "s_clause", "s_endpgm", "s_waitcnt"})


def renamed(run: LiftedRun, code: Sequence[Inst]) -> list[Inst]:
    """LLVM's code renamed to the block's registers.  Raises Refused, NoFit."""
    plain_code = _single(run, _without_guards(run, [i for i in code if i.op not in _STRIPPED]))
    for inst in plain_code:
        if OPS[inst.op].kind not in ("valu", "salu") or _EXEC in writes(inst):
            raise Refused(inst.op)
        if not run.vcc and any(r in (_VCC, _VCC_HI) for r in reads(inst) | writes(inst)):
            raise Refused("VCC is taken")
    best: list[Inst] | None = None
    reason: Exception = Refused()
    for variant in (plain_code, rejoined(plain_code)):
        try:
            made = [inst for inst in placed(variant, run.places) if not _idle(inst)]
        except NoFit as why:
            reason = why
            continue
        if all(map(legal, made)) and (best is None or _price(made) < _price(best)):
            best = made
    if best is None:
        raise reason
    return best


def _price(code: Sequence[Inst]) -> int:
    return sum(map(instruction, code))


def rejoined(code: Sequence[Inst]) -> list[Inst]:
    """Turns sums of shifted words and pairs into wide products: LLVM splits them into shifts, which
    is cheaper only if several sums share the shift."""
    out = list(code)
    n = 0
    while n < len(out):
        if out[n].op == "v_lshlrev_b64":
            _rejoin(out, n)
        n += 1
    return out


def _rejoin(code: list[Inst], n: int) -> None:
    to, count, pair = code[n].args
    if not isinstance(to, V) or not isinstance(pair, V) or not isinstance(count, I):
        return
    sign = next((m for m in range(n - 1, -1, -1) if _writes(code[m], pair.index + 1)), None)
    if sign is None or code[sign].op != "v_ashrrev_i32" or code[sign].args[1] != I(31):
        return
    word = code[sign].args[2]
    if not isinstance(word, V) or word != V(pair.index):
        return
    sums: list[tuple[int, int]] = []
    last = n
    for m in range(n + 1, len(code)):
        inst = code[m]
        if inst.op == "v_add_co_u32" and V(to.index) in inst.args[2:]:
            high = _high_sum(code, m, to)
            if high is None:
                return
            sums.append((m, high))
            last = max(last, high)
        elif any(RRef("v", r) in reads(inst) for r in _words(to)) and m not in {h for _, h in sums}:
            return
        if m >= last and any(_writes(inst, r) for r in _words(to)):
            break
    made: list[Inst] = []
    for m, high in sums:
        inst, other = code[m], code[high]
        low_base = inst.args[3] if inst.args[2] == V(to.index) else inst.args[2]
        high_base = other.args[3] if other.args[2] == V(to.index + 1) else other.args[2]
        base = _pair_of(low_base, high_base)
        result = inst.args[0]
        if base is None or not isinstance(result, V) or other.args[0] != V(result.index + 1):
            return
        factor = I(1 << count.value)
        made.append(Inst("v_mad_i64_i32", (V(result.index, 2), Sp("null"), word, factor, base)))
        if any(_writes(code[k], word.index) for k in range(sign, m)):
            return
    if not sums or count.value > 30:
        return
    for (m, high), one in zip(sums, made, strict=True):
        code[m] = one
        code[high] = _NOTHING
    code[n] = code[sign] = _NOTHING
    code[:] = [inst for inst in code if inst is not _NOTHING]


_NOTHING = Inst("s_nop", (), imm=0)


def _writes(inst: Inst, number: int) -> bool:
    return RRef("v", number) in writes(inst)


def _high_sum(code: Sequence[Inst], n: int, to: V) -> int | None:
    """The sum with carry that continues the one at ``n``."""
    carry = code[n].args[1]
    for m in range(n + 1, len(code)):
        inst = code[m]
        if inst.op == "v_add_co_ci_u32" and inst.args[4] == carry:
            return m if V(to.index + 1) in inst.args[2:4] else None
        if any(_writes(inst, r) for r in _words(to)):
            return None
    return None


def _pair_of(low: Arg, high: Arg) -> Arg | None:
    if isinstance(low, V) and high == V(low.index + 1):
        return V(low.index, 2)
    if isinstance(low, S) and high == S(low.index + 1) and low.index % 2 == 0:
        return S(low.index, 2)
    return None


def _without_guards(run: LiftedRun, code: Sequence[Inst]) -> list[Inst]:
    """Removes moves of unused registers, which LLVM saves and restores."""
    holds = set(run.guards)
    out: list[Inst] = []
    for inst in code:
        found = moved(inst)
        refs = writes(inst)
        if found is not None and source(found[1]) and source(found[1]) <= holds:
            holds |= refs
            continue
        holds -= refs
        out.append(inst)
    return out


def _words(arg: V | S) -> range:
    return range(arg.index, arg.index + arg.n)


_OWN = 512  # numbers from here on are not LLVM's registers


def _single(run: LiftedRun, code: Sequence[Inst]) -> list[Inst]:
    """Splits products of words plus a sum whose high word is never read into a product and a sum:
    their addend need not be a pair."""
    out: list[Inst] = []
    live = set(run.places.kept)
    for inst in reversed(code):
        made = [inst]
        if inst.op in ("v_mad_u64_u32", "v_mad_i64_i32"):
            to, _, a, b, c = inst.args
            if isinstance(to, V) and RRef("v", to.index + 1) not in live and c != I(0):
                low = I(c.value & 0xFFFFFFFF) if isinstance(c, I) else c
                low = type(low)(low.index) if isinstance(low, V | S) else low
                own, word = V(_OWN + len(out)), V(to.index)
                made = [Inst("v_mul_lo_u32", (own, a, b)), Inst("v_add_nc_u32", (word, low, own))]
        for one in reversed(made):
            if not keeps_part(one):
                live -= writes(one)
            live |= reads(one)
            out.append(one)
    return out[::-1]


def _idle(inst: Inst) -> bool:
    found = moved(inst)
    return found is not None and found[0] == found[1]


def compiled_runs(drafts: Sequence[Draft]) -> list[list[tuple[LiftedRun, list[Inst]]]]:
    """LLVM's cheaper code for runs of drafts; one module for all of them."""
    runs: list[tuple[int, LiftedRun]] = []
    for k, d in enumerate(drafts):
        masks = masks_at(d)
        for first, end in spans(d):
            try:
                runs.append((k, lift(d, first, end, masks[first], f"f{len(runs)}")))
            except (Refused, SassxlateError, KeyError, NotImplementedError):
                continue
    out: list[list[tuple[LiftedRun, list[Inst]]]] = [[] for _ in drafts]
    if not runs:
        return out
    _machine()
    for (k, run), code in zip(runs, _each([r for _, r in runs]), strict=True):
        old = sum(instruction(at.inst) for at in drafts[k].lines[run.first : run.end])
        try:
            made = renamed(run, code)
            if _price(made) < old:
                out[k].append((run, made))
        except (Refused, NoFit, SassxlateError):
            continue
    return out


def _each(runs: Sequence[LiftedRun]) -> list[list[Inst]]:
    """The code of each run; None if LLVM refuses it."""
    try:
        return compiled(runs)
    except (RuntimeError, SassxlateError):
        return [code for run in runs for code in (_each([run]) if len(runs) > 1 else [_REFUSED])]


_REFUSED: list[Inst] = [Inst("s_endpgm"), Inst("s_trap", (), imm=2)]


def put(d: Draft, run: LiftedRun, code: Sequence[Inst]) -> None:
    """Replaces a run by LLVM's code, at its last SASS instruction."""
    groups = [at.group for at in d.lines[run.first : run.end]]
    d.join(groups)
    d.lines[run.first : run.end] = [line(inst, groups[-1]) for inst in code]
    d.changed = True
    d.settle()


__all__ = ["compiled_runs", "put"]
