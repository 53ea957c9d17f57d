"""Programs to bytes: labels, branches, and the offset of every item."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sassxlate.disasm.rdna3.codec.encode.instruction import encode
from sassxlate.disasm.rdna3.codec.text.instruction import describe
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, Item, Label, LabelRef
from sassxlate.disasm.rdna3.tables.opcodes import info
from sassxlate.errors import EncodeError, Where


@dataclass(frozen=True, slots=True)
class Program:
    """Assembled code: ``data``, the byte offset of every item, and of every label."""

    data: bytes
    offsets: tuple[int, ...]
    labels: dict[str, int]


def _has_label(inst: Inst) -> bool:
    return any(isinstance(arg, LabelRef) for arg in inst.args)


def _is_branch(inst: Inst) -> bool:
    row = info(inst.op)
    return row.kind == "branch" or inst.op == "s_call_b64"


def _literal(name: str, labels: dict[str, int]) -> int:
    """The value of ``a`` (offset from the program's start) or ``a-b`` as a literal."""
    plus, _, minus = name.partition("-")
    return _find(plus, labels) - (_find(minus, labels) if minus else 0)


def _find(name: str, labels: dict[str, int]) -> int:
    if name not in labels:
        raise EncodeError("SX0510", f"no label {name!r}")
    return labels[name]


def _resolve(inst: Inst, at: int, labels: dict[str, int]) -> bytes:
    last = inst.args[-1]
    if _is_branch(inst) and isinstance(last, LabelRef):
        distance = (_find(last.name, labels) - at - 4) // 4
        if not -0x8000 <= distance <= 0x7FFF:
            raise EncodeError("SX0511", f"{last.name} is {distance} dwords away")
        return encode(replace(inst, args=inst.args[:-1], imm=distance))
    args: list[Arg] = []
    enc = inst.enc
    for i, arg in enumerate(inst.args):
        if isinstance(arg, LabelRef):
            args.append(I(_literal(arg.name, labels)))
            enc += f" lit{i}"
        else:
            args.append(arg)
    return encode(replace(inst, args=tuple(args), enc=enc))


def assemble(items: Iterable[Item]) -> Program:
    """Encode a program.  A label operand is a branch's target, or elsewhere a literal: the label's
    byte offset from the start (``Lbl("a")``) or a distance (``Lbl("a-b")``).

    Raises:
        EncodeError: SX0510, an unknown or repeated label; SX0511, a branch over more than 32,767
            dwords; else as encode(), with the offset.
    """
    at = 0
    offsets: list[int] = []
    labels: dict[str, int] = {}
    pieces: list[bytes | Inst] = []
    for item in items:
        offsets.append(at)
        if isinstance(item, Label):
            if item.name in labels:
                raise EncodeError("SX0510", f"the label {item.name!r} is defined twice")
            labels[item.name] = at
            pieces.append(b"")
            continue
        if _has_label(item):
            pieces.append(item)
            at += 4 if _is_branch(item) else 8
            continue
        try:
            code = encode(item)
        except EncodeError as error:
            raise error.at(offset=at) from None
        pieces.append(code)
        at += len(code)
    out: list[bytes] = []
    for piece, offset in zip(pieces, offsets, strict=True):
        if isinstance(piece, bytes):
            out.append(piece)
            continue
        try:
            code = _resolve(piece, offset, labels)
        except EncodeError as error:
            where = Where(offset=offset, inst=describe(piece))
            raise EncodeError(error.code, error.message, where) from None
        if len(code) != (4 if _is_branch(piece) else 8):
            message = "a label operand in an instruction of another size than 8 bytes"
            raise EncodeError("SX0510", message, Where(offset=offset, inst=describe(piece)))
        out.append(code)
    return Program(b"".join(out), tuple(offsets), labels)
