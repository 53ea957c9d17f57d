"""`sassxlate doctor FILE`: the CUDA runtime of a file, as the preloaded library recognises it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from sassxlate.cli import cli
from sassxlate.runtime_shim.static_runtime import runtime_of, signatures
from tools.generate import programs

ROOT = Path(__file__).resolve().parents[2]


def stripped(path: Path, folder: Path) -> Path:
    """A copy without symbols."""
    if shutil.which("strip") is None:
        pytest.skip("no strip")
    out = folder / path.name
    subprocess.run(["strip", "-o", str(out), str(path)], check=True)
    return out


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with the static runtime of nvcc's release; skips where there is no nvcc."""
    try:
        toolkit = programs.find_toolkit()
    except programs.BuildError as error:
        pytest.skip(str(error))
    out = tmp_path_factory.mktemp("runtime") / "saxpy"
    return programs.build_program(programs.load_programs()["saxpy"], out, [80], toolkit=toolkit)


def test_every_signature_is_read() -> None:
    files = list((ROOT / "runtime_shim" / "signatures").glob("*.sig"))
    assert len(signatures()) == len(files) >= 9
    for signature in signatures():
        ends = [end for _, end in signature.masks]
        assert ends == sorted(ends)
        assert ends[-1] <= signature.length


def test_a_static_runtime_is_known_by_its_code(static: Path, tmp_path: Path) -> None:
    found = runtime_of(stripped(static, tmp_path))
    assert found.state == "known"
    assert found.text.startswith("statically linked CUDA runtime 13.0")


def test_stubs_of_the_runtime_are_no_runtime(tmp_path: Path, gxx: Callable[..., str]) -> None:
    """`run` leaves such a library alone, as XLA's; doctor called its runtime unknown."""
    source, library = tmp_path / "stubs.cpp", tmp_path / "libstubs.so"
    source.write_text("""\
#include <dlfcn.h>
__attribute__((section(".nvFatBinSegment"), used)) static int wrapper[6];
extern "C" int cudaMalloc(void **out, unsigned long size) {
  static void *runtime = dlopen("libcudart.so", RTLD_NOW);
  return reinterpret_cast<int (*)(void **, unsigned long)>(dlsym(runtime, "cudaMalloc"))(out, size);
}
""")
    gxx("-shared", "-fPIC", source, "-o", library)
    assert runtime_of(library).state == "none"
    assert "no runtime" in runtime_of(library).text
    (tmp_path / "stripped").mkdir()
    assert runtime_of(stripped(library, tmp_path / "stripped")).state == "unknown"


def test_one_other_byte_is_another_release(static: Path, tmp_path: Path) -> None:
    """Without symbols it is unknown, with symbols it is found by them."""
    for path, state in ((stripped(static, tmp_path), "unknown"), (static, "known")):
        data = bytearray(path.read_bytes())
        signature = next(s for s in signatures() if s.release.startswith("13.0"))
        start = _block(data, signature.anchor, signature.hash)
        place = next(end for _, end in signature.masks if end > 0x1000)
        data[start + place] ^= 1
        other = tmp_path / f"other-{state}"
        other.write_bytes(bytes(data))
        found = runtime_of(other)
        assert found.state == state, found.text
        if state == "unknown":
            assert "unknown release (known: 11.7.99, 11.8.89, 11.8, 12.0.107," in found.text


def _block(data: bytearray, anchor: int, wanted: int) -> int:
    """Where the runtime begins in a file, by the generator's own hash."""
    from tools.generate.cudart_signatures import window_hash

    at = next(
        at
        for at in range(0, len(data) - 32, 16)
        if window_hash(bytes(data[at : at + 32])) == wanted
    )
    return at - anchor


def test_files_without_a_runtime_and_bad_files(tmp_path: Path) -> None:
    """Each file has its line, whatever the others are."""
    bad = tmp_path / "wheel.whl"
    bad.write_bytes(b"PK\x03\x04")
    arm = tmp_path / "arm.so"
    head = bytearray(Path(sys.executable).resolve().read_bytes())
    head[18:20] = (183).to_bytes(2, "little")
    arm.write_bytes(bytes(head))
    windows = tmp_path / "cudart64_13.dll"
    windows.write_bytes(b"MZ" + bytes(100))
    files = [sys.executable, str(bad), str(windows), str(arm), "absent.so"]
    done = CliRunner().invoke(cli, ["doctor", *files])
    lines = [line for line in done.output.splitlines() if not line.lstrip().startswith("->")]
    assert [line.split()[0] for line in lines] == ["ok", *["missing"] * 4]
    texts = (
        "no CUDA runtime", "SX0102.*name a library in it", "SX0102.*Windows",
        "SX0105.*code for AArch64", "SX0101",
    )  # fmt: skip
    for line, text in zip(lines, texts, strict=True):
        assert re.search(text, line)
    assert done.exit_code == 1
    assert "explain SX0105" in done.output  # not the code of an unknown runtime


@pytest.mark.parametrize("kind", ["a wheel", "Windows", "AArch64"])
@pytest.mark.parametrize("command", ["run", "ls", "translate"])
def test_files_of_another_platform(tmp_path: Path, command: str, kind: str) -> None:
    """One line with a code, the documented status, and nothing written."""
    head = bytearray(Path(sys.executable).resolve().read_bytes()[:4096])
    head[18:20] = (183).to_bytes(2, "little")
    data = {"a wheel": b"PK\x03\x04" + bytes(60), "Windows": b"MZ" + bytes(100), "AArch64": head}
    file, out = tmp_path / "file", tmp_path / "out"
    file.write_bytes(data[kind])
    file.chmod(0o755)
    more = ["-o", str(out)] if command == "translate" else []
    done = CliRunner().invoke(cli, [command, str(file), *more])
    code = {"AArch64": "SX0105"}.get(kind, "SX0102")
    if command == "run":
        code = {"AArch64": "SX0703"}.get(kind, "SX0702")
    assert done.exit_code == (126 if command == "run" else 2)
    assert re.fullmatch(rf"sassxlate: {code}: .+", done.output.strip()), done.output
    assert not out.exists()


def test_a_shared_runtime(tmp_path: Path) -> None:
    try:
        toolkit = programs.find_toolkit()
    except programs.BuildError as error:
        pytest.skip(str(error))
    out = programs.build_program(
        programs.load_programs()["saxpy"],
        tmp_path / "saxpy",
        [80],
        cudart="shared",
        toolkit=toolkit,
    )
    assert runtime_of(out).text == "libcudart.so.13: replaced"
