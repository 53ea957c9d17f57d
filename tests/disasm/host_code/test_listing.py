"""`disasm --host`: the x86-64 code of host programs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from sassxlate.cli import cli
from sassxlate.cli.disasm import command
from sassxlate.disasm.containers.elf import Elf
from sassxlate.disasm.host_code import host_graph
from sassxlate.disasm.host_code.listing import HostFunction, host_functions
from sassxlate.runtime_shim.static_runtime import functions_of

ROOT = Path(__file__).resolve().parents[3]
SAXPY = ROOT / "fixtures" / "programs" / "saxpy"
CUBIN = ROOT / "fixtures" / "kernels" / "sm_80" / "early_exit.cubin"
KERNEL = "saxpy(int, float, float const*, float*)"


def _functions(data: bytes, *patterns: str) -> list[HostFunction]:
    elf = Elf(data)
    return [*host_functions(elf, host_graph(elf, *functions_of(elf)), patterns)]


@pytest.fixture(scope="module")
def functions() -> list[HostFunction]:
    return _functions(SAXPY.read_bytes(), "main", "*saxpy*")


def test_what_instructions_refer_to(functions: list[HostFunction]) -> None:
    main, stub = functions
    assert (main.demangled, main.kernel, stub.kernel) == ("main", "", KERNEL)
    notes = [line.note for line in main.lines]
    assert "strtol" in notes  # through the PLT
    assert "cudaGetLastError" in notes  # of the recognised runtime, which has no symbols
    (launch,) = (n for n in notes if "launches" in n)
    assert re.fullmatch(rf"sub_[0-9a-f]+, launches {re.escape(KERNEL)}", launch)
    assert any(n.startswith('"') and n.endswith('\\n"') for n in notes)
    assert stub.lines[0].address == stub.address
    name = re.fullmatch(r"sub_([0-9a-f]+), .*", launch)
    (called,) = _functions(SAXPY.read_bytes(), name[0].partition(",")[0] if name else "")
    assert f"__cudaLaunchKernel, launches {KERNEL}" in [line.note for line in called.lines]


def test_instructions_as_objdump_cuts_them(functions: list[HostFunction]) -> None:
    """Each function's bytes follow each other; GNU objdump, with a decoder of its own, agrees
    where they are cut and on the mnemonics."""
    at = 0
    for function in reversed(functions):
        at = function.address
        for line in function.lines:
            assert line.address == at
            at += len(line.code)
    objdump = shutil.which("objdump")
    if objdump is None:
        pytest.skip("there is no objdump here")
    main = functions[0]
    limits = [f"--start-address={main.address}", f"--stop-address={at}"]
    asked = [objdump, "-d", "-w", "-Mintel", *limits, str(SAXPY)]
    text = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^ *([0-9a-f]+):\t((?:[0-9a-f]{2} )+) *\t(\w+)", text, re.M)
    theirs = [(int(at, 16), bytes.fromhex(code), name) for at, code, name in found]
    ours = [(line.address, line.code, line.text.split(" ")[0]) for line in main.lines]
    assert [(a, c) for a, c, _ in theirs] == [(a, c) for a, c, _ in ours]
    assert [n for *_, n in theirs if n not in ("cs", "data16")] == [n for *_, n in ours]


def test_bytes_that_are_no_instruction(functions: list[HostFunction]) -> None:
    main = functions[0]
    data = bytearray(SAXPY.read_bytes())
    place = data.index(b"".join(line.code for line in main.lines))
    data[place] = 0x06  # PUSH ES, which 64-bit mode does not have
    (damaged,) = _functions(bytes(data), "main")
    assert damaged.lines[0].text == ".byte 0x06"
    assert damaged.lines[1].address == main.address + 1
    assert damaged.lines[-10:] == main.lines[-10:]


def test_command() -> None:
    shown = CliRunner().invoke(command, [str(SAXPY), "--host", "-k", "saxpy"])
    first, second = shown.stdout.splitlines()[:2]
    assert re.fullmatch(r"[0-9a-f]{16} <sub_[0-9a-f]+>:  # stub of " + re.escape(KERNEL), first)
    assert re.fullmatch(r" +[0-9a-f]+: endbr64|.*: (push|sub|mov|lea) .*", second)
    words = [str(SAXPY), "--host", "-k", "main", "--format", "json"]
    (main,) = json.loads(CliRunner().invoke(command, words).stdout)["functions"]
    assert main["instructions"][0]["bytes"] == "4157"


@pytest.mark.parametrize("words", [("disasm", "-k", "main"), ("callgraph", "-k", "saxpy")])
def test_standard_input(words: tuple[str, ...]) -> None:
    name, *options = words
    given = CliRunner().invoke(cli, [name, "-", "--host", *options], input=SAXPY.read_bytes())
    named = CliRunner().invoke(cli, [name, str(SAXPY), "--host", *options])
    assert given.exit_code == named.exit_code == 0
    assert given.stdout.replace("// -:", f"// {SAXPY}:") == named.stdout
    empty = CliRunner().invoke(cli, [name, "-", "--host", *options], input=b"")
    said = "sassxlate: SX0103: <stdin>:/*0000*/: no ELF file\n"
    assert (empty.exit_code, empty.stderr) == (2, said)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((str(CUBIN), "--host"), "SX0890"),
        ((str(SAXPY), "--host", "-k", "nothing"), "SX0802"),
        ((str(SAXPY), "--host", "--arch", "sm_80"), "--host goes with"),
        ((str(SAXPY), "--host", "--live"), "--host goes with"),
    ],
)
def test_refusals(words: tuple[str, ...], said: str) -> None:
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 2 or said in str(done.exception)
    assert said in done.output + str(done.exception)
