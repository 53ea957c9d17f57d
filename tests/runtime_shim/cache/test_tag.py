"""The cache's tag covers every module that decides code, and nothing that only shows it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sassxlate.runtime_shim import paths
from sassxlate.runtime_shim.cache import tag, verdicts

ROOT = paths.package_root()
# What the service loads and no translation depends on: how errors and progress read, how files are
# replaced, and start-up.
NEUTRAL = {
    "__init__.py",
    "collector.py",
    "compiled.py",  # the library's name is in the tag
    "errors.py",
    "executors.py",
    "files.py",
    "notes.py",
    "output.py",
    "processes.py",
    "toolchain.py",
}
_LOADED = """
import json, sys
from pathlib import Path
import sassxlate.runtime_shim.service.server, sassxlate.runtime_shim.service.workers
from sassxlate.disasm.containers import load
from sassxlate.lowering.emulate import compile_code_object
from sassxlate.lowering.pipeline import translate_kernel
_, cubin = next(iter(load(sys.argv[1]).cubins()))
done = translate_kernel(cubin, cubin.kernels[0].name)
compile_code_object(done.code_object, cubin.kernels[0].name)
compile_code_object(done.code_object, cubin.kernels[0].name, strict=True, counts=True)
import sassxlate.llm.engine.choose, sassxlate.llm.engine.model, sassxlate.llm.engine.models
import sassxlate.lowering.engine.search, sassxlate.runtime_shim.writer
import sassxlate.llm.inference.block_model, sassxlate.lowering.optimize.search
files = [m.__file__ for n, m in sys.modules.items() if n.split(".")[0] == "sassxlate"]
print(json.dumps([f for f in files if f]))
"""


# Of the service, what carries requests and decides their order.
CARRIERS = {
    *(ROOT / "runtime_shim" / f"{name}.py" for name in ("paths", "trusted", "cache/runs")),
    *(ROOT / "runtime_shim" / "service" / f"{name}.py" for name in (
        "ahead", "early/__init__", "early/library", "early/preparation", "jobs", "request",
        "scheduler", "server", "status", "wire", "workers",
    )),
}  # fmt: skip


def test_covers_what_is_loaded() -> None:
    """Every module that a translation loads is among the files of the tag, but for a few."""
    program = Path(__file__).resolve().parents[3] / "fixtures" / "kernels" / "sm_80"
    cubin = next(iter(sorted(program.glob("*.cubin"))))
    done = subprocess.run(
        [sys.executable, "-P", "-c", _LOADED, str(cubin)],
        env={**os.environ, "SASSXLATE_PURE": "1"},  # sources, not the library that is made of them
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded = {Path(f).resolve() for f in json.loads(done.stdout)}
    covered = {(ROOT / name).resolve() for name in tag.decisive(ROOT)}
    missing = {p.name for p in loaded - covered if p.parent == ROOT.resolve()} - NEUTRAL
    assert missing == set()
    carriers = {p.resolve() for p in CARRIERS}
    assert {p for p in loaded - covered if p.parent != ROOT.resolve()} == carriers


def test_every_decisive_file_changes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed byte in any decisive file is another tag, for translations and for verdicts."""
    copy = tmp_path / "sassxlate"
    for name in tag.decisive(ROOT):
        target = copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(target.name.encode())
    monkeypatch.setattr(paths, "package_root", lambda: copy)
    whole = tag.cache_tag("gfx1100")
    assert tag.cache_tag("gfx1100") == whole
    names = tag.decisive(copy)
    assert len(names) > 200
    for name in names[::7]:
        path = copy / name
        kept = path.read_bytes()
        path.write_bytes(kept + b"#")
        assert tag.cache_tag("gfx1100") != whole, path
        path.write_bytes(kept)
    verdicts.verdict_tag.cache_clear()
    first = verdicts.verdict_tag()
    (copy / "lowering" / "pipeline.py").write_bytes(b"#")
    verdicts.verdict_tag.cache_clear()
    assert verdicts.verdict_tag() != first
    verdicts.verdict_tag.cache_clear()


def _copy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All the package's sources, in another place, whose tag is what `cache_tag` gives."""
    copy = folder / "sassxlate"
    for package in ("disasm", "cfg", "lowering", "llm", "runtime_shim", "domain", "cli", "bench"):
        for path in (ROOT / package).rglob("*"):
            if path.is_file() and path.suffix in (".py", ".json", ".txt", ".md", ".html", ".toml"):
                target = copy / path.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(path.read_bytes())
    monkeypatch.setattr(paths, "package_root", lambda: copy)
    return copy


CODE = (
    "lowering/rules/arithmetic/multiply.py", "lowering/emulate/compiler.py", "lowering/pipeline.py",
    "disasm/sass/semantics/arithmetic/integer.py", "disasm/sass/tables/arithmetic/integer.py",
    "disasm/rdna3/semantics/__init__.py", "domain/__init__.py", "runtime_shim/service/work.py",
    "runtime_shim/service/manifest.py", "runtime_shim/cache/store.py", "lowering/verify/verdict.py",
)  # fmt: skip
NO_CODE = (
    "cfg/pages/__init__.py", "cfg/view/__init__.py", "lowering/report/pages.py",
    "llm/training/__init__.py", "llm/dataset/__init__.py", "llm/evaluation/__init__.py",
    "cli/run.py", "cli/__init__.py", "bench/cold.py", "disasm/listing/cubin.py",
    "disasm/sass/reference/__init__.py", "runtime_shim/service/server.py",
    "runtime_shim/service/status.py", "runtime_shim/application.py", "errors.py",
    "error_catalogue/service.toml",
)  # fmt: skip


def test_what_changes_code_changes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule, the emulator, meanings, tables and what is written for an image are in the tag;
    pages, training, help texts, messages and the order of the service's jobs are not."""
    copy = _copy(tmp_path, monkeypatch)
    whole = tag.cache_tag("gfx1100")
    for name in CODE + NO_CODE:
        path = copy / name
        kept = path.read_bytes() if path.exists() else None
        assert kept is not None or name in ("errors.py", "error_catalogue/service.toml"), name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes((kept or b"") + b"\n# another line\n")
        assert (tag.cache_tag("gfx1100") != whole) is (name in CODE), name
        if kept is None:
            path.unlink()
        else:
            path.write_bytes(kept)
    assert tag.cache_tag("gfx1100") == whole


def test_pages_do_not_change_it() -> None:
    """Changes of code that only shows, trains or measures leave translations valid."""
    files = [Path(name) for name in tag.decisive(ROOT)]
    folders = {file.parts[:2] for file in files}
    assert ("lowering", "engine") in folders
    listing = {file.name for file in files if file.parent.name == "listing"}
    assert listing == {"__init__.py", "source_lines.py"}
    for shown in ("pages", "view", "diff"):
        assert ("cfg", shown) not in folders
    assert ("llm", "training") not in folders
    assert ("lowering", "report") not in folders


def test_an_instruction_set_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SASSXLATE_ISA", raising=False)
    plain = tag.cache_tag("gfx1100")
    monkeypatch.setenv("SASSXLATE_ISA", "avx2")
    assert tag.cache_tag("gfx1100") != plain
