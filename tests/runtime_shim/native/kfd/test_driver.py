"""The emulated card's driver without AMD's libraries: a client of its own opens /dev/kfd."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sassxlate.disasm.rdna3 import assemble
from sassxlate.disasm.rdna3.codec.text.parse import parse
from sassxlate.lowering.codeobject.code_object import KernelImage, read, write
from sassxlate.lowering.target import target_named
from sassxlate.runtime_shim import emulated_card
from sassxlate.runtime_shim.cache.tag import cache_tag
from sassxlate.runtime_shim.service.client import import_root

HERE = Path(__file__).parent
TARGET = target_named("gfx1100")
# Each lane stores its number: out[workgroup * 32 + lane].
STORE = """
s_load_b64 s[2:3], s[0:1], null
v_and_b32_e32 v0, 0x3ff, v0
v_lshl_or_b32 v0, s13, 5, v0
v_lshlrev_b32_e32 v1, 2, v0
s_waitcnt lgkmcnt(0)
global_store_b32 v1, v0, s[2:3]
s_endpgm
"""
Client = Callable[..., tuple[Any, str]]

# Bits of a queue's mask of exceptions: the code less one.
MEMORY_VIOLATION, DIMENSIONS, CODE, WORKGROUP = 4, 15, 17, 20


@pytest.fixture(scope="module")
def code_object(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, int]:
    """A code object with the kernel, and where its descriptor and its code are in memory."""
    program = assemble([parse(line) for line in STORE.strip().splitlines()])
    kernel = KernelImage(
        name="store",
        code=program.data,
        vgprs=8,
        sgprs=TARGET.sgprs,
        group_segment=0,
        private_segment=0,
        kernarg_size=8,
    )
    data = write([kernel], TARGET)
    made = read(data)
    (descriptor,) = (s.value for s in made.image.symbols if s.name == "store.kd")
    path = tmp_path_factory.mktemp("kfd") / "store.hsaco"
    path.write_bytes(data)
    return path, descriptor, made.text_address + made.kernel("store").entry


@pytest.fixture
def client(
    libraries: Path, cache: Path, code_object: tuple[Path, int, int], tmp_path: Path
) -> Client:
    """Runs the client under the card's library: its answer, and what was said."""

    def go(what: str, **env: str) -> tuple[Any, str]:
        path, *places = code_object
        done = subprocess.run(
            [sys.executable, HERE / "kfd_client.py", path, what, *map(str, places)],
            env={
                **os.environ,
                "LD_PRELOAD": str(libraries / emulated_card.PRELOAD),
                "SASSXLATE_CARD": str(emulated_card.folder("gfx1100", 6, 1 << 28)),
                "SASSXLATE_DEVICE_MEMORY": "256M",
                "SASSXLATE_CACHE_DIR": str(cache),
                "SASSXLATE_CACHE_TAG": cache_tag("gfx1100"),
                "SASSXLATE_TARGET": "gfx1100",
                "SASSXLATE_SOCKET": str(tmp_path / "socket"),
                "SASSXLATE_SERVICE_IDLE": "5",
                "SASSXLATE_PYTHON": sys.executable,
                "SASSXLATE_PYTHONPATH": import_root(),
                **env,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout), done.stderr

    return go


def test_card(client: Client) -> None:
    """The version, the apertures that code of gfx11 has, and the topology's files."""
    found, said = client("version")
    assert found["version"] == [1, 15]
    assert found["nodes"] == 1
    lds, _, scratch, _, base, limit, gpu, _ = found["apertures"]
    assert (lds >> 32, scratch >> 32, gpu) == (0x10000, 0x20000, emulated_card.GPU_ID)
    assert 0 < base < limit == (1 << 47) - 1
    node = found["node"]
    assert node["gfx_target_version"] == "110000"
    assert node["simd_count"] == str(6 * 2 * 2)
    assert node["local_mem_size"] == str(1 << 28)
    assert said == ""


def test_dispatch(client: Client) -> None:
    """Two queues: a kernel of two workgroups, and a barrier that waits for its signal."""
    found, said = client("run")
    assert found["waits"] == [1, 1]  # the time was over, the signal untouched
    assert found["values"] == list(range(64))
    assert found["signals"] == [0, 0, 0]
    begin, end = found["times"]
    assert 0 < begin <= end
    assert said == ""


def test_memory_fault(client: Client) -> None:
    """A store to memory that is not mapped to the card is the event that AMD's runtime awaits, and
    the packet is never complete."""
    found, said = client("fault")
    assert found["result"] == 0
    assert found["not_present"] == 1
    assert found["address"] == found["wanted"]
    assert found["exception"] == 1 << MEMORY_VIOLATION
    assert found["signal"] == 1
    assert "SX0661: kernel store:" in said
    assert "illegal address" in said


def test_refused(client: Client) -> None:
    """Bad requests have the driver's error numbers, bad packets its exceptions; each unknown thing
    is named."""
    found, said = client("bad")
    einval, enomem = 22, 12
    assert {
        name: found[name] for name in ("unknown", "odd_size", "other_card", "handle")
    } == dict.fromkeys(("unknown", "odd_size", "other_card", "handle"), einval)
    assert (found["event"], found["queue"], found["too_much"]) == (einval, einval, enomem)
    assert found["no_kernel"] == 1 << CODE
    assert found["part"] == 1 << DIMENSIONS
    assert found["threads"] == 1 << WORKGROUP
    assert found["arguments"] == 1 << MEMORY_VIOLATION
    assert "its 8 bytes of arguments are not in memory at" in said
    assert "SX0870: the emulated card's driver has no ioctl 0x7e" in said
    assert "SX0872: a grid of 32 work-items in workgroups of 24" in said
    assert "SX0873: the kernel at" in said
    assert "no code object that is loaded has it" in said


def test_other_code_at_the_same_place(client: Client) -> None:
    """Code that was changed in memory is not run as what it was."""
    found, said = client("twice")
    assert found["first"] == 0
    assert found["exception"] == 1 << CODE
    assert "SX0873" in said


def test_memory_without_an_address(client: Client) -> None:
    """What hipMemCreate asks for: two names of the same memory; a second mapping is refused."""
    found, said = client("shown")
    assert found == {"size": 8192, "codes": [0, 0, -22], "text": "abc", "hidden": 0}
    assert said == ""
