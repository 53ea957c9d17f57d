"""Starts an application with our libraries in place of NVIDIA's, and stands in for it while it
runs.

Streams, signals and exit status pass through.  Cheap to import: a part of every start.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import signal
import stat
import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sassxlate.errors import ShimError, UsageError

# NVIDIA's libraries that ours can take the place of, each in a folder of its name (cublas: cuBLAS
# and cuBLASLt); and those that do unless something else is said: NVIDIA's own refuse to work here.
REPLACEABLE = ("cufft", "cublas")
REPLACED = ("cufft", "cublas")
REPLACED_ON_CARDS = ("cufft",)  # and cublas, where hipBLAS is found (hip_blas.py)
# The folders of those that are other libraries on a card.
_ON_CARDS = {"cublas": "hipblas"}

# The capabilities whose code can be read (disasm.sass.tables, which is no cheap import).
_CAPABILITIES = ("75", "80", "86", "87", "88", "89", "90", "100", "101", "103", "110", "120", "121")
_ARCH = re.compile(r"(?:sm_)?(\d{1,2})\.?(\d)[af]?")

PRELOAD = "libsassxlate_preload.so"
_ELF_X86_64 = 62
_PT_INTERP = 3

# Signals sent to this process are meant for the application.  The terminal's signals go to its
# whole foreground group, and so reach the application by themselves.
_FORWARDED = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
    signal.SIGWINCH,
)
_LOOK_S = 0.5
_SI_KERNEL = 0x80


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused request of the application.

    ``kernel``: its name; "*" of a whole module; of a statically linked runtime "(runtime)", and of
    a replaced library (its codes begin with SX078) a function.
    """

    code: str
    cuda_error: int
    kernel: str
    line: str

    @property
    def lost(self) -> bool:
        """Whether launches were lost: of this kernel, or of all that the module has."""
        return self.kernel != "(runtime)" and not self.code.startswith("SX078")


@dataclass(frozen=True, slots=True)
class LoadedKernel:
    """A kernel that was used: its keys in the cache, and its mangled name."""

    module_key: str
    kernel_key: str
    name: str


@dataclass(frozen=True, slots=True)
class LoadedModule:
    """A module of which kernels were used: its key, the capability of the device that its code is
    for, and the program or library that it is a part of."""

    key: str
    cc: int
    file: str


@dataclass(frozen=True, slots=True)
class Replaced:
    """A library of NVIDIA's that the application used, and what carried it out instead."""

    library: str
    by: str


@dataclass(frozen=True, slots=True)
class RunReport:
    """The native libraries' record of a run, each item once."""

    refusals: tuple[Refusal, ...]
    kernels: tuple[LoadedKernel, ...]
    forgiven: tuple[str, ...] = ()  # what was wrong and did no harm, a line each
    replaced: tuple[Replaced, ...] = ()
    modules: tuple[LoadedModule, ...] = ()
    warned: tuple[str, ...] = ()  # what may differ from an NVIDIA GPU's results, a line each

    @property
    def lost(self) -> tuple[Refusal, ...]:
        """The refusals for which something was not launched."""
        return tuple(refusal for refusal in self.refusals if refusal.lost)

    def warning(self, program: str) -> str:
        """That the program's results cannot be trusted, in a line; "" if nothing was refused."""
        if not self.refusals:
            return ""
        first = (self.lost or self.refusals)[0]
        kernel = first.kernel if first.lost and first.kernel != "*" else ""
        what = "kernels of a module were not run" if first.lost else "a request was refused"
        if kernel:
            what = f"kernel {kernel} was not run"
        more = f", and {len(self.refusals) - 1} more" if len(self.refusals) > 1 else ""
        return f"DO NOT TRUST the output of {program}: {what} ({first.code}){more}"


def find(name: str, search: str) -> Path:
    """The file for ``name``, as execvp would find it on the path ``search``.

    Raises:
        ShimError: SX0701 not found, SX0702 not executable.
    """
    if "/" in name:
        candidates = [Path(name)]
    else:
        candidates = [Path(entry or ".", name) for entry in search.split(":")]
    blocked: Path | None = None
    for path in candidates:
        if path.is_file():
            if os.access(path, os.X_OK):
                return path
            blocked = blocked or path
        elif path.is_dir() and "/" in name:
            blocked = path
    if blocked is not None:
        raise ShimError("SX0702", f"{blocked} is not an executable file")
    raise ShimError("SX0701", f"{name}: no such program")


