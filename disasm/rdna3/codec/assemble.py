"""Programs to bytes: labels, branches, and the offset of every item."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final

from sassxlate.disasm.rdna3.codec.encode.instruction import encode
from sassxlate.disasm.rdna3.codec.text.instruction import describe
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, Item, Label, LabelRef
from sassxlate.disasm.rdna3.tables.opcodes import info
from sassxlate.errors import EncodeError, Where

GETPC: Final = "s_getpc_b64"  # reads its own address


@dataclass(frozen=True, slots=True)
class Program:
    """Assembled code: ``data``, the byte offset of every item (an array where there are many), and
    of every label."""

    data: bytes
    offsets: Sequence[int]
    labels: dict[str, int]


def _has_label(inst: Inst) -> bool:
    for arg in inst.args:  # noqa: SIM110  (`any` and a generator would take three times as long)
        if isinstance(arg, LabelRef):
            return True
    return False


def is_branch(inst: Inst) -> bool:
    """Whether its label is a distance in dwords."""
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
    if is_branch(inst) and isinstance(last, LabelRef):
        target = _find(last.name, labels)
        distance = (target - at - 4) // 4
        if not in_reach(at, target):
            raise EncodeError("SX0511", f"{last.name} is {distance} dwords away")
        return encode(Inst(inst.op, inst.args[:-1], distance, enc=inst.enc))
    args: list[Arg] = []
    enc = inst.enc
    for i, arg in enumerate(inst.args):
        if isinstance(arg, LabelRef):
            args.append(I(_literal(arg.name, labels)))
            enc += f" lit{i}"
        else:
            args.append(arg)
    # Compiled, the class is packed, and what checks types there knows its own fields alone.
    return encode(replace(inst, args=tuple(args), enc=enc))  # type: ignore[call-arg,unused-ignore]


@dataclass(frozen=True, slots=True)
class Encoded:
    """A program of which all is encoded but what names a label: that has zeros, as many bytes as it
    takes.

    ``sizes`` has the bytes of every item; a label's are none.  ``marked`` has the items whose place
    matters: labels, instructions that name one, and those that read their own address; ``indices``
    their indices.  ``items`` has all; none where they are not read again.
    """

    data: bytes
    sizes: array[int]
    marked: tuple[Item, ...]
    indices: array[int]
    items: tuple[Item, ...] = ()

    def placed(self) -> Iterator[tuple[int, Item]]:
        """The items whose place matters, with their indices, in order."""
        return zip(self.indices, self.marked, strict=True)

    def offsets(self) -> array[int]:
        """The byte offset of every item, and of the end."""
        return array("I", accumulate(self.sizes, initial=0))


class Encoder:
    """Encodes a program that is given in parts, in order."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._sizes = array("H")
        self._marked: list[Item] = []
        self._indices = array("I")

    def add(self, items: Iterable[Item]) -> None:
        """Encodes the next part.

        Raises:
            EncodeError: as encode(), with the offset.
        """
        data, sizes, marked, indices = self._data, self._sizes, self._marked, self._indices
        for item in items:
            if isinstance(item, Label):
                marked.append(item)
                indices.append(len(sizes))
                sizes.append(0)
                continue
            if _has_label(item):
                marked.append(item)
                indices.append(len(sizes))
                code = bytes(4 if is_branch(item) else 8)
            else:
                if item.op == GETPC:
                    marked.append(item)
                    indices.append(len(sizes))
                try:
                    code = encode(item)
                except EncodeError as error:
                    raise error.at(offset=len(data)) from None
            sizes.append(len(code))
            data += code

    def encoded(self, items: tuple[Item, ...] = ()) -> Encoded:
        """The parts so far; ``items``: all that were given, to keep them."""
        marked = tuple(self._marked)
        return Encoded(bytes(self._data), self._sizes[:], marked, self._indices[:], items)


def encode_items(items: Iterable[Item]) -> Encoded:
    """Each instruction's bytes.

    Raises:
        EncodeError: as encode(), with the offset.
    """
    kept = tuple(items)
    encoder = Encoder()
    encoder.add(kept)
    return encoder.encoded(kept)


def in_reach(at: int, target: int) -> bool:
    """Whether a branch at one byte offset can go to another."""
    return -0x8000 <= (target - at - 4) // 4 <= 0x7FFF


def assemble(items: Iterable[Item]) -> Program:
    """Encode a program.  A label operand is a branch's target, or in other instructions a literal:
    the label's byte offset from the start (``Lbl("a")``) or a distance (``Lbl("a-b")``).

    Raises:
        EncodeError: SX0510, an unknown or repeated label; SX0511, a branch over more than 32,767
            dwords; otherwise as encode(), with the offset.
    """
    return resolve_labels(encode_items(items))


def resolve_labels(encoded: Encoded) -> Program:
    """The program with its labels' offsets in the place of their names.

    Raises:
        EncodeError: SX0510 and SX0511 as :func:`assemble`.
    """
    offsets = encoded.offsets()
    offsets.pop()
    labels: dict[str, int] = {}
    for n, item in encoded.placed():
        if isinstance(item, Label):
            if item.name in labels:
                raise EncodeError("SX0510", f"the label {item.name!r} is defined twice")
            labels[item.name] = offsets[n]
    code = bytearray(encoded.data)
    for n, item in encoded.placed():
        if isinstance(item, Label) or not _has_label(item):
            continue
        offset = offsets[n]
        try:
            resolved = _resolve(item, offset, labels)
        except EncodeError as error:
            where = Where(offset=offset, inst=describe(item))
            raise EncodeError(error.code, error.message, where) from None
        if len(resolved) != encoded.sizes[n]:
            message = "a label operand in an instruction of another size than 8 bytes"
            raise EncodeError("SX0510", message, Where(offset=offset, inst=describe(item)))
        code[offset : offset + len(resolved)] = resolved
    return Program(bytes(code), offsets, labels)
