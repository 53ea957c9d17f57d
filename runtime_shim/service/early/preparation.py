"""Prepares the kernels of files: finds the images that they register, writes their manifests,
translates the kernels, and compiles them.  The service does so for what earlier runs used,
`sassxlate warm` for what it is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from sassxlate.runtime_shim.service.early import library
from sassxlate.runtime_shim.service.jobs import Answer, Job, Priority
from sassxlate.runtime_shim.service.request import text_of

_FIRST, _THEN = Priority.BETTER, Priority.PREPARE


@dataclass(slots=True, eq=False)
class Preparation:
    """The state of one: counts of images and kernels, wanted and done.

    ``submit`` queues a job.  With a ``record`` (its key in the cache) only its kernels are
    prepared, with ``patterns`` only those whose names match one.  ``urgent`` is for a command that
    has no application beside it: images come first, so that the number of kernels is known soon.
    """

    submit: Callable[[Job], None]
    compiles: bool
    record: str | None = None
    patterns: tuple[str, ...] = ()
    urgent: bool = False
    device: int = 0  # the capability of the device; 0: by the files
    asked: int = 0  # the capability that the user asked for; 0: SASSXLATE_CC's
    files: int = 0
    images: int = 0
    images_done: int = 0
    kernels: int = 0
    kernels_done: int = 0
    refused: int = 0
    faults: list[str] = field(default_factory=list[str])
    _places: dict[str, list[library.Place]] = field(default_factory=dict[str, list[library.Place]])

    def begin(self, files: list[Path]) -> None:
        """Queue the reading of the files."""
        self.files = len(files)
        if not files:
            return
        for file in files:
            name = text_of(file)
            self._job({"op": "images", "image": name}, partial(self._read, name), first=True)

    @property
    def ended(self) -> bool:
        """Whether all is done."""
        return (
            not self.files and self.images_done == self.images and self.kernels_done == self.kernels
        )

    def _job(self, request: dict[str, Any], done: Callable[[Answer], None], first: bool) -> None:
        priority = _FIRST if first and self.urgent else _THEN
        self.submit(Job(request, [], priority, done=done))

    def _fault(self, answer: Answer) -> bool:
        if answer["ok"]:
            return False
        self.faults.append(str(answer["line"]))
        return True

    def _read(self, name: str, answer: Answer) -> None:
        self.files -= 1
        if not self._fault(answer):
            self._places[name] = [
                (offset, size, tuple(elfs), tuple(texts))
                for offset, size, elfs, texts in answer["images"]
            ]
        if not self.files:
            self._all_read()

    def _all_read(self) -> None:
        asked = self.asked or library.asked_capability()
        every = [place for places in self._places.values() for place in places]
        device = asked or self.device or library.device_capability(every)
        self.images = len(every)
        for name, places in self._places.items():
            for place in places:
                request: dict[str, Any] = {
                    "op": "part", "image": name, "offset": place[0], "size": place[1],
                    "cc": library.capability_for(place, device, bool(asked)),
                }  # fmt: skip
                if self.record is not None:
                    request["record"] = self.record
                if self.patterns:
                    request["patterns"] = [*self.patterns]
                self._job(request, self._registered, first=True)

    def _registered(self, answer: Answer) -> None:
        self.images_done += 1
        if self._fault(answer):
            return
        self.kernels += len(answer["kernels"])
        for kernel in answer["kernels"]:
            request = {"op": "ahead", "module": answer["key"], "kernel": kernel}
            if self.compiles:
                request["compile"] = True
            self._job(request, self._prepared, first=False)

    def _prepared(self, answer: Answer) -> None:
        self.kernels_done += 1
        if not answer["ok"] and not str(answer["code"]).startswith("SX09"):
            self.refused += 1
        else:
            self._fault(answer)


__all__ = ["Preparation"]
