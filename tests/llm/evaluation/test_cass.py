"""Whole kernels as CASS's models write them: read, assembled, compared with the rules' code."""

from __future__ import annotations

import importlib.util
import json
import struct
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sassxlate.disasm.containers import load
from sassxlate.errors import ModelError, SassxlateError
from sassxlate.llm.evaluation import cass
from sassxlate.llm.evaluation.cass import (
    CassModel,
    Launch,
    answer,
    judge,
    kernels_of,
    question,
    translate,
)
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.select.translated import Translated

ROOT = Path(__file__).resolve().parents[3]
TEXT = (Path(__file__).parent / "cass_saxpy.s").read_text()


@cache
def rules() -> Translated:
    found = [c for _, c in load(ROOT / "fixtures" / "programs" / "saxpy").cubins() if c.kernels]
    cubin = found[0]
    return translate_kernel(cubin, cubin.kernels[0].name)


@cache
def launches() -> tuple[Launch, ...]:
    rng = np.random.default_rng(3)
    out: list[Launch] = []
    for n in (100, 64, 0):
        x, y = (rng.standard_normal(128).astype(np.float32).tobytes() for _ in "xy")
        parameters = struct.pack("<ifQQ", n, 2.5, 0, 0)
        out.append(Launch((2, 1, 1), (64, 1, 1), parameters, ((8, 0), (16, 1)), (x, y)))
    return tuple(out)


def fenced(text: str) -> str:
    return f"Here it is:\n```hipasm\n{text}\n```\n"


def test_the_question() -> None:
    text = question("MOV R1, c[0x0][0x28] ;\n")
    head, fence, *body = text.split("\n")
    assert head == "Convert the following CUDA device assembly code to HIP device assembly:"
    assert fence == "```cudaasm"
    assert body == ["MOV R1, c[0x0][0x28] ;", "```"]


def test_a_right_answer_leaves_what_the_rules_leave() -> None:
    (kernel,) = kernels_of(TEXT)
    assert kernel.settings["user_sgpr_count"] == 15
    _, whole = translate(lambda _: fenced(TEXT), "", rules(), launches())
    assert whole.outcome == "equal", whole


@pytest.mark.parametrize(
    ("old", "new", "outcome", "said"),
    [
        ("s_load_b32 s8, s[0:1], 0x4", "s_load_b32 s8, s[0:1], 0x8", "different", "array 1"),
        ("v_cmpx_gt_i32_e64 s3, v1", "v_cmpx_ge_i32_e64 s3, v1", "different", "array 1"),
        ("v_fmac_f32_e32 v3, s8, v2", "v_fmac_f32 v3, s8, v2, v9", "text", "SX0525"),
        ("v_lshlrev_b64 v[0:1], 2, v[1:2]", "v_shl_b64 v[0:1], 2, v[1:2]", "text", "SX0525"),
        ("s_load_b128 s[4:7]", "s_load_b128 s[5:8]", "text", "multiple of 4"),
        (".LBB0_2\n", ".LBB0_7\n", "text", "SX0510"),
        ("v_lshlrev_b64 v[0:1], 2,", "v_lshlrev_b64 v[0:1], 30,", "fault", "SX0630"),
        ("\ts_endpgm", "\ts_branch .LBB0_2", "fault", "no end"),
    ],
)  # fmt: skip
def test_wrong_answers(
    old: str, new: str, outcome: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cass, "SECONDS", 3)
    assert old in TEXT
    whole = judge(fenced(TEXT.replace(old, new)), rules(), launches())
    assert whole.outcome == outcome, whole
    assert said in whole.detail


def test_no_answer() -> None:
    with pytest.raises(SassxlateError, match="SX0548"):
        answer("I cannot help with that.")
    with pytest.raises(SassxlateError, match="SX0548"):
        kernels_of("nothing\n")
    assert judge("", rules(), launches()).outcome == "text"
    assert not judge(fenced(TEXT), rules(), ()).accepted


def _checkpoint(folder: Path) -> None:
    """A small random Qwen2 with a tokenizer of bytes."""
    from sassxlate.llm.inference.qwen2 import Config, random_weights, save

    config = Config(300, 32, 2, 2, 1, 64, 4096)
    save(folder, config, random_weights(config, 0))
    letters = {chr(c if 33 <= c < 127 else 256 + c): n for n, c in enumerate(range(256))}
    tokenizer: dict[str, Any] = {
        "version": "1.0", "added_tokens": [], "truncation": None, "padding": None,
        "normalizer": None, "post_processor": None,
        "pre_tokenizer": {
            "type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True
        },
        "decoder": {
            "type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True
        },
        "model": {"type": "BPE", "vocab": letters, "merges": [], "unk_token": "!"},
    }  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"})
    )


@pytest.mark.skipif(
    not all(importlib.util.find_spec(n) for n in ("torch", "transformers")),
    reason="the extra llm is not installed",
)
def test_a_random_checkpoint(tmp_path: Path) -> None:
    """The whole way through transformers; an untrained model's answer is not a kernel."""
    _checkpoint(tmp_path)
    model = CassModel(str(tmp_path), "cpu", most=24)
    text, whole = translate(model, "EXIT ;", rules(), launches())
    assert isinstance(text, str)
    assert whole.outcome == "text"


def test_without_the_extra(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        CassModel("nobody/nothing")
    assert caught.value.code in ("SX1001", "SX1002")
    assert not list(tmp_path.iterdir())
