"""A target is one object: its name and its numbers are only in the tables of targets."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_repo import ROOT, SOURCES, text_of, tracked

NAME = re.compile(r"gfx1[12][0-9a-f]{2}\b")
READ = (".py", ".toml", ".cpp", ".h", ".inc", ".def", ".sh", ".js")
# Where processors are named: the tables, in which there is a line or more for each.
TABLES = {
    "disasm/amdgpu_machines.py",  # names and machine numbers
    "lowering/target.py",
    "runtime_shim/native/hip/target.h",  # the emulated device's, which a test compares
}
# File -> (lines that name one, why).  Documents and tests may name them; other code may not.
EXAMPLES = {"lowering/region/text.py": (1, "the first word of the example in its docstring")}
# A constant of a module is suspect if one of these words is in its name and its value is a number.
SUSPECT = {
    "LANES", "LANE", "WAVE", "WAVES", "WARP", "SIMDS", "REGISTERS", "SGPR", "SGPRS", "VGPR",
    "VGPRS", "LDS", "WORKGROUP", "WORKGROUPS", "THREADS", "GRANULE",
}  # fmt: skip
MAYBE = re.compile(rf"^(?=\w).*(?:{'|'.join(SUSPECT)})", re.MULTILINE)
TABLE = "lowering/target.py"
# Those that are no target's, and what they are.
OTHERS = {
    "cfg/view/layout.py": {"LANE"},  # a distance in a picture
    "disasm/rdna3/reads_writes.py": {"FIRST_VGPR", "SGPR_BITS"},  # operands, as bits
    "disasm/rdna3/tables/kernel_descriptor.py": {"_SGPRS_FREE"},  # a field's value
    "disasm/rdna3/tables/operand_codes.py": {"SGPRS", "VGPRS"},  # operands of the instruction set
    "disasm/sass/semantics/warp_state.py": {"LANES"},  # NVIDIA's warp
    "disasm/sass/interpreter/schedule.py": {"MOST_LANES", "_WARP"},  # run at once; a shift
    "llm/inference/native_code.py": {"LANES"},  # the host's vectors
    "llm/language/older_forms/lender.py": {"_REGISTERS"},  # names that are free
    "lowering/emulate/image/abi.py": {"WAVE_SIZE"},  # bytes of a host structure
    "lowering/emulate/stencils/frame.py": {"LANE_MASK", "VGPR"},  # offsets in a host structure
    "lowering/emulate/wave/packs/state.py": {"LANES"},  # of a pack: the host's vectors
    "lowering/emulate/wave/system.py": {"_DEALLOC_VGPRS"},  # a message of s_sendmsg
    "lowering/regalloc/allocate.py": {"SGPR_TEMPS"},  # what the allocator reserves
    "lowering/report/occupancy.py": {"WARP"},  # NVIDIA's warp
    "lowering/tier/compiler/shuffled.py": {"_LANES"},  # NVIDIA's warp
    "lowering/tier/warp/presumed.py": {"_LANES"},  # NVIDIA's warp
    "lowering/verify/kernel/verify.py": {"LANES"},  # inputs that are tried at once
    "lowering/verify/rules/verify.py": {"_WAVES"},  # inputs that are tried at once
    # of the cards, for AMD's runtime alone
    "runtime_shim/emulated_card.py": {"_SIMDS_PER_UNIT", "_UNITS_PER_WORKGROUP_PROCESSOR"},
    "runtime_shim/replay/trace_subject.py": {"THREADS"},  # CUDA's limit
}


def sources(*suffixes: str) -> Iterator[tuple[str, str]]:
    """The files of the packages, as (path, text)."""
    for path in tracked():
        name = path.relative_to(ROOT)
        if name.parts[0] in SOURCES and path.suffix in suffixes:
            yield str(name), text_of(path) or ""


def naming(text: str) -> list[int]:
    """The lines that name a processor."""
    return [n for n, line in enumerate(text.splitlines(), 1) if NAME.search(line)]


def numbers(text: str) -> Iterator[str]:
    """The suspect constants of a module."""
    if not MAYBE.search(text):  # most modules; parsing takes time
        return
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign):
            names, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            names, value = [node.target], node.value
        else:
            continue
        pairs = [(name, value) for name in names]
        for name, what in list(pairs):
            if isinstance(name, ast.Tuple) and isinstance(what, ast.Tuple):
                pairs += zip(name.elts, what.elts, strict=True)
        for name, what in pairs:
            if isinstance(name, ast.Name) and SUSPECT & {*name.id.split("_")} and _is_number(what):
                yield name.id


def _is_number(value: ast.expr) -> bool:
    """Whether an expression is made of numbers alone."""
    for node in ast.walk(value):
        match node:
            case ast.Constant(value=int() | float()) | ast.BinOp() | ast.UnaryOp():
                pass
            case ast.operator() | ast.unaryop():
                pass
            case _:
                return False
    return True


def test_processors_are_named_in_the_tables_alone() -> None:
    found = {name: naming(text) for name, text in sources(*READ)}
    named = {name: lines for name, lines in found.items() if lines}
    assert set(named) >= TABLES
    others = {name: lines for name, lines in named.items() if name not in TABLES}
    wanted = {name: count for name, (count, _) in EXAMPLES.items()}
    assert {name: len(lines) for name, lines in others.items()} == wanted, others


def test_no_module_has_a_number_of_the_target() -> None:
    found = {name: set(numbers(text)) for name, text in sources(".py") if name != TABLE}
    assert {name: names for name, names in found.items() if names} == OTHERS


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("LANES = 32", ["LANES"]),
        ("_LANES: Final = 1 << 5", ["_LANES"]),
        ("A, MOST_VGPRS = 1, 256", ["MOST_VGPRS"]),
        ("LANES = np.arange(32)", []),
        ("PLANES = 32", []),
        ("LANES = TARGET.lanes", []),
    ],
)
def test_the_search_finds_them(text: str, names: list[str]) -> None:
    assert list(numbers(text)) == names


def test_the_search_finds_names() -> None:
    assert naming('a = 1\nb = "gfx1102"\n# gfx11-generic, gfx90a\n') == [2]
    assert (ROOT / Path(TABLE)).is_file()
