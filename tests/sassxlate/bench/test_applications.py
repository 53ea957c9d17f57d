"""`sassxlate bench applications`: declarations, environments, verdicts, the table and its page.

No network: the scripts need no package, or one that pip is not allowed to look for.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sassxlate.bench.applications import declaration, environment, table
from sassxlate.bench.applications import run as bench
from sassxlate.cli.bench import command
from sassxlate.disasm.containers import load
from sassxlate.errors import UsageError, catalogue
from sassxlate.runtime_shim.application import LoadedKernel, Refusal, RunReport

pytestmark = pytest.mark.usefixtures("valid_documents")

ROOT = Path(__file__).resolve().parents[3]
SAXPY = ROOT / "fixtures" / "programs" / "saxpy"
FOLDER = ROOT / "fixtures" / "applications"
PAGE = ROOT / "docs" / "applications.md"
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"

KEYS: dict[str, object] = {
    "application": "Ours",
    "what": "a program of ours",
    "packages": [],
    "python": PYTHON,
    "script": "one.py",
    "prints": ["^PASS$"],
    "tolerance": "exact",
}
RUNS_SAXPY = f"""
import subprocess, sys
if sys.argv[1] == "cuda":
    print(subprocess.run([{str(SAXPY)!r}], capture_output=True, text=True, check=True).stdout)
else:
    print("PASS")
"""


def declare(folder: Path, code: str | None = RUNS_SAXPY, **changes: object) -> Path:
    """A declaration named one, and its script."""
    keys = {key: value for key, value in {**KEYS, **changes}.items() if value is not None}
    file = folder / "one.toml"
    file.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items()))
    if code is not None:
        (folder / "one.py").write_text(code)
    return file


def call(folder: Path, *options: str) -> Result:
    return CliRunner().invoke(
        command, ["applications", "--declarations", str(folder), *options], catch_exceptions=True
    )


def fails(result: Result, code: str) -> str:
    assert isinstance(result.exception, UsageError), result.output
    assert result.exception.code == code
    assert code in catalogue()
    return str(result.exception)


def test_right_cold_warm_and_on_the_cpu(tmp_path: Path) -> None:
    declare(tmp_path, also=["cpu"])
    result = call(tmp_path, "--format", "json", "--env", str(tmp_path / "env"), "--check")
    assert result.exit_code == 0, result.output
    (one,) = json.loads(result.stdout)["applications"]
    assert one["verdict"] == "right"
    assert one["name"] == "one"
    assert one["refused"] == {}
    assert one["cold"]["verdict"] == one["warm"]["verdict"] == "right"
    assert one["cold"]["kernels"] == one["warm"]["kernels"] == 1
    assert one["warm"]["seconds"] > 0
    assert [(where, r["verdict"]) for where, r in one["elsewhere"]] == [("cpu", "right")]
    assert not (tmp_path / "env").exists()  # nothing to install


def _one(tmp_path: Path, script: str, timeout: float = 60, **changes: object) -> bench.Outcome:
    found = declaration.read(declare(tmp_path, script, **changes))
    return bench.measure(found, Path(sys.executable), timeout)


def test_wrong_if_a_check_fails(tmp_path: Path) -> None:
    outcome = _one(tmp_path, RUNS_SAXPY + "print('wrong sum: 3, not 4'); sys.exit(1)")
    assert (outcome.verdict, outcome.reason) == ("wrong", "wrong sum: 3, not 4")
    assert outcome.warm is None


def test_wrong_if_it_prints_something_else(tmp_path: Path) -> None:
    outcome = _one(tmp_path, RUNS_SAXPY, prints=["^PASS$", "^17 checks right$"])
    assert outcome.verdict == "wrong"
    assert "17 checks" in outcome.reason


def test_right_needs_a_kernel_on_the_device(tmp_path: Path) -> None:
    """A package that quietly takes the CPU is not right."""
    outcome = _one(tmp_path, "print('PASS')")
    assert (outcome.verdict, outcome.reason) == ("failed", "no kernel ran on the emulated device")


def test_failed_has_the_last_line(tmp_path: Path) -> None:
    outcome = _one(tmp_path, "raise SystemExit('no device found')")
    assert (outcome.verdict, outcome.reason) == ("failed", "status 1: no device found")


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither files nor the service, which may only be starting when a short script ends."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    _one(tmp_path, "raise SystemExit('at once')")
    time.sleep(1)
    assert not list(place.iterdir())
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            assert os.fsencode(place) not in entry.read_bytes()


def test_reasons_have_no_paths_of_the_machine(tmp_path: Path) -> None:
    outcome = _one(tmp_path, "import os, sys; sys.exit(f'{__file__} {os.getcwd()}/x')")
    assert outcome.reason == "status 1: one.py work/x"


def test_refused_has_codes_and_counts(tmp_path: Path) -> None:
    """An image that is no device code is refused by the driver library."""
    script = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
handle = ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(handle), 0) == 0
assert cuda.cuCtxSetCurrent(handle) == 0
module = ctypes.c_void_p()
ptx = b".version 7.0\\n.target sm_80\\n.address_size 64\\nthis is no PTX\\n"
status = cuda.cuModuleLoadData(ctypes.byref(module), ptx)
raise SystemExit(f"module: {status}")
"""
    outcome = _one(tmp_path, script)
    assert outcome.verdict == "refused", outcome
    assert [count for _, count in outcome.refused] == [1]
    (code,) = [code for code, _ in outcome.refused]
    assert code in catalogue()
    assert outcome.reason.startswith(f"module: 218; before that {code}: ")
    assert f"{code} x1" in table.markdown([outcome])[2]


