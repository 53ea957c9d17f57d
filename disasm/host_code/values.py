"""Which constants a function passes to the functions that it calls.

A forward data flow over one function's blocks.  A value is a set of at most eight of: an address, a
parameter of the function, a word in memory at a constant address, a place on the stack.  Whatever
an instruction writes that is not understood becomes unknown; where paths meet, a value is what
either brings, and unknown if one of them is.  Words of the stack whose address was passed on are
forgotten at the next call; that other stores change the stack is not assumed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from sassxlate.disasm.host_code.calls import decoder

Atom = tuple[Literal["address", "parameter", "word", "stack"], int]
Value = frozenset[Atom]
ARGUMENTS = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
_CLOBBERED = ("rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11")
_MOST_ATOMS, _MOST_ROUNDS = 8, 20_000
_OLD, _NEW = ("ax", "bx", "cx", "dx", "si", "di", "bp", "sp"), range(8, 16)
_HALVES = {f"e{n}": f"r{n}" for n in _OLD} | {f"r{n}d": f"r{n}" for n in _NEW}
_PARTS = {  # of 16 and 8 bits
    **{n: f"r{n}" for n in _OLD},
    **{f"{n[0]}{half}": f"r{n}" for n in _OLD[:4] for half in "lh"},
    **{f"{n}l": f"r{n}" for n in _OLD[4:]},
    **{f"r{n}{end}": f"r{n}" for n in _NEW for end in "wb"},
}
_NARROW = {**_HALVES, **_PARTS}
_OPERAND_REGISTER, _OPERAND_NUMBER, _OPERAND_MEMORY = 1, 2, 3  # X86_OP_*


@dataclass(slots=True)
class State:
    """Known values of registers and of words on the stack, by their offset from the return
    address; the stack's words whose address is known elsewhere."""

    registers: dict[str, Value] = field(default_factory=dict[str, Value])
    stack: dict[int, Value] = field(default_factory=dict[int, Value])
    shown: set[int] = field(default_factory=set[int])

    def copy(self) -> State:
        return State(dict(self.registers), dict(self.stack), set(self.shown))

    def meet(self, other: State) -> bool:
        """Takes what both know; whether something changed."""
        changed = _meet(self.registers, other.registers)
        changed = _meet(self.stack, other.stack) or changed
        changed = changed or not other.shown <= self.shown
        self.shown |= other.shown
        return changed


_Key = TypeVar("_Key")


def _meet(mine: dict[_Key, Value], theirs: dict[_Key, Value]) -> bool:
    changed = False
    for key in list(mine):
        both = mine[key] | theirs[key] if key in theirs else None
        if both is None or len(both) > _MOST_ATOMS:
            del mine[key]
        elif both != mine[key]:
            mine[key] = both
        else:
            continue
        changed = True
    return changed


def arguments(
    code: bytes, start: int, places: Iterable[int]
) -> dict[int, tuple[Value | None, ...]]:
    """The values of the six argument registers at calls at ``places``, and of a call's target in a
    register as the seventh; None: unknown."""
    wanted = set(places)
    instructions = list(decoder(detail=True).disasm(code, start))
    index = {one.address: n for n, one in enumerate(instructions)}
    leaders = {
        one.operands[0].imm
        for one in instructions
        if one.mnemonic[0] == "j" and one.operands[0].type == _OPERAND_NUMBER
    }
    entry = State({r: frozenset({("parameter", n)}) for n, r in enumerate(ARGUMENTS)})
    entry.registers["rsp"] = frozenset({("stack", 0)})
    states: dict[int, State] = {start: entry}
    work = [start]
    found: dict[int, tuple[Value | None, ...]] = {}
    for _ in range(_MOST_ROUNDS):
        if not work:
            break
        at = work.pop()
        state = states[at].copy()
        n = index.get(at)
        while n is not None and n < len(instructions):
            one = instructions[n]
            if one.address in wanted:
                found[one.address] = _at_call(state, one)
            nexts = _step(state, one, start, start + len(code))
            if nexts is None:  # the next one follows alone
                n += 1
                if n < len(instructions) and instructions[n].address in leaders:
                    _flow(states, work, instructions[n].address, state)
                    break
                continue
            for target in nexts:
                _flow(states, work, target, state)
            break
    else:
        return {}
    return found


def _flow(states: dict[int, State], work: list[int], target: int, state: State) -> None:
    if target not in states:
        states[target] = state.copy()
        work.append(target)
    elif states[target].meet(state):
        work.append(target)


def _at_call(state: State, one: Any) -> tuple[Value | None, ...]:
    values: list[Value | None] = [state.registers.get(r) for r in ARGUMENTS]
    target = one.operands[0] if one.operands else None
    values.append(
        _read(state, one, target) if target is not None and target.type != _OPERAND_NUMBER else None
    )
    return tuple(values)


def _step(state: State, one: Any, start: int, end: int) -> list[int] | None:
    """Carries out an instruction; where it leads, None for the next one alone."""
    name = one.mnemonic.split(" ")[-1]
    following = one.address + one.size
    if name == "call":
        for register in _CLOBBERED:
            state.registers.pop(register, None)
        for place in state.shown:
            state.stack.pop(place, None)
        return None
    if name == "ret":
        return []
    if name[0] == "j":
        target = one.operands[0]
        inside = (
            [target.imm] if target.type == _OPERAND_NUMBER and start <= target.imm < end else []
        )
        return inside if name == "jmp" else [*inside, following]
    if name in ("hlt", "ud2"):
        return []
    _carry_out(state, one, name)
    return None


