"""Where tools work: what was found of them, folders that vanish, and results that are kept."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sassxlate.errors import ServiceError
from sassxlate.runtime_shim import trusted
from sassxlate.runtime_shim.cache.store import Cache
from sassxlate.runtime_shim.ptx.errors import PtxError, shown
from sassxlate.runtime_shim.ptx.process import Ran, run
from sassxlate.runtime_shim.ptx.tools import Found, Name, Tool

LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Workshop:
    """``cache``: where results are kept; None: nowhere.  ``environment``: where tools are found.
    ``supported``: the architectures that can be translated."""

    cache: Cache | None
    environment: Mapping[str, str]
    supported: frozenset[int]
    _found: dict[Name, Found] = field(default_factory=dict[Name, Found])

    def tools(self, name: Name) -> Found:
        """The installed versions of a tool; searched for once."""
        if name not in self._found:
            self._found[name] = Found(name, self.environment)
        return self._found[name]

    def read(self, key: str, tool: Name) -> tuple[bytes, str] | None:
        """A stored cubin and what the tool printed; None if there is none."""
        if self.cache is None:
            return None
        cubin = self.cache.read("module", f"{key}.{tool}")
        log = self.cache.read("module", f"{key}.log")
        return None if cubin is None or log is None else (cubin, log.decode("utf-8", "replace"))

    def keep(self, key: str, tool: Name, cubin: bytes, log: str) -> None:
        """Keeps a result; one that cannot be kept is made again."""
        if self.cache is not None:
            with contextlib.suppress(OSError):
                self.cache.write("module", f"{key}.log", log.encode())
                # Last: if it is there, so is the log.
                self.cache.write("module", f"{key}.{tool}", cubin)

    @contextlib.contextmanager
    def folder(self) -> Generator[Path, None, None]:
        """A private folder, deleted with all that is in it.

        If this process is killed meanwhile, the service deletes it, by the name.
        """
        try:
            above = self._above()
            made = above / f".tmp-{os.getpid()}-{secrets.token_hex(4)}"
            made.mkdir(mode=0o700)
        except OSError as error:
            text = f"{error.filename}: {error.strerror}"
            raise ServiceError("SX0907", text) from error
        try:
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)

    def _above(self) -> Path:
        if self.cache is not None:
            with contextlib.suppress(OSError, trusted.UntrustedError):
                above = self.cache.root / "tmp"
                trusted.make_folder(above)
                if os.access(above, os.W_OK):
                    return above
        return Path(tempfile.gettempdir())

    def work(self, tool: Tool, arguments: Sequence[str], folder: Path) -> Ran:
        """Runs a tool; PtxError SX0746 if it takes too long, SX0745 if it is killed or does not
        start."""
        limit = time_limit()
        try:
            ran = run([tool.path, *arguments], folder, limit)
        except OSError as error:
            text = f"{tool.path} does not start: {error.strerror}"
            raise PtxError("SX0745", text) from error
        if ran.timed_out:
            text = f"{tool.path} gave no answer within {limit:g} s"
            raise PtxError("SX0746", text, log=ran.output)
        if ran.status < 0:
            text = f"{tool.path} was ended by signal {-ran.status}: {shown(ran.output) or 'silent'}"
            raise PtxError("SX0745", text, log=ran.output)
        return ran


def time_limit() -> float:
    """Seconds for one run of a tool: SASSXLATE_PTXAS_LIMIT, or 60."""
    try:
        limit = float(os.environ.get("SASSXLATE_PTXAS_LIMIT", ""))
    except ValueError:
        return LIMIT_S
    return limit if 0 < limit <= 3600 else LIMIT_S


__all__ = ["Workshop", "time_limit"]
