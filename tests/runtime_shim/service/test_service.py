"""The service: operations, refusals, merging, and that nothing a request does can stop it."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sassxlate.errors import ServiceError
from sassxlate.runtime_shim import paths
from sassxlate.runtime_shim.cache.store import key_of, need
from sassxlate.runtime_shim.service import client
from sassxlate.runtime_shim.service.engine import Engine

from .conftest import Running, broken, stand_in

Start = Callable[..., Running]


def loaded(running: Running, image: Path) -> str:
    """The key of the stand-in's module, loaded."""
    answer = running.call(op="module", image=str(image), cc=90)
    assert answer["ok"], answer
    return str(answer["key"])


def test_module_translate_compile(start: Start, image: Path) -> None:
    """The three jobs write the files that they name, under the keys that the libraries compute."""
    running = start()
    key = loaded(running, image)
    assert key == key_of(image.read_bytes(), b"90")
    text = need(running.cache / "module" / "tag" / f"{key}.txt").decode()
    assert text.startswith("sassxlate-module 2\narch 90\n")
    answer: dict[str, Any] = running.call(op="translate", module=key, kernel="_Z5saxpyifPKfPf")
    assert answer["ok"]
    stem = f"{key}-{key_of(b'_Z5saxpyifPKfPf')}"
    code = running.cache / "kernel" / "tag" / f"{stem}.hsaco"
    assert answer["code_object"] == str(code)
    assert need(Path(answer["launch"])) == b"kernarg_size 552\n"
    for strict, word in ((False, b"plain"), (True, b"strict")):
        answer = running.call(op="compile", code_object=str(code), kernel="k", strict=strict)
        assert answer["ok"]
        image_path = Path(answer["image"])
        assert need(image_path) == need(code) + b" " + word
        assert image_path.name == key_of(need(code), b"k", word) + ".sxh"


def test_refusal_is_one_line_with_place_and_stays(start: Start, image: Path) -> None:
    """A kernel that cannot be translated: kernel, offset, instruction, code; kept in the cache."""
    running = start()
    key = loaded(running, image)
    answer: dict[str, Any] = running.call(op="translate", module=key, kernel="refused")
    assert answer["ok"] is False
    assert (answer["code"], answer["cuda_error"]) == ("SX0407", 801)
    assert answer["line"] == "SX0407: refused:/*00a0*/: SUST.P: not supported"
    kept = need(Path(answer["refused"])).decode().splitlines()
    assert kept == ["cuda_error 801", "code SX0407", f"line {answer['line']}"]


def test_faults_of_ours_are_answers_and_not_kept(start: Start, image: Path) -> None:
    """An exception, a crash and a hang each end their job only."""
    running = start(limit=1.0)
    key = loaded(running, image)
    for kernel, code in (("buggy", "SX0908"), ("crashing", "SX0905"), ("hanging", "SX0904")):
        answer = running.call(op="translate", module=key, kernel=kernel)
        assert (answer["ok"], answer["code"], answer["cuda_error"]) == (False, code, 999)
        assert not list((running.cache / "kernel").glob("**/*.refused"))
    assert running.call(op="translate", module=key, kernel="_Z5saxpyifPKfPf")["ok"]


def test_a_limit_ends_the_optimisation_not_the_kernel(start: Start, tmp_path: Path) -> None:
    """The verdict is kept: the compiler is stopped once, and what is made without optimisation,
    which has no limit, takes its place."""
    running = start(limit=0.4)
    code = tmp_path / "code"
    code.write_bytes(b"code")
    job: dict[str, Any] = {"op": "compile", "code_object": str(code), "kernel": "endless"}
    for strict in (False, True):
        answer = running.call(**job, strict=strict)
        assert (answer["ok"], answer["code"], answer["slow"]) == (False, "SX0914", True)
    key = key_of(b"code", b"endless", b"plain")
    verdict = running.cache / "host" / "tag" / f"{key}.slow"
    assert need(verdict) == b"the compiler was stopped after 0.4 s"
    answer = running.call(**job)
    assert (answer["code"], answer["slow"]) == ("SX0914", True)
    assert answer["line"] == "SX0914: endless: the compiler was stopped after 0.4 s"
    stats: dict[str, Any] = running.call(op="stats")
    assert stats["workers"] == 1  # which was not lost again
    answer = running.call(**job, quick=True)
    assert answer["ok"], answer
    image_path = Path(str(answer["image"]))
    assert image_path.name == f"{key}.sxh"
    assert need(image_path) == b"code quick"
    assert running.call(**job)["image"] == str(image_path)