def _carry_out(state: State, one: Any, name: str) -> None:
    operands = one.operands
    if name == "push":
        value = _read(state, one, operands[0])
        _move_stack(state, -8)
        _store(state, _top(state), value)
    elif name == "pop":
        top = _top(state)
        value = state.stack.get(top) if top is not None else None
        _move_stack(state, 8)
        _write(state, one, operands[0], value)
    elif name == "leave":
        state.registers["rsp"] = state.registers.get("rbp", frozenset())
        top = _top(state)
        if top is None:
            state.registers.pop("rsp", None)
        _set(state, "rbp", state.stack.get(top) if top is not None else None)
        _move_stack(state, 8)
    elif name in ("mov", "movabs"):
        _write(state, one, operands[0], _read(state, one, operands[1]))
    elif name.startswith("cmov"):  # either
        old, new = _read(state, one, operands[0]), _read(state, one, operands[1])
        both = old | new if old is not None and new is not None else None
        _write(state, one, operands[0], both if both and len(both) <= _MOST_ATOMS else None)
    elif name == "lea":
        place = _place(state, one, operands[1])
        for kind, offset in place or ():
            if kind == "stack":
                state.shown.add(offset)
        _write(state, one, operands[0], place)
    elif (
        name in ("add", "sub")
        and operands[1].type == _OPERAND_NUMBER
        and operands[0].type == _OPERAND_REGISTER
    ):
        register = _register(one, operands[0])
        old = state.registers.get(register)
        by = operands[1].imm if name == "add" else -operands[1].imm
        moved: Value | None = None
        if old is not None and all(kind in ("stack", "address") for kind, _ in old):
            moved = frozenset((kind, at + by) for kind, at in old)
        _write(state, one, operands[0], moved)
    elif name == "xor" and one.op_str.split(", ")[0] == one.op_str.split(", ")[-1]:
        _write(state, one, operands[0], frozenset({("address", 0)}))
    elif name in ("cmp", "test", "nop", "endbr64"):
        pass
    else:
        if operands and operands[0].type == _OPERAND_MEMORY:  # a store of something else
            for kind, offset in _place(state, one, operands[0]) or ():
                if kind == "stack":
                    state.stack.pop(offset, None)
        for number in one.regs_access()[1]:
            register = _name(one, number)
            state.registers.pop(_NARROW.get(register, register), None)


def _name(one: Any, number: int) -> str:
    return str(one.reg_name(number))


def _register(one: Any, operand: Any) -> str:
    name = _name(one, operand.reg)
    return _NARROW.get(name, name)


def _read(state: State, one: Any, operand: Any) -> Value | None:
    if operand.type == _OPERAND_NUMBER:
        return frozenset({("address", operand.imm & 0xFFFFFFFFFFFFFFFF)})
    if operand.type == _OPERAND_REGISTER:
        name = _name(one, operand.reg)
        known = state.registers.get(_NARROW.get(name, name))
        if name in _NARROW and known and any(kind != "address" for kind, _ in known):
            return None  # the low half of an address says enough
        return known
    if operand.type != _OPERAND_MEMORY or operand.size != 8:
        return None
    place = _place(state, one, operand)
    if place is None or len(place) != 1:
        return None
    kind, at = next(iter(place))
    if kind == "stack":
        return state.stack.get(at)
    return frozenset({("word", at)}) if kind == "address" else None


def _place(state: State, one: Any, operand: Any) -> Value | None:
    """The address of a memory operand."""
    memory = operand.mem
    if memory.index or memory.segment:
        return None
    if not memory.base:
        return frozenset({("address", memory.disp)})
    base = _name(one, memory.base)
    if base == "rip":
        return frozenset({("address", one.address + one.size + memory.disp)})
    known = state.registers.get(base)
    if known is None or not all(kind in ("stack", "address") for kind, _ in known):
        return None
    return frozenset((kind, at + memory.disp) for kind, at in known)


def _write(state: State, one: Any, operand: Any, value: Value | None) -> None:
    if operand.type == _OPERAND_REGISTER:
        name = _name(one, operand.reg)
        if name in _PARTS or (name in _HALVES and value and any(k != "address" for k, _ in value)):
            value = None
        _set(state, _NARROW.get(name, name), value)
    elif operand.type == _OPERAND_MEMORY:
        for kind, at in _place(state, one, operand) or ():
            if kind == "stack":
                _store(state, at, value if operand.size == 8 else None)


def _set(state: State, register: str, value: Value | None) -> None:
    if value is None:
        state.registers.pop(register, None)
    else:
        state.registers[register] = value


def _top(state: State) -> int | None:
    value = state.registers.get("rsp")
    if value is None or len(value) != 1:
        return None
    kind, at = next(iter(value))
    return at if kind == "stack" else None


def _move_stack(state: State, by: int) -> None:
    top = _top(state)
    if top is not None:
        state.registers["rsp"] = frozenset({("stack", top + by)})


def _store(state: State, at: int | None, value: Value | None) -> None:
    if at is None:
        return
    if value is None:
        state.stack.pop(at, None)
    else:
        state.stack[at] = value


__all__ = ["ARGUMENTS", "Value", "arguments"]
