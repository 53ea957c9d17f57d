"""The proposer of docs/how-to/replace-the-model.md, and wrong ones, through the commands."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sassxlate.cli.bench import command as bench
from sassxlate.cli.doctor import command as doctor
from sassxlate.cli.translate import command as translate
from sassxlate.cli.verify import command as verifying
from sassxlate.cli.verify.blocks import command as verify
from sassxlate.disasm.containers import load
from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.errors import SassxlateError, UsageError
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.report.judged import ProofSettings
from sassxlate.lowering.report.proofs import judge_all
from sassxlate.lowering.select.stages import Selected
from sassxlate.runtime_shim.writer import writer

ROOT = Path(__file__).resolve().parents[3]
NAME = "carry_chains"
KERNEL = ROOT / "fixtures" / "kernels" / "sm_90" / f"{NAME}.cubin"
PAGE = (ROOT / "docs" / "how-to" / "replace-the-model.md").read_text()
WRONG = """
    def propose(self, question):
        swap = {"v_mul_lo_u32": "v_mul_hi_u32"}
        code = tuple(
            tuple(replace(i, op=swap.get(i.op, i.op)) for i in group) for group in question.rules
        )
        return Proposals((code,))
"""


@pytest.fixture
def ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page's file, and an empty cache."""
    monkeypatch.setenv("SASSXLATE_CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / "ones.py"
    file.write_text(PAGE.split("```python\n")[1].split("```")[0])
    return file


def call(command: Any, *args: object) -> Result:
    return CliRunner().invoke(command, list(map(str, args)), catch_exceptions=True)


def test_the_page(ones: Path, tmp_path: Path) -> None:
    """Its file is complete, its proposals are taken and kept, and the final code is proved."""
    out = tmp_path / "out"
    done = call(translate, KERNEL, "-o", out, "--engine", f"{ones}:Ones")
    assert done.exit_code == 0, done.output
    assert "2 of 10 blocks by ones-1 (10 asked)" in done.stdout
    assert done.stderr == ""
    [kernel] = json.loads((out / "report.json").read_text())["kernels"]
    assert kernel["engine"]["outcomes"] == {"none": 8, "accepted": 2}
    # What is kept: for `run` the cheapest, and this engine's own.
    assert len(list(tmp_path.glob("cache/kernel/*/*.hybrid"))) == 2
    done = call(verify, KERNEL, "--engine", f"{ones}:Ones")
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "all: 2 proved")


def test_each_command_of_the_page_takes_the_engine() -> None:
    commands = re.findall(r"^sassxlate (\w+)(.*)--engine ones.py:Ones", PAGE, re.MULTILINE)
    assert [name for name, _ in commands] == ["translate", "verify", "run", "bench"]
    for command in (translate, verify, bench.commands["hybrid"]):
        [option] = [p for p in command.params if p.name == "engine"]
        assert option.type.convert("ones.py:Ones", None, None) == "ones.py:Ones"


def test_a_changed_file_is_asked_again(ones: Path) -> None:
    """Kept code belongs to the file's contents."""
    [(_, cubin)] = load(KERNEL).cubins()
    spec = f"{ones}:Ones"
    first = writer(spec, None, 1)
    assert not first.done(cubin, NAME)
    first.translate(cubin, NAME)
    assert writer(spec, None, 1).done(cubin, NAME)
    ones.write_text(ones.read_text().replace("I(1)", "I(2)"))
    changed = writer(spec, None, 1)
    assert changed.key != first.key
    assert not changed.done(cubin, NAME)


def test_wrong_proposals_are_refused(ones: Path, tmp_path: Path) -> None:
    text = ones.read_text()
    ones.write_text(text[: text.index("    def propose")] + WRONG)
    done = call(translate, KERNEL, "-o", tmp_path / "out", "--engine", f"{ones}:Ones")
    assert done.exit_code == 0, done.output
    [kernel] = json.loads((tmp_path / "out" / "report.json").read_text())["kernels"]
    outcomes = kernel["engine"]["outcomes"]
    assert outcomes.keys() <= {"dearer", "refuted"}
    [(_, cubin)] = load(KERNEL).cubins()
    rules = translate_kernel(cubin, NAME)
    assert next((tmp_path / "out").glob("*.hsaco")).read_bytes() == rules.code_object


def test_verify_asks_the_proposer(ones: Path) -> None:
    """Its errors are shown, and the file and its line are named."""
    ones.write_text(ones.read_text().replace("code = tuple(", "code = tuples("))
    line = next(n for n, t in enumerate(ones.read_text().splitlines(), 1) if "tuples(" in t)
    done = call(verify, KERNEL, "--engine", f"{ones}:Ones")
    assert done.exit_code == 0
    assert (
        f"sassxlate: warning: SX1014: {KERNEL}:{NAME}:/*0010*/: ones-1 raised NameError: "
        f"name 'tuples' is not defined. Did you mean: 'tuple'? (ones.py:{line}); "
        in done.stderr
        or f"name 'tuples' is not defined (ones.py:{line}); 10 regions" in done.stderr
    )


def with_op(old: str, new: str) -> Callable[[Selected], Selected]:
    def rewrite(selected: Selected) -> Selected:
        items = [
            replace(i, op=new) if isinstance(i, Inst) and i.op == old else i for i in selected.items
        ]
        return replace(selected, items=items)

    return rewrite


@pytest.mark.parametrize("jobs", [1, 2])
def test_verify_judges_the_engines_code(jobs: int) -> None:
    """The translation that it is given, and not one of its own."""
    [(_, cubin)] = load(KERNEL).cubins()
    [kernel] = cubin.kernels
    kernels = [(cubin, kernel)] * 2
    bad = translate_kernel(cubin, NAME, with_op("v_mul_lo_u32", "v_mul_hi_u32"))
    refused = UsageError("SX0801", "refused")
    wrong, missing = judge_all(kernels, ProofSettings(), None, jobs, [bad, refused])
    assert "Refuted" in {type(j.verdict).__name__ for j in wrong.judged}
    assert missing.refused is not None
    assert missing.refused.message == "refused"


def test_only_blocks_of_a_file_are_verified_with_an_engine() -> None:
    done = call(verify, KERNEL, "--engine", "best")
    assert isinstance(done.exception, SassxlateError)
    assert done.exception.code == "SX1008"
    for name in ("rules", "text"):
        assert not [p for p in verifying.commands[name].params if p.name == "engine"]


def test_the_rules_are_not_compared_with_themselves() -> None:
    done = call(bench, "hybrid", "--engine", "rules")
    assert isinstance(done.exception, SassxlateError)
    assert done.exception.code == "SX1008"


def test_a_name_that_is_no_engine() -> None:
    done = call(translate, KERNEL, "--engine", "neural")
    assert done.exit_code == 2
    known = "rules, search, model, hybrid, llvm, best"
    assert f"'neural' is not one of {known}, nor FILE.py:NAME." in done.stderr


def test_doctor_names_the_engine_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proposer has no weights."""
    monkeypatch.setenv("SASSXLATE_ENGINE", "ones.py:Ones")
    done = call(doctor)
    assert re.search(r"model +`translate` uses engine ones.py:Ones$", done.stdout, re.MULTILINE)
