"""`disasm --live`: by hand, and against nvdisasm's life ranges."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from sassxlate.cfg.liveness import bits_before, liveness
from sassxlate.cfg.register_sets import refs_of
from sassxlate.cfg.view.live import live_before_each
from sassxlate.cli.disasm import command
from sassxlate.lowering.report.graphs import graphs
from tools.witness.nvdisasm import registers
from tools.witness.nvdisasm import witness as sass_witness

pytestmark = pytest.mark.usefixtures("valid_documents")

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
SAXPY = FIXTURES / "programs" / "saxpy"
# nvdisasm's ranges end at calls, and leave out what these read and write.
_OTHERWISE = {"CALL", "RET", "BRX", "BRXU", "R2P", "P2R", "UP2UR", "UR2UP"}
FEW = ("sm_80/carry_chains", "sm_80/half_pairs", "sm_90/uniform_loop", "sm_90/shuffle_forms")


@pytest.fixture(scope="module")
def witness() -> sass_witness.Witness:
    try:
        return sass_witness.find()
    except sass_witness.NoWitness as error:
        pytest.skip(str(error))


def _compared(path: Path, witness: sass_witness.Witness) -> int:
    """How many instructions were compared: no register that nvdisasm shows is missing, but for the
    stack pointer, which it always shows."""
    ranges = registers.live_before(witness, path)
    count = 0
    for graph in graphs(str(path), (), None):
        assert graph.cfg is not None
        assert graph.kernel is not None
        cfg, theirs = graph.cfg, ranges[graph.kernel.name]
        if any(i.mnemonic in _OTHERWISE for b in cfg.blocks for i in b.instructions):
            continue
        out_bits = liveness(cfg).out_bits
        shown = {ins.offset: live for ins, live in live_before_each(cfg)}
        for block in cfg.blocks:
            live = out_bits[block.index]
            for ins in reversed(block.instructions):
                live = bits_before(ins, live)
                ours = {(r.file, r.index) for r in refs_of(live)}
                assert theirs[ins.offset] - ours <= {("R", 1)}, f"{path.name} {ins.offset:#x}"
                # What is not shown has no value yet.
                assert shown[ins.offset] <= refs_of(live)
                count += 1
    return count


@pytest.mark.parametrize("name", FEW)
def test_no_register_is_missing(name: str, witness: sass_witness.Witness) -> None:
    path = FIXTURES / "kernels" / f"{name}.cubin"
    assert _compared(path, witness) > 20


@pytest.mark.sweep
def test_no_register_is_missing_anywhere(witness: sass_witness.Witness) -> None:
    paths = sorted((FIXTURES / "kernels").glob("sm_*/*.cubin"))
    assert sum(_compared(path, witness) for path in paths) > 9_000


def test_saxpy() -> None:
    """Two loads, one multiplication and a store: by hand."""
    run = CliRunner().invoke(command, [str(SAXPY), "--live", "--arch", "sm_80"])
    assert run.exit_code == 0, run.output
    first, *lines = run.output.splitlines()
    assert first.endswith("sm_80: at most 4 general registers live")
    live = {line.split("/*")[1][:4]: line.split("// ")[1] for line in lines}
    assert live["0000"] == "0:"
    assert live["0050"] == "1: R4 P0"
    assert live["00c0"] == "4: R2 R4-5 R7 UR4-5"
    assert live["00d0"] == "3: R4-5 R7 UR4-5"
    assert live["00e0"] == "0:"


def test_as_json() -> None:
    run = CliRunner().invoke(command, [str(SAXPY), "--live", "--arch", "sm_80", "--format", "json"])
    (kernel,) = json.loads(run.output)["kernels"]
    found = {i["offset"]: i["live"] for i in kernel["instructions"]}
    assert found["0x00c0"] == ["R2", "R4", "R5", "R7", "UR4", "UR5"]


def test_a_register_without_a_value_is_not_live() -> None:
    """A guarded write keeps what was in the register; before the first one that is nothing."""
    path = FIXTURES / "kernels" / "sm_80" / "arrive_barriers.cubin"
    (graph,) = graphs(str(path), (), None)
    assert graph.cfg is not None
    (_, first), *_ = live_before_each(graph.cfg)
    assert not first
    assert refs_of(liveness(graph.cfg).in_bits[0])


def test_what_does_not_go_together() -> None:
    run = CliRunner().invoke(command, [str(SAXPY), "--live", "--control"])
    assert run.exit_code == 2
    assert "--live does not go with" in run.output
