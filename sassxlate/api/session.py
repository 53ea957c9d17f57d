"""Our driver library in this process, and its errors as the package's own."""

from __future__ import annotations

import ctypes
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sassxlate import errors
from sassxlate.errors import SassxlateError, ShimError, UsageError, Where

Kind = Literal["auto", "emulator", "hip"]
_CC = "9.0"  # of a device for which nothing else is said; code of every architecture runs
_SUCCESS = 0
# The area of a code -> the error's type.
_TYPES = {
    "SX01": errors.ContainerError, "SX02": errors.DecodeError, "SX03": errors.CfgError,
    "SX04": errors.LoweringError, "SX05": errors.EncodeError, "SX06": errors.EmulatorError,
    "SX07": errors.ShimError, "SX08": errors.UsageError, "SX09": errors.ServiceError,
    "SX10": errors.ModelError,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Settings:
    """What a session is for; a process has one."""

    kind: Kind
    target: str
    strict: bool


class Session:
    """The library, initialised; ``call`` raises typed errors."""

    def __init__(self, settings: Settings) -> None:
        from sassxlate.runtime_shim import paths
        from sassxlate.runtime_shim.cache.store import size_cap
        from sassxlate.runtime_shim.cache.tag import cache_tag
        from sassxlate.runtime_shim.hip_probe import chosen
        from sassxlate.runtime_shim.service import client

        self.settings = settings
        libraries = paths.library_dir()
        size_cap()
        tag, cache = cache_tag(settings.target), paths.cache_dir()
        error = paths.unusable(cache)
        if error is not None:
            raise error
        kind = "emulator" if settings.strict else settings.kind
        found = chosen(kind, settings.target)
        self.emulated = found is None
        descriptor, name = tempfile.mkstemp(prefix="report-", dir=paths.runtime_dir())
        with os.fdopen(descriptor, "wb") as file:
            file.write(b"sassxlate-report 1\n")
        self._report, self._seen = Path(name), 0
        variables = client.library_settings(paths.socket_path(tag, cache), cache, tag)
        variables |= {
            "SASSXLATE_TARGET": settings.target,
            "SASSXLATE_REPORT": name,
            "SASSXLATE_STRICT": "1" if settings.strict else "0",
            "SASSXLATE_HIP": (found and found.path) or str(libraries / "libamdhip64.so"),
            "SASSXLATE_DEVICES": found.devices if found else "",
        }
        if found and found.visible is not None:
            variables["HIP_VISIBLE_DEVICES"] = found.visible
        variables.setdefault("SASSXLATE_CC", os.environ.get("SASSXLATE_CC", _CC))
        os.environ.update(variables)  # the library reads them
        try:
            self._library = ctypes.CDLL(str(libraries / "libcuda.so.1"))
        except OSError as failed:
            raise ShimError("SX0705", str(failed)) from None
        self._context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), 0)

    def here(self, name: str, *arguments: Any, where: Where | None = None) -> None:
        """A call in the device's context, from any thread; raises as :meth:`call`."""
        self.call("cuCtxSetCurrent", self._context)
        self.call(name, *arguments, where=where)

    def call(self, name: str, *arguments: Any, where: Where | None = None) -> None:
        """A call of the driver; a refusal is the error that caused it, else ShimError SX0882."""
        status = int(getattr(self._library, name)(*arguments))
        if status == _SUCCESS:
            return
        refused = self._refused(where)
        if refused is not None:
            raise refused
        raise ShimError("SX0882", f"{name}: {self._name_of(status)} ({status})", where)

    def _name_of(self, status: int) -> str:
        text = ctypes.c_char_p()
        self._library.cuGetErrorName(status, ctypes.byref(text))
        return (text.value or b"unknown error").decode(errors="replace")

    def _refused(self, where: Where | None) -> SassxlateError | None:
        """The refusal that a failed call is due to: the newest since the last one, or what was
        recorded of the same kernel before; each is recorded once."""
        from sassxlate.runtime_shim.application import read_report

        refusals = read_report(self._report).refusals
        new, self._seen = refusals[self._seen :], len(refusals)
        kernel = where.kernel if where is not None else None
        same = [r for r in refusals if kernel is not None and r.kernel == kernel]
        last = next(iter((*reversed(new), *reversed(same))), None)
        if last is None:
            return None
        message = last.line.removeprefix(f"{last.code}: ")
        place = Where(where.file if where else None, kernel)
        return _TYPES.get(last.code[:4], ShimError)(last.code, message, place)

    def name(self) -> str:
        """The device's name."""
        text = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", text, 256, 0)
        return text.value.decode(errors="replace")


_open: Session | None = None


def open_session(settings: Settings) -> Session:
    """The process's session.  UsageError SX0883 if it is open with other settings."""
    global _open
    if _open is None:
        _open = Session(settings)
        _clean_up(_open)
    if _open.settings != settings:
        text = f"this process has opened {_open.settings}, and can have no other device"
        raise UsageError("SX0883", text)
    return _open


def _clean_up(opened: Session) -> None:
    """The record of refusals goes with the process."""
    import atexit

    def remove() -> None:
        opened._report.unlink(missing_ok=True)  # pyright: ignore[reportPrivateUsage]

    atexit.register(remove)


__all__ = ["Kind", "Session", "Settings", "open_session"]