def test_code_of_what_was_entered(start: Start, tmp_path: Path) -> None:
    """Each set of blocks has a file of its own; another names the last one.  The whole kernel's
    code takes the place of all."""
    running = start(limit=0.4)
    code = tmp_path / "code"
    code.write_bytes(b"code")
    job: dict[str, Any] = {"op": "compile", "code_object": str(code), "kernel": "k"}
    host = running.cache / "host" / "tag"
    whole = key_of(b"code", b"k", b"plain")
    for entered in ("03", "07", "03"):
        answer = running.call(**job, entered=entered, background=True)
        key = key_of(b"code", b"k", b"plain entered " + entered.encode())
        assert answer["image"] == str(host / f"{key}.sxh")
        assert need(host / f"{key}.sxh") == b"code plain" + entered.encode()
    assert need(host / f"{whole}.hot") == b"07"
    assert not (host / f"{whole}.sxh").exists()
    assert running.call(**job)["image"] == str(host / f"{whole}.sxh")
    assert running.call(**job, entered="0f")["image"] == str(host / f"{whole}.sxh")
    endless = {**job, "kernel": "endless", "entered": "01"}
    assert running.call(**endless)["code"] == "SX0914"  # of this part alone
    key = key_of(b"code", b"endless", b"plain entered 01")
    assert [file.stem for file in host.glob("*.slow")] == [key]


def test_a_lost_compiler_is_no_verdict(start: Start, tmp_path: Path) -> None:
    """Anything may have killed it: the kernel can be had without optimisation, and the next run
    asks again."""
    running = start()
    code = tmp_path / "code"
    code.write_bytes(b"code")
    job: dict[str, Any] = {"op": "compile", "code_object": str(code), "kernel": "crashing"}
    answer = running.call(**job)
    assert (answer["ok"], answer["code"], answer["slow"]) == (False, "SX0905", True)
    assert not list(running.cache.glob("**/*.slow"))
    assert running.call(**job, quick=True)["ok"]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"\x7fELFbad", "nocode 200 SX0102: "),
        (bytes.fromhex("50ed55ba") + b"x", "nocode 200 SX0101: "),
        (b"rubbish", "nocode 200 SX0709: "),
        (b"", "nocode 200 SX0709: "),
    ],
)
def test_bad_image_is_a_manifest(start: Start, image: Path, content: bytes, line: str) -> None:
    """Loading never fails because of the contents: the manifest says that there is no code, and
    why."""
    image.write_bytes(content)
    answer: dict[str, Any] = start().call(op="module", image=str(image), cc=90)
    assert answer["ok"]
    assert line in need(Path(answer["manifest"])).decode()


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"op": 3},
        {"op": "nothing"},
        {"op": "module"},
        {"op": "module", "image": "/nowhere", "cc": 90},
        {"op": "module", "image": "/nowhere", "cc": "x"},
        {"op": "translate", "module": "0" * 32, "kernel": "k"},
        {"op": "translate", "module": "../../x", "kernel": "k"},
        {"op": "compile", "code_object": "/nowhere", "kernel": "k"},
    ],
)
def test_bad_requests_are_answered(start: Start, request_: dict[str, object]) -> None:
    """An invalid request gets a typed answer."""
    answer: dict[str, Any] = start().call(**request_)
    assert answer["ok"] is False
    assert answer["code"] in ("SX0903", "SX0906")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\1",
        b"\xff" * 64,
        struct.pack("<I", 1 << 31),
        struct.pack("<I", 4) + b"nope",
        struct.pack("<I", 2) + b"[]",
        struct.pack("<I", 200000) + b"[" * 200000,
    ],
)
def test_rubbish_does_not_stop_the_service(start: Start, data: bytes) -> None:
    """Broken frames close their connection; the next one is served."""
    running = start()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(running.socket))
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 16):
            pass
    assert running.call(op="ping")["ok"]


