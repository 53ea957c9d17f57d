"""Both tiers of the emulated device in the library: the same results, faults and counters, and the
change from one to the other while a kernel runs."""

from __future__ import annotations

import functools
import importlib.util
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from sassxlate.disasm.rdna3.codec.assemble import assemble
from sassxlate.disasm.rdna3.instruction import I, Inst, S, V
from sassxlate.errors import EmulatorError
from sassxlate.lowering.codeobject.code_object import KernelImage, write
from sassxlate.lowering.codeobject.source_map import UNALIGNED
from sassxlate.lowering.emulate.stencils import known
from sassxlate.lowering.target import DEFAULT
from sassxlate.runtime_shim.cache.keys import host_key
from sassxlate.runtime_shim.cache.store import seal

from .conftest import Script
from .hip_api import Hip
from .test_real_kernels import KERNELS, CompilingService, metadata

_RESULTS = """
m = hip.load(open({path!r}, 'rb').read())
out, counter = hip.malloc(4 * 256 * 40), hip.malloc(4)
x = hip.malloc(4 * 256 * 40)
hip.write(x, struct.pack('<10240f', *(float(i) for i in range(10240))))
for name, groups, threads, args in (
    ('saxpy', 40, 256, struct.pack('<QQQ', x, x, out)),
    ('reverse', 9, 256, struct.pack('<QQ', out, 0)),
    ('keep', 1, 64, struct.pack('<QQ', out, 0)),
    ('constant', 1, 32, struct.pack('<QQ', out, 0)),
    ('meet', 30, 32, struct.pack('<QQI', out, counter, 30)),
):
    hip.write(out, bytes(4 * 256 * 40))
    hip.write(counter, bytes(4))
    print(name, hip.launch(hip.function(m, name), groups, threads, args))
    print(hip.read(out, 4 * 256 * 40).hex())
"""
_FAULT = """
m = hip.load(open({path!r}, 'rb').read())
args = struct.pack('<QQ', hip.malloc(64), {value})
print(hip.launch(hip.function(m, {kernel!r}), 1, 32, args), hip.hipDeviceSynchronize())
"""


def _refused(_service: object, _request: object) -> dict[str, Any]:
    return {"ok": False, "line": "SX0690: no"}


def _no_pack(_shapes: object) -> bytes:
    raise EmulatorError("SX0690", "no stencils")


@functools.cache
def _pack_of(make: Callable[[Sequence[str]], bytes], shapes: tuple[str, ...]) -> bytes:
    return make(shapes)


class TieredService(CompilingService):
    """Makes packs of stencils, too."""

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["op"] != "stencils":
            return super()._answer(request)
        shapes: list[str] = request.get("shapes", [])
        path = self.directory / f"stencils-{len(self.requests)}.sxs"
        try:
            path.write_bytes(seal(path.name, _pack_of(known.pack_of, tuple(shapes))))
        except EmulatorError as error:
            return {"ok": False, "line": str(error)}
        return {"ok": True, "pack": str(path)}

    def asked(self, op: str) -> list[dict[str, Any]]:
        return [r for r in self.requests if r["op"] == op]