def check(path: Path) -> None:
    """Refuse files into which our libraries cannot be loaded; scripts pass.

    Raises:
        ShimError: SX0702 unreadable or not a program, SX0703 not a 64-bit x86-64 program,
            SX0704 linked statically, SX0730 set-user-ID and the like.
    """
    try:
        with open(path, "rb") as file:
            head = file.read(64)
            if head[:2] == b"#!":
                return
            if head[:4] != b"\x7fELF":
                raise ShimError("SX0702", f"{path} is neither an ELF program nor a script")
            if len(head) < 64 or head[4] != 2 or head[5] != 1:
                raise ShimError("SX0703", f"{path} is not a 64-bit program")
            kind, machine = struct.unpack_from("<HH", head, 16)
            if machine != _ELF_X86_64:
                raise ShimError("SX0703", f"{path} is not an x86-64 program (machine {machine})")
            if kind not in (2, 3):
                raise ShimError("SX0702", f"{path} is an ELF file, but no program (type {kind})")
            offset, size, count = struct.unpack_from("<Q14xHH", head, 32)
            file.seek(offset)
            table = file.read(size * count)
    except OSError as error:
        raise ShimError("SX0702", f"{path}: {error.strerror}") from error
    except struct.error:
        raise ShimError("SX0702", f"{path}: its ELF header is damaged") from None
    if size < 56 or len(table) < size * count:
        raise ShimError("SX0702", f"{path}: its program headers are damaged")
    kinds = {struct.unpack_from("<I", table, n * size)[0] for n in range(count)}
    if _PT_INTERP not in kinds:
        raise ShimError("SX0704", f"{path} is linked statically: no library can be put in it")
    if _privileged(path):
        text = f"{path} gets other rights than ours when it starts: no library can be put in it"
        raise ShimError("SX0730", text)


def _privileged(path: Path) -> bool:
    """Whether the dynamic linker will ignore libraries in the environment (ld.so(8))."""
    status = os.stat(path)
    if os.statvfs(path).f_flag & os.ST_NOSUID:
        return False
    if status.st_mode & stat.S_ISUID and status.st_uid != os.getuid():
        return True
    if status.st_mode & stat.S_ISGID and status.st_gid != os.getgid():
        return True
    try:
        return os.getuid() != 0 and bool(os.getxattr(path, "security.capability"))
    except OSError:
        return False


def replacements(text: str) -> tuple[str, ...]:
    """The libraries that ``--replace`` names, without repetitions.

    Raises:
        UsageError: SX0719, a word is unknown.
    """
    words = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    for word in words:
        if word not in (*REPLACEABLE, "none"):
            known = ", ".join(REPLACEABLE)
            raise UsageError("SX0719", f"--replace {word}: unknown; {known} or none")
    if "none" in words and len(words) > 1:
        raise UsageError("SX0719", "--replace none goes with no other word")
    return () if "none" in words else words


def capability(text: str) -> str:
    """The compute capability that ``--arch`` names: "9.0" of sm_90, sm_90a, 90 or 9.0.

    Raises:
        UsageError: SX0719, not one that the translator reads the code of.
    """
    found = _ARCH.fullmatch(text)
    if found is None or f"{found[1]}{found[2]}" not in _CAPABILITIES:
        known = ", ".join(f"sm_{number}" for number in _CAPABILITIES)
        raise UsageError("SX0719", f"--arch {text}: not one of {known}")
    return f"{found[1]}.{found[2]}"


def defaults(card: bool, hipblas: bool = False) -> tuple[str, ...]:
    """The libraries that are replaced where ``--replace`` is not given, on a card or without one;
    ``hipblas``: whether there is a hipBLAS for the card."""
    return REPLACED_ON_CARDS if card and not hipblas else REPLACED


def folders(replaced: Sequence[str], card: bool) -> tuple[str, ...]:
    """The folders of the libraries that carry out what is replaced, on a card or without one."""
    return tuple(_ON_CARDS.get(word, word) if card else word for word in replaced)


