"""The random differential test: its parts, a seed of it, and, with ``-m sweep``, all of it."""

from __future__ import annotations

import gzip
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sassxlate import toolchain
from sassxlate.executors import Place
from tools.sweep import plan, table, truth
from tools.sweep.compile import compile_group
from tools.sweep.driver import digests, one_nan
from tools.sweep.inputs import Words, inputs
from tools.sweep.kernel import THREADS, Group, Kernel
from tools.sweep.run import Settings, lines_of, run_all, run_groups
from tools.sweep.supervise import supervise
from tools.sweep.uniform import KINDS, STREAMS, uniform

TOOLS = Path(__file__).resolve().parents[3] / "tools"

RUNNER = (sys.executable, "-P", "-m", "sassxlate", "run", "--keep-status")
TOLD = 5492  # kernels whose result under -O3 is known
needs_nvcc = pytest.mark.skipif(toolchain.nvcc() is None, reason="no nvcc, no NVIDIA wheels")


@pytest.fixture(scope="module")
def known() -> truth.Truth:
    return truth.load()


def test_the_truth_is_of_these_kernels(groups: list[Group], known: truth.Truth) -> None:
    """A changed generator makes other kernels, which no GPU has run."""
    mine = {k.name: k.source_crc for g in groups for k in g.kernels}
    assert len(mine) >= 5000
    assert known.sources.items() <= mine.items()
    told = [name for name, r in known.by_flags["O3"].items() if not r.error]
    assert len(told) >= TOLD


def test_inputs_are_the_names_alone() -> None:
    one, two = inputs("a_0001", "ifd-E"), inputs("a_0001", "ifd-E")
    assert (one == two).all()
    assert one.shape == (5, THREADS)
    assert (one != inputs("a_0002", "ifd-E")).any()
    assert one[2:4].any(axis=1).all()  # both words of doubles


def test_another_seed_is_other_kernels_on_other_inputs(groups: list[Group]) -> None:
    """Names tell the seed, so that results and reference output of two never meet."""
    mine = {k.name for g in groups for k in g.kernels}
    for shape in plan.SHAPES:
        (first, *_) = shape.kernels(2, 3, 2)
        (kept, *_) = shape.kernels(1, 3, 2)
        assert first.name == f"{shape.name}_s2_0003"
        assert first.name not in mine
        assert kept.name in mine
        assert f"__global__ void {first.name}(" in first.text
        assert first.source_crc != kept.source_crc
        if first.profiles:
            assert (inputs(first.name, "ifr") != inputs(kept.name, "ifr")).any()


def test_reference_output_of_another_seed(tmp_path: Path) -> None:
    """What job.py brings of it becomes a folder that `table` compares with."""
    made = list(plan.groups(2, ("features",)))
    kernels = {k.name: k for g in made for k in g.kernels}
    name, kernel = next(iter(kernels.items()))
    words = _words(*range(len(kernel.slots)))
    line = {"k": name, "d": digests(words)}
    with gzip.open(tmp_path / "O3.jsonl.gz", "wt") as file:
        print(json.dumps(line), file=file)
    (tmp_path / "sources.json").write_text(json.dumps({name: kernel.source_crc}))
    folder, results = tmp_path / "truth", tmp_path / "results"
    assert truth.keep(tmp_path, ["nvcc 13.0.88"], folder, 2) == {"O3": 1}
    assert truth.keep(tmp_path, ["nvcc 13.0.88"], tmp_path / "none", 3) == {"O3": 0}
    results.mkdir()
    (results / "90.O3.jsonl").write_text(json.dumps({**line, "x": kernel.source_crc}) + "\n")
    rows = table.verdicts(results, truth.load(folder), kernels)
    assert [row[3] for row in rows] == ["same"]
    assert table.show(results, seed=2, folder=folder) == 0
    line["d"] = "0" * len(line["d"])
    (results / "90.O3.jsonl").write_text(json.dumps({**line, "x": kernel.source_crc}) + "\n")
    assert table.show(results, seed=2, folder=folder) == 1


