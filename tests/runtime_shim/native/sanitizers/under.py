"""`sassxlate run` with the run time of a sanitizer in the application, and there alone.

``under.py LIBRARIES LOG-PREFIX KIND run [OPTIONS] -- COMMAND``: KIND is asan, ubsan or tsan; the
sanitizer writes its reports to LOG-PREFIX.PID.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

RUNTIMES = {"asan": "libasan.so", "tsan": "libtsan.so", "ubsan": None}
ADDR_NO_RANDOMIZE = 0x0040000  # personality(2)

# The application is not instrumented, and handles its own signals; memory that it never gives back
# is the system's.
OPTIONS = {
    "asan": "ASAN_OPTIONS=detect_leaks=0:handle_segv=0:handle_sigbus=0:handle_abort=0"
    ":handle_sigill=0:handle_sigfpe=0:verify_asan_link_order=0:allocator_may_return_null=1:exitcode=66"
    ":detect_stack_use_after_return=0:strict_string_checks=1:detect_invalid_pointer_pairs=0",
    "ubsan": "UBSAN_OPTIONS=print_stacktrace=1",
    "tsan": "TSAN_OPTIONS=halt_on_error=0:exitcode=0:report_signal_unsafe=0:handle_segv=0"
    ":handle_sigbus=0:handle_abort=0:handle_sigill=0:handle_sigfpe=0:second_deadlock_stack=1"
    ":allocator_may_return_null=1:history_size=4:die_after_fork=0",
}


def runtime_of(kind: str) -> str | None:
    """The path of the sanitizer's shared run time; None if the libraries bring it themselves."""
    name = RUNTIMES[kind]
    if name is None:
        return None
    return found(name)


def found(name: str) -> str:
    """The path of one of the compiler's libraries."""
    done = subprocess.run(
        ["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True
    )
    return str(Path(done.stdout.strip()).resolve())


def main() -> None:
    """Patches what the application's environment will be, then is the command."""
    from sassxlate import cli
    from sassxlate.runtime_shim import application

    libraries, log, kind = sys.argv[1:4]
    runtime = runtime_of(kind)
    plain = application.environment

    def environment(
        base: Mapping[str, str],
        libraries: Path,
        settings: Mapping[str, str],
        replaced: Sequence[str] = application.REPLACED,
    ) -> dict[str, str]:
        result = plain(base, libraries, settings, replaced)
        if runtime:
            # First of all: its functions have to be found before the C library's.  C++'s is there
            # from the start: AddressSanitizer stops at the first exception of a program that has
            # its own.
            result["LD_PRELOAD"] = f"{runtime}:{found('libstdc++.so.6')}:{result['LD_PRELOAD']}"
        name, _, value = OPTIONS[kind].partition("=")
        suppressions = Path(__file__).with_name(f"{kind}.supp")
        if suppressions.is_file():
            value += f":suppressions={suppressions}"
        result[name] = f"{value}:log_path={log}"
        return result

    application.environment = environment
    if kind == "tsan":
        # Its shadow leaves programs few places.
        ctypes.CDLL(None).personality(ctypes.c_ulong(ADDR_NO_RANDOMIZE))
    os.environ["SASSXLATE_LIB"] = libraries
    sys.argv[1:] = sys.argv[4:]
    cli.main()


if __name__ == "__main__":
    main()
