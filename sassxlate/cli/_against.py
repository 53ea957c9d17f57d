"""What ``sassxlate diff`` does with SASS and its own translation: the exact map."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from sassxlate.errors import SassxlateError, UsageError, Where

from ._files import (
    SCHEMA,
    kernel_matches,
    no_match,
    parse_arch,
    read_code_object,
    read_input,
    require_machine_code,
)

if TYPE_CHECKING:
    from sassxlate.cfg.beside import Beside
    from sassxlate.disasm.containers import Cubin, Kernel


def shown(
    file: str, code_object: str | None, kernel: str, arch: str | None, kind: str
) -> tuple[str, int]:
    """Text, JSON or HTML of the kernels that are asked for, and how many were refused.

    ``code_object`` is the file with the translation; without one FILE is translated now.  A kernel
    that is refused is said on stderr, unless it is the only one.
    """
    found: list[Beside] = []
    refused: list[SassxlateError] = []
    data = None if code_object is None else read_code_object(code_object)
    assert code_object is None or data is not None
    pairs = list(_kernels(file, kernel, arch))
    if data is None:
        for cubin, one in pairs:
            try:
                found.append(_translated(cubin, one))
            except SassxlateError as error:
                refused.append(error.at(file=file, kernel=one.name))
    else:
        assert code_object is not None
        found = _held(code_object, data, pairs)
    if refused and not found and len(refused) == 1:
        raise refused[0]
    for each in refused:
        click.echo(str(each), err=True)
    return _written(file, found, kind), len(refused)


def _written(file: str, found: list[Beside], kind: str) -> str:
    from sassxlate.cfg.beside import to_data, to_text
    from sassxlate.cfg.beside_page import to_html

    if kind == "json":
        kernels = [to_data(one) for one in found]
        return json.dumps({"schema": SCHEMA, "kernels": kernels}, indent=1) + "\n"
    if kind != "html":
        return "\n".join(map(to_text, found))
    if len(found) != 1:
        names = ", ".join(f"{one.name} {one.target}" for one in found) or "none"
        message = f"html shows one kernel, {len(found)} match: {names[:400]}"
        raise UsageError("SX0828", message, Where(file))
    return to_html(found[0])


def _kernels(file: str, kernel: str, arch: str | None) -> Iterator[tuple[Cubin, Kernel]]:
    wanted = parse_arch(arch) if arch else None
    loaded = read_input(file)
    require_machine_code(loaded)
    some = False
    for _, cubin in loaded.cubins():
        if wanted and (cubin.arch != wanted[0] or wanted[1] not in ("", cubin.variant)):
            continue
        for k in cubin.kernels:
            if kernel_matches(k.name, k.demangled, (kernel,)):
                some = True
                yield cubin, k
    if not some:
        raise no_match(file, () if kernel == "*" else (kernel,), arch)


def _translated(cubin: Cubin, kernel: Kernel) -> Beside:
    from sassxlate.lowering.blockmap import beside

    return beside(cubin, kernel)


def _held(file: str, data: bytes, pairs: list[tuple[Cubin, Kernel]]) -> list[Beside]:
    """The kernels that the code object has.  Of several of a name (one an architecture) those that
    its map fits; where it fits none, the error says why of the first."""
    from sassxlate.lowering.blockmap import of_code_object
    from sassxlate.lowering.codeobject import read

    try:
        names = {k.name for k in read(data).kernels}
    except SassxlateError as error:
        raise error.at(file=file) from None
    mine = [(cubin, k) for cubin, k in pairs if k.name in names]
    if not mine:
        raise UsageError("SX0802", "no kernel of A has a namesake in B", Where(file))
    found: list[Beside] = []
    errors: dict[str, SassxlateError] = {}
    for cubin, k in mine:
        try:
            found.append(of_code_object(cubin, k, data))
        except SassxlateError as error:
            errors.setdefault(k.name, error.at(file=file, kernel=k.name))
    for name, first in errors.items():
        if not any(one.name == name for one in found):
            raise first
    return found
