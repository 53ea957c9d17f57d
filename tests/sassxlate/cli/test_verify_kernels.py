"""`sassxlate verify kernels`: verdicts on whole kernels, refusals, bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sassxlate.cli import cli
from sassxlate.lowering.verify.verdict import Refuted

KERNELS = Path(__file__).resolve().parents[3] / "fixtures" / "kernels" / "sm_80"

pytest.importorskip("z3", reason="z3-solver is not installed")


def _verify(kernel: str, *options: str) -> Result:
    return CliRunner().invoke(
        cli, ["verify", "kernels", str(KERNELS / f"{kernel}.cubin"), *options]
    )


def test_proved() -> None:
    done = _verify("half_pairs")
    assert done.exit_code == 0, done.output
    first, last = done.stdout.splitlines()
    assert first.startswith("half_pairs (sm_80): proved (modulo aligned accesses, ")
    assert last == "all: 1 proved"


def test_unknown_is_no_failure_and_says_why() -> None:
    done = _verify("shuffle_forms", "--format", "json", "-q")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["verdict"], found["reason"]) == ("Unknown", "no meaning of SHFL")


def test_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    from sassxlate.lowering.verify.kernel import verify

    def wrong(*_: object, **__: object) -> Refuted:
        return Refuted({"tid": 3, "c[0][352]": 0}, "word of global", 1, 2)

    monkeypatch.setattr(verify, "verify", wrong)
    done = _verify("half_pairs")
    assert done.exit_code == 1
    assert "refuted: word of global: SASS 0x1, RDNA3 0x2 with tid = 0x3" in done.stdout


@pytest.mark.parametrize(
    ("kernel", "options", "status", "code"),
    [
        ("named_barriers", (), 3, "SX0460"),
        ("half_pairs", ("--target", "gfx1201"), 3, "SX0465"),
        ("half_pairs", ("-k", "other"), 2, "SX0802"),
        ("no_such_file", (), 2, "SX0"),
    ],
)
def test_refusals(kernel: str, options: tuple[str, ...], status: int, code: str) -> None:
    done = _verify(kernel, *options)
    assert done.exit_code == status, done.output
    assert code in done.stderr
    assert "Traceback" not in done.output
