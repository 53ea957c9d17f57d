"""What `warm`, `cache`, `embed`, `unembed` and `selftest` print as JSON has its schema."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from sassxlate.cli import cli
from sassxlate.errors import ShimError
from sassxlate.runtime_shim import paths

SAXPY = Path(__file__).resolve().parents[3] / "fixtures" / "programs" / "saxpy"


def test_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, valid_documents: list[str]
) -> None:
    try:
        paths.library_dir()
    except ShimError as error:
        pytest.skip(str(error))
    if not SAXPY.is_file():
        pytest.skip("fixtures/programs/saxpy is absent")
    monkeypatch.setenv("SASSXLATE_CACHE_DIR", str(tmp_path / "cache"))

    def printed(*words: object) -> None:
        run = CliRunner().invoke(cli, [*map(str, words), "--format", "json"])
        assert run.exit_code == 0, run.output

    printed("warm", SAXPY, "--tier", "baseline", "-j", 1)
    printed("cache", "export", tmp_path / "kept")
    printed("cache", "import", tmp_path / "kept")
    printed("embed", SAXPY, "-o", tmp_path / "app", "--host", "none", "-j", 1)
    printed("unembed", tmp_path / "app", "-o", tmp_path / "back")
    printed("selftest", "--list")
    report = tmp_path / "report.json"
    printed(
        "selftest",
        "--device",
        "emulator",
        "--only",
        "*early_exit*sm_80*",
        "--seeds",
        1,
        "-o",
        report,
    )
    assert {"warm", "cache-export", "cache-import", "embed", "unembed", "selftest-list",
            "selftest"} <= set(valid_documents)  # fmt: skip
    assert (tmp_path / "back").read_bytes() == SAXPY.read_bytes()
