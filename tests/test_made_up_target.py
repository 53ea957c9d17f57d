"""A made-up processor, added to a copy of the packages as docs/how-to/add-a-target.md says.

With the page's two edits it is an option, its code is written, read, printed, proved and run.  The
third file of the page, the native emulated device's table, is compared in lowering/test_target.py.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sassxlate.disasm.amdgpu_machines import MACHINES, RDNA3
from sassxlate.errors import EncodeError
from sassxlate.lowering.codeobject.code_object import read
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.target import TARGETS
from tests.lowering import emulated

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "how-to" / "add-a-target.md").read_text("utf-8")
NAME, NUMBER = "gfx1199", 0x7E
KERNEL = ROOT / "fixtures" / "kernels" / "sm_90" / "double_math.cubin"

# What a user of the packages can do, with the name alone.
USE = f"""
from sassxlate.lowering.codeobject.code_object import read
from sassxlate.lowering.target import target_named
from sassxlate.runtime_shim.cache.tag import cache_tag
from tests.lowering import emulated

target = target_named("{NAME}")
done = emulated.check(emulated.load("double_math", 90), "double_math", target=target, strict=True)
assert read(done.code_object).target is target
assert done.launch.max_threads <= target.most_threads(done.report.vgprs)
assert cache_tag(target.name) != cache_tag("gfx1100")
print(target.machine, target.waves_of_simd(100))
"""


def inserted(text: str, before: str, new: str) -> str:
    assert text.count(before) == 1, before
    return text.replace(before, new + before)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the packages with the page's edits; other files are links."""
    root = tmp_path_factory.mktemp("checkout")
    (root / "sassxlate").mkdir()
    for entry in (ROOT / "sassxlate").iterdir():
        if entry.name not in ("disasm", "lowering", "__pycache__"):
            (root / "sassxlate" / entry.name).symlink_to(entry.resolve())
    for package in ("disasm", "lowering"):
        to = root / "sassxlate" / package
        shutil.copytree(ROOT / package, to, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("tests", "fixtures", "tools"):
        (root / name).symlink_to(ROOT / name)

    machines = root / "sassxlate" / "disasm" / "amdgpu_machines.py"
    text = inserted(machines.read_text(), "})  # fmt: skip", f'    {NUMBER:#x}: "{NAME}",\n')
    text = text.replace(f'"{RDNA3[-1]}")  #', f'"{RDNA3[-1]}", "{NAME}")  #')
    machines.write_text(text)

    (line,) = re.findall(rf'^ +(GFX\d+: Final = Target\("{NAME}".*)$', PAGE, re.MULTILINE)
    targets = root / "sassxlate" / "lowering" / "target.py"
    text = inserted(targets.read_text(), "\nTARGETS: Final", f"{line}\n")
    text = inserted(text, "\n    )\n})", f" {line.partition(':')[0]},")
    targets.write_text(text)
    return root


def started(copy: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(copy), "SASSXLATE_CACHE_DIR": str(copy / "cache")},
        capture_output=True, text=True, check=False, cwd=copy,
    )  # fmt: skip


def command(copy: Path, *arguments: object) -> str:
    done = started(copy, "-m", "sassxlate", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_nothing_knows_it_without(copy: Path, tmp_path: Path) -> None:
    assert NAME not in (*RDNA3, *MACHINES.values(), *TARGETS)
    assert NUMBER not in MACHINES
    command(copy, "translate", "--target", NAME, KERNEL, "-o", tmp_path)
    with pytest.raises(EncodeError, match=r"SX0531.*machine 0x7e, not gfx1100"):
        read((tmp_path / "double_math.sm_90.hsaco").read_bytes())


def test_it_is_translated_and_read(copy: Path, tmp_path: Path) -> None:
    assert NAME in command(copy, "translate", "--help")
    command(copy, "translate", "--target", NAME, KERNEL, "-o", tmp_path)
    file = tmp_path / "double_math.sm_90.hsaco"
    data = file.read_bytes()
    assert int.from_bytes(data[48:52], "little") == NUMBER
    assert f"amdgcn-amd-amdhsa--{NAME}".encode() in data
    usual = translate_kernel(emulated.load("double_math", 90), "double_math")
    assert usual.program.data in data
    listed = command(copy, "disasm", file)
    assert listed.count("\n") > usual.report.rdna_instructions


def test_it_is_run_in_strict_mode(copy: Path) -> None:
    done = started(copy, "-c", USE)
    assert done.returncode == 0, done.stderr
    # Of 1,024 VGPRs, given by 16, a wave with 100 has 112.
    assert done.stdout.split() == [str(NUMBER), "9"]


def test_it_is_proved(copy: Path) -> None:
    pytest.importorskip("z3", reason="z3-solver is not installed")
    small = KERNEL.with_name("early_exit.cubin")
    assert "refuted" not in command(copy, "verify", "blocks", "--target", NAME, "--no-cache", small)


def test_the_page_names_the_files() -> None:
    for file in re.findall(r"\*\*`([\w/.]+)`\*\*", PAGE):
        assert (ROOT / file).is_file()
    assert re.findall(r"\*\*`([\w/.]+)`\*\*", PAGE) == [
        "disasm/amdgpu_machines.py", "lowering/target.py", "runtime_shim/native/hip/target.h"
    ]  # fmt: skip