def test_inputs_of_a_block(tmp_path: Path, groups: list[Group]) -> None:
    """The kernels are others, and their results are compared with another code of theirs."""
    (first, *_) = plan.SHAPES[-1].kernels(1, 3, 1)
    all_, most = (uniform(first, kind) for kind in KINDS)
    assert len({first.source_crc, all_.source_crc, most.source_crc}) == 3
    assert all_.launch()["uniform"] is True
    assert "uniform" not in first.launch()
    assert max(len(k.profiles) for g in groups for k in g.kernels) <= STREAMS
    words = _words(*range(len(all_.slots)))
    line: dict[str, Any] = {"k": first.name, "d": digests(words), "x": all_.source_crc}
    (tmp_path / "80.O0.jsonl").write_text(json.dumps(line) + "\n")
    (tmp_path / "120.O3.jsonl").write_text(json.dumps(line) + "\n")
    assert table.beside(tmp_path, "80.O0", False, 1, "all") == 0
    (tmp_path / "120.O3.jsonl").write_text(json.dumps({**line, "d": "0" * len(line["d"])}) + "\n")
    assert table.beside(tmp_path, "80.O0", False, 1, "all") == 1


def _words(*rows: int) -> Words:
    return np.array([[r] * THREADS for r in rows], np.uint32)


@pytest.mark.parametrize(
    ("slots", "one", "two", "alike"),
    [
        ("f", [0x7FC00000], [0xFFFFFFFF], True),
        ("f", [0x7F800000], [0x7FC00000], False),
        ("f", [0x80000000], [0x00000000], False),
        ("r", [0x7FC00000], [0xFFFFFFFF], False),
        ("E", [0x7E003C00], [0xFFFF3C00], True),
        ("E", [0x7E003C00], [0x7E003C01], False),
        ("E", [0x3C00FC01], [0x3C007FFF], True),
        ("B", [0x7FC13F80], [0xFFFF3F80], True),
        ("B", [0x7F803F80], [0xFF803F80], False),
        ("d-", [1, 0x7FF00000], [0, 0xFFF80000], True),
        ("d-", [0, 0x7FF00000], [1, 0x7FF00000], False),
    ],
)
def test_one_nan(slots: str, one: list[int], two: list[int], alike: bool) -> None:
    a, b = (digests(one_nan(_words(*rows), slots)) for rows in (one, two))
    assert (a == b) is alike


def _kernel(**more: Any) -> Kernel:
    text, slots = more.pop("text", ""), more.pop("slots", "ff")
    return Kernel("a_0001", "a", text, slots, "ff", **more)


def _result(words: Words, slots: str = "ff") -> truth.Result:
    return truth.Result(digests(words), digests(one_nan(words, slots)), words.tobytes())


def test_verdicts() -> None:
    kernel, one = _kernel(), _words(0x3F800000, 0x7FC00000)
    right = _result(one)

    def said(words: Words) -> str:
        return truth.verdict(kernel, right, _result(words), False)

    assert said(one) == "same"
    assert said(_words(0x3F800000, 0xFFC00000)) == "nan"
    assert said(_words(0x3F800001, 0x7FC00000)) == "differ"
    wide, two = _kernel(slots="d-"), _words(0, 0x7FF80000)
    assert truth.verdict(wide, _result(two, "d-"), _result(_words(0, 0xFFF80000), "d-"), False) == (
        "nan64"
    )
    assert truth.verdict(kernel, None, right, False) == "untold"
    assert truth.verdict(kernel, right, right, True) == "refused"
    assert truth.verdict(kernel, right, truth.Result("", "", error="700"), False) == "failed"


@pytest.mark.parametrize(
    ("bound", "there", "here", "said"),
    [
        ("ulp2", 0x3F800000, 0x3F800002, "bound"),
        ("ulp2", 0x3F800000, 0x3F800003, "differ"),
        ("ulp2", 0x00000001, 0x00000003, "bound"),
        ("ulp2", 0x7F800000, 0x7F7FFFFF, "differ"),
        ("ulp2", 0x7FC00000, 0xFFFFFFFF, "bound"),
        ("ulp2", 0x7FC00000, 0x00000000, "differ"),
        ("abs2e-20", 0x3F800000, 0x3F800008, "bound"),
        ("abs2e-20", 0x3F800000, 0x3F800009, "differ"),
        ("rel2e-20", 0x40000000, 0x40000008, "bound"),
        ("rel2e-20", 0x40000000, 0x40000009, "differ"),
        ("mix2e-20", 0x40000000, 0x40000008, "bound"),
        ("mix2e-20", 0x3F000000, 0x3F000010, "bound"),
        ("mix2e-20", 0x3F000000, 0x3F000011, "differ"),
        ("ulp0", 0x3F800000, 0x3F800001, "differ"),
    ],
)
def test_bounds(bound: str, there: int, here: int, said: str) -> None:
    kernel = _kernel(bound=bound, slots="f")
    right, got = _result(_words(there), "f"), _result(_words(here), "f")
    assert truth.verdict(kernel, right, got, False) == said


