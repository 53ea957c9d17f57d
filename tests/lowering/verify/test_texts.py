"""Blocks from texts: proved, refuted, and refused with a code."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("z3", reason="z3-solver is not installed")

from click.testing import CliRunner

from sassxlate.cli.verify.text import command
from sassxlate.disasm.rdna3 import encode
from sassxlate.disasm.rdna3.codec.text.parse import parse
from sassxlate.disasm.rdna3.instruction import I, Inst, S, V
from sassxlate.errors import SassxlateError
from sassxlate.lowering.verify import Proved, Refuted, verify
from sassxlate.lowering.verify.block.from_text import block_of, read_texts

HERE = Path(__file__).parent


def _files(folder: str) -> list[Path]:
    return sorted((HERE / folder).glob("*.toml"))


@pytest.mark.parametrize("path", _files("proved"), ids=lambda p: p.stem)
def test_proved(path: Path) -> None:
    assert isinstance(verify(block_of(read_texts(path.read_text()))), Proved)


@pytest.mark.parametrize("path", _files("broken"), ids=lambda p: p.stem)
def test_broken(path: Path) -> None:
    verdict = verify(block_of(read_texts(path.read_text())), vectors=256)
    assert isinstance(verdict, Refuted)


@pytest.mark.parametrize("path", _files("bugs"), ids=lambda p: p.stem)
def test_bugs(path: Path) -> None:
    """The first line has the expected code."""
    text = path.read_text()
    with pytest.raises(SassxlateError) as raised:
        block_of(read_texts(text))
    assert raised.value.code == text.splitlines()[0].removeprefix("# ")


def test_command() -> None:
    done = CliRunner().invoke(command, [str(HERE / "broken" / "no_wait.toml")])
    assert done.exit_code == 1
    assert "missing wait: v6 is used at" in done.output
    assert "global_load_b32 v6, v[4:5], off" in done.output
    done = CliRunner().invoke(command, [str(HERE / "proved" / "carry.toml")])
    assert done.output == "proved\n"


@pytest.mark.parametrize(
    ("text", "inst"),
    [
        ("v_fma_f32 v1, -v2, |v3|, 1.0 clamp", Inst(
            "v_fma_f32", (V(1), V(2), V(3), I(0x3F800000)), neg=1, abs=2, clamp=True)),
        ("v_add_nc_u32_e64 v1, v2, v3", Inst("v_add_nc_u32", (V(1), V(2), V(3)), enc="e64")),
        ("s_load_b64 s[4:5], s[0:1], 0x210", None),
        ("s_waitcnt vmcnt(1) lgkmcnt(0)", None),
        ("ds_load_b64 v[2:3], v4 offset:8", None),
        ("v_dual_mov_b32 v1, v2 :: v_dual_add_f32 v4, v5, v7", None),
        ("s_and_saveexec_b32 s2, s20", Inst("s_and_saveexec_b32", (S(2), S(20)))),
    ],
)  # fmt: skip
def test_parse(text: str, inst: Inst | None) -> None:
    found = parse(text)
    if inst is not None:
        assert encode(found) == encode(inst)
