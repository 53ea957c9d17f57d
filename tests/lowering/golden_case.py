"""One golden test of passes: a text with its input and what is expected of it.

A case is a file.  Comments with keys come first, then the input, then a line ``// ====`` with the
number of RDNA3 instructions, and what a pass makes of the input.

``FAMILY/NAME.sass``: the input is SASS as `sassxlate asm` reads it, the code of a kernel.  EXIT is
added where no EXIT is there.

    // arch: 90                  80, 90, 100 or 120
    // after: insert_hazards     the pass whose value is shown
    // show: all                 all of it; else what stands for the SASS but EXIT, waits, hazards
                                 and labels; mnemonics: how often each occurs
    // unread: dropped           else each result counts as read
    // calls: vprintf            CALL.ABS instructions call this function of the driver
    // refused: SX0404           the error that is expected in the place of code

``PASS/NAME.s``: the input is RDNA3 as `--dump-after` writes it, and given to this pass alone.

    // reach: 64 40              of expand_long_branches: a branch's bytes, those between islands
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sassxlate.disasm.containers.values import Cubin
from sassxlate.disasm.rdna3 import encode_items
from sassxlate.disasm.rdna3.instruction import Inst, Item, Label, LabelRef, S, V
from sassxlate.disasm.sass.codec.assembler import assemble_listing
from sassxlate.errors import SassxlateError
from sassxlate.lowering.passes.coalesce_copies import coalesce_copies
from sassxlate.lowering.passes.hazards import insert_hazards
from sassxlate.lowering.passes.long_branches import expand_long_branches
from sassxlate.lowering.passes.waitcnt import insert_waitcnt
from sassxlate.lowering.pipeline import PASSES, Assembled, Code, EncodedCode
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.report.dump import dump, items_text, read_items
from sassxlate.lowering.select.stages import Analysed, Linked, Selected, Source
from sassxlate.lowering.target import DEFAULT
from tests.disasm.sass.interpreter.launches import with_code

FOLDER = Path(__file__).resolve().parent / "golden"
_KEY = re.compile(r"// (arch|after|show|unread|calls|refused|reach): (.+)")
_END = "// ===="
_ADDED = frozenset({"prologue", "next", "scheduler"})  # not shown unless all is
# Of coalesce_copies alone: v40 and above, s20 to s29 are temporaries.
_MAP = RegisterMap(
    DEFAULT, {}, {}, {}, {}, {}, {}, S(3), S(2), {}, (), {}, tuple(range(20, 30)), V(39), 40, (), 0
)


@dataclass(frozen=True, slots=True)
class Case:
    """A case; ``expected`` is all from the line ``// ====`` on."""

    path: Path
    keys: Mapping[str, str]
    head: str  # the text before that line
    body: str  # the same without keys
    expected: str


def read_case(path: Path) -> Case:
    """Raises AssertionError for an unknown key."""
    text = path.read_text()
    head, mark, rest = text.partition(_END)
    keys: dict[str, str] = {}
    body: list[str] = []
    for line in head.splitlines():
        found = _KEY.fullmatch(line)
        if found is not None:
            keys[found[1]] = found[2]
        else:
            assert body or not re.match(r"// \w+:", line), f"{path}: no key {line!r}"
            body.append(line)
    return Case(path, keys, head, "\n".join(body), mark + rest)


def made_of(case: Case) -> str:
    """What the pass makes of the case now: the text from the line ``// ====`` on."""
    try:
        items, text = _of_rdna3(case) if case.path.suffix == ".s" else _of_sass(case)
    except SassxlateError as error:
        return f"{_END} refused {error.code}: {error.message}\n"
    assert "refused" not in case.keys, f"{case.path}: no error"
    if items is None:
        return f"{_END} {case.keys['after']}\n{text}"
    count = sum(isinstance(item, Inst) for item in items)
    return f"{_END} {count} instruction{'s' * (count != 1)}\n{text}"


def _of_rdna3(case: Case) -> tuple[list[Item], str]:
    reach, apart = (int(n) for n in case.keys.get("reach", "0 0").split())
    passes: Mapping[str, Callable[[list[Item]], list[Item]]] = {
        "insert_waitcnt": insert_waitcnt,
        "insert_hazards": insert_hazards,
        "coalesce_copies": lambda items: coalesce_copies(items, _MAP),
        "expand_long_branches": lambda items: list(
            expand_long_branches(encode_items(items), reach, apart, limit=reach).items
        ),
    }
    given = read_items(case.body)
    assert given, f"{case.path}: no instructions"
    items = passes[case.path.parent.name](given)
    return items, items_text(items)


def _of_sass(case: Case) -> tuple[list[Item] | None, str]:
    arch = int(case.keys["arch"])
    lines = [line for line in case.body.splitlines() if not line.startswith("//")]
    if not any(re.search(r"\bEXIT\b", line) for line in lines):
        lines.append("EXIT ;")
    (code,) = assemble_listing(lines, arch).values()
    value = _after(with_code(code, arch, 4096), case.keys)
    items = _items(value)
    if items is None:
        return None, dump(value)
    if case.keys.get("show") != "all":
        items = _shown(items)
    if case.keys.get("show") == "mnemonics":
        ops = Counter(item.op for item in items if isinstance(item, Inst))
        return items, "".join(f"  {n:4} {op}\n" for op, n in sorted(ops.items()))
    return items, items_text(items)


def _after(cubin: Cubin, keys: Mapping[str, str]) -> object:
    value: object = Source(cubin, cubin.kernels[0].name, DEFAULT)
    for step in PASSES:
        value = step.run(value)
        if isinstance(value, Linked) and "calls" in keys:
            calls = tuple(
                at
                for at in range(0, len(value.kernel.code), 16)
                if int.from_bytes(value.kernel.code[at : at + 2], "little") & 0xFFF == 0x343
            )
            kernel = replace(
                value.kernel, externs=tuple(keys["calls"].split()), syscall_offsets=calls
            )
            value = replace(value, kernel=kernel)
        if isinstance(value, Analysed) and keys.get("unread") != "dropped":
            value = replace(value, unread=frozenset())
        if step.name == keys["after"]:
            return value
    raise AssertionError(f"no pass {keys['after']}")


def _items(value: object) -> list[Item] | None:
    match value:
        case Selected() | Code() | Assembled():
            return list(value.items)
        case EncodedCode():
            return list(value.encoded.items)
        case _:
            return None


def _shown(items: list[Item]) -> list[Item]:
    """What stands for the SASS but EXIT, waits and hazards, and the labels that it names."""
    code = [
        item
        for item in items
        if isinstance(item, Inst)
        and item.origin is not None
        and item.origin.text not in _ADDED
        and not (item.origin.offset is not None and item.origin.text.endswith("EXIT"))
    ]
    named = {arg.name for inst in code for arg in inst.args if isinstance(arg, LabelRef)}
    kept = set(map(id, code))
    start = next((n for n, item in enumerate(items) if isinstance(item, Label)), 0)
    return [
        item
        for n, item in enumerate(items)
        if (item.name in named if isinstance(item, Label) else id(item) in kept and n >= start)
    ]
