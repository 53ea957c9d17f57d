"""Kernels that are translated before they are requested: which, how many, and only once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sassxlate.runtime_shim.cache.store import Cache, key_of, need
from sassxlate.runtime_shim.service.ahead import LARGEST, Ahead, kernels_of

from .conftest import Running
from .test_service import loaded

Start = Callable[..., Running]


def _module(cache: Cache, kernels: int) -> None:
    lines = [f"kernel {i:x} 18 0 0 372 1024 -1 void k<{i}, int>()" for i in range(kernels)]
    cache.write("module", "m.txt", "\n".join(["sassxlate-module 2", *lines, ""]).encode())


def _asked(ahead: Ahead, number: int, **more: object) -> list[str]:
    request = {"op": "translate", "module": "m", "kernel": f"void k<{number}, int>()", **more}
    return [made["kernel"][7:-8] for made in ahead.after(request)]


def test_the_next_ones_of_the_module(tmp_path: Path) -> None:
    cache = Cache(tmp_path, "tag")
    _module(cache, 6)
    assert kernels_of(cache.read("module", "m.txt") or b"")[1] == "void k<1, int>()"
    ahead = Ahead(cache, 2)
    assert _asked(ahead, 1) == ["2", "3"]
    assert _asked(ahead, 2) == ["4", "5"]  # no kernel twice
    assert _asked(ahead, 5) == ["0"]
    assert _asked(ahead, 5) == []
    # Host code is wanted where it has been asked for, and only for kernels whose module is known.
    made = ahead.after({"op": "compile", "kernel": "void k<2, int>()", "strict": True})
    assert [(m["kernel"], m["compile"], m["strict"]) for m in made] == [
        ("void k<3, int>()", True, True),
        ("void k<4, int>()", True, True),
    ]
    assert ahead.after({"op": "compile", "kernel": "other"}) == []


def test_libraries_and_single_workers_are_left_alone(tmp_path: Path) -> None:
    cache = Cache(tmp_path, "tag")
    _module(cache, LARGEST + 1)
    assert _asked(Ahead(cache, 7), 1) == []
    _module(cache, LARGEST)
    assert _asked(Ahead(cache, 7), 1) == ["2", "3", "4", "5", "6", "7", "8"]
    assert _asked(Ahead(cache, 0), 1) == []


def _appears(path: Path) -> bool:
    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    return path.exists()


def test_a_service_works_ahead(start: Start, image: Path) -> None:
    """The next kernel is translated, with its host code, without a request; one that is under way
    when it is requested is waited for, not made twice."""
    running = start(workers=2)
    key = loaded(running, image)
    asked = threading.Thread(
        target=running.call, kwargs={"op": "translate", "module": key, "kernel": "slow"}
    )
    asked.start()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        stats: dict[str, Any] = running.call(op="stats")
        if stats["requests"].get("ahead"):
            break
        time.sleep(0.01)
    asked.join()
    answer: dict[str, Any] = running.call(op="translate", module=key, kernel="slow2")
    assert answer["ok"]
    code = Path(answer["code_object"])
    done: dict[str, Any] = running.call(op="compile", code_object=str(code), kernel="slow2")
    assert done["ok"]
    # After the last one comes the first.
    stem = f"{key}-{key_of(b'_Z5saxpyifPKfPf')}"
    following = running.cache / "kernel" / "tag" / f"{stem}.hsaco"
    assert _appears(following)
    host = key_of(need(following), b"_Z5saxpyifPKfPf", b"plain")
    assert _appears(running.cache / "host" / "tag" / f"{host}.sxh")
    assert running.call(op="stop")["ok"]


def test_nothing_ahead_of_a_single_worker(start: Start, image: Path) -> None:
    running = start(workers=1)
    key = loaded(running, image)
    assert running.call(op="translate", module=key, kernel="slow")["ok"]
    stats: dict[str, Any] = running.call(op="stats")
    assert "ahead" not in stats["requests"]
