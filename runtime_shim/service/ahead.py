"""Chooses kernels to translate before they are requested.

A program that launches many kernels of a module would wait for one after another, on one of all
cores.  So when a requested kernel is not in the cache, idle workers take the next ones of its
module, in the module's order: programs launch neighbouring kernels.  Wasted work is bounded:
without a request nothing happens; each request advances by no more kernels than there are idle
workers; one worker is kept for requests; and large modules are left alone, since a library holds
thousands of kernels, of which a program launches a few.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sassxlate.runtime_shim.cache.store import Cache
from sassxlate.runtime_shim.service.jobs import Kind, as_fields, kind_of

LARGEST = 256  # most kernels of a module that is translated ahead
_KEPT = 64  # modules and names remembered


@dataclass(slots=True)
class Ahead:
    """Tracks requests; ``width`` kernels are translated ahead for each."""

    cache: Cache
    width: int
    _names: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    _module_of: dict[str, str] = field(default_factory=dict[str, str])
    _taken: set[tuple[str, str, bool, Kind]] = field(
        default_factory=set[tuple[str, str, bool, Kind]]
    )

    def after(self, request: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The requests to add to a ``translate`` or ``compile``; op ``ahead``."""
        op, kernel = request.get("op"), str(request.get("kernel"))
        module = str(request.get("module")) if op == "translate" else self._module_of.get(kernel)
        if module is None or self.width < 1:
            return []
        _remember(self._module_of, kernel, module)
        compiles, kind = op == "compile", kind_of(request)
        self._taken.add((module, kernel, compiles, kind))
        made: list[dict[str, Any]] = []
        for name in self._following(module, kernel):
            key = module, name, compiles, kind
            if len(made) == self.width:
                break
            if key in self._taken:
                continue
            self._taken.add(key)
            # If it is requested later, the lookahead continues from there.
            _remember(self._module_of, name, module)
            made.append(
                {"op": "ahead", "module": module, "kernel": name}
                | as_fields(kind)
                | ({"compile": True} if compiles else {})
            )
        return made

    def _following(self, module: str, kernel: str) -> Iterable[str]:
        names = self._names.get(module)
        if names is None:
            names = kernels_of(self.cache.read("module", f"{module}.txt") or b"")
            _remember(self._names, module, names)
        if len(names) > LARGEST or kernel not in names:
            return ()
        at = names.index(kernel)
        return (*names[at + 1 :], *names[:at])


def _remember(where: dict[str, Any], key: str, value: Any) -> None:
    where.pop(key, None)
    where[key] = value
    while len(where) > _KEPT * LARGEST:
        del where[next(iter(where))]


def kernels_of(manifest: bytes) -> tuple[str, ...]:
    """The names of a manifest's kernels, in its order."""
    lines = (line.split(" ", 8) for line in manifest.decode(errors="replace").splitlines())
    return tuple(parts[8] for parts in lines if parts[0] == "kernel" and len(parts) == 9)