def test_where_a_truth_holds() -> None:
    usual, other, flushed = (_result(_words(k, k)) for k in (1, 2, 3))
    for holds, flags, arch, expected in (
        ("all", "O1", 80, usual),
        ("exact", "O3", 120, usual),
        ("exact", "fast", 80, other),
        ("exact", "rdc", 80, usual),
        ("code", "O3", 90, usual),
        ("code", "O3", 80, None),
        ("code", "nofma", 90, usual),
        ("all", "fast", 90, None),
        ("exact", "ftz", 80, flushed),
        ("code", "ftz", 90, flushed),
        ("code", "ftz", 80, None),
    ):
        kernel = _kernel(holds=holds)
        taken = {
            "O3": {"a_0001": usual},
            "O1": {},
            "fast": {"a_0001": other},
            "nofma": {},
            "ftz": {"a_0001": flushed},
        }
        found = truth.Truth({"a_0001": kernel.source_crc}, taken)
        assert found.expected(kernel, arch, flags) == expected, (holds, flags, arch)
    # A result that flags change is compared with the same flags on sm_90 alone.
    kernel, taken = _kernel(), {"O3": {"a_0001": usual}, "G": {"a_0001": other}}
    found = truth.Truth({"a_0001": kernel.source_crc}, taken)
    assert found.expected(kernel, 90, "G") == other
    assert found.expected(kernel, 80, "O3") is None
    found = truth.Truth({"a_0001": 1}, taken)
    assert found.expected(kernel, 90, "O3") is None


_FAKE = """
import json, sys, time
names = [k["name"] for g in json.load(open(sys.argv[1])) for k in g["kernels"]]
def tell(**line): print(json.dumps(line), flush=True)
for name in names:
    tell(at=name)
    if name == "hangs": time.sleep(600)
    if name == "dies": sys.exit(1)
    if name == "faults":
        tell(k=name, e=700)
        sys.exit(4)
    print("a kernel printed this")
    tell(k=name, d="00000000")
tell(end=True)
"""


def test_past_hangs_deaths_and_faults() -> None:
    names = ["a", "dies", "b", "hangs", "faults", "c"]
    lines: list[dict[str, Any]] = []
    supervise(
        [sys.executable, "-c", _FAKE],
        [{"cubin": "", "kernels": [{"name": name} for name in names]}],
        lines.append,
        silence_s=3,
        deadline=time.monotonic() + 60,
    )
    said = {line["k"]: line.get("e", "fine") for line in lines}
    assert said == {
        "a": "fine", "dies": "died", "b": "fine", "hangs": "late", "faults": 700, "c": "fine",
    }  # fmt: skip
    assert [line["k"] for line in lines] == names


def test_refusals_are_told_by_code_and_mnemonic() -> None:
    assert table.refusal("SX0412 /*0110*/: PLOP3.LUT P0, PT, R12.SIGN, R15") == "SX0412 PLOP3.LUT"
    assert table.refusal("SX0412 /*0110*/: @!P0 HADD2 R1, R2") == "SX0412 HADD2"
    assert table.refusal("SX0420 calls what is not there") == "SX0420 calls what is not there"


# --- against the GPU -----------------------------------------------------------------------------

# Of each shape so many kernels, from the first group on, one in so many; the others are the
# sweep's.
SEED = {
    "programs": (5, 2),
    "warps": (4, 2),
    "ptx": (18, 62),
    "floats": (5, 2),
    "features": (10, 2),
}


def _seed(groups: list[Group], part: int) -> list[Group]:
    """Every other kernel of the seed, from ``part`` on."""
    chosen: list[Group] = []
    for shape, (count, step) in SEED.items():
        kernels = [k for g in groups if g.name.startswith(shape) for k in g.kernels]
        kernels = [k for k in kernels[::step] if not k.reads_doubles][:count]
        chosen.append(Group(f"{shape}_seed", tuple(kernels[part::2])))
    return chosen


