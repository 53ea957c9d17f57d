"""Listings for other disassemblers, and the scripts that load them, on stand-ins for their API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest
from click.testing import CliRunner

from sassxlate.cli import cli
from sassxlate.disasm.inputs import read_input
from sassxlate.disasm.listing import exchange
from sassxlate.disasm.listing.cubin import Document
from sassxlate.lowering.report.graphs import Graph, graphs
from sassxlate.runtime_shim.ptx.machine_code import machine_code

from . import disassemblers

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
DATA = HERE / "data"
CALLS = DATA / "cuda13_sm_90_relocatable.cubin"
LINES = DATA / "lines_sm_90.cubin"
SCRIPTS = Path(exchange.__file__).resolve().parent
FILES = sorted([*DATA.glob("*.cubin"), ROOT / "fixtures" / "programs" / "reduction"])


def listing(file: Path, *options: str, status: int = 0) -> dict[str, Any]:
    done = CliRunner().invoke(cli, ["listing", str(file), *options, "--format", "json"])
    assert done.exit_code == status, done.output
    return cast("dict[str, Any]", json.loads(done.stdout))


def kernels(file: Path) -> Iterator[tuple[exchange.Code, Graph]]:
    """Each kernel's code with its control-flow graph."""
    drawn = {(g.picture.name, g.picture.target): g for g in graphs(str(file), (), None)}
    start = exchange.START
    for _, data, cubin in machine_code(read_input(str(file)), None).images():
        some, start = exchange.functions_of(Document(data, None, cubin), start, lambda _: True)
        for code in some:
            if code.kind == "kernel":
                yield code, drawn[code.name, code.arch.rstrip("af")]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_as_the_graph_has_it(file: Path) -> None:
    """Blocks begin wherever the control-flow graph has one, and branches go where its arcs go."""
    seen = 0
    for code, graph in kernels(file):
        picture = graph.picture
        starts = {at - code.address for at, _ in code.blocks}
        own = {n.index: n for n in picture.nodes if n.start < code.size and n.lines}
        assert {n.start for n in own.values()} <= starts, code.name
        assert sum(size for _, size in code.blocks) == code.size
        ways = {(r.source - code.address, r.target - code.address) for r in code.references}
        for arc in picture.arcs:
            if arc.kind == "taken" and arc.src in own and arc.dst in own:
                assert (own[arc.src].lines[-1].offset, own[arc.dst].start) in ways, code.name
                seen += 1
    assert seen or file.name not in ("reduction", CALLS.name)


def test_several_cubins_share_one_address_space() -> None:
    found = listing(ROOT / "fixtures" / "programs" / "reduction")["functions"]
    assert len({f["arch"] for f in found}) > 1
    places = sorted((f["address"], f["address"] + f["size"]) for f in found)
    assert all(end <= start for (_, end), (start, _) in pairwise(places))


def test_calls_go_to_functions() -> None:
    functions = {f["address"]: f for f in listing(CALLS)["functions"]}
    calls = [
        (f["demangled"], functions[r["to"]]["demangled"])
        for f in functions.values()
        for r in f["references"]
        if r["kind"] == "call" and r["to"] in functions
    ]
    assert ("saxpy(float, float const*, float*, int)", "helper(float)") in calls
    assert {f["kind"] for f in functions.values()} == {"kernel", "function"}


def test_a_word_that_is_no_instruction(tmp_path: Path) -> None:
    file = ROOT / "fixtures" / "kernels" / "sm_80" / "early_exit.cubin"
    cubin = bytearray(file.read_bytes())
    ((_, _, read),) = machine_code(read_input(str(file)), None).images()
    at = cubin.find(bytes(read.kernels[0].code))
    cubin[at + 16 : at + 32] = b"\xff" * 16
    (tmp_path / "bad.cubin").write_bytes(cubin)
    (function,) = listing(tmp_path / "bad.cubin", status=3)["functions"]
    bad = function["instructions"][1]
    assert bad["word"] == "0x" + 32 * "f"
    assert bad["error"].startswith("SX0")
    assert "text" not in bad


@pytest.fixture
def patch() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as context:
        yield context


def script(name: str) -> ModuleType:
    """A script as its program loads it: a file by itself."""
    spec = spec_from_file_location("loaded", SCRIPTS / name)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def code_of(function: dict[str, Any]) -> bytes:
    words = [int(i["word"], 16) for i in function["instructions"]]
    return b"".join(w.to_bytes(16, "little") for w in words)


