"""The report of a self-test: one JSON file, or a ZIP archive with all code objects beside it."""

from __future__ import annotations

import io
import json
import platform
import zipfile
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from glob import glob
from pathlib import Path
from typing import Any

from sassxlate import __version__
from sassxlate.output import make_directory, write_whole
from sassxlate.runtime_shim.cache.tag import cache_tag
from sassxlate.runtime_shim.selftest.selftest import FixtureResult, SelftestSettings, as_row

SCHEMA = 1
# Versions and clocks as the kernel and ROCm report them.  Nothing here names a user or a host.
_FILES = (
    *("/opt/rocm/.info/version", "/sys/module/amdgpu/version", "/proc/sys/kernel/osrelease"),
    "/sys/class/kfd/kfd/topology/nodes/*/name",
)
_CARD_FILES = ("device", "revision", "vbios_version", "pp_dpm_sclk", "pp_dpm_mclk")
_AMD = "0x1002"
_LONGEST = 2000


def environment(target: str) -> dict[str, Any]:
    """A description of this machine: program, system, driver and GPUs."""
    files: dict[str, str] = {}
    names = [name for pattern in _FILES for name in sorted(glob(pattern))]
    for card in sorted(glob("/sys/class/drm/card[0-9]*/device")):
        if _text(f"{card}/vendor") == _AMD:
            names += [f"{card}/{name}" for name in _CARD_FILES]
    for name in names:
        text = _text(name)
        if text:
            files[name] = text
    return {
        "sassxlate": __version__,
        "tag": cache_tag(target),
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": _processor(),
        "files": files,
    }


def _text(name: str) -> str:
    try:
        return Path(name).read_text(errors="replace")[:_LONGEST].strip()
    except OSError:
        return ""


def _processor() -> str:
    for line in _text("/proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown"


def counts(results: Sequence[FixtureResult]) -> dict[str, int]:
    """The number of results by outcome."""
    return dict(Counter(result.status for result in results))


def write(
    path: Path,
    results: Sequence[FixtureResult],
    settings: SelftestSettings,
    facts: dict[str, Any],
    seconds: float,
) -> None:
    """Writes the report; ``path`` ends in .json or .zip.  OSError if it cannot be written."""
    archive = path.suffix == ".zip"
    report = {
        "schema": SCHEMA,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": settings.device,
        "target": settings.target,
        "hip": facts,
        "environment": environment(settings.target),
        "seconds": round(seconds, 1),
        "counts": counts(results),
        "fixtures": [as_row(result, whole=not archive) for result in results],
    }
    data = (json.dumps(report, indent=1) + "\n").encode()
    if archive:
        data = _archive(data, results)
    make_directory(path.parent)
    write_whole(path, data)


def _archive(report: bytes, results: Sequence[FixtureResult]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("report.json", report)
        for result in results:
            folder = result.name.replace("/", "-")
            for code in result.codes:
                stem = f"code/{folder}/{code.kernel[:100]}"
                archive.writestr(f"{stem}.hsaco", code.code_object)
                archive.writestr(f"{stem}.s", code.assembly)
    return buffer.getvalue()
