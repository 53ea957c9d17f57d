"""Whatever a message contains, the service answers it, and continues with other clients' jobs."""

from __future__ import annotations

import json
import random
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sassxlate.errors import ServiceError
from sassxlate.runtime_shim.cache.store import key_of
from sassxlate.runtime_shim.service import server, wire
from sassxlate.runtime_shim.service.request import checked, path_of, text_of

from .conftest import Running
from .test_service import loaded

Start = Callable[..., Running]
FIELDS = (
    "op", "image", "cc", "module", "kernel", "code_object", "strict", "counts", "tag", "made",
    "jit", "environment", "inputs",
)  # fmt: skip
OPS = (
    "ping", "tag", "stats", "module", "translate", "compile", "ahead", "assemble", "link",
    "nothing", "",
)  # fmt: skip
# Parts of what PTX and linking take.
WORDS = (
    "max_registers=32", "max_registers=", "optimization=9", "debug", "target=90a", "cache=cg", ",",
    "=", "PATH=/nowhere", "\n", "SASSXLATE_PTXAS=/nowhere/ptxas", "CUDA_HOME=/", "ptx ", "cubin ",
    "\t", "/dev/null", "library /nowhere\tname", "object \t",
)  # fmt: skip
TEXTS = (
    "", "\0", "a\0b", "\ud800", "\udcff", "\udfff/x", "../../../etc/passwd", "/", "/dev/zero",
    "/proc/self/mem", "x" * 5000, "\u202e", "é" * 300, "%s%n", "\n", "kernel\nkernel", "-1", "null",
    "0" * 32, "/dev/stdin", "." * 255,
)  # fmt: skip
NUMBERS = (0, -1, 1, 90, 999, 1000, 1 << 31, 1 << 64, -(1 << 63), 10**400, 0.5, 1e308, float("nan"))


def _deep(depth: int) -> Any:
    value: Any = 1
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


def _value(rng: random.Random) -> Any:
    kind = rng.randrange(6)
    if kind == 0:
        return rng.choice(TEXTS)
    if kind == 1:
        return rng.choice(NUMBERS)
    if kind == 2:
        some: list[Any] = [None, True, False, [], {}, [[]], {"op": "stop"}]
        return rng.choice(some)
    if kind == 3:
        return _deep(rng.choice((1, 10, 200, 400)))
    if kind == 4 and rng.random() < 0.5:
        parts = ["".join(rng.choices(WORDS, k=rng.randrange(1, 4))) for _ in range(3)]
        return rng.choice((parts, parts[0]))
    if kind == 4:
        return "".join(chr(rng.choice((0, 0x41, 0xD800, 0xDC80, 0xFFFF, 0x10FFFF))) for _ in "1234")
    return [_value(rng) for _ in range(rng.randrange(3))]


def message(rng: random.Random, good: list[dict[str, Any]]) -> bytes:
    """The bytes of one message, or of invalid data."""
    kind = rng.random()
    if kind < 0.1:  # no frame, or no JSON
        body = rng.randbytes(rng.randrange(40))
        return struct.pack("<I", rng.choice((0, 1, len(body), 1 << 20, 0xFFFFFFFF))) + body
    if kind < 0.2:
        text = rng.choice((b"[]", b"null", b"{", b'{"op":', b"[" * 5000, b'"\xff"', b"1" * 5000))
        return struct.pack("<I", len(text)) + text
    said = dict(rng.choice(good)) if rng.random() < 0.6 else {"op": rng.choice(OPS)}
    for _ in range(rng.choice((0, 1, 1, 2, 5))):
        said[rng.choice(FIELDS)] = _value(rng)
    if said.get("op") == "stop" or isinstance(said.get("tag"), str):
        said = {"op": "ping"}  # these end it, as they should
    frame = wire.encode(said)
    if rng.random() < 0.1:
        damaged = bytearray(frame)
        damaged[rng.randrange(4, len(frame))] ^= 1 << rng.randrange(8)
        # What ends the service by right is left out.
        return bytes(damaged) if b"tag" not in damaged and b"stop" not in damaged else frame
    return frame


def _answers(connection: socket.socket, reader: wire.FrameReader) -> list[dict[str, Any]] | None:
    """The answers so far; None if the service has closed."""
    try:
        data = connection.recv(1 << 16)
    except TimeoutError:
        return []
    except ConnectionError:
        return None
    return reader.feed(data) if data else None