def test_same_requests_are_merged(start: Start, image: Path) -> None:
    """Twelve threads ask for one kernel: it is translated once."""
    running = start()
    key = loaded(running, image)
    answers: list[dict[str, object]] = []

    def ask() -> None:
        answers.append(running.call(op="translate", module=key, kernel="slow"))

    threads = [threading.Thread(target=ask) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 12
    assert all(a["ok"] for a in answers)
    stats: dict[str, Any] = running.call(op="stats")
    assert stats["requests"]["merged"] == 11


def test_broken_translator_says_so(start: Start, image: Path) -> None:
    """Without its translator the service answers, and ends so that the next one tries again."""
    running = start(engine=broken)
    answer = running.call(op="module", image=str(image), cc=90)
    assert (answer["ok"], answer["code"]) == (False, "SX0908")
    running.process.join(60)
    assert not running.process.is_alive()


def test_stale_service_ends(start: Start) -> None:
    """A request for another version of the translator ends the service."""
    running = start()
    answer = running.call(op="ping", tag="another")
    assert (answer["code"], answer["restart"]) == ("SX0911", True)
    running.process.join(60)
    assert not running.process.is_alive()


def test_full_cache_falls_back(start: Start, image: Path, tmp_path: Path) -> None:
    """A cache directory that takes no files: the answers name files elsewhere."""
    (tmp_path / "cache").write_text("a file where the directory should be")
    answer: dict[str, Any] = start().call(op="module", image=str(image), cc=90)
    assert answer["ok"]
    path = Path(answer["manifest"])
    assert need(path).startswith(b"sassxlate-module 2")
    assert not path.is_relative_to(tmp_path / "cache")


def test_one_service_a_socket(start: Start) -> None:
    """A second service on the same socket gives way."""
    running = start()
    assert client.listen(running.socket) is None
    assert running.call(op="ping")["ok"]


@pytest.fixture
def short_dir() -> Iterator[Path]:
    """A directory whose path is short enough for a socket."""
    name = f"test-{os.getpid()}-{time.monotonic_ns()}"
    directory = paths.private_dir(paths.runtime_dir() / name)
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


def test_program_starts_serves_and_stops(short_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real program, started as `run` starts it, from any directory and environment."""
    monkeypatch.chdir("/")
    monkeypatch.setenv("PYTHONHOME", "/nowhere")
    monkeypatch.setenv("LD_PRELOAD", "")
    path = short_dir / "s.sock"
    threads = [
        threading.Thread(target=client.spawn, args=(path, short_dir, "gfx1100")) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.listening(path)  # at once: no application starts a second one
    first = client.call(path, {"op": "ping"})
    assert first["ok"]
    assert client.call(path, {"op": "tag"})["tag"] == first["tag"]
    assert client.call(path, {"op": "stop"})["ok"]
    deadline = time.monotonic() + 60
    while path.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not path.exists()
    with pytest.raises(ServiceError, match="SX0902"):
        client.call(path, {"op": "ping"})


@pytest.mark.parametrize("target", ["gfx1102", "gfx1100:matrix-fast"])
def test_who_asks_for_another_target_gets_another_service(
    start: Callable[..., Running], target: str
) -> None:
    """Without `run` all programs of a user ask at one place, with or without SASSXLATE_TARGET."""
    running = start()
    assert running.call(op="ping")["ok"]
    answer = running.call(op="tag", target=target)
    assert (answer["code"], answer["restart"]) == ("SX0911", True)
    running.process.join(60)
    assert running.process.exitcode == 0


def test_program_refuses_a_long_socket_path() -> None:
    """A wrong start is one line and status 2."""
    done = subprocess.run(
        [sys.executable, "-m", "sassxlate.runtime_shim.service"],
        env={**os.environ, "SASSXLATE_SOCKET": "/" + "x" * 200},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "SX0901" in done.stderr


def test_what_is_imported_later(start: Start, tmp_path: Path, image: Path) -> None:
    """Once, when nothing is asked; what fails there does not end the service."""
    marks = tmp_path / "marks"

    def engine() -> Engine:
        def later() -> None:
            with open(marks, "a", encoding="utf-8") as file:
                file.write("imported\n")
            raise ImportError("no compiler")

        return replace(stand_in(), later=later)

    running = start(engine)
    deadline = time.monotonic() + 60
    while not marks.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    loaded(running, image)
    assert marks.read_text() == "imported\n"


_IMPORTS = """
import sys
import sassxlate.runtime_shim.service.start
from sassxlate.runtime_shim.service.engine import default_engine
engine = default_engine()
early = {"numpy", "llvmlite", "networkx", "z3"} & set(sys.modules)
engine.later()
print(sorted(early), "llvmlite" in sys.modules, "numpy" in sys.modules)
"""


def test_a_first_launch_waits_for_no_large_imports() -> None:
    """Neither LLVM nor NumPy, which together take half as long as the translator."""
    command = [sys.executable, "-P", "-c", _IMPORTS]
    env = {**os.environ, "PYTHONPATH": client.import_root()}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "[] True False\n"
