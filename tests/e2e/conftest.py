"""The self-checking programs: built once a session, run under ``sassxlate run``."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tools.generate import programs as build_programs
from tools.silicon import program_truth

ROOT = Path(__file__).resolve().parents[2]


TIME_LIMIT = 600.0  # seconds a program may take, its translation included, on a busy machine


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended."""

    status: int
    output: str
    errors: str

    def check(self, name: str, size: str, *, arch: int | None) -> None:
        """Fails the test unless the program passed and printed what the GPU printed.

        ``arch`` is the architecture whose code ran, or None where that is the device's choice.
        """
        shown = f"{name} {size}: status {self.status}\n{self.output}\n{self.errors}"
        assert self.status == 0, shown
        assert self.output.splitlines()[-1] == "PASS", shown
        truth = program_truth.load_truth(name, size)
        if truth is None:
            return  # test_truth_is_complete says so
        same_code = arch == 90 and program_truth.truth_toolkit() == built_with()
        different = program_truth.differences(truth, self.output, same_code=same_code)
        assert not different, f"{shown}\n" + "\n".join(different)


def built_with() -> str | None:
    """The release of the nvcc that builds here."""
    try:
        return build_programs.find_toolkit().release
    except build_programs.BuildError:
        return None


Run = Callable[..., Outcome]
Build = Callable[..., Path]


@pytest.fixture(scope="session")
def run_program(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs an executable under ``sassxlate run``; skips where the command is not built."""
    if importlib.util.find_spec("sassxlate.cli.run") is None:
        pytest.skip("sassxlate has no run command here")
    from sassxlate import runtime_shim

    libraries = Path(str(runtime_shim.__file__)).parent / "lib"
    if not (libraries / "libcuda.so.1").is_file():
        pytest.skip("the native libraries are not built (pip install .)")
    cache = tmp_path_factory.mktemp("cache")

    def run(
        executable: Path,
        arguments: Sequence[str] = (),
        *,
        options: Sequence[str] = (),
        environment: dict[str, str] | None = None,
        stdin: str = "",
        time_limit: float = TIME_LIMIT,
    ) -> Outcome:
        command = [sys.executable, "-P", "-m", "sassxlate", "run", *options, "--"]
        command += [executable, *arguments]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="surrogateescape",  # kernels print any byte
            check=False,
            input=stdin,
            timeout=time_limit,
            env={
                **os.environ,
                "SASSXLATE_CACHE_DIR": str(cache),
                **(environment or {}),
            },
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def compiled(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[Path, Sequence[str], int], Path]:
    """Compiles a source file with nvcc for one architecture, once a session for the same flags;
    skips where there is no nvcc.

    The processes of ``pytest -n`` share what they compile.
    """
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("there is no nvcc here")
    folder = _shared(tmp_path_factory) / "compiled"

    def go(source: Path, flags: Sequence[str], arch: int) -> Path:
        file = source.with_suffix(".cu")
        key = hashlib.blake2b(f"{file} {flags} {arch}".encode(), digest_size=8).hexdigest()
        program = folder / key / file.stem
        if not program.is_file():
            program.parent.mkdir(parents=True, exist_ok=True)
            made = program.with_name(f"{file.stem}.{os.getpid()}")
            command = [nvcc, *flags, f"-arch=sm_{arch}", str(file), "-o", str(made)]
            subprocess.run(command, check=True, capture_output=True)
            made.replace(program)
        return program

    return go


def _shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of this run of pytest see."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Builds a program once a session for each of its forms; skips where there is no nvcc.

    The processes of ``pytest -n`` share what they build.
    """
    try:
        toolkit = build_programs.find_toolkit()
    except build_programs.BuildError as error:
        pytest.skip(str(error))
    folder = _shared(tmp_path_factory) / "programs"
    programs = build_programs.load_programs()

    def built(
        name: str, archs: Sequence[int], *, cudart: str = "static", strip: bool = False
    ) -> Path:
        form = "-".join([*map(str, archs), cudart, *(["stripped"] if strip else [])])
        path: Path = folder / form / name
        if not path.is_file():
            made = path.with_name(f"{name}.{os.getpid()}")
            build_programs.build_program(
                programs[name], made, archs, cudart=cudart, strip=strip, toolkit=toolkit
            )
            made.replace(path)
        return path

    return built
