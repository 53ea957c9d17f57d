"""Keeps free instructions at the ends of branches' arms out of phis.

LLVM's StructurizeCFG moves an instruction that costs nothing (a cast, a part of a vector) out of
the else arm that gives it to a phi.  Where more than two paths meet, it then takes the value for
paths that never went through the arm (llvm-project#183792, fixed after the LLVM in llvmlite 0.50):
silently wrong results, seen in the random kernel programs_s10_0065.  An instruction of which a copy
is made at the end of the arm stays where it is, as the copy has a cost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sassxlate.lowering.tier.compiler.ssa import LABEL, NAME

# What TargetTransformInfo may call free, and calls of it.
_FREE = frozenset(
    ("trunc", "zext", "sext", "bitcast", "addrspacecast", "inttoptr", "ptrtoint", "getelementptr",
     "extractelement", "insertelement", "shufflevector", "extractvalue", "insertvalue", "freeze",
     "fneg", "fptrunc", "fpext")
)  # fmt: skip
_FREE_CALL = "@llvm.fabs."
_RESULT = re.compile(rf"  ({NAME}) = (?:tail )?([a-z]+)\b")
_PHI = re.compile(
    rf"  {NAME} = phi (?:(?:nnan|ninf|nsz|arcp|contract|afn|reassoc|fast) )*([^\[]+) \["
)
_INCOMING = re.compile(rf"\[ ({NAME}), ({NAME}) \]")
_TERMINATORS = ("br", "switch", "ret", "unreachable")
_MANGLED = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}
_INTEGER = re.compile(r"i(\d+)")
_VECTOR = re.compile(r"<(\d+) x (\w+)>")
_POINTER = re.compile(r"ptr(?: addrspace\((\d+)\))?")


def _suffix(kind: str) -> str:
    """A type in the names of overloaded intrinsics.  Raises RuntimeError for one that has no
    register."""
    if kind in _MANGLED:
        return _MANGLED[kind]
    if kind in ("i16", "i32", "i64"):
        return kind
    if found := _VECTOR.fullmatch(kind):
        return f"v{found[1]}{_suffix(found[2])}"
    if found := _POINTER.fullmatch(kind):
        return f"p{found[1] or 0}"
    raise RuntimeError(f"a value of type {kind} where paths come together")


def _plain(kind: str) -> str:
    """A type of the same bits: of a vector of bytes or truth values, an integer or a vector of
    words; otherwise the type itself."""
    found = _VECTOR.fullmatch(kind)
    whole = _INTEGER.fullmatch(found[2]) if found else None
    if found is None or whole is None or whole[0] in ("i16", "i32", "i64"):
        return kind
    bits = int(found[1]) * int(whole[1])
    return f"<{bits // 32} x i32>" if bits > 64 and bits % 32 == 0 else f"i{bits}"


def _copy(value: str, kind: str, number: int) -> tuple[list[str], str, str]:
    """The lines that copy a value, the copy's name, and the intrinsic's declaration."""
    name = f"%held.{number}"
    plain = _plain(kind)
    whole = _INTEGER.fullmatch(plain)
    wide = plain
    lines: list[str] = []
    back: list[str] = []
    if plain != kind:
        lines.append(f"  {name}.p = bitcast {kind} {value} to {plain}")
        value = f"{name}.p"
        back.append(f"bitcast {plain} {{}} to {kind}")
    if whole and plain not in ("i16", "i32", "i64"):
        if int(whole[1]) > 64:
            raise RuntimeError(f"a value of type {kind} where paths come together")
        wide = "i32" if int(whole[1]) < 32 else "i64"
        lines.append(f"  {name}.a = zext {plain} {value} to {wide}")
        value = f"{name}.a"
        back.append(f"trunc {wide} {{}} to {plain}")
    function = f"@llvm.amdgcn.softwqm.{_suffix(wide)}"
    made = f"call {wide} {function}({wide} {value})"
    for step in (*reversed(back), ""):
        at = f"{name}.{len(lines)}" if step else name
        lines.append(f"  {at} = {made}")
        made = step.format(at)
    return lines, name, f"declare {wide} {function}({wide})"


def _functions(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The first line and the last of each function's body."""
    start = 0
    for at, line in enumerate(lines):
        if line.startswith("define "):
            start = at + 1
        elif line == "}":
            yield start, at


def _free(lines: Sequence[str]) -> frozenset[str]:
    found = set[str]()
    for line in lines:
        if (made := _RESULT.match(line)) and (
            made[2] in _FREE or (made[2] == "call" and _FREE_CALL in line)
        ):
            found.add(made[1])
    return frozenset(found)


def _ends(lines: Sequence[str]) -> dict[str, int]:
    """By block's name, the place of its terminator."""
    found: dict[str, int] = {}
    name = ""
    for at, line in enumerate(lines):
        if label := LABEL.match(line):
            name = "%" + label[1]
        elif line.startswith("  ") and line[2:].split(" ", 1)[0] in _TERMINATORS:
            found.setdefault(name, at)
    return found


def held(text: str) -> str:
    """A module as LLVM prints it, with a copy of each free instruction's value before a phi.

    Raises RuntimeError for a value that no register holds, or text that is not understood.
    """
    lines = text.split("\n")
    declared = set[str]()
    number = 0
    for start, end in reversed(list(_functions(lines))):
        body = lines[start:end]
        free = _free(body)
        copies: dict[tuple[str, str], str] = {}
        added: dict[str, list[str]] = {}
        for at, line in enumerate(body):
            if " = phi " not in line:
                continue
            phi = _PHI.match(line)
            if phi is None:
                raise RuntimeError(f"a phi of another type: {line.strip()[:80]}")
            for value, block in dict.fromkeys(_INCOMING.findall(line)):
                if value not in free:
                    continue
                if (value, block) not in copies:
                    made, name, declaration = _copy(value, phi[1], number)
                    number += 1
                    copies[value, block] = name
                    added.setdefault(block, []).extend(made)
                    declared.add(declaration)
                line = line.replace(f"[ {value}, {block} ]", f"[ {copies[value, block]}, {block} ]")
            body[at] = line
        places = _ends(body)
        if not added.keys() <= places.keys():  # a block without a name has no label
            raise RuntimeError(f"no end of {', '.join(sorted(added.keys() - places.keys()))}")
        for block, made in sorted(added.items(), key=lambda item: places[item[0]], reverse=True):
            body[places[block] : places[block]] = made
        lines[start:end] = body
    there = {line.split(" #")[0] for line in lines if line.startswith("declare ")}
    return "\n".join([*lines, *sorted(declared - there), ""])


__all__ = ["held"]
