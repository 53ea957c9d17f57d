"""Both builds of the transforms' innermost part: a processor without AVX2 gets the other one."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
FFT = HERE.parents[3] / "runtime_shim" / "native" / "fft"


def test_against_sums_in_long_double(tmp_path: Path, gxx: Callable[..., str]) -> None:
    flags = ("-std=c++17", "-O2", "-Wno-psabi", f"-I{FFT}")
    objects: list[Path] = []
    for build, more in (("baseline", ()), ("avx2", ("-mavx2", "-mfma"))):
        objects.append(tmp_path / f"{build}.o")
        name = f"-DSX_FFT_BUILD={build}"
        gxx(*flags, *more, name, "-c", FFT / "lines.cpp", "-o", objects[-1])
    program = tmp_path / "engines"
    gxx(*flags, HERE / "engines.cpp", FFT / "tables.cpp", *objects, "-pthread", "-o", program)
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout
    assert "baseline float" in done.stdout
