"""The self-test: every fixture on a device, each in separate processes, and its outcome.

A fixture that hangs, crashes or loses the device is one row of the report; the others continue.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from sassxlate.errors import SassxlateError, ShimError

Kind = Literal["instructions", "kernel", "program"]
Status = Literal["pass", "fail", "refused", "error", "crash", "hang", "not run"]
DeviceKind = Literal["hip", "emulator"]
EXIT_REFUSED = 3
_TAIL = 4000  # most characters of a process's output
_LISTING = 400  # lines of assembly in a report that is one JSON file
_LOG_LINES = 40
_PATIENCE_S = 10.0  # for a killed process to end: one that waits for a GPU may not
_RECOVERY_S = (0.0, 5.0, 15.0)  # before each check whether the device works again


@dataclass(frozen=True, slots=True)
class Fixture:
    """One thing to run; ``name`` is unique, ``file`` its cubin or executable."""

    name: str
    kind: Kind
    subject: str  # a group of instructions, a kernel, a program
    file: Path | None = None
    arch: int = 0
    truth: str = ""  # what the program printed on an NVIDIA GPU


@dataclass(frozen=True, slots=True)
class Code:
    """A translated kernel of a fixture."""

    kernel: str
    code_object: bytes
    assembly: str


@dataclass(slots=True)
class FixtureResult:
    """The outcome of a fixture; ``found`` is its process's output, ``lines`` describe errors."""

    name: str
    kind: Kind
    status: Status
    seconds: float = 0.0
    exit_status: int | None = None
    lines: list[str] = field(default_factory=list[str])
    found: dict[str, Any] = field(default_factory=dict[str, Any])
    output: str = ""
    errors: str = ""
    codes: list[Code] = field(default_factory=list[Code])


# --- Fixtures --------------------------------------------------------------------------------


def data_folder() -> Path:
    """The fixtures, in a checkout or in the installed package; ShimError SX0729 if neither."""
    folder = Path(str(resources.files("sassxlate").joinpath("selftest_data")))
    if not (folder / "kernels").is_dir():
        raise ShimError("SX0729", f"no fixtures in {folder}")
    return folder


def fixtures() -> list[Fixture]:
    """All fixtures, the simplest first: early failures explain later ones."""
    from sassxlate.runtime_shim.selftest.contracts.contracts import CONTRACTS
    from sassxlate.runtime_shim.selftest.instructions.vector import groups

    folder = data_folder()
    found = [Fixture(f"instructions/{group}", "instructions", group) for group in groups()]
    folders = (folder / "kernels").glob("sm_*")
    architectures = sorted(int(path.name.removeprefix("sm_")) for path in folders)
    for name in CONTRACTS:
        for arch in architectures:
            cubin = folder / "kernels" / f"sm_{arch}" / f"{name}.cubin"
            if cubin.is_file():
                found.append(Fixture(f"kernel/{name}/sm_{arch}", "kernel", name, cubin, arch))
    for provenance in sorted((folder / "programs").glob("*.provenance.toml")):
        name = provenance.name.partition(".")[0]
        truth = folder / "programs" / "truth" / "sm_90" / f"{name}.small.txt"
        text = truth.read_text() if truth.is_file() else ""
        file = folder / "programs" / name
        if not file.is_file():  # a published wheel has none: they need a newer glibc than the rest
            continue
        found.append(Fixture(f"program/{name}", "program", name, file, 90, text))
    return found


# --- Running one -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SelftestSettings:
    """Settings: the device and the processor that it is, the time limit of a fixture, the number
    of inputs per kernel."""

    device: DeviceKind
    time_limit: float
    seeds: int
    work: Path  # a private directory
    target: str
    emulated_card: bool = False  # of "hip": AMD's library without a GPU


def run_fixture(fixture: Fixture, settings: SelftestSettings) -> FixtureResult:
    """Runs one fixture, whatever happens to its process."""
    result_file = settings.work / "result.json"
    result_file.unlink(missing_ok=True)
    command = [*_run_command(settings), *_application(fixture, settings, result_file)]
    environment = dict(os.environ)
    if fixture.arch:
        environment["SASSXLATE_CC"] = f"{fixture.arch // 10}.{fixture.arch % 10}"
    begin = time.monotonic()
    status, output, errors = _in_time(command, environment, settings)
    result = FixtureResult(
        fixture.name, fixture.kind, "fail", round(time.monotonic() - begin, 3), status
    )
    result.output, result.errors = output, errors
    if result_file.is_file():
        result.found = json.loads(result_file.read_bytes())
    result.status, result.lines = _judged(fixture, result)
    if fixture.file is not None:
        try:
            result.codes = _translated(fixture, settings.target)
        except Exception as error:  # the report is worth more than its attachments
            result.lines.append(f"not attached: {type(error).__name__}: {error}")
    return result


