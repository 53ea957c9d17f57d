"""What a rule reads: operands by role, temporaries, and the emission of instructions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType

from sassxlate.disasm.rdna3 import can_encode
from sassxlate.disasm.rdna3.instruction import (
    Arg,
    I,
    Inst,
    InstOrigin,
    Item,
    Label,
    LabelRef,
    S,
    Sp,
    V,
    sgprs,
    shared,
    vgprs,
)
from sassxlate.disasm.sass.instruction import (
    Const,
    Imm,
    Instruction,
    Mem,
    Operand,
    Pred,
    Reg,
)
from sassxlate.errors import LoweringError, Where
from sassxlate.lowering.abi.kernarg import BankLayout
from sassxlate.lowering.builder.kernel_builder import KernelBuilder
from sassxlate.lowering.builder.legal_shapes import known_legal, remember_legal, shape_of
from sassxlate.lowering.target import NULL, OFF, ZERO, Target

FLAGS = ("neg", "abs", "inv", "select")  # modifiers of the value of a source operand


class Scope:
    """What :meth:`SourceReader.scope` gives to ``with``; a generator would take three times as
    long, and every rule has some."""

    def __init__(self, reader: SourceReader) -> None:
        self._reader = reader
        self._free = reader.temporaries()

    def __enter__(self) -> None:
        """Nothing: the place is that of its making."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._reader.restore(self._free)


