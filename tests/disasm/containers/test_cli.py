"""`sassxlate ls` and `sassxlate extract`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sassxlate.cli import cli
from sassxlate.disasm.containers import parse_cubin, parse_fatbin

from .conftest import DATA, container, entry


def run(*arguments: object, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(cli, [str(a) for a in arguments], input=stdin)


LISTING = """\
{path}: fatbin, 1 module
  module  entry  kind  arch    compression   size  stored  notes
       0      0  elf   sm_75   zstd         12608    3384
       0      1  ptx   sm_75   zstd          7074    1936
       0      2  elf   sm_90a  zstd         14384    3496

  module 0 entry 0, sm_75:
    regs  shared  local  const  params  code  kernel
      14     256      0    380      28  2688  saxpy(float, float const*, float*, int)

  module 0 entry 2, sm_90a:
    regs  shared  local  const  params  code  kernel
      15    1280      0    556      28  2816  saxpy(float, float const*, float*, int)
"""


def test_listing() -> None:
    path = DATA / "size.fatbin"
    result = run("ls", path, "-k", "saxpy")
    assert result.exit_code == 0
    assert result.output == LISTING.format(path=path)


def test_json() -> None:
    result = run("ls", DATA / "size.fatbin", DATA / "linked.fatbin", "--format", "json")
    assert result.exit_code == 0
    answer = json.loads(result.output)
    assert answer["schema"] == "sassxlate.ls/1"
    assert answer["errors"] == []
    first, second = answer["files"]
    assert [e["compression"] for e in first["entries"]] == ["zstd"] * 3
    kernels = {k["name"]: k for k in first["entries"][0]["kernels"]}
    saxpy = kernels["_Z5saxpyfPKfPfi"]
    assert saxpy["params"] == [[0, 4], [8, 8], [16, 8], [24, 4]]
    assert set(second["entries"][0]["functions"]) == {"_Z5twicei", "_Z3owni"}


def test_filters() -> None:
    for arguments in (("--arch", "sm_90"), ("--arch", "sm_90a"), ("--arch", "90a")):
        result = run("ls", DATA / "size.fatbin", *arguments, "--format", "json")
        (found,) = json.loads(result.output)["files"][0]["entries"]
        assert found["arch"] == "sm_90a"
    result = run("ls", DATA / "size.fatbin", "--arch", "volta")
    assert result.exit_code == 2
    assert "SX0811" in result.output


def test_stdin() -> None:
    result = run("ls", "-", stdin=(DATA / "cuda13_sm_80.cubin").read_bytes())
    assert result.exit_code == 0
    assert result.output.startswith("<stdin>: cubin, 1 module\n")


def test_errors_do_not_hide_the_other_files(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"nothing")
    result = run("ls", broken, DATA / "ptx.fatbin", tmp_path / "absent")
    assert result.exit_code == 2
    assert "ptx   sm_80" in result.stdout
    assert result.stderr.splitlines() == [
        f"sassxlate: SX0102: {broken}:/*0000*/: no ELF file, fatbin, cubin or PTX: "
        "sassxlate reads ELF files, archives, fatbins and cubins",
        f"sassxlate: SX0101: {tmp_path / 'absent'}: cannot read the file: "
        "No such file or directory",
    ]


def test_a_broken_entry_does_not_hide_the_others(tmp_path: Path) -> None:
    good = (DATA / "cuda13_sm_80.cubin").read_bytes()
    path = tmp_path / "half.fatbin"
    path.write_bytes(container(entry(good), entry(good[:100])))
    result = run("ls", path, "-k", "nothing")
    assert result.exit_code == 2
    assert "unreadable: SX0106" in result.stdout
    assert "(in module 0 entry 1)" in result.stderr


def test_no_device_code(tmp_path: Path) -> None:
    path = tmp_path / "empty.fatbin"
    path.write_bytes(container())
    assert run("ls", path).exit_code == 0
    assert run("extract", path).exit_code == 1


def test_extract(tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    result = run("extract", DATA / "size.fatbin", "-o", out)
    assert result.exit_code == 0
    names = ["size.fatbin.0.0.sm_75.cubin", "size.fatbin.0.1.sm_75.ptx"]
    names.append("size.fatbin.0.2.sm_90a.cubin")
    assert result.output.splitlines() == [str(out / n) for n in names]
    assert sorted(p.name for p in out.iterdir()) == names
    entries = parse_fatbin((DATA / "size.fatbin").read_bytes()).entries
    assert (out / names[0]).read_bytes() == entries[0].payload
    assert parse_cubin((out / names[2]).read_bytes()).variant == "a"
    text = (out / names[1]).read_text()
    assert text.strip("\n\0") == entries[1].payload.decode().strip("\n\0")
    assert "\0" not in text


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        (("--kind", "ptx"), ["0.1.sm_75.ptx"]),
        (("--kind", "elf", "--arch", "sm_75"), ["0.0.sm_75.cubin"]),
        (("--arch", "sm_75", "-k", "ju*"), ["0.0.sm_75.cubin", "0.1.sm_75.ptx"]),
        (("-k", "_Z5saxpyfPKfPfi", "--kind", "ptx"), ["0.1.sm_75.ptx"]),
        (
            ("-k", "jump(int*, int, Mixed)", "--kind", "elf"),
            ["0.0.sm_75.cubin", "0.2.sm_90a.cubin"],
        ),
    ],
)
def test_extract_some(tmp_path: Path, arguments: tuple[str, ...], written: list[str]) -> None:
    result = run("extract", DATA / "size.fatbin", "-o", tmp_path, *arguments)
    assert result.exit_code == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"size.fatbin.{w}" for w in written]


def test_extract_nothing(tmp_path: Path) -> None:
    result = run("extract", DATA / "size.fatbin", "-o", tmp_path, "-k", "absent")
    assert result.exit_code == 1
    assert list(tmp_path.iterdir()) == []


def test_extract_to_stdout() -> None:
    result = run("extract", DATA / "size.fatbin", "-o", "-", "--kind", "ptx")
    assert result.exit_code == 0
    assert ".version" in result.output
    result = run("extract", DATA / "size.fatbin", "-o", "-")
    assert result.exit_code == 2
    assert "SX0812" in result.output


def test_extract_where_nothing_can_be_written(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    result = run("extract", DATA / "size.fatbin", "-o", blocked)
    assert result.exit_code == 2
    assert "SX0813" in result.output