def fuzz(running: Running, key: str, image: Path, seeds: range) -> int:
    """Sends a message for each seed; the number of answers."""
    good: list[dict[str, Any]] = [
        {"op": "module", "image": str(image), "cc": 90},
        {"op": "translate", "module": key, "kernel": "_Z5saxpyifPKfPf"},
        {"op": "compile", "code_object": str(image), "kernel": "k", "strict": True},
        {"op": "translate", "module": key, "kernel": "refused"},
        {"op": "assemble", "image": str(image), "cc": 80, "jit": "debug", "environment": "PATH=/"},
        {"op": "link", "inputs": [f"ptx {image}\tname"], "cc": 80, "environment": "PATH=/"},
    ]
    answers, connection, reader = 0, None, wire.FrameReader()
    for seed in seeds:
        rng = random.Random(seed)
        if connection is None:
            connection, reader = socket.socket(socket.AF_UNIX), wire.FrameReader()
            connection.settimeout(20)
            connection.connect(str(running.socket))
        data = message(rng, good)
        whole = len(data) >= 4 and struct.unpack_from("<I", data)[0] == len(data) - 4
        try:
            connection.sendall(data)
            got = _answers(connection, reader) if whole else []
        except ConnectionError:
            got = None
        if got:
            answers += len(got)
            assert all("ok" in answer for answer in got), (seed, data[:200], got)
        else:
            assert not whole or got is None, f"seed {seed}: no answer to {data[:200]!r}"
            connection.close()  # half a frame, or the service has closed
            connection = None
    if connection is not None:
        connection.close()
    return answers


def _alive(running: Running, key: str) -> None:
    assert running.process.is_alive()
    assert running.call(op="ping")["ok"]
    assert running.call(op="translate", module=key, kernel="_Z5saxpyifPKfPf")["ok"]


@pytest.fixture
def steady(start: Start, monkeypatch: pytest.MonkeyPatch) -> Running:
    """A service that finds its own tag: of another version it would end."""

    def tag(_: str) -> str:
        return "tag"

    monkeypatch.setattr(server, "cache_tag", tag)
    return start(workers=1)  # nothing ahead: the stand-in has a kernel that hangs


def test_a_thousand_messages(steady: Running, image: Path) -> None:
    """Seeds of the sweep below; a job of another client continues meanwhile."""
    running = steady
    key = loaded(running, image)
    with socket.socket(socket.AF_UNIX) as other:
        other.settimeout(20)
        other.connect(str(running.socket))
        other.sendall(wire.encode({"op": "translate", "module": key, "kernel": "slow"}))
        assert fuzz(running, key, image, range(1000)) > 500
        answer = wire.receive(other)
    assert answer is not None
    assert answer["ok"]
    _alive(running, key)


@pytest.mark.sweep
def test_a_hundred_thousand_messages(steady: Running, image: Path) -> None:
    """The whole."""
    running = steady
    key = loaded(running, image)
    assert fuzz(running, key, image, range(1000, 101_000)) > 50_000
    _alive(running, key)


@pytest.mark.parametrize("module", ["\0", "a\0", "\ud800", "..", "0" * 31, 7, [[]], None])
@pytest.mark.parametrize("op", ["translate", "compile"])
def test_names_that_are_none(start: Start, op: str, module: Any) -> None:
    """Inputs that once ended the service: a NUL or a lone surrogate where a module's key should
    be."""
    running = start()
    for _ in range(2):
        answer = running.call(op=op, module=module, code_object=module, kernel="k")
        assert (answer["ok"], answer["code"]) == (False, "SX0903")


@pytest.mark.parametrize(
    "bad",
    [
        {"op": 1}, {"op": ""}, {"op": "x" * (1 << 18)}, {"kernel": "a\0"}, {"image": "x" * 5000},
        {"cc": "90"}, {"cc": True}, {"cc": 0}, {"strict": "yes"}, {"module": "0" * 33},
        {"kernel": ["a"]}, {"tag": 5}, {"entered": "0"}, {"entered": "0G"}, {"entered": ""},
        {"entered": 1}, {"entered": "0" * (1 << 21)},
    ],
    ids=str,
)  # fmt: skip
def test_fields(bad: dict[str, Any]) -> None:
    with pytest.raises(ServiceError, match="SX0903"):
        checked(bad)


def test_what_is_no_field_is_dropped() -> None:
    """Also the service's internal messages."""
    key = key_of(b"module")
    given = {"op": "translate", "module": key, "made": True, "compile": 1, "x": _deep(100)}
    assert checked(given) == {"op": "translate", "module": key}


def test_paths_on_the_wire() -> None:
    """Any bytes, as the native libraries write them (json.cpp), whatever the locale."""
    for name in (b"/tmp/a", b"/tmp/\xff\xfe", "/tmp/é".encode(), b"/\xed\xb2\x80"):
        path = Path(name.decode("utf-8", "surrogateescape"))
        assert path_of(text_of(path)) == path
        assert json.loads(json.dumps(text_of(path))) == text_of(path)


def test_files_with_any_name(start: Start, image: Path) -> None:
    """An image whose name is not text."""
    other = Path(str(image.parent) + "/\udcff\udc80")
    other.write_bytes(image.read_bytes())
    answer = start().call(op="module", image=str(other), cc=90)
    assert answer["ok"], answer
