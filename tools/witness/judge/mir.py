"""Finished code as LLVM's machine IR: one function a kernel, basic blocks, physical registers.

Calls within a kernel (s_call_b64 to one of its own routines) become s_getpc_b64 and s_branch, as
LLVM's passes treat a call as one to a function with waits of its own; a return goes to
every place that a call comes back to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from tools.witness.judge.llvm_tools import CPU, FEATURES
from tools.witness.judge.machine_code import Decoded
from tools.witness.judge.opcodes import Opcodes, completed

_SUFFIX = re.compile(r"_gfx(\d+plus|pre\d+|\d+).*$")
_NO_BITS = frozenset({"sgpr_null"})
Spell = Callable[[Decoded, str], str | None]  # another line for an instruction; None leaves it out


def module(functions: Sequence[str]) -> str:
    """A document of functions that :func:`function` wrote, named f0, f1, ..."""
    stubs = "".join(
        f"  define amdgpu_kernel void @f{n}() #0 {{ ret void }}\n" for n in range(len(functions))
    )
    attributes = (
        f'"target-cpu"="{CPU}" "target-features"="{FEATURES}" '
        '"amdgpu-flat-work-group-size"="1,1024"'
    )
    head = f'--- |\n  target triple = "amdgcn-amd-amdhsa"\n{stubs}'
    return f"{head}  attributes #0 = {{ {attributes} }}\n...\n" + "".join(functions)


def function(
    number: int, code: Sequence[Decoded], opcodes: Opcodes, spell: Spell | None = None
) -> str:
    """The machine IR of one kernel's code."""
    starts = _starts(code)
    blocks = {at: n for n, at in enumerate(sorted(starts))}
    returns = sorted(blocks[i.at + i.size] for i in code if i.is_call)
    lines = [
        f"---\nname: f{number}\ntracksRegLiveness: false\nmachineFunctionInfo:\n"
        "  isEntryFunction: true\nbody: |"
    ]
    last = len(code) - 1
    for n, inst in enumerate(code):
        if inst.at in blocks:
            lines.append(f"  bb.{blocks[inst.at]}:")
            end = n
            while end < last and code[end + 1].at not in blocks:
                end += 1
            if after := _successors(code[end], blocks, returns):
                names = ", ".join(f"%bb.{block}" for block in after)
                lines.append(f"    successors: {names}\n")
        line = _line(inst, opcodes, blocks)
        if spell is not None:
            other = spell(inst, line)
            if other is None:
                continue
            line = other
        lines.append(f"    {line}")
    end = code[-1].at + code[-1].size
    if end in blocks:  # a branch over the last instruction
        lines.append(f"  bb.{blocks[end]}:\n    S_ENDPGM 0")
    return "\n".join(lines) + "\n...\n"


def short_calls(inst: Decoded, line: str) -> str:
    """How a call is spelled to be encoded: its branch alone, which is as long and jumps as far."""
    return line.rpartition("\n")[2].strip() if inst.is_call else line


def examples(encodings: Mapping[str, Decoded], opcodes: Opcodes) -> str:
    """A document with one instruction of each opcode, for questions about opcodes."""
    body: list[str] = []
    for n, inst in enumerate(encodings.values()):
        line = _line(inst, opcodes, {inst.target: 0} if _jumps(inst) else {})
        body += [f"  bb.{n}:", f"    {line}"]
    head = "---\nname: f0\nmachineFunctionInfo:\n  isEntryFunction: true\nbody: |\n"
    return module([head + "\n".join([*body, "    S_ENDPGM 0\n...\n"])])


def _jumps(inst: Decoded) -> bool:
    return inst.is_branch or inst.is_call


def _starts(code: Sequence[Decoded]) -> set[int]:
    starts = {code[0].at}
    end = code[-1].at + code[-1].size
    for inst in code:
        if _jumps(inst):
            starts.add(inst.target)
        if (_jumps(inst) or inst.ends) and inst.at + inst.size < end:
            starts.add(inst.at + inst.size)
    return starts


def _successors(
    last: Decoded, blocks: Mapping[int, int], returns: Iterable[int]
) -> tuple[int, ...]:
    if last.is_return:
        return tuple(returns)
    after = {blocks[last.target]} if _jumps(last) else set[int]()
    if not last.ends and last.at + last.size in blocks:
        after.add(blocks[last.at + last.size])
    return tuple(sorted(after))


def _line(inst: Decoded, opcodes: Opcodes, blocks: Mapping[int, int]) -> str:
    known = opcodes.of(inst.opcode)
    operands = [_operand(operand) for operand in completed(known.pseudo, inst.operands)]
    if inst.is_call:
        return f"{operands[0]} = S_GETPC_B64\n    S_BRANCH %bb.{blocks[inst.target]}"
    if inst.is_branch:
        operands = [f"%bb.{blocks[inst.target]}"]
    written = ", ".join(operands[: known.defines])
    rest = ", ".join([*operands[known.defines :], *known.implicit])
    return f"{written} = {known.pseudo} {rest}" if written else f"{known.pseudo} {rest}"


def _operand(operand: str | int) -> str:
    if isinstance(operand, int):
        return str(operand)
    name = _SUFFIX.sub("", operand).lower()
    return f"undef ${name}" if name in _NO_BITS else f"${name}"
