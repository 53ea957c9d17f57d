"""What passes make of kernels as text, read back."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from sassxlate.disasm.containers import parse_cubin
from sassxlate.disasm.rdna3 import assemble
from sassxlate.disasm.rdna3.instruction import Inst, Item
from sassxlate.errors import EncodeError
from sassxlate.lowering.pipeline import PASSES, Assembled, Code, EncodedCode, Pass, run_passes
from sassxlate.lowering.report.dump import dump, items_text, read_items, read_map
from sassxlate.lowering.select.stages import Allocated, Selected, Source
from sassxlate.lowering.target import DEFAULT

KERNELS = Path(__file__).resolve().parents[3] / "fixtures" / "kernels"
FILES = sorted(str(p.relative_to(KERNELS)) for p in KERNELS.rglob("*.cubin"))


def _items(value: object) -> tuple[Item, ...] | None:
    match value:
        case Selected() | Code() | Assembled():
            return value.items
        case EncodedCode():
            return value.encoded.items
        case _:
            return None


def _keep(seen: list[tuple[str, object]], step: Pass, value: object, _: float) -> None:
    seen.append((step.name, value))


def _values(file: str) -> Iterator[tuple[str, object]]:
    cubin = parse_cubin((KERNELS / file).read_bytes())
    for kernel in cubin.kernels:
        seen: list[tuple[str, object]] = []

        run_passes(Source(cubin, kernel.name, DEFAULT), PASSES, partial(_keep, seen))
        assert [name for name, _ in seen] == [step.name for step in PASSES]
        yield from seen


def _exact(item: Item) -> object:
    """All that counts of an item, what comparison leaves out too."""
    if isinstance(item, Inst):
        return item, item.origin, item.uniform, item.fence
    return item, item.block


@pytest.mark.parametrize("file", FILES)
def test_dumps_are_read_back(file: str) -> None:
    done: set[int] = set()
    for name, value in _values(file):
        text = dump(value)
        assert text.endswith("\n"), name
        items = _items(value)
        if items is not None and id(items) not in done:
            done.add(id(items))
            again = read_items(text)
            assert items_text(again) == text
            assert list(map(_exact, again)) == list(map(_exact, items))
        if isinstance(value, Assembled):
            assert assemble(read_items(text)).data == value.program.data
        if isinstance(value, Allocated):
            assert read_map(text) == value.regs


@pytest.mark.parametrize("line", ["v_mov_b32 v1", "no_such v1, v2", "v_mov_b32 v1, |"])
def test_what_is_no_instruction_is_refused(line: str) -> None:
    with pytest.raises(EncodeError, match="line 2"):
        read_items(f"L_0000:\n  {line}\n")


def test_a_line_that_is_no_place_is_refused() -> None:
    with pytest.raises(ValueError, match="no place"):
        read_map("Q3 v4\n")
