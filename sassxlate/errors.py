"""Typed errors: every one has a stable code, carries its place, and prints as one line.

The codes are described in ``error_catalogue/*.toml`` (one file per area), which `sassxlate explain`
prints.  Areas: SX01 containers, SX02 SASS, SX03 control flow, SX04 lowering, SX05 RDNA3 and code
objects, SX06 emulated device, SX07 runtime libraries, SX08 command line and tools, SX09 service
and cache, SX10 models.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Where:
    """The place of an error; ``offset`` is in bytes from the start of the kernel or of the file."""

    file: str | None = None
    kernel: str | None = None
    offset: int | None = None
    word: int | None = None
    inst: str | None = None

    def __str__(self) -> str:
        parts = [p for p in (self.file, self.kernel) if p]
        if self.offset is not None:
            parts.append(f"/*{self.offset:04x}*/")
        head = ":".join(parts)
        if self.inst:
            return f"{head}: {self.inst}" if head else self.inst
        if self.word is not None:
            text = f"{self.word:#034x}"
            return f"{head}: {text}" if head else text
        return head


class SassxlateError(Exception):
    """Base of all errors that a user can meet.  ``code`` is stable, for example ``SX0107``."""

    def __init__(self, code: str, message: str, where: Where | None = None) -> None:
        super().__init__(code, message, where)
        self.code = code
        self.message = message
        self.where = where or Where()

    def at(
        self,
        *,
        file: str | None = None,
        kernel: str | None = None,
        offset: int | None = None,
        word: int | None = None,
        inst: str | None = None,
    ) -> SassxlateError:
        """The same error with the parts of its place that were still unknown filled in."""
        old = self.where
        new = replace(
            old,
            file=old.file if old.file is not None else file,
            kernel=old.kernel if old.kernel is not None else kernel,
            offset=old.offset if old.offset is not None else offset,
            word=old.word if old.word is not None else word,
            inst=old.inst if old.inst is not None else inst,
        )
        return type(self)(self.code, self.message, new)

    def __str__(self) -> str:
        place = str(self.where)
        return f"{self.code}: {place}: {self.message}" if place else f"{self.code}: {self.message}"


class ContainerError(SassxlateError):
    """A host file, fatbin or cubin that cannot be read (SX01)."""


class DecodeError(SassxlateError):
    """A word that is not an instruction of its architecture (SX02)."""


class InterpretError(SassxlateError):
    """A launch that the reference interpreter cannot run, or that fails in it (SX02)."""


class CfgError(SassxlateError):
    """Control flow that cannot be followed (SX03)."""


class LoweringError(SassxlateError):
    """An instruction that cannot be translated (SX04)."""


class EncodeError(SassxlateError):
    """RDNA3 text or a code object that cannot be encoded or decoded (SX05)."""


class EmulatorError(SassxlateError):
    """Machine code that the emulated device cannot compile (SX06)."""


class ShimError(SassxlateError):
    """A failure in a runtime library, in the application or in its start-up (SX07)."""


class UsageError(SassxlateError):
    """A wrong call of the command line, or a missing tool (SX08)."""


class ServiceError(SassxlateError):
    """The translation service or its cache cannot do its work (SX09)."""


class ModelError(SassxlateError):
    """A model, its vocabulary, its data or its training cannot be used (SX10)."""


EXIT_NEGATIVE = 1

EXIT_USAGE = 2

EXIT_UNSUPPORTED = 3
EXIT_BAD_WORDS = 3  # `disasm` printed everything, but some words are not instructions

# By the code's area; a catalogue entry with an `exit` key overrides it for one code.
_EXIT_BY_AREA = {
    "SX01": EXIT_USAGE,
    "SX02": EXIT_UNSUPPORTED,
    "SX03": EXIT_UNSUPPORTED,
    "SX04": EXIT_UNSUPPORTED,
    "SX05": EXIT_UNSUPPORTED,
    "SX06": EXIT_UNSUPPORTED,
    "SX07": EXIT_USAGE,
    "SX08": EXIT_USAGE,
    "SX09": EXIT_USAGE,
}


def catalogue() -> dict[str, dict[str, Any]]:
    """All described error codes: code to its table (``title``, ``text``, optionally ``exit``)."""
    import tomllib
    from importlib import resources

    entries: dict[str, dict[str, Any]] = {}
    for file in resources.files("sassxlate").joinpath("error_catalogue").iterdir():
        if file.name.endswith(".toml"):
            entries.update(tomllib.loads(file.read_text(encoding="utf-8")))
    return entries


def exit_status(error: SassxlateError) -> int:
    """The exit status by kind of error (2 or 3), for scripts."""
    try:
        entry = catalogue().get(error.code, {})
    except (OSError, ValueError):
        entry = {}
    status = entry.get("exit")
    if isinstance(status, int):
        return status
    return _EXIT_BY_AREA.get(error.code[:4], EXIT_USAGE)
