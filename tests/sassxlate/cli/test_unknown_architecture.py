"""A file with code of an architecture that is not known: the rest of it is shown."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from click.testing import CliRunner

from sassxlate.cli import cli

PROGRAM = Path(__file__).resolve().parents[3] / "fixtures" / "programs" / "reduction"
_EM_CUDA = 190
_ENTRY, _ARCH = 64, 28  # bytes of the header before a cubin, and where its architecture is


def _of_sm_70(data: bytes) -> tuple[bytes, int]:
    """The program with sm_90 read as sm_70, and how many cubins that changed."""
    out, at, changed = bytearray(data), 0, 0
    while (at := data.find(b"\x7fELF\x02\x01", at)) >= 0:
        (machine,) = struct.unpack_from("<H", data, at + 18)
        (flags,) = struct.unpack_from("<I", data, at + 48)
        for shift in (0, 8):  # two layouts of e_flags
            if machine == _EM_CUDA and flags >> shift & 0xFF == 90:
                struct.pack_into("<I", out, at + 48, flags & ~(0xFF << shift) | 70 << shift)
                struct.pack_into("<I", out, at - _ENTRY + _ARCH, 70)
                changed += 1
        at += 4
    return bytes(out), changed


@pytest.mark.parametrize("command", ["disasm", "listing", "callgraph"])
def test_the_rest_is_shown(command: str, tmp_path: Path) -> None:
    program = tmp_path / "program"
    data, changed = _of_sm_70(PROGRAM.read_bytes())
    assert changed == 2  # one is of the runtime, without a kernel
    program.write_bytes(data)
    done = CliRunner().invoke(cli, [command, str(program)])
    assert (done.exit_code, done.stderr.count("SX0204")) == (3, 1)
    assert "sm_80" in done.stdout
    assert "sm_70" not in done.stdout
    one = CliRunner().invoke(cli, [command, str(program), "--arch", "sm_80"])
    assert (one.exit_code, one.stderr) == (0, "")
    alone = CliRunner().invoke(cli, [command, str(program), "--arch", "sm_70"])
    assert (alone.exit_code, alone.stdout, "SX0204" in alone.stderr) == (3, "", True)
