"""Records of launches: what the emulated device writes, read back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sassxlate.errors import ShimError
from sassxlate.lowering.trace import recording

HEAD = b"launch 00ff 2 1 1 64 1 1 16 0 4096 8 void k<int>(int)\n"


def _write(path: Path, *parts: bytes) -> Path:
    path.write_bytes(b"".join((b"sassxlate-launches 1\n", *parts)))
    return path


def test_pages_make_memory(tmp_path: Path) -> None:
    path = _write(
        tmp_path / "a",
        b"piece 65536 6\npiece 131072 4\npage 65536 6\nabcdef",
        HEAD + b"12345678" + b"page 131072 4\n\n\n\n\nend 0\n",
        b"gone 131072\npiece 131072 2\n" + HEAD + b"abcdefgh" + b"end 3\n",
        HEAD + b"123",  # the process was ended
    )
    first, second = recording.read(path)
    assert (first.kernel, first.key, first.shared) == ("void k<int>(int)", "00ff", 16)
    assert (first.grid, first.block, first.kernarg) == ((2, 1, 1), (64, 1, 1), b"12345678")
    assert first.before[65536].tobytes() == b"abcdef" == first.after[65536].tobytes()
    assert not first.before[131072].any()
    assert np.all(first.after[131072] == 10)
    assert (second.number, second.fault, len(second.before[131072])) == (1, 3, 2)
    assert not second.before[131072].any()
    assert list(recording.read(path, lambda name, key: key != "00ff")) == []


@pytest.mark.parametrize("parts", [(b"page 1 2\nab",), (b"what\n",), (b"piece x 1\n",)])
def test_damaged(tmp_path: Path, parts: tuple[bytes, ...]) -> None:
    with pytest.raises(ShimError, match="SX0723"):
        list(recording.read(_write(tmp_path / "a", *parts)))


def test_another_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\x7fELF")
    with pytest.raises(ShimError, match="SX0723"):
        list(recording.read(tmp_path / "a"))