@pytest.fixture(scope="module")
def code_object(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("no ziglang to assemble with")
    directory = tmp_path_factory.mktemp("tiers")
    text = KERNELS.read_text()
    (directory / "k.s").write_text(text + metadata(text))
    for command in (
        ["cc", "-target", "amdgcn-amdhsa", "-mcpu=gfx1100", "-c", "k.s", "-o", "k.o"],
        ["ld.lld", "-shared", "k.o", "-o", "k.hsaco"],
    ):
        subprocess.run([sys.executable, "-m", "ziglang", *command], cwd=directory, check=True)
    return directory / "k.hsaco"


@pytest.fixture
def tiered(hip: Hip, tmp_path: Path) -> Iterator[TieredService]:
    patch = pytest.MonkeyPatch()
    made = TieredService(tmp_path)
    patch.setenv("SASSXLATE_SOCKET", str(made.path))
    patch.setenv("SASSXLATE_CACHE_DIR", str(tmp_path / "cache"))
    patch.setenv("SASSXLATE_CACHE_TAG", "tiered")
    yield made
    patch.undo()


def test_results(script: Script, tiered: TieredService, code_object: Path) -> None:
    body = _RESULTS.format(path=str(code_object))
    copied = script(body, SASSXLATE_TIER="baseline")
    assert not tiered.asked("compile")
    assert tiered.asked("stencils")
    compiled = script(body, SASSXLATE_TIER="llvm")
    assert len(tiered.asked("compile")) == 5
    assert copied.stdout == compiled.stdout
    assert copied.stderr == compiled.stderr == ""


@pytest.mark.parametrize(
    ("kernel", "value"),
    [
        ("wild", "0x40"), ("wild", "1 << 63"), ("wild_lds", "512"), ("wild_lds", "0xfffffff0"),
        ("wild_scratch", "64"), ("wild_scratch", "1 << 20"), ("trap", "0"),
    ],
)  # fmt: skip
def test_faults(
    script: Script, tiered: TieredService, code_object: Path, kernel: str, value: str
) -> None:
    body = _FAULT.format(path=str(code_object), kernel=kernel, value=value)
    copied = script(body, SASSXLATE_TIER="baseline")
    assert not tiered.asked("compile")
    compiled = script(body, SASSXLATE_TIER="llvm")
    assert copied.stdout == compiled.stdout
    assert copied.stdout.startswith("0 7")
    assert copied.stderr == compiled.stderr
    assert "SX066" in copied.stderr


@pytest.mark.parametrize("tier", ["baseline", "llvm"])
@pytest.mark.parametrize("marked", [False, True])
def test_accesses_at_any_byte(
    script: Script, tiered: TieredService, tmp_path: Path, tier: str, *, marked: bool
) -> None:
    """A code object's note says for which kernels an address need not be aligned."""
    items = [
        Inst("s_load_b64", (S(2, 2), S(0, 2))),
        Inst("v_mov_b32", (V(1), I(1))),
        Inst("v_mov_b32", (V(2), I(0x01020304))),
        Inst("v_mov_b32", (V(3), I(0x05060708))),
        Inst("s_waitcnt", (), 0),
        Inst("global_store_b64", (V(1), V(2, 2), S(2, 2)), 2),
        Inst("s_endpgm"),
    ]
    blocks = "blocks 0:0000\n"
    images = [
        KernelImage("other", assemble(items).data, 8, 16, 0, 0, 8, source=blocks),
        KernelImage(
            "subject", assemble(items).data, 8, 16, 0, 0, 8,
            source=(UNALIGNED if marked else "") + blocks,
        ),
    ]  # fmt: skip
    path = tmp_path / "subject.hsaco"
    path.write_bytes(write(images, DEFAULT))
    body = (
        f"m = hip.load(open({str(path)!r}, 'rb').read()); out = hip.malloc(64)\n"
        "hip.write(out, bytes(64))\n"
        "print(hip.launch(hip.function(m, 'subject'), 1, 1, struct.pack('<Q', out)))\n"
        "s = hip.hipDeviceSynchronize()\n"
        "print(s, hip.read(out, 16).hex() if not s else '')\n"
        "if not s: print(hip.launch(hip.function(m, 'other'), 1, 1, struct.pack('<Q', out)), "
        "hip.hipDeviceSynchronize())\n"
    )
    done = script(body, SASSXLATE_TIER=tier)
    if marked:  # the module's other kernel is held to CUDA's rule
        wanted = bytes(3) + struct.pack("<II", 0x01020304, 0x05060708) + bytes(5)
        assert done.stdout == f"0\n0 {wanted.hex()}\n0 716\n"
    else:
        assert done.stdout == "0\n716 \n"
    assert "SX0662" in done.stderr


def test_a_hot_kernel_is_compiled_while_it_runs(
    script: Script, tiered: TieredService, code_object: Path
) -> None:
    body = (
        f"m = hip.load(open({str(code_object)!r}, 'rb').read()); out = hip.malloc(4 * 256 * 90)\n"
        f"made = {str(tiered.directory / 'reverse-False.sxh')!r}\n"
        "f = hip.function(m, 'reverse'); end = time.time() + 25; after = 0\n"
        "while after < 200 and time.time() < end:\n"
        "    hip.write(out, bytes(4 * 256))\n"
        "    assert hip.launch(f, 90, 256, struct.pack('<QQ', out, 0)) == 0\n"
        "    assert hip.words(out, 256) == list(range(255, -1, -1))\n"
        "    after += os.path.exists(made)\n"
        "print(after)\n"
    )
    done = script(body, timeout=120, SASSXLATE_TIER="auto")
    assert (done.stdout, done.stderr) == ("200\n", "")
    (asked,) = tiered.asked("compile")
    assert asked["background"] is True


def test_a_compiler_that_refuses_changes_nothing(
    script: Script, tiered: TieredService, code_object: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CompilingService, "_answer", _refused)
    body = (
        f"m = hip.load(open({str(code_object)!r}, 'rb').read()); out = hip.malloc(4 * 256 * 90)\n"
        "f = hip.function(m, 'reverse')\n"
        "for i in range(400):\n"
        "    assert hip.launch(f, 90, 256, struct.pack('<QQ', out, 0)) == 0\n"
        "print(hip.words(out, 256) == list(range(255, -1, -1)))\n"
    )
    done = script(body, timeout=120, SASSXLATE_TIER="auto")
    assert (done.stdout, done.stderr) == ("True\n", "")
    assert len(tiered.asked("compile")) == 1


def test_without_stencils_kernels_are_compiled(
    script: Script, tiered: TieredService, code_object: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known, "pack_of", _no_pack)
    body = _FAULT.format(path=str(code_object), kernel="constant", value="0")
    for tier, code in (("auto", ""), ("baseline", "SX0696")):
        done = script(body, SASSXLATE_TIER=tier)
        assert done.stdout == "0 0\n"
        assert bool(code) == bool(done.stderr)
        assert code in done.stderr


class StoppingService(TieredService):
    """Its compiler is stopped at every kernel that is to be optimised."""

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["op"] != "compile" or request.get("quick"):
            return super()._answer(request)
        return {"ok": False, "cuda_error": 999, "slow": True, "line": "SX0914: stopped"}


@pytest.fixture
def stopping(hip: Hip, tmp_path: Path) -> Iterator[StoppingService]:
    patch = pytest.MonkeyPatch()
    made = StoppingService(tmp_path)
    patch.setenv("SASSXLATE_SOCKET", str(made.path))
    patch.setenv("SASSXLATE_CACHE_DIR", str(tmp_path / "cache"))
    patch.setenv("SASSXLATE_CACHE_TAG", "tiered")
    yield made
    patch.undo()


def _mark_slow(tmp_path: Path, code_object: Path, kernel: str, *, strict: bool) -> Path:
    folder = tmp_path / "cache" / "host" / "tiered"
    folder.mkdir(parents=True, exist_ok=True)
    mark = folder / f"{host_key(code_object.read_bytes(), kernel, strict)}.slow"
    mark.write_bytes(seal(mark.name, b"the compiler was stopped after 1 s"))
    return mark


def test_a_stopped_compiler_ends_the_optimisation_not_the_kernel(
    script: Script, stopping: StoppingService, code_object: Path
) -> None:
    """The baseline's code, and what the compiler makes without optimisation where there is none:
    both compute what optimised code does."""
    body = _RESULTS.format(path=str(code_object))
    copied = script(body, SASSXLATE_TIER="llvm")
    assert not [r for r in stopping.asked("compile") if r.get("quick")]
    line = "SX0914: stopped; it runs the baseline tier's code\n"
    assert copied.stderr.count(line) == 5
    known.pack_of, packs = _no_pack, known.pack_of
    try:
        plain = script(body, SASSXLATE_TIER="llvm", SASSXLATE_CACHE_DIR=str(stopping.directory))
    finally:
        known.pack_of = packs
    assert len([r for r in stopping.asked("compile") if r.get("quick")]) == 5
    line = "SX0914: stopped; it runs code that is not optimised\n"
    assert plain.stderr.count(line) == 5
    reference = script(body, SASSXLATE_TIER="baseline")
    assert reference.stderr == ""
    assert copied.stdout == plain.stdout == reference.stdout


def test_strict_code_without_optimisation(
    script: Script, stopping: StoppingService, code_object: Path
) -> None:
    """Strict mode has no other tier; its checks are those of optimised code."""
    body = _RESULTS.format(path=str(code_object)) + _FAULT.format(
        path=str(code_object), kernel="wild_lds", value="512"
    )
    quick = script(body, SASSXLATE_STRICT="1")
    assert not stopping.asked("stencils")
    assert quick.stderr.count("it runs code that is not optimised") == 6
    assert "SX0664: kernel wild_lds" in quick.stderr
    stopping.requests.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(StoppingService, "_answer")
        full = script(body, SASSXLATE_STRICT="1")
    assert not [r for r in stopping.asked("compile") if r.get("quick")]
    assert quick.stdout == full.stdout
    assert quick.stderr.splitlines()[-1] == full.stderr.splitlines()[-1]


def test_a_known_verdict_is_not_asked_for_again(
    script: Script, stopping: StoppingService, code_object: Path, tmp_path: Path
) -> None:
    _mark_slow(tmp_path, code_object, "wild_lds", strict=False)
    body = _FAULT.format(path=str(code_object), kernel="wild_lds", value="0")
    for tier in ("llvm", "auto"):
        done = script(body, SASSXLATE_TIER=tier)
        assert done.stdout == "0 0\n"
        assert done.stderr == ""
    assert not stopping.asked("compile")
    _mark_slow(tmp_path, code_object, "wild_lds", strict=True)
    done = script(body, SASSXLATE_STRICT="1")
    assert (done.stdout, done.stderr) == ("0 0\n", "")
    assert [r.get("quick") for r in stopping.asked("compile")] == [True]


_SHORT = """
m = hip.load(open({path!r}, 'rb').read()); out = hip.malloc(4 * 256 * 90)
f = hip.function(m, 'reverse')
for i in range(80):
    assert hip.launch(f, 90, 256, struct.pack('<QQ', out, 0)) == 0
print(hip.words(out, 256) == list(range(255, -1, -1)))
end = time.time() + {wait}
while time.time() < end and not os.path.exists({made!r}):
    time.sleep(0.01)
"""


def _warmth(tmp_path: Path, code_object: Path) -> Path:
    folder = tmp_path / "cache" / "host" / "tiered"
    folder.mkdir(parents=True)
    return folder / f"{host_key(code_object.read_bytes(), 'reverse', False)}.warm"


def test_short_runs_together_make_a_kernel_hot(
    script: Script,
    tiered: TieredService,
    code_object: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each executes 0.58 of what makes a kernel hot, which is 18 of 32 parts: the second begins
    with those, and adds 13 before the compiler is asked."""
    warmth, asked = _warmth(tmp_path, code_object), tmp_path / "asked"

    def note(service: object, request: object) -> dict[str, Any]:
        asked.touch()
        return _refused(service, request)

    monkeypatch.setattr(CompilingService, "_answer", note)
    for wait, size, compiled in ((0, 18, 0), (20, 31, 1)):
        body = _SHORT.format(path=str(code_object), made=str(asked), wait=wait)
        done = script(body, SASSXLATE_TIER="auto")
        assert (done.stdout, done.stderr) == ("True\n", "")
        assert (warmth.stat().st_size, len(tiered.asked("compile"))) == (size, compiled)
    assert warmth.stat().st_mode & 0o777 == 0o600


def test_how_warm_a_kernel_is_goes_through_no_link(
    script: Script, tiered: TieredService, code_object: Path, tmp_path: Path
) -> None:
    warmth, other = _warmth(tmp_path, code_object), tmp_path / "other"
    other.write_bytes(bytes(64))
    warmth.symlink_to(other)
    done = script(_SHORT.format(path=str(code_object), made="/", wait=0), SASSXLATE_TIER="auto")
    assert (done.stdout, done.stderr) == ("True\n", "")
    assert other.read_bytes() == bytes(64)
    assert not tiered.asked("compile")


_UPPER_HALVES = """
#include <stdint.h>
extern "C" int upper_halves(int (*wait)(), uint64_t *found) {{
  uint64_t halves[32];
  int status = wait();
  asm volatile({text} :: "r"(halves) : "memory");
  for (int i = 0; i < 32; ++i) *found |= halves[i];
  return status;
}}
"""


@pytest.mark.parametrize("tier", ["baseline", "llvm"])
def test_an_applications_thread_has_no_upper_halves(
    script: Script, tiered: TieredService, code_object: Path, tmp_path: Path, tier: str
) -> None:
    """Waves run in the thread that waits.  Values in the upper halves of its vector registers
    would make each of its SSE instructions wait for the last one."""
    text = "".join(rf'"vextractf128 $1, %%ymm{i}, {16 * i}(%0)\n"' for i in range(16))
    source, made = tmp_path / "halves.cpp", tmp_path / "halves.so"
    source.write_text(_UPPER_HALVES.format(text=text))
    subprocess.run(["g++", "-O1", "-shared", "-fPIC", "-o", made, source], check=True)
    body = (
        f"m = hip.load(open({str(code_object)!r}, 'rb').read()); x = hip.malloc(4 * 10240)\n"
        "hip.write(x, struct.pack('<10240f', *(1.5 * i for i in range(10240))))\n"
        f"halves = ctypes.CDLL({str(made)!r}).upper_halves; found = ctypes.c_uint64()\n"
        "wait = ctypes.cast(hip.hipDeviceSynchronize, c_void_p)\n"
        "f, args = hip.function(m, 'saxpy'), struct.pack('<QQQ', x, x, hip.malloc(4 * 10240))\n"
        "for _ in range(40):\n"
        "    assert hip.launch(f, 40, 256, args) == 0\n"
        "    assert halves(wait, byref(found)) == 0\n"
        "print(hex(found.value))\n"
    )
    done = script(body, SASSXLATE_TIER=tier)
    assert (done.stdout, done.stderr) == ("0x0\n", "")
