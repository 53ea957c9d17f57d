"""`bench peers`: both sources are the same kernels, and it is skipped where PoCL is not."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from sassxlate.bench import peers
from sassxlate.bench.peers_kernels import NAMES, peer_kernel
from sassxlate.cli import cli
from sassxlate.disasm.containers import parse_cubin
from sassxlate.errors import ShimError
from sassxlate.runtime_shim import paths

pytestmark = pytest.mark.usefixtures("valid_documents")

FOLDER = Path(__file__).resolve().parents[3] / "fixtures" / "peers"


def test_the_same_ten() -> None:
    """In the cubin, in both sources, and in what is run."""
    names = set(NAMES)
    assert len(names) == 10
    assert [peer_kernel(name).name for name in NAMES] == list(NAMES)
    cubin = parse_cubin((FOLDER / "peers.cubin").read_bytes())
    assert {kernel.name for kernel in cubin.kernels} == names
    assert set(re.findall(r"__global__ void (\w+)\(", (FOLDER / "peers.cu").read_text())) == names
    assert set(re.findall(r"kernel void (\w+)\(", (FOLDER / "peers.cl").read_text())) == names


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_result_is_seen(name: str) -> None:
    """An output that was not written, and one with one element off."""
    peer = peer_kernel(name)
    right = peer.expected.astype(peer.arrays[peer.output].dtype)
    assert peer.wrong(right) == ""
    assert peer.wrong(np.zeros_like(right))
    off = right.copy().ravel()
    off[off.size // 2] += off.max() / 8 + 1
    assert peer.wrong(off)


def test_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the library: one line with the reason, and status 0."""
    monkeypatch.setattr(peers, "_LIBRARY", "libOpenCL-missing.so.1")
    done = CliRunner().invoke(cli, ["bench", "peers"])
    assert done.exit_code == 0, done.output
    assert re.fullmatch(r"skipped: no PoCL: libOpenCL-missing.so.1 cannot be .*\n", done.output)
    done = CliRunner().invoke(cli, ["bench", "peers", "--format", "json"])
    assert json.loads(done.output)["skipped"].startswith("libOpenCL-missing")


def test_two_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides run, are right, and give figures and the mean."""
    try:
        paths.library_dir()
        peers.available(FOLDER.parent)
    except (ShimError, peers.Missing) as error:
        pytest.skip(str(error))
    monkeypatch.setenv("SASSXLATE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("SASSXLATE_SERVICE_IDLE", "1")
    figures = peers.measure(FOLDER.parent, 2, "llvm", "sc")
    named = [name for name in NAMES if "sc" in name]
    assert len(named) == 2
    assert [figure.name.partition(":")[0] for figure in figures[:-1]] == named
    assert figures[-1].name == f"geometric mean of {len(named)}: PoCL / ours (CPU)"
    values = [sorted(figure.values) for figure in figures[:-1]]
    assert all(len(v) == 2 and v[0] > 0 for v in values)
    means = [sum(v) / 2 for v in values]
    assert figures[-1].values[0] == pytest.approx(np.exp(np.log(means).mean()))
