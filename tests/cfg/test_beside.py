"""SASS and its RDNA3 side by side: the map is exact, complete, and equals the code object's."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from sassxlate.cfg.pages.side_by_side import to_html
from sassxlate.cfg.view.picture import Line, Node, Picture
from sassxlate.cfg.view.side_by_side import (
    Beside,
    Code,
    Part,
    SideBySideRow,
    figures,
    to_data,
    to_text,
)
from sassxlate.cli.diff import command
from sassxlate.cli.translate import command as translate
from sassxlate.disasm.containers import Cubin, parse_cubin
from sassxlate.errors import LoweringError
from sassxlate.lowering.codeobject import source_map
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.report.side_by_side import (
    WHOLE,
    WHY_NONE,
    WHY_UNMARKED,
    of_code_object,
    of_translated,
)

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).parent / "golden"
SAXPY = str(ROOT / "fixtures/programs/saxpy")
COLLATZ = str(ROOT / "fixtures/programs/collatz")
KERNELS = ROOT / "fixtures/kernels"
SOME = ("divergent_if", "byte_lanes", "calls", "jump_table", "async_copies", "divergent_barrier")


def cubins() -> list[Path]:
    return [p for p in sorted(KERNELS.glob("sm_[89]0/*.cubin")) if p.stem in SOME]


def loaded(path: Path) -> Cubin:
    return parse_cubin(path.read_bytes())


@pytest.mark.parametrize("path", cubins(), ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_every_instruction_of_both_sides_is_in_one_row(path: Path) -> None:
    cubin = loaded(path)
    for kernel in cubin.kernels:
        done = translate_kernel(cubin, kernel.name)
        found = of_translated(done)
        lines = [row.line.offset for p in found.parts for row in p.rows if row.line is not None]
        sass = [i.offset for block in done.cfg.blocks for i in block.instructions]
        assert lines == sass
        codes = [code for part in found.parts for code in part.codes()]
        offsets = [code.offset for code in codes]
        assert offsets == sorted(set(offsets))
        assert len(codes) == done.report.rdna_instructions
        assert not [code for code in codes if code.added == "?"]
        assert {kind for kind, _ in found.kinds} == {c.added for c in codes if c.added}
        # The assembly has the same origin for each line.
        for code, said in zip(codes, _comments(done.assembly), strict=True):
            assert said.startswith("/*") == (not code.added)
            assert not code.added or said == code.added
        f = figures(found)
        assert f.standing + sum(n for _, n in f.added) == f.rdna3 == len(codes)


def _comments(assembly: str) -> list[str]:
    rows = [line for line in assembly.splitlines() if line.startswith("  ")]
    return [line.partition("//")[2].partition("; ")[2] for line in rows]


def test_who_wrote_what() -> None:
    """An engine that writes a region, its code marked with the region's last instruction."""
    cubin = loaded(KERNELS / "sm_80/divergent_if.cubin")
    done = translate_kernel(cubin, cubin.kernels[0].name)
    piece = max(done.selected.pieces, key=lambda p: len(p.block.instructions))
    first, *_, last = piece.block.instructions
    found = of_translated(done, engines={first.offset: "model 3", last.offset: "model 3"})
    rows = {row.line.offset: row for p in found.parts for row in p.rows if row.line is not None}
    assert (rows[last.offset].engine, rows[last.offset].rule) == ("model 3", "")
    assert {row.engine for row in rows.values() if row.code} == {"model 3", "rules"}


@pytest.mark.parametrize("path", cubins(), ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_a_code_objects_own_map_is_the_same(path: Path) -> None:
    cubin = loaded(path)
    for kernel in cubin.kernels:
        done = translate_kernel(cubin, kernel.name)
        fresh = of_translated(done)
        own = of_code_object(cubin, kernel, done.code_object)
        assert own.source != fresh.source
        bare = [
            replace(p, rows=tuple(
                replace(row, rule="", engine="", why=row.why.replace(WHY_NONE, WHY_UNMARKED))
                for row in p.rows
            ))
            for p in fresh.parts
        ]  # fmt: skip
        assert list(own.parts) == bare


def test_a_code_object_without_a_map_is_held_against_a_new_translation() -> None:
    cubin = loaded(KERNELS / "sm_80/divergent_if.cubin")
    (kernel,) = cubin.kernels
    done = translate_kernel(cubin, kernel.name)
    bare = done.code_object.replace(source_map.OWNER, b"SOMEBODY\0\0")
    assert of_code_object(cubin, kernel, bare) == of_translated(done)
    at = bare.index(done.program.data)
    changed = bare[:at] + struct.pack("<I", 0xBF800000) + bare[at + 4 :]
    with pytest.raises(LoweringError) as caught:
        of_code_object(cubin, kernel, changed)
    assert caught.value.code == "SX0450"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"blocks ", b"blocks zz:"),
        (b"blocks ", b"blocks ffffff:0 "),
        (b"/*0010*/ ", b"/*0010*/ X"),
        (b"/*0010*/ ", b"/*001q*/ "),
        (b"added wait ", b"added wait z-"),
    ],
)
def test_a_map_of_something_else_is_refused(old: bytes, new: bytes) -> None:
    cubin = loaded(KERNELS / "sm_80/byte_lanes.cubin")
    kernel = cubin.kernels[0]
    data = translate_kernel(cubin, kernel.name).code_object
    assert old in data
    start = data.index(old)
    changed = data[:start] + new + data[start + len(new) :]
    with pytest.raises(LoweringError) as caught:
        of_code_object(cubin, kernel, changed)
    assert caught.value.code == "SX0450"


