"""Strict mode on the emulated device: bounds, freed memory, undefined values, order, and
messages."""

from __future__ import annotations

import re
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .conftest import Script
from .hip_api import Hip
from .strict_kernels import code_object
from .test_real_kernels import CompilingService

Runner = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def kernels(hip: Hip, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The code object's file, with a service that compiles it."""
    directory = tmp_path_factory.mktemp("strict")
    made = CompilingService(directory)
    patch = pytest.MonkeyPatch()
    patch.setenv("SASSXLATE_SOCKET", str(made.path))
    patch.setenv("SASSXLATE_CACHE_TAG", "real")
    (directory / "k.hsaco").write_bytes(code_object())
    yield directory / "k.hsaco"
    patch.undo()


@pytest.fixture
def go(script: Script, kernels: Path) -> Runner:
    """Runs a script with ``run(kernel, out, at, grid)``; strict with a seed, or plain."""

    def start(body: str, seed: int | None = 1, **env: str) -> subprocess.CompletedProcess[str]:
        text = (
            f"m = hip.load(open({str(kernels)!r}, 'rb').read())\n"
            "def run(k, out, at, grid=1):\n"
            "    args = struct.pack('<QQ', out, at)\n"
            "    error = hip.launch(hip.function(m, k), grid, 32, args)\n"
            "    return error, hip.hipDeviceSynchronize()\n"
            "out = hip.malloc(128)\n"
        )
        if seed is not None:
            env = {**env, "SASSXLATE_STRICT": "1", "SASSXLATE_STRICT_SEED": str(seed)}
        done = script(text + body, **env)
        assert done.returncode == 0, done.stderr
        return done

    return start


def test_a_missing_wait_is_found_and_said(go: Runner) -> None:
    body = "print(run('copy', out, out), run('hasty', out, out))"
    assert go(body, None).stdout == "(0, 0) (0, 0)\n"
    done = go(body)
    assert done.stdout == "(0, 0) (0, 719)\n"
    line = (
        r"sassxlate: SX0667: kernel hasty: /\*(....)\*/ \[\w{8} \w{8}\] strict mode: v2 is used "
        r"before s_waitcnt vmcnt covers the load at /\*(....)\*/, lane 0 of wave 0, "
        r"workgroup \(0,0,0\), from SASS /\*0040\*/ LDG\.E R2, \[R2\.64\]\n"
    )
    found = re.fullmatch(line, done.stderr)
    assert found, done.stderr
    assert int(found[1], 16) == int(found[2], 16) + 8


@pytest.mark.parametrize(
    ("setup", "at", "text"),
    [
        ("", "small + 4", r" \(0 bytes past the end of the 128 bytes at 0x\w+\), lane 31 "),
        ("", "small + 4096", r" \(3968 bytes past the end of the 128 bytes at 0x\w+\), lane 0 "),
        ("", "small - 8", r" \(8 bytes before the 128 bytes at 0x\w+\), lane 0 |past the end"),
        ("hip.free(small); again = hip.malloc(128); assert again != small", "small",
         r" \(0 bytes into the freed 128 bytes at 0x\w+\), lane 0 "),
        ("hip.free(large); again = hip.malloc(5 << 20); assert again != large", "large + 64",
         r" \(64 bytes into the freed 5242880 bytes at 0x\w+\), lane 0 "),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kernel", ["copy", "write"])
def test_every_access_lies_in_one_live_allocation(
    go: Runner, setup: str, at: str, text: str, kernel: str
) -> None:
    body = f"small, large = hip.malloc(128), hip.malloc(5 << 20)\n{setup}\n"
    done = go(body + f"print(run({kernel!r}, out, out), run({kernel!r}, out, {at}))")
    assert done.stdout == "(0, 0) (0, 700)\n", done.stderr
    assert re.search(r"SX0661: .* illegal address 0x\w+.*" + text, done.stderr), done.stderr
    assert "from SASS /*0040*/ LDG.E" in done.stderr


def test_arguments_are_read_only(go: Runner) -> None:
    body = "print(run('write_arguments', out, out))"
    assert go(body, None).stdout == "(0, 0)\n"
    assert go(body).stdout == "(0, 700)\n"


def test_plain_faults_say_the_sass_too(go: Runner) -> None:
    done = go("print(run('copy', out, 64))", None)
    assert done.stdout == "(0, 700)\n"
    assert re.search(r"illegal address 0x40, lane 0 .* from SASS /\*0040\*/ LDG\.E", done.stderr)
    done = go("print(run('copy', out, out + 2))", None)
    assert done.stdout == "(0, 716)\n"
    assert re.search(r"SX0662: .* from SASS /\*0040\*/ LDG\.E", done.stderr)


@pytest.mark.parametrize("kernel", ["registers", "scalars", "shared", "private"])
def test_what_nobody_wrote_is_rubbish_of_the_seed(go: Runner, kernel: str) -> None:
    body = f"print(run({kernel!r}, out, out), hip.read(out, 128).hex())"
    seen = {seed: go(body, seed).stdout for seed in (1, 2)}
    assert all(text.startswith("(0, 0) ") for text in seen.values())
    assert go(body, 1).stdout == seen[1]
    assert seen[1] != seen[2]
    assert "00000000" not in seen[1]


def test_new_memory_is_rubbish_of_the_seed(go: Runner) -> None:
    body = "print(*(hip.read(hip.malloc(n), n)[-16:].hex() for n in (64, 4096, 3 << 20)))"
    first, again, other = (go(body, seed).stdout for seed in (1, 1, 2))
    assert first == again != other
    assert len(set(first.split())) == 3


def test_the_order_of_workgroups_is_the_seeds(go: Runner) -> None:
    body = (
        "n = 200; where, count = hip.malloc(4 * n), hip.malloc(4)\n"
        "hip.ok('hipMemset', c_void_p(count), 0, c_size_t(4))\n"
        "print(run('ticket', where, count, n)); print(*hip.words(where, n))"
    )
    orders = [go(body, seed, SASSXLATE_THREADS="1").stdout.splitlines()[1] for seed in (1, 2, 1)]
    assert orders[0] == orders[2] != orders[1]
    for order in orders:
        assert sorted(map(int, order.split())) == list(range(200))
        assert all(abs(int(t) - i) < 64 for i, t in enumerate(order.split()))
    plain = go(body, None, SASSXLATE_THREADS="1").stdout.splitlines()[1]
    assert plain.split() == [str(i) for i in range(200)]


def test_approximations_err_with_the_seed(go: Runner) -> None:
    body = (
        "hip.write(out, struct.pack('<32f', *(1.1 + i for i in range(32))))\n"
        "print(run('reciprocal', out, out), *hip.words(out, 32))"
    )
    arguments = struct.unpack("<32f", struct.pack("<32f", *(1.1 + i for i in range(32))))
    exact = list(struct.unpack("<32I", struct.pack("<32f", *(1 / x for x in arguments))))
    plain = list(map(int, go(body, None).stdout.split()[2:]))
    assert plain == exact
    seen = [list(map(int, go(body, seed).stdout.split()[2:])) for seed in (1, 2)]
    assert seen[0] != seen[1]
    for words in seen:
        assert words != exact
        assert all(abs(a - b) <= 1 for a, b in zip(words, exact, strict=True))
