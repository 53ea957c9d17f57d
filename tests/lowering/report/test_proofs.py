"""The verdicts of several processes."""

from __future__ import annotations

import os
from multiprocessing import parent_process
from pathlib import Path

import pytest

from sassxlate.disasm.containers import load
from sassxlate.errors import UsageError
from sassxlate.lowering.report import proofs
from sassxlate.lowering.report.judged import ProofSettings

CUBIN = Path(__file__).resolve().parents[3] / "fixtures" / "kernels" / "sm_80" / "early_exit.cubin"


def test_processes_that_die(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends with an error, where multiprocessing's pool waits for ever."""

    def dies(*_: object) -> None:
        assert parent_process() is not None
        os._exit(9)

    monkeypatch.setattr(proofs, "judge", dies)
    cubin = next(c for _, c in load(str(CUBIN)).cubins())
    kernels = [(cubin, cubin.kernels[0])] * 2
    with pytest.raises(UsageError, match="SX0888"):
        list(proofs.judge_all(kernels, ProofSettings(), None, 2))