def test_a_lost_kernel_is_refused_and_not_wrong(tmp_path: Path) -> None:
    """A script that passes over the failure of a child's launch compares old contents of memory."""
    data = SAXPY.read_bytes()
    for _, cubin in load(SAXPY).cubins():
        for kernel in cubin.kernels:
            assert data.count(kernel.code) == 1
            data = data.replace(kernel.code, b"\xff" * 16 + kernel.code[16:])
    damaged = tmp_path / "damaged"
    damaged.write_bytes(data)
    damaged.chmod(0o755)
    script = f"import subprocess\nsubprocess.run([{str(damaged)!r}], capture_output=True)\n"
    outcome = _one(tmp_path, script + "print('wrong sum: 3, not 4')")
    assert outcome.verdict == "refused", outcome
    assert re.match(r"wrong sum: 3, not 4; before that SX0\d{3}: ", outcome.reason)


def test_other_refusals_do_not_hide_a_wrong_result() -> None:
    """A function of a replaced library, or a runtime that is not known: no kernel was lost."""
    functions = Refusal("SX0780", 801, "cublasSgemm", "SX0780: cublasSgemm is not implemented")
    runtime = Refusal("SX0761", 35, "(runtime)", "SX0761: lib.so: unknown")
    kernel = Refusal("SX0904", 999, "k", "SX0904: k: no answer within 120 s")
    done = bench.Done(0, "wrong sum: 3, not 4\n", "", 1.0, False)
    found = declaration.load(FOLDER)[0]
    for refusals, verdict in (((functions, runtime), "wrong"), ((runtime, kernel), "refused")):
        report = RunReport(refusals, (LoadedKernel("m", "k", "other"),))
        assert bench.judge(found, done, report).verdict == verdict