def host_blas() -> Path | None:
    """The BLAS that NumPy's wheel brings, without loading NumPy; None: NumPy has another one."""
    spec = importlib.util.find_spec("numpy")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent.parent / "numpy.libs"
    return next(iter(sorted(folder.glob("libscipy_openblas*.so*"))), None)


def environment(
    base: Mapping[str, str],
    libraries: Path,
    settings: Mapping[str, str],
    replaced: Sequence[str] = REPLACED,
) -> dict[str, str]:
    """The application's environment: ``base``, our libraries first, and ``settings``."""
    result = {**base, **settings}
    # A `run` inside of another one gets what its own options say, not the outer one's libraries.
    every = {
        str(folder)
        for folder in (libraries, *(libraries / r for r in (*REPLACED, *_ON_CARDS.values())))
    }
    # The dynamic linker reads the first, our preloaded library the second.
    ours = [str(folder) for folder in (libraries, *(libraries / r for r in replaced))]
    result["SASSXLATE_REPLACE"] = ",".join(replaced) or "none"
    old = base.get("LD_LIBRARY_PATH")
    others = [p for p in old.split(":") if p not in every] if old else []
    result["LD_LIBRARY_PATH"] = ":".join((*ours, *others))
    if (libraries / PRELOAD).is_file():
        # By name alone, found through LD_LIBRARY_PATH: a path in LD_PRELOAD may hold no space.
        loaded = [p for p in base.get("LD_PRELOAD", "").split(":") if p not in ("", PRELOAD)]
        result["LD_PRELOAD"] = ":".join((PRELOAD, *loaded))
    return result


def start_and_wait(path: Path, args: Sequence[str], env: Mapping[str, str]) -> int:
    """Run the program; returns its exit status, or 128 plus the signal's number, as in a shell.

    Raises:
        ShimError: SX0702, the system does not start it.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    watched = {*_FORWARDED, signal.SIGCHLD}
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if it were ignored, there would be no status
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    try:
        try:
            # Python ignores these two; the application expects what every program gets.
            pid = os.posix_spawn(
                path, list(args), env, setsigmask=before, setsigdef=(signal.SIGPIPE, signal.SIGXFSZ)
            )
        except OSError as error:
            raise ShimError("SX0702", f"{path}: {error.strerror}") from error
        return _wait(pid, watched)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _wait(pid: int, watched: set[signal.Signals]) -> int:
    while True:
        # With a timeout: if there is another thread, SIGCHLD may go to it and be lost.
        info = signal.sigtimedwait(watched, _LOOK_S)
        if info is None or info.si_signo == signal.SIGCHLD:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
        elif info.si_code != _SI_KERNEL:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, info.si_signo)


def read_report(path: Path) -> RunReport:
    """The contents of the report file; other lines are skipped."""
    refusals: dict[Refusal, None] = {}
    kernels: dict[LoadedKernel, None] = {}
    forgiven: dict[str, None] = {}
    replaced: dict[Replaced, None] = {}
    modules: dict[LoadedModule, None] = {}
    warned: dict[str, None] = {}
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    for row in text.splitlines():
        match row.split("\t"):
            case ["refused", code, error, kernel, line] if error.isdecimal():
                refusals[Refusal(code, int(error), kernel, line)] = None
            case ["forgiven", code, line]:
                forgiven[f"{code}: {line}"] = None
            case ["warned", _, line]:
                warned[line] = None
            case ["kernel", module_key, kernel_key, name]:
                kernels[LoadedKernel(module_key, kernel_key, name)] = None
            case ["module", key, cc, file] if cc.isdecimal():
                modules[LoadedModule(key, int(cc), file)] = None
            case ["replaced", library, by]:
                replaced[Replaced(library, by)] = None
            case _:
                pass
    return RunReport(
        tuple(refusals), tuple(kernels), tuple(forgiven), tuple(replaced), tuple(modules),
        tuple(warned),
    )  # fmt: skip


def missing_libraries(path: Path, env: Mapping[str, str]) -> list[str]:
    """The shared libraries that the dynamic linker does not find for the program."""
    import subprocess

    try:
        done = subprocess.run(
            [path],
            env={**env, "LD_TRACE_LOADED_OBJECTS": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    lines = done.stdout.splitlines()
    return [line.split()[0] for line in lines if line.rstrip().endswith("=> not found")]
