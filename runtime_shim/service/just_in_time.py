"""Requests about PTX and device linking: what NVIDIA's driver compiles in the application's process
is compiled here, by the tools of :mod:`sassxlate.runtime_shim.ptx`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sassxlate.errors import ServiceError
from sassxlate.runtime_shim import trusted
from sassxlate.runtime_shim.cache.store import Cache
from sassxlate.runtime_shim.ptx.assemble import Assembled, assemble, unresolved
from sassxlate.runtime_shim.ptx.errors import PtxError
from sassxlate.runtime_shim.ptx.link import Input, Linked, link
from sassxlate.runtime_shim.ptx.options import JitOptions, parse_options
from sassxlate.runtime_shim.ptx.source import read_source
from sassxlate.runtime_shim.ptx.tools import VARIABLES
from sassxlate.runtime_shim.ptx.workshop import Workshop
from sassxlate.runtime_shim.service.request import input_of


def options_of(request: Mapping[str, Any]) -> JitOptions:
    """The options of a request; without any, ptxas's own."""
    return parse_options(str(request.get("jit") or ""))


def workshop(request: Mapping[str, Any], cache: Cache, supported: frozenset[int]) -> Workshop:
    """The tools that the application's environment has; without one, those of this process's."""
    text = request.get("environment")
    if not isinstance(text, str):
        return Workshop(cache, dict(os.environ), supported)
    pairs = (line.partition("=") for line in text.split("\n"))
    # In a path, a byte that is not UTF-8 is a lone surrogate on both sides.
    return Workshop(
        cache, {name: value for name, _, value in pairs if name in VARIABLES}, supported
    )


def compiled(shop: Workshop, request: Mapping[str, Any], text: bytes, capability: int) -> Assembled:
    """A whole module of PTX; PtxError, ServiceError."""
    return assemble(shop, read_source(text), capability, options_of(request))


def checked_piece(
    shop: Workshop, request: Mapping[str, Any], text: bytes, capability: int
) -> Assembled:
    """A piece of a program that is linked later: whole, or with functions of others.

    PtxError, ServiceError.
    """
    source, options = read_source(text), options_of(request)
    try:
        return assemble(shop, source, capability, options)
    except PtxError as error:
        if not unresolved(error):
            raise
    return assemble(shop, source, capability, options, relocatable=True)


def linked(shop: Workshop, request: Mapping[str, Any], capability: int) -> Linked:
    """The program that the pieces of a request make; PtxError, ServiceError."""
    pieces: list[Input] = []
    for item in request.get("inputs") or ():
        kind, path, name = input_of(item)
        pieces.append(Input(kind, name or path.name, file_of(path)))
    return link(shop, pieces, capability, options_of(request))


def file_of(path: Path) -> bytes:
    """The bytes of a request's file; ServiceError SX0903, SX0912."""
    try:
        return trusted.read(path)[0]
    except OSError as error:
        raise ServiceError("SX0903", f"{path}: {error.strerror}") from error


__all__ = ["checked_piece", "compiled", "file_of", "linked", "workshop"]