def _check(folder: Path, groups: list[Group], known: truth.Truth, refused: float) -> None:
    """No result differs, no kernel fails, and few are refused."""
    kernels = {k.name: k for g in groups for k in g.kernels}
    rows = table.verdicts(folder, known, kernels)
    assert rows
    wrong = [
        f"{said} {kernel.name} sm_{arch} {flags} {why}"
        for kernel, arch, flags, said, why in rows
        if said in ("nan", "differ", "failed")
    ]
    assert not wrong
    assert any(row[3] == "same" for row in rows)
    assert sum(row[3] == "refused" for row in rows) <= refused * len(rows)


@needs_nvcc
@pytest.mark.parametrize("part", [pytest.param(0, marks=pytest.mark.sweep), 1])
def test_a_seed(tmp_path: Path, groups: list[Group], known: truth.Truth, part: int) -> None:
    """Some of each shape equal the H200's."""
    nvcc = toolchain.nvcc()
    assert nvcc is not None
    settings = Settings(tmp_path, nvcc, 90, "O3", RUNNER)
    chosen = _seed(groups, part)
    count = run_groups(chosen, settings, time.monotonic() + 600, lambda _: None)
    assert count == sum(len(g.kernels) for g in chosen)
    _check(tmp_path, chosen, known, 0)


@needs_nvcc
def test_fast_math_on_newer_architectures(
    tmp_path: Path, groups: list[Group], known: truth.Truth
) -> None:
    """Constants and signs that nvcc's two NVVM flush or not, as the truth's does."""
    nvcc = toolchain.nvcc()
    assert nvcc is not None
    names = ("floats_0110", "floats_0118", "floats_0123")
    kernels = tuple(k for g in groups for k in g.kernels if k.name in names)
    settings = Settings(tmp_path, nvcc, 120, "fast", RUNNER)
    group = Group("floats_flushed", kernels)
    assert run_groups([group], settings, time.monotonic() + 300, lambda _: None) == len(names)
    rows = table.verdicts(tmp_path, known, {k.name: k for k in kernels})
    assert [row[3] for row in rows] == ["same"] * len(names)


@needs_nvcc
def test_lanes_that_leave_a_region_by_a_branch(
    tmp_path: Path, groups: list[Group], known: truth.Truth
) -> None:
    """nvcc wrote no BREAK: a lane that comes to the barrier later waited for them forever."""
    nvcc = toolchain.nvcc()
    assert nvcc is not None
    kernels = tuple(k for g in groups for k in g.kernels if k.name == "warps_0475")
    settings = Settings(tmp_path, nvcc, 90, "O3", RUNNER)
    group = Group("warps_left", kernels)
    assert run_groups([group], settings, time.monotonic() + 300, lambda _: None) == 1
    rows = table.verdicts(tmp_path, known, {k.name: k for k in kernels})
    assert [row[3] for row in rows] == ["same"]


@needs_nvcc
def test_doubles_that_are_taken_apart(
    tmp_path: Path, groups: list[Group], known: truth.Truth
) -> None:
    """Kernels that read the bits of doubles, NaN among them, equal the H200's to the bit."""
    nvcc = toolchain.nvcc()
    assert nvcc is not None
    kernels = [k for g in groups for k in g.kernels if k.shape == "floats" and k.reads_doubles]
    kernels = [k for k in kernels if k.holds == "exact" and not k.bound][:40:5]
    settings = Settings(tmp_path, nvcc, 90, "O3", RUNNER)
    group = Group("floats_doubles", tuple(kernels))
    assert run_groups([group], settings, time.monotonic() + 300, lambda _: None) == len(kernels)
    rows = table.verdicts(tmp_path, known, {k.name: k for k in kernels})
    assert [row[3] for row in rows] == ["same"] * len(kernels)