def test_code_without_blocks(tmp_path: Path) -> None:
    """Of a kernel that LLVM wrote as a whole, each SASS instruction has all that came of it, by the
    report and by the code object's own map."""
    pytest.importorskip("llvmlite", reason="llvmlite is not installed")
    file = str(KERNELS / "sm_80" / "early_exit.cubin")
    report = tmp_path / "pages.json"
    words = ["--engine", "llvm", "-o", str(tmp_path), "--report", str(report)]
    done = CliRunner().invoke(translate, [file, *words])
    assert done.exit_code == 0, done.output
    (kernel,) = json.loads(report.read_text())["kernels"]
    (part,) = kernel["details"]["parts"]
    assert (kernel["engine"], part["name"]) == ("llvm", WHOLE)
    code = [c["offset"] for row in part["rows"] for c in row["rdna3"]]
    assert len(code) == kernel["rdna3"] == len(set(code))
    made = tmp_path / f"{kernel['name']}.sm_80.hsaco"
    cubin = loaded(Path(file))
    found = of_code_object(cubin, cubin.kernels[0], made.read_bytes())
    assert [(r.line and r.line.offset, r.code) for p in found.parts for r in p.rows] == [
        (
            row.get("sass", {}).get("offset"),
            tuple(Code(c["offset"], c["text"], c.get("added", "")) for c in row["rdna3"]),
        )
        for row in part["rows"]
    ]
    with pytest.raises(LoweringError, match=r"SX0450.*as a whole"):
        of_code_object(cubin, cubin.kernels[0], made.read_bytes(), graphs=True)


def test_diff_against_rdna3_is_as_it_was(request: pytest.FixtureRequest) -> None:
    done = CliRunner().invoke(command, [SAXPY, "--against", "rdna3", "--arch", "sm_80"])
    assert done.exit_code == 0, done.output
    file = GOLDEN / "saxpy.sm_80.beside.txt"
    if request.config.getoption("--bless", default=False):
        file.write_text(done.output)
    assert done.output == file.read_text(), "pytest --bless takes it over"


def test_diff_of_sass_and_its_code_object(tmp_path: Path) -> None:
    (tmp_path / "saxpy.o").write_bytes(_object(SAXPY))
    other = str(tmp_path / "saxpy.o")
    run = CliRunner()
    fresh = run.invoke(command, [SAXPY, "--against", "rdna3", "--arch", "sm_90"]).output
    for sides in (
        [SAXPY, other],
        [other, SAXPY],
        [SAXPY, other, "--arch", "sm_90", "--arch-b", "gfx1100"],
        [other, SAXPY, "--arch", "sm_90"],
        [other, SAXPY, "--arch-b", "sm_90", "--whole"],
    ):
        done = run.invoke(command, sides)
        assert done.exit_code == 0, done.output
        assert done.output == fresh.replace("translated now", "the code object's own map")
    data = json.loads(run.invoke(command, [SAXPY, other, "--format", "json"]).output)
    (kernel,) = data["kernels"]
    assert (data["schema"], kernel["target"], kernel["against"]) == (
        "sassxlate.diff-translation/1", "sm_90", "gfx1100"
    )  # fmt: skip
    sass = [row for part in kernel["parts"] for row in part["rows"] if "sass" in row]
    assert len(sass) == kernel["sass"]
    for wrong, code in (
        ([SAXPY, other, "--arch", "sm_80"], "SX0450"),
        ([COLLATZ, other], "SX0802"),
        ([SAXPY], "SX0840"),
        ([SAXPY, SAXPY, "--against", "rdna3"], "SX0840"),
        ([SAXPY, "--against", "rdna3", "--arch-b", "sm_90"], "SX0840"),
        ([SAXPY, "--against", "rdna3", "--kernel-b", "x"], "SX0840"),
        ([SAXPY, other, "--kernel-b", "x"], "SX0840"),
        ([SAXPY, other, "--arch-b", "sm_90"], "SX0840"),
        ([other, SAXPY, "--arch", "sm_90", "--arch-b", "sm_80"], "SX0840"),
        ([SAXPY, "--against", "rdna3", "--format", "html"], "SX0828"),
        ([SAXPY, "--against", "rdna3", "-k", "nothing"], "SX0802"),
    ):
        done = run.invoke(command, wrong)
        assert getattr(done.exception, "code", None) == code, (wrong, done.output)


def _object(program: str) -> bytes:
    from sassxlate.disasm.containers import load

    for _, cubin in load(program).cubins():
        if cubin.arch == 90 and cubin.kernels:
            return translate_kernel(cubin, cubin.kernels[0].name).code_object
    raise AssertionError(program)


EVIL = "</script><b onload='x'>&amp;\"]]>"


@pytest.mark.parametrize("name", ["", EVIL, "_Z" + "x" * 4000, "a\x00\x1b[31m\ufffe\ud800"])
@pytest.mark.parametrize("parts", [0, 1])
def test_odd_names_and_kernels(name: str, parts: int) -> None:
    row = SideBySideRow(Line(0, name), (Code(0, name, "wait"), Code(4, name)), name, name, name)
    part = Part(name, 0, 0, 8, (row, SideBySideRow(None, (Code(8, name, name),))))
    sass = Picture(name, name, "sm_80", (Node(0, 0, (Line(0, name),)),), ())
    code = replace(sass, nodes=(Node(0, 0, (Line(0, name), Line(4, name), Line(8, name))),))
    kinds = (("wait", name),)
    found = Beside(name, name, "sm_80", "gfx1100", (part,) * parts, "x", kinds, (sass, code))
    page = to_html(found).encode("utf-8", "replace").decode()
    assert "<b onload" not in page
    assert page.count("</script>") == 3
    assert to_text(found).startswith(f"--- {name} sm_80")
    assert json.loads(json.dumps(to_data(found)))["sass"] == parts
