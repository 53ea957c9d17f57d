"""A module's kernels that synchronise their grids are searched for once, while it is in memory."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path

import pytest

from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.lowering.abi import link
from sassxlate.lowering.abi.link import GRID_WORKSPACE, grid_workspaces

FILE = Path(__file__).resolve().parents[3] / "fixtures/kernels/sm_80/lane_flags.cubin"


def test_once_for_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []
    search = link.names_word

    def counted(code: bytes, offset: int) -> bool:
        asked.append(code)
        return search(code, offset)

    monkeypatch.setattr(link, "names_word", counted)
    cubin = parse_cubin(FILE.read_bytes())
    kernel = cubin.kernels[0]
    word = (GRID_WORKSPACE[cubin.arch][0] << 38).to_bytes(16, "little")
    kernels = tuple(replace(kernel, name=name, code=word) for name in "ab")
    cubin = replace(cubin, kernels=(*kernels, replace(kernel, name="c", code=bytes(16))))
    before = len(link._WORKSPACES)  # pyright: ignore[reportPrivateUsage]
    first = grid_workspaces(cubin)
    assert sorted(first) == ["a", "b"]
    assert first["b"] == first["a"] + link.WORKSPACE
    assert grid_workspaces(cubin) is first
    assert len(asked) == 3
    other = replace(cubin, kernels=cubin.kernels[:1])  # another module, with another answer
    assert sorted(grid_workspaces(other)) == ["a"]
    del cubin, other
    gc.collect()
    assert len(link._WORKSPACES) == before  # pyright: ignore[reportPrivateUsage]
