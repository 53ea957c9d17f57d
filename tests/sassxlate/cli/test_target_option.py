"""``--target``: one option wherever code is made, and each command makes code for it."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from sassxlate.cli import cli, doctor
from sassxlate.cli.options import target_option
from sassxlate.disasm.amdgpu_machines import CODE_FOR, RDNA3
from sassxlate.disasm.rdna3.instruction import Item
from sassxlate.errors import LoweringError, SassxlateError
from sassxlate.lowering import pipeline
from sassxlate.lowering.codeobject.code_object import KernelImage, read
from sassxlate.lowering.target import DEFAULT, GFX1102, Target
from sassxlate.lowering.verify.block.from_text import block_of, read_texts
from sassxlate.runtime_shim import paths
from sassxlate.runtime_shim.hip_probe import Found

ROOT = Path(__file__).resolve().parents[3]
CUBIN = ROOT / "fixtures" / "kernels" / "sm_90" / "early_exit.cubin"
OTHER = GFX1102.name
BUFFERS = 3 * ("--arg", "buf:4k")
COMMANDS = {
    "translate", "run", "verify blocks", "verify kernels", "verify rules", "verify launches",
    "verify text", "trace", "diff", "selftest", "doctor", "bench translate",
    "bench codegen", "bench cold", "bench peers", "bench programs", "bench hybrid",
    "bench engines", "warm", "cache export", "cache import",
}  # fmt: skip


def commands(group: click.Group, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield prefix + name, command
        if isinstance(command, click.Group):
            yield from commands(command, f"{prefix}{name} ")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(a) for a in arguments])


def test_one_definition() -> None:
    @click.command()
    @target_option
    def model(target: str) -> None:
        del target

    (wanted,) = (p for p in model.params if p.name == "target")
    found = {
        name: option
        for name, command in commands(cli)
        for option in command.params
        if "--target" in option.opts
    }
    several = found.pop("embed")  # may repeat
    assert several.multiple
    assert isinstance(several.type, click.Choice)
    assert tuple(several.type.choices) == RDNA3
    assert set(found) == COMMANDS
    for name, option in found.items():
        assert option.to_info_dict() == wanted.to_info_dict(), name
    assert isinstance(wanted.type, click.Choice)
    assert tuple(wanted.type.choices) == CODE_FOR
    assert wanted.envvar == "SASSXLATE_TARGET"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The targets of all code objects that are written in this process."""
    seen: list[str] = []
    write = pipeline.write_code_object

    def spy(kernels: Sequence[KernelImage], target: Target, *more: Any) -> bytes:
        seen.append(target.name)
        return write(kernels, target, *more)

    monkeypatch.setattr(pipeline, "write_code_object", spy)
    return seen


@pytest.mark.parametrize(
    "arguments",
    [
        ("diff", "--against", "rdna3", CUBIN),
        (
            "trace",
            CUBIN,
            "-k",
            "early_exit",
            "--limit",
            "1",
            *3 * ("--arg", "buf:4k"),
            "--arg",
            "u32:5",
        ),
        ("doctor",),
    ],
    ids=lambda a: a[0],
)
def test_a_command_translates_for_it(arguments: tuple[object, ...], made: list[str]) -> None:
    for target in (OTHER, DEFAULT.name):
        made.clear()
        result = run(*arguments, "--target", target)
        assert set(made) == {target}, result.output


def test_verify_proves_the_code_of_it(made: list[str]) -> None:
    pytest.importorskip("z3", reason="z3-solver is not installed")
    result = run("verify", "blocks", CUBIN, "-j", "1", "--target", OTHER)
    assert (result.exit_code, set(made)) == (0, {OTHER}), result.output


def test_rules_are_verified_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("z3", reason="z3-solver is not installed")
    from sassxlate.lowering.verify.rules import one_instruction

    seen: set[str] = set()
    made_safe = one_instruction.made_safe

    def spy(items: Sequence[Item], target: Target) -> list[Item]:
        seen.add(target.name)
        return made_safe(items, target)

    monkeypatch.setattr(one_instruction, "made_safe", spy)
    result = run(
        "verify",
        "rules",
        "-j",
        "1",
        "--words",
        "1",
        "--combinations",
        "0",
        "NOP",
        "MOV",
        "--target",
        OTHER,
    )
    assert (result.exit_code, seen) == (0, {OTHER}), result.output


def test_a_block_of_text_has_its_registers(tmp_path: Path) -> None:
    pytest.importorskip("z3", reason="z3-solver is not installed")
    path = next((ROOT / "tests" / "lowering" / "verify" / "proved").glob("*.toml"))
    assert run("verify", "text", path, "--target", OTHER).output.startswith("proved")
    texts = read_texts(path.read_text())
    assert block_of(texts, GFX1102).regs.target is GFX1102
    few = replace(GFX1102, sgprs=1)
    with pytest.raises(LoweringError, match="SX0442"):
        block_of(replace(texts, live="s1"), few)


def test_diff_of_two_files_translates_nothing() -> None:
    result = run("diff", CUBIN, CUBIN, "--target", OTHER)
    assert result.exit_code == 2
    assert "SX0840" in result.output


def test_doctor_names_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[str] = []

    def find(target: str) -> Found:
        asked.append(target)
        return Found("libamdhip64.so.6", "")

    kfd = tmp_path / "kfd"
    kfd.touch()
    monkeypatch.setattr(doctor, "_KFD", str(kfd))
    monkeypatch.setattr(doctor, "find_hip", find)
    answer = json.loads(run("doctor", "--format", "json", "--target", OTHER).output)
    (hip,) = (c for c in answer["checks"] if c["name"] == "AMD HIP")
    assert hip["detail"].startswith(f"libamdhip64.so.6 takes {OTHER} code; ")
    assert asked == [OTHER]


def test_selftest_is_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The device is that processor, which refuses the code of others, and so is all code."""
    try:
        paths.library_dir()
    except SassxlateError:
        pytest.skip("the native libraries are not built")
    monkeypatch.setenv("SASSXLATE_CACHE_DIR", str(tmp_path / "cache"))
    output = tmp_path / "report.zip"
    fixtures = ("--only", "kernel/early_exit/sm_80", "--only", "instructions/scalar/0")
    result = run("selftest", "--device", "emulator", "--target", OTHER, "-o", output, *fixtures)
    assert result.exit_code == 0, result.output
    with zipfile.ZipFile(output) as archive:
        report = json.loads(archive.read("report.json"))
        code = archive.read("code/kernel-early_exit-sm_80/early_exit.hsaco")
    assert report["counts"] == {"pass": 2}
    assert report["target"] == OTHER
    assert report["hip"]["name"].startswith(OTHER)
    assert read(code).target is GFX1102


def test_codegen_keeps_the_page_of_the_default() -> None:
    for option in ("--bless", "--check"):
        result = run("bench", "codegen", option, "--target", OTHER)
        assert result.exit_code == 2
        assert "SX0831" in result.output