def _run_command(settings: SelftestSettings) -> list[str]:
    """What starts an application on the device."""
    command = [sys.executable, "-P", "-m", "sassxlate", "run", "--device", settings.device]
    if settings.emulated_card:
        command.append("--emulated-card")
    return [*command, "--target", settings.target, "--"]


def _application(fixture: Fixture, settings: SelftestSettings, result: Path) -> list[str]:
    module = [sys.executable, "-P", "-m"]
    if fixture.kind == "instructions":
        child = "sassxlate.runtime_shim.selftest.instructions.vector"
        return [*module, child, fixture.subject, str(result), settings.target]
    assert fixture.file is not None
    if fixture.kind == "kernel":
        child = "sassxlate.runtime_shim.selftest.kernel"
        arguments = (str(fixture.file), fixture.subject, str(result), str(settings.seeds))
        return [*module, child, *arguments]
    # A wheel may have lost the execute permission.
    program = settings.work / fixture.subject
    program.write_bytes(fixture.file.read_bytes())
    program.chmod(0o700)
    return [str(program)]


def _in_time(
    command: Sequence[str], environment: dict[str, str], settings: SelftestSettings
) -> tuple[int | None, str, str]:
    """(exit status, output, errors) of a command; None: it was killed at its time limit."""
    # Files, not pipes: a process that inherits a pipe could delay its end.
    with open(settings.work / "out", "wb") as out, open(settings.work / "err", "wb") as err:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            cwd=settings.work,
            start_new_session=True,
        )
        status: int | None
        try:
            status = process.wait(settings.time_limit)
        except subprocess.TimeoutExpired:
            status = None
        except BaseException:
            _kill(process)
            raise
        if status is None:
            _kill(process)
    tails = [(settings.work / name).read_bytes()[-_TAIL:] for name in ("out", "err")]
    texts = [tail.decode(errors="replace") for tail in tails]
    home = os.path.expanduser("~")
    if len(home) > 1:  # a report must not name its user
        texts = [text.replace(home, "~") for text in texts]
    return status, texts[0], texts[1]


def _kill(process: subprocess.Popen[bytes]) -> None:
    # Kill its whole session: `run`, the application, and the application's children.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_PATIENCE_S)


# --- Judging one -----------------------------------------------------------------------------


def _judged(fixture: Fixture, result: FixtureResult) -> tuple[Status, list[str]]:
    status, found = result.exit_status, result.found
    if status is None:
        return "hang", ["did not end in time and was killed"]
    if status == EXIT_REFUSED:
        lines = [line for line in result.errors.splitlines() if re.search(r"\bSX\d{4}\b", line)]
        ours = any("SX09" in line for line in lines)  # the service's fault, not the kernel's
        return "error" if ours else "refused", list(dict.fromkeys(lines))
    if status > 128 or status < 0:
        number = status - 128 if status > 0 else -status
        return "crash", [f"ended by signal {number}"]
    if fixture.kind == "program":
        return _judged_program(fixture, result)
    if "error" in found:
        error = found["error"]
        return "error", [f"{error['call']} gives error {error['code']}"]
    if status or not found.get("complete"):
        return "error", [f"ended with status {status} and without a whole result"]
    if fixture.kind == "kernel":
        wrong = [row for row in found["seeds"] if row["wrong"]]
        lines = [
            f"seed {row['seed']}: {row['wrong']} of {row['words']} words differ, the first at"
            f" {row['first_wrong'][0][0]}: {row['first_wrong'][0][1]:#010x}, not"
            f" {row['first_wrong'][0][2]:#010x}"
            for row in wrong
        ]
    else:
        lines = [_instruction_line(row) for row in found["wrong"]]
    return ("fail" if lines else "pass"), lines


def _instruction_line(row: Any) -> str:
    if isinstance(row, str):
        return f"{row} errs by more than is allowed"
    first = row["first"][0]
    values = {name: ", ".join(first[name]) for name in ("inputs", "actual", "expected")}
    return (
        f"{row['instruction']}: {row['lanes']} lanes differ, lane {first['lane']} of"
        f" {values['inputs']} gives {values['actual']}, not {values['expected']}"
    )


