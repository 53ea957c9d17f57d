"""Fixtures of all tests, and the versions of the witnesses in pytest's header."""

from __future__ import annotations

import contextlib
import copy
import fcntl
import functools
import importlib.metadata
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from sassxlate import compiled, output, schemas, toolchain

ROOT = Path(__file__).resolve().parents[1]
COMPILED = compiled.state() == "used"  # before the environment is made clean
# `tools` and `tests` are packages of the checkout.  Last: an installed sassxlate comes first.
sys.path.append(str(ROOT))


# The tester may set where things are, and the tier that programs run by where a test does not say
# it; otherwise the tests decide how programs run.
_KEPT = frozenset(
    {
        "SASSXLATE_SHARED",
        "SASSXLATE_LIB",
        "SASSXLATE_LIBLLVM",
        "SASSXLATE_PROGRAMS",
        "SASSXLATE_TIER",
        "SASSXLATE_ROCM_FOLDER",
        "SASSXLATE_DIST",
        "SASSXLATE_USERLANDS",
        "SASSXLATE_PURE",
    }
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--bless`` rewrites golden files with the current output, or a witness's output."""
    parser.addoption("--bless", action="store_true", help="rewrite golden files")


# Files that take longest, by processor time: they begin first, so that none is left for the end.
# The others come in their order.
LONG_FIRST = (
    "tests/e2e/test_hostcalls.py",
    "tests/e2e/test_kernels.py",
    "tests/e2e/test_strict.py",
    "tests/e2e/test_programs.py",
    "tests/e2e/test_builds.py",
    "tests/mutations/test_chain.py",
    "tests/e2e/test_texture_configs.py",
    "tests/lowering/rules/test_matrix.py",
    "tests/runtime_shim/native/parsers/test_native_parsers.py",
    "tests/runtime_shim/native/cuda/test_ptx.py",
    "tests/mutations/test_code_objects.py",
    "tests/tools/sweep/test_sweep.py",
    "tests/runtime_shim/native/common/test_spawn.py",
    "tests/runtime_shim/service/test_applications.py",
    "tests/runtime_shim/service/test_robust.py",
    "tests/sassxlate/cli/test_hostile.py",
    "tests/runtime_shim/service/test_tier_changes.py",
    "tests/lowering/rules/test_hostcall_waves.py",
    "tests/runtime_shim/native/seam/test_standin.py",
    "tests/runtime_shim/native/seam/test_documents.py",
    "tests/lowering/emulate/test_stencil_meanings.py",
    "tests/lowering/engine/test_gate.py",
    "tests/lowering/test_golden.py",
    "tests/runtime_shim/native/seam/test_selftest.py",
    "tests/lowering/verify/rules/test_waves.py",
    "tests/e2e/test_targets.py",
    "tests/sassxlate/bench/test_peers.py",
    "tests/sassxlate/bench/test_bench.py",
    "tests/llm/engine/test_hybrid_programs.py",
    "tests/lowering/emulate/test_meanings.py",
    "tests/mutations/test_run.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first.  Compiled code calls its functions and reads its constants without
    looking them up, so tests that put others in their place are for the sources."""
    if COMPILED:
        reason = "replaces what compiled modules do not look up: SASSXLATE_PURE=1 runs it"
        for item in items:
            if item.get_closest_marker("sources"):
                item.add_marker(pytest.mark.skip(reason=reason))
    rank = {name: number for number, name in enumerate(LONG_FIRST)}
    items.sort(key=lambda item: rank.get(item.nodeid.partition("::")[0], len(rank)))


def pytest_configure(config: pytest.Config) -> None:
    """The tests' programs start from an environment without the tester's own settings.

    Under nohup or behind a shell's `&` signals are ignored, and children inherit that: programs
    that wait for one would wait forever.
    """
    if hasattr(config.option, "loadscopereorder"):  # of xdist: files with the most tests first
        config.option.loadscopereorder = False
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(
                number,
                signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL,
            )
    for name in list(os.environ):
        if name.startswith("SASSXLATE_") and name not in _KEPT:
            del os.environ[name]
    os.environ["SASSXLATE_ENGINE"] = "rules"  # as without the extra llm


def _package(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def _llvm() -> str:
    try:
        from llvmlite import binding
    except ImportError:
        return "absent"
    return ".".join(map(str, binding.llvm_version_info))


def shared_folder() -> Path | None:
    """The folder with the larger oracles: SASSXLATE_SHARED, or ``shared`` beside the repository."""
    named = os.environ.get("SASSXLATE_SHARED")
    candidate = Path(named) if named else ROOT.parent / "shared"
    return candidate if candidate.is_dir() else None


def pytest_report_header() -> list[str]:
    """One line per witness, so that every report names its witnesses."""
    lines = ["witnesses:"]
    for name, find in toolchain.TOOLS.items():
        tool = find()
        lines.append(f"  {name}: {tool.version} ({tool.origin})" if tool else f"  {name}: absent")
    packages = ", ".join(
        f"{name} {_package(name)}"
        for name in ("tinygrad", "lief", "pyelftools", "numpy", "hypothesis")
    )
    lines.append(f"  LLVM of llvmlite: {_llvm()}")
    lines.append(f"  packages: {packages}")
    lines.append(f"  shared oracles: {'found' if shared_folder() else 'absent'}")
    return lines


def _tool(name: str) -> toolchain.Tool:
    found = toolchain.TOOLS[name]()
    if found is None:
        pytest.skip(f"{name} is not installed (pip install '.[test]')")
    return found


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder with the larger oracles; skips where it is absent."""
    folder = shared_folder()
    if folder is None:
        pytest.skip("the shared oracles are absent (SASSXLATE_SHARED)")
    return folder


@pytest.fixture(scope="session")
def nvdisasm() -> Callable[..., str]:
    """A function that runs nvdisasm and returns its output; skips the test without nvdisasm."""
    return _runner("nvdisasm")


@pytest.fixture(scope="session")
def cuobjdump() -> Callable[..., str]:
    """Runs cuobjdump with the arguments and gives its output; skips where it is absent."""
    return _runner("cuobjdump")


@pytest.fixture(scope="session")
def nvcc(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Runs nvcc with the arguments; skips where it is absent."""
    tool = _tool("nvcc")
    extra: list[str] = []
    if tool.origin.startswith("wheel"):
        # The wheel has libcudart.so.13 alone, without the name that -cudart shared links by.
        links = tmp_path_factory.mktemp("cuda_libraries")
        for library in (Path(tool.command[0]).parent.parent / "lib").glob("lib*.so.*"):
            (links / f"{library.name.partition('.so')[0]}.so").symlink_to(library)
        extra.append(f"-L{links}")
    return _runner("nvcc", extra)


@pytest.fixture(scope="session")
def gxx() -> Callable[..., str]:
    """Runs the host's C++ compiler with the arguments; skips where it is absent."""
    return _runner("g++")


SharedBuild = Callable[[str, Callable[[Path], object]], Path]


@pytest.fixture(scope="session")
def shared_build(tmp_path_factory: pytest.TempPathFactory) -> SharedBuild:
    """``shared_build(name, fill)``: the folder of that name, which ``fill`` has filled once for all
    processes of the test run; its files are only read."""
    place = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # the folder of the run, which has one for each worker
        place = place.parent

    def build(name: str, fill: Callable[[Path], object]) -> Path:
        folder = place / f"shared-{name}"
        with contextlib.closing((place / f"shared-{name}.lock").open("w")) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # the others wait; it ends with the process
            if not folder.is_dir():
                partial = tmp_path_factory.mktemp(name)
                fill(partial)
                partial.rename(folder)  # whole, or not there
        return folder

    return build


def _runner(name: str, extra: Sequence[str] = ()) -> Callable[..., str]:
    tool = _tool(name)

    def run(*arguments: object) -> str:
        done = subprocess.run(
            [*tool.command, *extra, *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{name} {arguments}: {done.stdout}{done.stderr}"
        return done.stdout

    return run


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    """A JSON Schema with no field but those that it names, so that none is forgotten; where it has
    a comment, further fields are meant."""
    made = copy.deepcopy(schema)

    def close(part: Any) -> None:
        if isinstance(part, dict):
            found = cast("dict[str, Any]", part)
            if "properties" in found and "$comment" not in found:
                found.setdefault("additionalProperties", False)
            for value in found.values():
                close(value)

    close(made)
    return made


@functools.cache
def _validator(name: str) -> Any:
    """Of the documents of a command, by the schema's name."""
    jsonschema = pytest.importorskip("jsonschema")
    schema = schemas.schema(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(_closed(schema))


@pytest.fixture(scope="session")
def validate() -> Callable[[str, object], None]:
    """Raises unless a document has a schema, named as for :func:`sassxlate.schemas.schema`."""

    def check(name: str, document: object) -> None:
        _validator(name).validate(document)

    return check


@pytest.fixture
def valid_documents(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every JSON document that a command prints in this process must have its schema; the names of
    those that were printed."""
    printed: list[str] = []
    plain = output.as_json

    def checked(name: str, value: Mapping[str, Any], indent: int | None = 2) -> str:
        text = plain(name, value, indent)
        _validator(name).validate(json.loads(text))
        printed.append(name)
        return text

    monkeypatch.setattr(output, "as_json", checked)
    return printed