def test_ghidra(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    disassemblers.install_ghidra(patch)
    found = listing(CALLS)
    (tmp_path / "a.json").write_text(json.dumps(found))
    loader, run = script("ghidra_script.py"), disassemblers.Script(str(tmp_path / "a.json"))
    loader.main(run)
    (program,) = disassemblers.Program.made
    assert program.saved
    assert program.opened
    assert program.consumer is None
    assert program.language == "DATA:LE:64:default"
    assert run.printed == [f"{CALLS.name}.sass: {len(found['functions'])} functions"]
    for f in found["functions"]:
        start = f["address"]
        assert program.memory[start] == code_of(f)
        assert program.functions[start].name == f["name"]
        assert program.functions[start].body == (start, start + f["size"] - 1)
        for line in f["instructions"]:
            assert program.comments[line["address"], "EOL"] == line["text"]
            assert line["address"] in program.data
        for label in f["labels"]:
            assert program.labels[label["address"]] == label["name"]
        assert {(r["from"], r["to"]) for r in f["references"]} <= {
            (a, b) for a, b, _ in program.references
        }
        module = program.root.children[f"{start:x} sm_90 {f['name']}"]
        parts = [r for p in module.children.values() for r in p.ranges]
        assert sum(last - first + 1 for first, last in parts) == f["size"]
    assert {kind for *_, kind in program.references} >= {
        "CONDITIONAL_JUMP", "UNCONDITIONAL_JUMP", "UNCONDITIONAL_CALL", "COMPUTED_JUMP", "DATA",
    }  # fmt: skip
    assert all(block.executable for block in program.blocks.values())


def test_ghidra_shows_source_lines(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    disassemblers.install_ghidra(patch)
    found = listing(LINES)
    (tmp_path / "a.json").write_text(json.dumps(found))
    script("ghidra_script.py").main(disassemblers.Script(str(tmp_path / "a.json")))
    (program,) = disassemblers.Program.made
    line = next(i for f in found["functions"] for i in f["instructions"] if "source" in i)
    source = line["source"]
    assert program.comments[line["address"], "PRE"] == f"{source['file']}:{source['line']}"


@pytest.mark.parametrize("text", ["{}", "[]", '{"schema": "sassxlate.ls/1"}', "no JSON"])
def test_ghidra_refuses_what_is_no_listing(
    text: str, tmp_path: Path, patch: pytest.MonkeyPatch
) -> None:
    disassemblers.install_ghidra(patch)
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(ValueError, match=r"listing|Expecting"):
        script("ghidra_script.py").main(disassemblers.Script(str(tmp_path / "a.json")))
    assert not disassemblers.Program.made


def reached(loader: Any, memory: dict[int, bytes], entry: int) -> set[int]:
    """The instructions that Binary Ninja's analysis reaches from an entry, not through calls."""
    architecture = disassemblers.Architecture.registered["sass-listing"]
    code = {start + at: data[at : at + 16] for start, data in memory.items()
            for at in range(0, len(data), 16)}  # fmt: skip
    seen: set[int] = set()
    todo = [entry]
    while todo:
        at = todo.pop()
        if at in seen or at not in code:
            continue
        seen.add(at)
        info = architecture.get_instruction_info(code[at], at)
        assert info is not None
        assert info.length == loader.WORD
        ways = [(kind, to) for kind, to in info.branches if kind != "CallDestination"]
        todo += [to for _, to in ways if to] if ways else [at + loader.WORD]
    return seen


def test_binary_ninja(patch: pytest.MonkeyPatch) -> None:
    """Memory, functions and texts are those of the listing, and its analysis reaches the blocks
    that the control-flow graph reaches."""
    logged = disassemblers.install_binary_ninja(patch)
    loader = script("binary_ninja_script.py")
    for file in (CALLS, DATA / "debug_relocatable_sm_75.cubin"):
        found = listing(file)
        raw = disassemblers.View(raw=json.dumps(found, indent=2).encode())
        assert loader.SassView.is_valid_for_data(raw)
        view = loader.SassView(raw)
        assert view.init()
        assert view.perform_get_entry_point() == found["functions"][0]["address"]
        assert view.functions == [f["address"] for f in found["functions"]]
        for f in found["functions"]:
            assert view.memory[f["address"]] == code_of(f)
            assert view.symbols[f["address"]] == ("FunctionSymbol", f["demangled"])
            for line in f["instructions"]:
                text = "".join(t[1] for t in loader.tokens(line | {"ways": []}))
                assert text == line["text"]
        for code, graph in kernels(file):
            mine = reached(loader, view.memory, code.address)
            for node in graph.picture.nodes:
                if node.start < code.size and node.reachable and node.lines:
                    assert code.address + node.start in mine, (code.name, hex(node.start))
    assert not logged
    assert not loader.SassView.is_valid_for_data(disassemblers.View(raw=b"\x7fELF" + bytes(60)))
    assert not loader.SassView(disassemblers.View(raw=b'{"schema": "sassxlate.listing/1"')).init()
    assert logged


def test_scripts_are_printed() -> None:
    for name, file in (("ghidra", "ghidra_script.py"), ("binary-ninja", "binary_ninja_script.py")):
        done = CliRunner().invoke(cli, ["listing", "--script", name])
        assert (done.exit_code, done.stdout) == (0, (SCRIPTS / file).read_text())
    for words in (["--script", "ghidra", str(CALLS)], []):
        assert CliRunner().invoke(cli, ["listing", *words]).exit_code == 2
