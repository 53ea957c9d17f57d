"""A shipped model: its files, their size and types, and its card."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from sassxlate.cli import cli
from sassxlate.errors import ModelError
from sassxlate.llm.dataset import shards
from sassxlate.llm.engine import choose, models
from sassxlate.llm.evaluation.card import card
from sassxlate.llm.inference import safetensors
from sassxlate.llm.inference.qwen2 import SIZES, Qwen2, random_weights, save
from sassxlate.llm.language import tokenizer
from sassxlate.llm.language.tokenizer import vocabulary
from tools.generate import shipped_model

ROOT = Path(__file__).resolve().parents[2]


TINY = replace(SIZES["tiny"], vocab=len(vocabulary()))
ABOUT: dict[str, Any] = {
    "settings": {"batch": 64, "row": 1024, "rate": 1e-3, "seed": 0, "start": "/home/me/models/x"},
    "vocabulary": tokenizer.digest(vocabulary()),
    "figures": {"step": 2000, "seconds": 1200.0, "held_loss": 0.01, "right": 0.99, "whole": 0.9},
}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "best"
    save(folder, TINY, random_weights(TINY, 1), bfloat=False)
    (folder / "training.json").write_text(json.dumps(ABOUT))
    return folder


@pytest.mark.parametrize("int8", [False, True])
def test_weights(checkpoint: Path, tmp_path: Path, int8: bool) -> None:
    out = tmp_path / "weights"
    shipped_model.ship(checkpoint, out, int8)
    kinds = set(safetensors.types(out / "model.safetensors").values())
    assert kinds == ({"I8", "F32"} if int8 else {"BF16"})
    old, new = Qwen2.load(checkpoint), Qwen2.load(out)
    most = float(np.abs(old.embedding).max())
    half = 2**-8 + (1 / 254 if int8 else 0)  # of bfloat16's last place, and of a step of int8
    assert np.abs(old.embedding - new.embedding).max() <= most * half
    assert "/home" not in (out / "training.json").read_text()
    shipped_model.ship(out, tmp_path / "again", int8)  # the shipped model is the measured one
    assert (tmp_path / "again/model.safetensors").read_bytes() == (
        out / "model.safetensors"
    ).read_bytes()


def test_what_is_no_model_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    weights = random_weights(TINY, 1)
    weights["model.norm.weight"][3] = np.nan
    save(checkpoint, TINY, weights)
    with pytest.raises(SystemExit, match="finite"):
        shipped_model.ship(checkpoint, tmp_path / "weights", False)
    (checkpoint / "training.json").write_text(json.dumps(ABOUT | {"vocabulary": "other"}))
    with pytest.raises(ModelError, match="SX1005"):
        shipped_model.ship(checkpoint, tmp_path / "weights", False)


def test_the_card_has_the_figures_of_eval(checkpoint: Path, tmp_path: Path) -> None:
    pytest.importorskip("z3")
    plain = card(checkpoint)
    assert plain.startswith("---\nlicense: apache-2.0\n")
    assert "| parameters | 243,968 |" in plain
    assert "90.00 % of answers" in plain
    assert "/home" not in plain
    out = tmp_path / "README.md"
    program = ROOT / "fixtures" / "kernels" / "sm_90" / "early_exit.cubin"
    data = tmp_path / "data"
    data.mkdir()
    shards.write(data / "train-000.tokens", [([1, 2, 3], 2)], "v")
    sheet: dict[str, Any] = {"digest": "aa", "splits": {}, "sources": {}}
    (data / "datasheet.json").write_text(json.dumps(sheet))
    (checkpoint / "training.json").write_text(json.dumps(ABOUT | {"datasets": ["aa"]}))
    words = ["eval", str(program), "--model", str(checkpoint), "--samples", "1", "-j", "1",
             "--dataset", str(data)]  # fmt: skip
    done = CliRunner().invoke(cli, [*words, "--card", str(out), "--format", "json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    text = out.read_text()
    assert f"| sm_90 | {told['blocks']['sm_90']['distinct']} |" in text
    assert "GPT-5.1 22.22 %" in text
    assert "Digest of the questions and answers: `aa`" in text
    assert "Beside the search" in text
    hybrid: dict[str, Any] = {
        "arch": "sm_80", "mean_ratio": 0.95, "hit_rate": 0.25, "rate": None,
        "programs": [{"program": "saxpy", "passed": True, "rules": 1000, "hybrid": 950,
                      "ratio": 0.95, "regions": 2, "accepted": 1}],
    }  # fmt: skip
    assert "| saxpy | 1,000 | 950 | 5.0 % | 2 | 1 |" in card(checkpoint, told, None, hybrid)


def test_weights_are_taken_where_they_are(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default the search where the solver is; a model where one is named."""

    def there(*_: str) -> bool:
        return True

    def absent(*names: str) -> bool:
        return "z3" not in names

    monkeypatch.setattr(models, "WEIGHTS", checkpoint)
    monkeypatch.delenv(models.MODEL, raising=False)
    assert choose.usual(None) == "rules"  # as the tests' environment says
    monkeypatch.setenv(choose.ENGINE, "")
    monkeypatch.setattr(models, "installed", there)
    assert models.shipped() == checkpoint
    assert choose.usual(None) == "search"
    assert choose.usual(str(checkpoint)) == "hybrid"
    monkeypatch.setenv(models.MODEL, str(checkpoint))
    assert choose.usual(None) == "hybrid"
    monkeypatch.delenv(models.MODEL)
    assert models.language_model(None).name.startswith("best-")
    monkeypatch.setattr(models, "installed", absent)
    assert choose.usual(None) == "rules"
    monkeypatch.setenv(choose.ENGINE, "model")
    assert choose.usual(None) == "model"
    monkeypatch.setenv(choose.ENGINE, "nobody")
    with pytest.raises(ModelError, match="SX1008"):
        choose.usual(None)
    assert os.environ[choose.ENGINE] == "nobody"
