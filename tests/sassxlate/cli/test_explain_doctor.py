"""`sassxlate explain` and `sassxlate doctor`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sassxlate import toolchain
from sassxlate.cli import cli, doctor
from sassxlate.cli.explain import AREAS
from sassxlate.errors import catalogue
from sassxlate.runtime_shim import paths
from sassxlate.runtime_shim.cache.store import seal
from sassxlate.runtime_shim.service import prebuilt

pytestmark = pytest.mark.usefixtures("valid_documents")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def test_explain_one() -> None:
    for spelling in ("SX0104", "sx104", "104"):
        result = run("explain", spelling)
        assert result.exit_code == 0
        assert result.output.startswith("SX0104: a 32-bit program\n\n")
        assert "Exit status: 2." in result.output


def test_explain_all() -> None:
    result = run("explain")
    assert result.exit_code == 0
    for code in catalogue():
        assert f"  {code}  " in result.output
    assert {code[:4] for code in catalogue()} == set(AREAS)
    for area in AREAS.values():
        assert f"{area}:\n" in result.output


def test_explain_as_json() -> None:
    answer = json.loads(run("explain", "SX0104", "SX0811", "--format", "json").output)
    assert answer["schema"] == "sassxlate.explain/1"
    assert [c["code"] for c in answer["codes"]] == ["SX0104", "SX0811"]
    assert answer["codes"][0]["exit"] == 2


def test_explain_unknown() -> None:
    result = run("explain", "SX0199")
    assert result.exit_code == 2
    assert "SX0814" in result.output


def test_doctor_as_json() -> None:
    result = run("doctor", "--format", "json")
    answer = json.loads(result.output)
    states = {c["name"]: c["state"] for c in answer["checks"]}
    assert states["Python"] == "ok"
    assert states["llvmlite"] == "ok"
    assert result.exit_code == (1 if "missing" in states.values() else 0)
    for check in answer["checks"]:
        assert check["state"] == "ok" or check["fix"], check["name"]


@pytest.mark.parametrize(
    ("asked", "state", "text"),
    [("", "ok", "up to 9.0"), ("sm_86", "ok", "8.6 ("), ("x", "missing", "=x")],
)
def test_doctor_says_the_capability(
    monkeypatch: pytest.MonkeyPatch, asked: str, state: str, text: str
) -> None:
    monkeypatch.setenv("SASSXLATE_CC", asked)
    answer = json.loads(run("doctor", "--format", "json").output)
    (check,) = [c for c in answer["checks"] if c["name"] == "capability"]
    assert (check["state"], text in check["detail"]) == (state, True), check


def test_doctor_names_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SASSXLATE_LIB", str(tmp_path))
    result = run("doctor")
    assert result.exit_code == 1
    (line,) = [x for x in result.output.splitlines() if "native libraries" in x]
    assert line.startswith("missing")


def test_doctor_says_whether_a_first_run_makes_the_stencils(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rows = doctor.checks_for("gfx1100")
    (row,) = (one for one in rows if getattr(one, "__name__", "") == "_stencils")
    monkeypatch.setattr(paths, "library_dir", lambda: tmp_path)
    assert row().state == "optional"
    monkeypatch.setattr(prebuilt, "digest", lambda: b"these sources")
    for isa in ("avx512", "avx2"):
        data = seal(prebuilt.name_of(isa), b"these sources, a pack")
        (tmp_path / prebuilt.name_of(isa)).write_bytes(data)
    assert row().state == "ok"


def test_doctor_survives_a_broken_hip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libamdhip64.so.7").write_bytes(b"no library")
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    answer = json.loads(run("doctor", "--format", "json").output)
    (hip,) = [c for c in answer["checks"] if c["name"] == "AMD HIP"]
    assert hip["state"] == "optional"
    assert str(tmp_path) in hip["detail"]


def test_doctor_reports_a_read_only_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SASSXLATE_CACHE_DIR", "/proc/nowhere")
    answer = json.loads(run("doctor", "--format", "json").output)
    (cache,) = [c for c in answer["checks"] if c["name"] == "cache"]
    assert cache["state"] == "optional"


def test_tools_named_by_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "nvdisasm"
    fake.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 99.1, V99.1.2'\n")
    fake.chmod(0o755)
    monkeypatch.setenv("SASSXLATE_NVDISASM", str(fake))
    toolchain.nvdisasm.cache_clear()
    try:
        found = toolchain.nvdisasm()
        assert found is not None
        assert (found.version, found.origin) == ("99.1.2", "SASSXLATE_NVDISASM")
    finally:
        toolchain.nvdisasm.cache_clear()


def test_every_check_has_a_name_of_its_own() -> None:
    names = [check().name for check in doctor.checks_for("gfx1100")]
    assert len(names) == len(set(names))


def test_no_fix_needs_a_checkout() -> None:
    """`pip install '.[llm]'` means nothing where the package was installed from a wheel."""
    import inspect

    from sassxlate.cli import doctor

    assert "install '.[" not in inspect.getsource(doctor)
    assert "'sassxlate[verify]'" in inspect.getsource(doctor)