class SourceReader:
    """An instruction's operands in registers.  All public methods may append instructions."""

    def __init__(self, k: KernelBuilder, ins: Instruction, converged: bool) -> None:
        self.k = k
        self.ins = ins
        self.arch = k.arch
        self.converged = converged
        # Of what :meth:`emit` appends; None: it is set later (``with_origin``), which makes
        # each instruction a second time.
        self.origin: InstOrigin | None = None
        self._first = len(k.items)
        self._vnext = k.regs.vtemp_base
        self._stemps = list(k.regs.stemps)
        self._commits: list[Callable[[], None]] = []
        self._considered: set[tuple[str, str]] = set()  # role and flag
        self._handled: set[str] = set()  # roles of which all flags are considered

    # --- errors and emission -------------------------------------------------------------------

    @property
    def target(self) -> Target:
        """The processor that the code is for."""
        return self.k.regs.target

    def refuse(self, message: str, code: str = "SX0410") -> LoweringError:
        """The error for something that cannot be translated here."""
        ins = self.ins
        place = Where(kernel=self.k.name, offset=ins.offset, word=ins.word, inst=ins.text)
        return LoweringError(code, message, place)

    def emit(self, op: str, *args: Arg, **mods: int | bool | str) -> None:
        """Appends one instruction, made legal: surplus scalars and literals go through VGPRs."""
        # Without keywords, which most have not, it is a plain call.
        args = shared(args)
        if mods:
            inst = Inst(op, args, origin=self.origin, **mods)  # type: ignore[arg-type]
            self.k.items.append(self._legal(inst))
            return
        inst = Inst(op, args, origin=self.origin)
        shape = shape_of(op, args)
        if not shape or not known_legal(op, shape):
            legal = self._legal(inst)
            if shape and legal is inst:
                remember_legal(op, shape)
            inst = legal
        self.k.items.append(inst)

    def raw(self, item: Item) -> None:
        """Appends an item unchanged."""
        self.k.items.append(item)

    def mark(self, label: str) -> None:
        self.k.items.append(Label(label))

    def branch(self, op: str, label: str) -> None:
        self.raw(Inst(op, (LabelRef(label),)))

    def _legal(self, inst: Inst) -> Inst:
        reason = can_encode(inst)
        if reason is None:
            return inst
        vector = inst.op.startswith("v_")
        # The last operand of these is a lane mask, which only a scalar register can hold.
        masked = inst.op.startswith(("v_cndmask", "v_add_co_ci", "v_sub_co_ci", "v_subrev_co_ci"))
        last = len(inst.args) - (2 if masked else 1)
        moved = list(inst.args)
        for i in range(last, 0, -1):
            arg = inst.args[i]
            if isinstance(arg, V | LabelRef) or (
                isinstance(arg, Sp) and arg.name in ("off", "null")
            ):
                continue
            if isinstance(arg, Sp) and arg.name in ("exec_lo", "vcc_lo") and not vector:
                continue
            n = arg.n if isinstance(arg, S | Sp) else 1
            args = list(inst.args)
            moved[i] = args[i] = self.to_vgpr(arg, n) if vector else self._to_sgpr(arg)
            for candidate in (inst.with_args(tuple(args)), inst.with_args(tuple(moved))):
                if can_encode(candidate) is None:
                    return candidate
        raise LoweringError(
            "SX0411", f"no legal encoding for {inst.op}: {reason}", self.refuse("").where
        )

    def to_vgpr(self, arg: Arg, n: int) -> V:
        temp = self.vtemp(n)
        for i in range(n):
            self.raw(Inst("v_mov_b32", (vgprs(temp.index + i), part(arg, i))))
        return temp

    def _to_sgpr(self, arg: Arg) -> S:
        temp = self.stemp()
        self.raw(Inst("s_mov_b32", (temp, arg)))
        return temp

    # --- temporaries -----------------------------------------------------------------------------

    def vtemp(self, n: int = 1) -> V:
        """``n`` consecutive VGPRs, free until the end of the instruction."""
        temp = vgprs(self._vnext, n)
        self._vnext += n
        self.k.vtemps_used = max(self.k.vtemps_used, self._vnext - self.k.regs.vtemp_base)
        return temp

    def stemp(self, n: int = 1) -> S:
        """``n`` consecutive SGPRs (pairs even), free until the end of the instruction."""
        if n == 1 and self._stemps:
            return sgprs(self._stemps.pop())
        for i in self._stemps:
            if i % 2 == 0 and all(i + k in self._stemps for k in range(n)):
                for k in range(n):
                    self._stemps.remove(i + k)
                return sgprs(i, n)
        raise self.refuse("no scalar temporaries left", "SX0402")

    def scope(self) -> Scope:
        """Temporaries taken inside are free again after it."""
        return Scope(self)

    def temporaries(self) -> tuple[list[int], int]:
        """Those that are free: SGPRs, and all VGPRs from a number on."""
        return list(self._stemps), self._vnext

    def restore(self, free: tuple[list[int], int]) -> None:
        """Frees what was taken since :meth:`temporaries`."""
        self._stemps, self._vnext = free

    def lend(self, taken: Iterable[S]) -> None:
        """Taken SGPRs may be taken again, until the end of the scope."""
        self._stemps += [reg.index for reg in taken]

    # --- sources ---------------------------------------------------------------------------------

    def operand(self, role: str) -> Operand:
        """The operand as decoded; the rule must then handle its signs and selectors."""
        self._handled.add(role)
        return self._operand(role)

    def _operand(self, role: str) -> Operand:
        got = self.ins.get(role)
        if got is None:
            raise self.refuse(f"operand {role} is missing", "SX0412")
        return got

    def flag(self, role: str, name: str) -> bool:
        """Whether an operand exists and has ``neg``, ``abs`` or ``inv``; the rule applies it."""
        self._considered.add((role, name))
        operand = self.ins.get(role)
        if isinstance(operand, Reg | Const):
            if name == "neg":
                return operand.neg
            if name == "abs":
                return operand.abs
            if name == "inv":
                return operand.inv
        return bool(getattr(operand, name, False))

    def check_flags(self) -> None:
        """Refuses the instruction if a sign, complement, selector or predicate was not read.

        So a rule that overlooks one cannot be silently wrong.
        """
        operands = self.ins.operands
        handled = self._handled
        for role in operands:
            if role in handled:
                continue
            operand = operands[role]
            if isinstance(operand, Pred):
                if operand.index != 7 and (role, "pred") not in self._considered:
                    raise self.refuse(f"predicate {role} is not translated", "SX0415")
            elif isinstance(operand, Reg | Const):
                if operand.neg or operand.abs or operand.inv or operand.select:  # few have one
                    self._check_flags_of(role, operand)
            elif isinstance(operand, Imm) and (operand.neg or operand.inv):
                self._check_flags_of(role, operand)

    def _check_flags_of(self, role: str, operand: Reg | Const | Imm) -> None:
        for flag in FLAGS:
            if getattr(operand, flag, False) and (role, flag) not in self._considered:
                shown = getattr(operand, flag) if flag == "select" else flag
                raise self.refuse(f"{shown} of operand {role} is not translated", "SX0415")

    def reg(self, role: str) -> Reg:
        got = self._operand(role)
        if not isinstance(got, Reg):
            raise self.refuse(f"operand {role} is not a register", "SX0412")
        return got

    def imm(self, role: str) -> int:
        """The raw value of an immediate operand."""
        got = self._operand(role)
        if not isinstance(got, Imm):
            raise self.refuse(f"operand {role} is not an immediate", "SX0412")
        return got.value

    def mem(self, role: str = "mem") -> Mem:
        got = self._operand(role)
        if not isinstance(got, Mem):
            raise self.refuse(f"operand {role} is not an address", "SX0412")
        return got

    def src(self, role: str, word: int = 0) -> Arg:
        """32-bit word ``word`` of a source, without its modifiers (see ``fneg``/``isrc``): a VGPR,
        an SGPR or a constant."""
        return self.value(self._operand(role), word)

    def value(self, operand: Operand, word: int = 0) -> Arg:
        match operand:
            case Reg():
                if operand.is_zero:
                    return ZERO
                return self._register(operand.file, operand.index + word)
            case Imm():
                value = operand.value
                if operand.bits == 32 and operand.kind == "int" and value >> 31 & 1:
                    value |= -1 << 32  # 64-bit instructions sign-extend, even unsigned ones
                return I(value >> (32 * word) & 0xFFFFFFFF)
            case Const():
                return self._constant(operand, word)
            case _:
                raise self.refuse(f"{operand} is not a value", "SX0412")

    def _register(self, file: str, index: int) -> Arg:
        m = self.k.regs
        if file == "UR" and index in m.ur:
            return sgprs(m.ur[index])
        if file != "UR" and index in m.spilled:
            temp = self.vtemp()
            self._scratch("scratch_load_b32", temp, index)
            return temp
        vector = (m.ur_lanes if file == "UR" else m.r).get(index)
        if vector is None:  # the second of a pair that begins at the last register, R254
            raise self.refuse(f"{file}{index} is not a register of the kernel", "SX0412")
        return vgprs(vector)

    def _scratch(self, op: str, v: V, index: int) -> None:
        offset = self.k.regs.spilled[index]
        base, rest = offset & ~0xFFF, offset & 0xFFF
        where: Arg = OFF
        if base:
            where = self.stemp()
            self.raw(Inst("s_mov_b32", (where, I(base))))
        args = (v, OFF, where) if op.startswith("scratch_load") else (OFF, v, where)
        self.raw(Inst(op, args, imm=rest))

    def _constant(self, c: Const, word: int) -> Arg:
        if c.ur is not None:
            raise self.refuse("bindless constant bank", "SX0413")
        if c.index is not None:
            raise self.refuse("indexed constant outside of a load", "SX0413")
        return self.constant_word(c.bank, c.place + 4 * word)

    def constant_word(self, bank: int, offset: int) -> Arg:
        """The word at byte ``offset`` of a constant bank; preloaded, or loaded here."""
        lay = self.k.layout
        if bank == 0:
            window = self._window(offset, lay)
            if window is not None:
                return window
        at = offset & ~3
        shift = 8 * (offset & 3)
        got = self.k.regs.consts.get((bank, at))
        if got is None:
            got = self.stemp()
            if bank == 0:
                self.raw(Inst("s_load_b32", (got, self.target.kernarg, NULL), imm=at))
            else:
                self.raw(Inst("s_load_b32", (got, self.bank_pointer(bank), NULL), imm=at))
        if shift:
            temp = self.stemp()
            self.raw(Inst("s_lshr_b32", (temp, got, I(shift))))
            return temp
        return got

    def bank_pointer(self, bank: int) -> S:
        """The device address of a constant bank's image, in an SGPR pair (bank 0: the kernarg)."""
        if bank == 0:
            return self.target.kernarg
        if bank not in self.k.bank_table:
            raise self.refuse(f"constant bank {bank} does not exist here", "SX0413")
        pointer = self.stemp(2)
        self.raw(
            Inst("s_load_b64", (pointer, self.target.kernarg, NULL), imm=self.k.bank_table[bank])
        )
        return pointer

    def _window(self, offset: int, lay: BankLayout) -> Arg | None:
        """The windows of shared and local memory become AMD's apertures; their low words are 0."""
        for base, name in (
            (lay.shared_window, "src_shared_base"),
            (lay.local_window, "src_private_base"),
        ):
            if base is not None and base <= offset < base + 8:
                return self.aperture(name) if offset >= base + 4 else ZERO
        if lay.param_pointer is not None and lay.param_pointer <= offset < lay.param_pointer + 8:
            return self._parameters(offset - lay.param_pointer, lay)
        if not lay.bank_pointer and lay.param_end <= offset < lay.param_end + 8:
            return self._parameters(offset - lay.param_end, lay, self.k.param_size - 1)
        half = self.k.grid_words.get(offset)
        return None if half is None else self._grid_workspace(half)

    def _parameters(self, half: int, lay: BankLayout, more: int = 0) -> S:
        """The low or high word of the address of the parameters, or of the bank, plus
        ``more`` bytes."""
        start = self.target.kernarg
        if lay.bank_pointer:
            return sgprs(start.index + (1 if half else 0))
        low, high = self.stemp(), self.stemp()
        self.raw(Inst("s_add_u32", (low, sgprs(start.index), I(lay.param_base + more))))
        self.raw(Inst("s_addc_u32", (high, sgprs(start.index + 1), ZERO)))
        return high if half else low

    def _grid_workspace(self, half: int) -> S:
        """The low or high word of the address of grid.sync()'s counters."""
        pointer = self.bank_pointer(4)
        low, high = sgprs(pointer.index), sgprs(pointer.index + 1)
        self.raw(Inst("s_add_u32", (low, low, I(self.k.grid_workspace))))
        self.raw(Inst("s_addc_u32", (high, high, ZERO)))
        return high if half else low

    def aperture(self, name: str) -> S:
        """The high word of an aperture (``src_shared_base`` or ``src_private_base``)."""
        pair = self.stemp(2)
        self.raw(Inst("s_mov_b64", (pair, Sp(name, 2))))
        return sgprs(pair.index + 1)

    def vsrc(self, role: str, word: int = 0) -> V:
        """A source word in a VGPR, without modifiers."""
        return self.to_v(self.src(role, word))

    def to_v(self, arg: Arg) -> V:
        if isinstance(arg, V):
            return arg
        temp = self.vtemp()
        self.raw(Inst("v_mov_b32", (temp, arg)))
        return temp

    def vtuple(self, role: str, n: int | None = None) -> V:
        """A source of ``n`` words (default: its width) in consecutive VGPRs, without modifiers."""
        operand = self._operand(role)
        return self.vtuple_of(operand, n or int(getattr(operand, "width", 1)))

    def _together(self, index: int, width: int) -> int:
        """The VGPR of R register ``index``, if the next ones follow it there; -1 if not."""
        places = self.k.regs.r
        first = places.get(index, -1)
        for i in range(1, width):
            if first < 0 or places.get(index + i, -1) != first + i:
                return -1
        return first

    def vtuple_of(self, operand: Operand, width: int) -> V:
        if isinstance(operand, Reg) and operand.file == "R" and not operand.is_zero:
            place = self._together(operand.index, width)
            if place >= 0:
                return vgprs(place, width)
        words = [self.value(operand, i) for i in range(width)]
        temp = self.vtemp(width)
        for i, w in enumerate(words):
            self.raw(Inst("v_mov_b32", (vgprs(temp.index + i), w)))
        return temp

    def src64(self, role: str) -> Arg:
        """A 64-bit source as a register pair (VGPR or SGPR), without modifiers."""
        operand = self._operand(role)
        lo, hi = self.value(operand, 0), self.value(operand, 1)
        if isinstance(lo, V) and isinstance(hi, V) and hi.index == lo.index + 1:
            return vgprs(lo.index, 2)
        aligned = isinstance(lo, S) and lo.index % 2 == 0
        if isinstance(lo, S) and isinstance(hi, S) and aligned and hi.index == lo.index + 1:
            return sgprs(lo.index, 2)
        temp = self.vtemp(2)
        self.raw(Inst("v_mov_b32", (vgprs(temp.index), lo)))
        self.raw(Inst("v_mov_b32", (vgprs(temp.index + 1), hi)))
        return temp

    def ssrc(self, role: str, word: int = 0) -> Arg:
        """A source word as a scalar (SGPR or constant), without modifiers: for the uniform
        datapath, or where one lane's value represents all."""
        return self.to_s(self.src(role, word))

    def to_s(self, arg: Arg, *, uniform: bool = True) -> Arg:
        """A value as a scalar: the first active lane's; all lanes hold it if ``uniform``."""
        if not isinstance(arg, V):
            return arg
        temp = self.stemp()
        self.raw(Inst("v_readfirstlane_b32", (temp, arg), uniform=uniform))
        return temp

    def fneg(self, *roles: str) -> dict[str, int]:
        """``neg`` and ``abs`` bits of float sources, by position, for ``emit(**...)``."""
        neg = absolute = 0
        for i, role in enumerate(roles):
            if self.flag(role, "neg"):
                neg |= 1 << i
            if self.flag(role, "abs"):
                absolute |= 1 << i
        return {"neg": neg, "abs": absolute}

    def isrc(self, role: str, word: int = 0) -> Arg:
        """An integer source word with ``~`` applied; the rule handles a ``-``, see ``negated``."""
        arg = self.src(role, word)
        if not self.flag(role, "inv"):
            return arg
        if isinstance(arg, I):
            return I(~arg.value & 0xFFFFFFFF)
        if isinstance(arg, S):
            temp_s = self.stemp()
            self.raw(Inst("s_not_b32", (temp_s, arg)))
            return temp_s
        temp = self.vtemp()
        self.emit("v_not_b32", temp, arg)
        return temp

    def negated(self, role: str) -> bool:
        return self.flag(role, "neg")


def part(arg: Arg, i: int) -> Arg:
    """Word ``i`` of a register tuple."""
    match arg:
        case V():
            return vgprs(arg.index + i)
        case S():
            return sgprs(arg.index + i)
        case I() if i:
            return ZERO
        case _:
            return arg