def test_a_timeout_kills_the_whole_group(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    script = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
open({str(pid)!r}, "w").write(str(child.pid))
time.sleep(1000)
"""
    for limit in (3, 60):  # on a busy machine the script may not have begun within the first
        outcome = _one(tmp_path, script, timeout=limit)
        assert outcome.verdict == "timed out"
        if pid.is_file() and pid.read_text():
            break
    child = Path("/proc", pid.read_text())
    end = time.monotonic() + 60
    while child.exists() and "\nState:\tZ" not in (child / "status").read_text():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"surplus": 1, "more": 2}, "unknown keys: more, surplus"),
        ({"what": None, "python": None}, "missing keys: what, python"),
        ({"packages": ["numpy"]}, "packages: 'numpy' is not NAME==VERSION"),
        ({"packages": ["numpy>=2"]}, "NAME==VERSION"),
        ({"packages": "numpy==2"}, "packages: not a list"),
        ({"packages": ["--no-deps=x==1"]}, "NAME==VERSION"),
        ({"python": "3"}, "python: '3'"),
        ({"prints": []}, "prints: nothing would be checked"),
        ({"prints": ["("]}, "prints: '('"),
        ({"also": ["tpu"]}, "also: 'tpu'"),
        ({"script": "../one.py"}, "script: '../one.py'"),
        ({"timeout": "long"}, "timeout"),
        ({"timeout": True}, "timeout"),
        ({"environment": 3}, "environment"),
        ({"what": 3}, "what: not a line of text"),
    ],
)
def test_broken_declarations(tmp_path: Path, changes: dict[str, object], text: str) -> None:
    file = declare(tmp_path, RUNS_SAXPY, **changes)
    told = fails(call(tmp_path), "SX0839")
    assert text in told
    assert str(file) in told


def test_broken_toml(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_bytes(b"application = \xff")
    fails(call(tmp_path), "SX0839")
    (tmp_path / "one.toml").write_text("application = ")
    assert "Invalid value" in fails(call(tmp_path), "SX0839")


def test_a_missing_script(tmp_path: Path) -> None:
    declare(tmp_path, None)
    assert "one.py" in fails(call(tmp_path), "SX0843")


def test_unknown_names(tmp_path: Path) -> None:
    fails(call(tmp_path), "SX0842")
    declare(tmp_path)
    assert "there are one" in fails(call(tmp_path, "two"), "SX0842")
    fails(call(tmp_path, "--only", "two"), "SX0842")
    fails(call(tmp_path, "--only", "("), "SX0842")


def test_a_python_that_is_not_there(tmp_path: Path) -> None:
    declare(tmp_path, python="3.99")
    result = call(tmp_path)
    assert result.exit_code == 2
    assert "SX0844: one: no working python3.99 on PATH" in result.output


def _prepare(tmp_path: Path, limit: float = 170) -> str:
    found = declaration.read(declare(tmp_path, packages=["sassxlate-no-such-package==1.0"]))
    with pytest.raises(UsageError) as caught:
        environment.prepare(found, tmp_path / "env", limit)
    assert not list((tmp_path / "env").glob("*/sassxlate-packages.json"))
    return str(caught.value)


def test_packages_that_cannot_be_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    told = _prepare(tmp_path)
    assert told.startswith("SX0845: sassxlate-no-such-package==1.0: ERROR: No matching")
    assert "No matching distribution" in capfd.readouterr().err  # pip's output passes through

    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")  # discard: it is closed
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "http://127.0.0.1:9/more")
    monkeypatch.setenv("PIP_RETRIES", "1")
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert _prepare(tmp_path).startswith("SX0846")


def test_installing_has_a_limit(tmp_path: Path) -> None:
    assert _prepare(tmp_path, 0.01).startswith("SX0847")


def test_packages_that_are_there_are_reused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pip is started once; another set of packages gets another environment."""
    calls: list[str] = []

    def install(command: list[str], found: declaration.Declaration, limit: float) -> None:
        calls.append(command[2])
        python = Path(command[3], "bin", "python")
        if command[2] == "venv":
            python.parent.mkdir(parents=True)
            python.write_text("")

    monkeypatch.setattr(environment, "_do", install)
    first = declaration.read(declare(tmp_path, packages=["a==1", "b[x]==2"]))
    python = environment.prepare(first, tmp_path / "env", 1)
    assert calls == ["venv", "pip"]
    same = declaration.read(declare(tmp_path, packages=["b[x]==2", "a==1"]))
    other = declaration.read(declare(tmp_path, packages=["a==1", "b[x]==3"]))
    assert environment.prepare(first, tmp_path / "env", 1) == python
    assert calls == ["venv", "pip"]
    assert environment.prepare(other, tmp_path / "env", 1) != python
    assert calls == ["venv", "pip"] * 2
    assert environment.directory_name(same) != environment.directory_name(other)


def _outcome(name: str, version: str, verdict: bench.Verdict = "right") -> bench.Outcome:
    good = bench.Result(verdict, 2.5, "a | b" if verdict != "right" else "")
    return bench.Outcome(name, "App", version, "what", "exact", good, None)


def test_the_page_keeps_other_rows(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{table.BEGIN}\n{table.END}\nafter\n")
    a = declaration.read(declare(tmp_path, packages=["a==1"]))

    def named(name: str, version: str) -> declaration.Declaration:
        return declaration.Declaration(
            name, a.application, a.what, (f"a=={version}",), a.python, a.script, a.prints, "exact"
        )

    both = [named("x", "1"), named("y", "1")]
    table.write(page, [_outcome("x", "a 1"), _outcome("y", "a 1", "wrong")], both)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "**wrong**: `a / b`" in text
    table.write(page, [_outcome("y", "a 1")], both)
    rows = table.rows_of(page.read_text())
    assert [table.name_of(row) for row in rows] == ["x", "y"]
    assert "wrong" not in page.read_text()
    table.write(page, [], [named("x", "2"), named("y", "1")])
    assert [table.name_of(row) for row in table.rows_of(page.read_text())] == ["y"]
    with pytest.raises(UsageError, match="SX0824"):
        table.write(tmp_path / "none.md", [], both)


def test_the_rows_of_the_page_have_declarations() -> None:
    """Every row is of a declaration that exists, with the same version."""
    versions = {d.name: d.version for d in declaration.load(FOLDER)}
    text = PAGE.read_text("utf-8")
    body = text.split(table.BEGIN, 1)[1].split(table.END, 1)[0]
    rows = {table.name_of(row): table.version_of(row) for row in table.rows_of(body)}
    assert {name: versions.get(name) for name in rows} == rows
    lines = [line for line in body.splitlines() if line.strip()]
    assert len(lines) == 2 + len(rows)


def test_every_script_has_a_declaration() -> None:
    scripts = {d.script.name for d in declaration.load(FOLDER)}
    assert scripts | {"checks.py", "libraries.py"} == {file.name for file in FOLDER.glob("*.py")}


def test_checks_of_the_scripts_can_fail(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import checks\n"
        "checks.close('a', [1.0, 2.0], [1.0, 2.1], 1e-3)\n"
        "checks.equal('b', [1, 2], [1, 2, 3])\n"
        "checks.holds('c', False)\n"
        "checks.equal('d', [float('nan')], [float('nan')])\n"
        "checks.done()\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(FOLDER)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    words = [line.replace(":", "").split()[:2] for line in done.stdout.splitlines()]
    assert words == [
        ["wrong", "a"],
        ["wrong", "b"],
        ["wrong", "c"],
        ["right", "d"],
        ["1", "checks"],
    ]
