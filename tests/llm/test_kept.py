"""Code that a model wrote, kept for programs that run later."""

from __future__ import annotations

from pathlib import Path

from sassxlate.runtime_shim import hybrid
from sassxlate.runtime_shim.cache import Cache, key_of
from sassxlate.runtime_shim.work import Work, default_engine

ROOT = Path(__file__).resolve().parents[2]


def test_kept_code_takes_the_rules_place(tmp_path: Path) -> None:
    cache = Cache(tmp_path, "tag")
    rules = cache.write("kernel", "m-k.hsaco", b"rules")
    other = cache.write("kernel", "m-l.hsaco", b"other")
    assert not hybrid.any_kept(tmp_path, "tag")
    hybrid.keep(cache, b"rules", b"model's")
    assert hybrid.any_kept(tmp_path, "tag")
    assert rules.read_bytes() == b"model's"
    assert other.read_bytes() == b"other"
    assert hybrid.find(cache, b"rules") == b"model's"
    assert hybrid.find(cache, b"other") is None


def test_the_service_takes_it(tmp_path: Path) -> None:
    """A kernel that is translated for the first time gets what is kept for it."""
    engine = default_engine()
    data = (ROOT / "fixtures" / "kernels" / "sm_90" / "byte_lanes.cubin").read_bytes()
    cubin = engine.parse_cubin(data)
    kernel = cubin.kernels[0]
    cache = Cache(tmp_path, "tag")
    cache.write("module", "m.cubin", data)
    hybrid.keep(cache, engine.translate(cubin, kernel).code_object, b"model's")
    work = Work(cache, engine, lambda: cache)
    answer = work.translate({"module": "m", "kernel": kernel.name})
    assert answer["ok"]
    assert Path(answer["code_object"]).read_bytes() == b"model's"
    assert Path(answer["code_object"]).name == f"m-{key_of(kernel.name.encode())}.hsaco"
