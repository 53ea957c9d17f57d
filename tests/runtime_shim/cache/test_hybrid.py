"""Code that a model wrote, kept for programs that run later."""

from __future__ import annotations

from pathlib import Path

import pytest

from sassxlate.runtime_shim.cache import hybrid
from sassxlate.runtime_shim.cache.store import Cache, key_of, load
from sassxlate.runtime_shim.service.engine import default_engine
from sassxlate.runtime_shim.service.work import Work

ROOT = Path(__file__).resolve().parents[3]


def test_kept_code_takes_the_rules_place(tmp_path: Path) -> None:
    cache = Cache(tmp_path, "tag")
    rules = cache.write("kernel", "m-k.hsaco", b"rules")
    other = cache.write("kernel", "m-l.hsaco", b"other")
    elsewhere = cache.write("kernel", "m-m.hsaco", b"rules")
    for name, text in (("k", b"launch"), ("l", b"launch"), ("m", b"other launch")):
        cache.write("kernel", f"m-{name}.launch", text)
    assert not hybrid.any_kept(tmp_path, "tag")
    hybrid.keep(cache, b"rules", "launch", b"model's", {"model": "m-1"}, "hybrid m-1")
    assert hybrid.any_kept(tmp_path, "tag")
    assert load(rules) == b"model's"
    assert load(other) == b"other"
    assert load(elsewhere) == b"rules"  # launched otherwise: not the same kernel
    kept = hybrid.find(cache, b"rules", "launch")
    assert kept is not None
    assert (kept.code, kept.report) == (b"model's", {"model": "m-1"})
    assert hybrid.find(cache, b"other", "launch") is None
    assert hybrid.find(cache, b"rules", "other launch") is None
    assert hybrid.find(Cache(tmp_path, "other sources"), b"rules", "launch") is None
    hybrid.keep(cache, b"rules", "launch", b"another's", {"model": "m-2", "saved": 5}, "m-2")
    assert load(rules) == b"another's"
    hybrid.keep(cache, b"rules", "launch", b"a dearer one's", {"model": "m-3", "saved": 4}, "m-3")
    assert load(rules) == b"another's"
    cheapest = hybrid.find(cache, b"rules", "launch")
    assert cheapest is not None
    assert cheapest.code == b"another's"
    for engine, code in (("hybrid m-1", b"model's"), ("m-3", b"a dearer one's")):
        own = hybrid.find(cache, b"rules", "launch", engine)
        assert own is not None
        assert own.code == code
    assert hybrid.find(cache, b"rules", "launch", "m-4") is None


@pytest.mark.parametrize("at", [0, 20, 55, 70, -1])
def test_a_damaged_entry_is_none(tmp_path: Path, at: int) -> None:
    cache = Cache(tmp_path, "tag")
    hybrid.keep(cache, b"rules", "launch", b"model's", {"model": "m-1"}, "")
    (path,) = tmp_path.glob("kernel/tag/*.hybrid")
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    assert hybrid.find(cache, b"rules", "launch") is None
    path.write_bytes(data[:at])
    assert hybrid.find(cache, b"rules", "launch") is None


def test_the_service_takes_it(tmp_path: Path) -> None:
    """A kernel that is translated for the first time gets what is kept for it."""
    engine = default_engine()
    data = (ROOT / "fixtures" / "kernels" / "sm_90" / "byte_lanes.cubin").read_bytes()
    cubin = engine.parse_cubin(data)
    kernel = cubin.kernels[0]
    cache = Cache(tmp_path, "tag")
    cache.write("module", "m.cubin", data)
    rules = engine.translate(cubin, kernel)
    hybrid.keep(cache, rules.code_object, str(rules.launch), b"model's", {}, "search")
    work = Work(cache, engine, lambda: cache)
    answer = work.translate({"module": "m", "kernel": kernel.name})
    assert answer["ok"]
    assert load(Path(answer["code_object"])) == b"model's"
    assert Path(answer["code_object"]).name == f"m-{key_of(kernel.name.encode())}.hsaco"