def _judged_program(fixture: Fixture, result: FixtureResult) -> tuple[Status, list[str]]:
    lines: list[str] = []
    printed = result.output.splitlines()
    if result.exit_status:
        lines.append(f"ended with status {result.exit_status}")
    if not printed or printed[-1] != "PASS":
        lines.append("did not print PASS")
    # Integers do not depend on the architecture; other lines may.
    wanted = [line for line in fixture.truth.splitlines() if line.startswith("int: ")]
    got = [line for line in printed if line.startswith("int: ")]
    lines += [f"printed {a!r}, an H200 {b!r}" for a, b in zip(got, wanted, strict=False) if a != b]
    if wanted and len(got) != len(wanted):
        lines.append(f"printed {len(got)} integers, an H200 {len(wanted)}")
    return ("fail" if lines else "pass"), lines


def _translated(fixture: Fixture, target: str) -> list[Code]:
    """The fixture's kernels as loaded on the device: translation depends on nothing else."""
    from sassxlate.disasm.containers import load
    from sassxlate.lowering.pipeline import translate_kernel
    from sassxlate.lowering.target import target_named

    assert fixture.file is not None
    codes: list[Code] = []
    for _, cubin in load(fixture.file).cubins():
        if cubin.arch != fixture.arch:
            continue
        for kernel in cubin.kernels:
            with suppress(SassxlateError):
                done = translate_kernel(cubin, kernel.name, target=target_named(target))
                codes.append(Code(kernel.name, done.code_object, done.assembly))
    return codes


# --- Running all -----------------------------------------------------------------------------


def device_is_well(settings: SelftestSettings) -> bool:
    """Whether the device still runs code: checked after a serious failure on it."""
    if settings.device == "emulator" or settings.emulated_card:
        return True
    from sassxlate.runtime_shim.hip_probe import find_hip

    for seconds in _RECOVERY_S:
        time.sleep(seconds)
        if find_hip(settings.target).path is not None:
            return True
    return False


def run_all(
    chosen: Iterable[Fixture], settings: SelftestSettings, tell: Callable[[FixtureResult], None]
) -> list[FixtureResult]:
    """Every fixture in order; ``tell`` is called for each.  Ends early if the device is lost."""
    results: list[FixtureResult] = []
    lost = False
    for fixture in chosen:
        if lost:
            result = FixtureResult(
                fixture.name, fixture.kind, "not run", lines=["the device is lost"]
            )
        else:
            result = run_fixture(fixture, settings)
            if result.status in ("hang", "crash", "error"):
                if settings.device == "hip":
                    result.found["kernel_log"] = kernel_log()
                lost = not device_is_well(settings)
        results.append(result)
        tell(result)
    return results


def kernel_log() -> list[str]:
    """The newest lines that AMD's driver wrote to the system's log, if it may be read."""
    try:
        done = subprocess.run(
            ["dmesg"], capture_output=True, timeout=5, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError):
        return []
    lines = done.stdout.decode(errors="replace").splitlines()
    return [line for line in lines if re.search(r"amdgpu|kfd", line)][-_LOG_LINES:]


def device_facts(settings: SelftestSettings) -> dict[str, Any]:
    """HIP's version and the device's properties."""
    result = settings.work / "facts.json"
    command = _run_command(settings)
    child = "sassxlate.runtime_shim.selftest.instructions.vector"
    command += [sys.executable, "-P", "-m", child, "facts", str(result), settings.target]
    status, _, errors = _in_time(command, dict(os.environ), settings)
    if not result.is_file():
        return {"error": f"status {status}: {errors}"}
    facts: dict[str, Any] = json.loads(result.read_bytes())
    facts.pop("complete", None)
    return facts


def work_folder() -> tempfile.TemporaryDirectory[str]:
    """A private directory for results and copies."""
    return tempfile.TemporaryDirectory(prefix="sassxlate-selftest-")


# --- The report ------------------------------------------------------------------------------


def as_row(result: FixtureResult, *, whole: bool) -> dict[str, Any]:
    """A result as JSON.  ``whole``: with the code of failed fixtures, for a report in one file."""
    row = asdict(result)
    with_code = whole and result.status not in ("pass", "not run")
    row["codes"] = [_code_row(code, whole=with_code) for code in result.codes]
    if result.status == "pass":
        row["output"] = row["errors"] = ""
    return row


def _code_row(code: Code, *, whole: bool) -> dict[str, Any]:
    data = code.code_object
    digest = hashlib.sha256(data).hexdigest()
    row: dict[str, Any] = {"kernel": code.kernel, "bytes": len(data), "sha256": digest}
    if whole:
        row["code_object"] = base64.b64encode(data).decode()
        row["assembly"] = code.assembly.splitlines()[:_LISTING]
    return row