@needs_nvcc
@pytest.mark.parametrize(
    ("names", "arch", "flags"),
    [
        # cvt.rz.f16.f32 is HADD2 with a binary32 source, which had been rounded to nearest
        ("floats_s2_0053 floats_s2_0151 floats_s2_0156 floats_s2_0228", 75, "O3"),
        # CALL.REL.NOINC as a far jump in a function that returns
        ("programs_s2_0012", 80, "O3"),
        pytest.param(
            "warps_s2_0021 warps_s2_0139 warps_s2_0150", 80, "O3", marks=pytest.mark.sweep
        ),
        ("warps_s2_0139", 89, "O1"),
        # lanes of an inner and an outer shuffle wait at one WARPSYNC, with other masks
        ("warps_s2_0045", 75, "G"),
        # regions that had only a class of collective sections in common were one
        ("warps_s2_0148", 120, "O1"),
        # the NaN that an atomic sum leaves in memory was the host's, which is negative
        ("ptx_s2_1050 ptx_s2_1069", 120, "O3"),
    ],
)
def test_kernels_of_another_seed(names: str, arch: int, flags: str, tmp_path: Path) -> None:
    """What was wrong, refused or stopped here and not on an H200."""
    nvcc = toolchain.nvcc()
    assert nvcc is not None
    (shape,) = (s for s in plan.SHAPES if s.name == names.partition("_")[0])
    made = [k for name in names.split() for k in shape.kernels(2, int(name[-4:]), 1)]
    assert [k.name for k in made] == names.split()
    group = Group(f"{shape.name}_other", tuple(made))
    settings = Settings(tmp_path, nvcc, arch, flags, RUNNER)
    run_groups([group], settings, time.monotonic() + 300, lambda _: None)
    known = truth.load(truth.FOLDER.parent / "seed_2")
    rows = table.verdicts(tmp_path, known, {k.name: k for k in group.kernels})
    assert [row[3] for row in rows] == ["same"] * len(names.split())


@needs_nvcc
def test_the_oldest_architecture_compiles(tmp_path: Path, groups: list[Group]) -> None:
    """Kernels with operations that it lacks are left out: bf16's, here."""
    nvcc = toolchain.nvcc()
    assert nvcc is not None
    group = next(g for g in groups if g.name == "floats_013")
    assert len(group.on(75)) < len(group.on(80))
    assert compile_group(nvcc.command, group, 75, "O3", tmp_path).stat().st_size


@needs_nvcc
def test_groups_at_a_time(tmp_path: Path, groups: list[Group]) -> None:
    """Two architectures at once, each with a file of its own."""
    nvcc = toolchain.nvcc()
    assert nvcc is not None
    group = Group("programs_two", groups[0].kernels[:2])
    work = [(group, Settings(tmp_path, nvcc, arch, "O3", RUNNER)) for arch in (80, 90)]
    assert run_all(work, time.monotonic() + 300, lambda _: None, Place(2)) == 4
    for _, settings in work:
        assert lines_of(settings.file).keys() == {k.name for k in group.kernels}
    assert not list((tmp_path / "cubins").iterdir())


@needs_nvcc
def test_it_goes_on_where_it_was(tmp_path: Path, groups: list[Group]) -> None:
    nvcc = toolchain.nvcc()
    assert nvcc is not None
    settings = Settings(tmp_path, nvcc, 80, "O1", RUNNER)
    group = Group("programs_few", groups[0].kernels[:2])
    assert run_groups([group], settings, time.monotonic() + 300, lambda _: None) == 2
    text = settings.file.read_text()
    assert run_groups([group], settings, time.monotonic() + 300, lambda _: None) == 0
    settings.file.write_text(text + '{"k":"cut o')
    assert lines_of(settings.file).keys() == {k.name for k in group.kernels}
    # A result of another source does not count.
    first = json.loads(text.splitlines()[0])
    settings.file.write_text(json.dumps({**first, "x": 1}) + "\n")
    assert run_groups([group], settings, time.monotonic() + 300, lambda _: None) == 2


@needs_nvcc
@pytest.mark.sweep
@pytest.mark.parametrize("flags", plan.FLAGS)
@pytest.mark.parametrize("arch", plan.ARCHES)
def test_all(
    tmp_path: Path, groups: list[Group], known: truth.Truth, arch: int, flags: str
) -> None:
    """Every kernel, on every architecture, with every kind of flags: hours.  SASSXLATE_SHARED's
    folder ``sweep`` keeps results, where there is one, so that a run continues where it ended."""
    nvcc = toolchain.nvcc()
    assert nvcc is not None
    shared = os.environ.get("SASSXLATE_SHARED")
    folder = Path(shared, "sweep") if shared and Path(shared, "sweep").is_dir() else tmp_path
    chosen = plan.in_turn([g for g in groups if plan.wanted(g, flags)])
    settings = Settings(folder, nvcc, arch, flags, RUNNER)
    run_groups(chosen, settings, time.monotonic() + 48 * 3600, print)
    only = tmp_path / "only"
    only.mkdir()
    (only / settings.file.name).write_text(settings.file.read_text())
    _check(only, chosen, known, 0.005)
