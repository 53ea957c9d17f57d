"""The actions of the measuring processes of :mod:`.disasm`; they import nothing else.

::

    python -m sassxlate.bench.disasm_child ACTION CUBIN...

prints a JSON object.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path

from sassxlate.disasm.containers import Cubin, Function, Kernel, parse_cubin
from sassxlate.disasm.listing.cubin import Document
from sassxlate.disasm.listing.sass_section import lines
from sassxlate.disasm.sass import Section, decode_sections
from sassxlate.errors import SassxlateError

_LATE = "sassxlate.disasm.sass.codec.bulk_text"  # imported when the first section needs it


def _codes(cubin: Cubin) -> tuple[Kernel | Function, ...]:
    return (*cubin.kernels, *cubin.functions)


def codes_of(cubin: Cubin) -> list[bytes]:
    """The code of a cubin's kernels and functions."""
    return [code.code for code in _codes(cubin)]


def _decode(cubin: Cubin) -> list[Section]:
    return decode_sections(codes_of(cubin), cubin.arch)


# The actions of a measuring process on the cubins; it prints a JSON object.
def _timed(paths: Sequence[Path], action: Callable[[bytes], object]) -> dict[str, float]:
    importlib.import_module(_LATE)
    start = time.process_time()
    for path in paths:
        action(path.read_bytes())
    return {"seconds": time.process_time() - start}


def _decode_all(paths: Sequence[Path]) -> dict[str, float]:
    return _timed(paths, lambda data: _decode(parse_cubin(data)))


def _print_all(paths: Sequence[Path]) -> dict[str, float]:
    with open(os.devnull, "w") as sink:

        def action(data: bytes) -> None:
            for line in Document(data).lines():
                sink.write(line + "\n")

        return _timed(paths, action)


def _registers_all(paths: Sequence[Path]) -> dict[str, float]:
    from sassxlate.disasm.sass.codec.accesses import accesses

    def action(data: bytes) -> None:
        batches = {id(s.columns): s.columns for s in _decode(parse_cubin(data))}
        for columns in batches.values():
            accesses(columns, 0, len(columns))

    return _timed(paths, action)


def _objects_all(paths: Sequence[Path]) -> dict[str, float]:
    return _timed(paths, lambda data: [_count(section) for section in _decode(parse_cubin(data))])


def _count(section: Section) -> int:
    return sum(1 for _ in section.instructions)


def _held(paths: Sequence[Path], action: Callable[[Cubin], object]) -> dict[str, float]:
    """Bytes of all results and the decoder's own tables, without the cubins'."""
    importlib.import_module(_LATE)
    cubins = [parse_cubin(path.read_bytes()) for path in paths]
    tracemalloc.start()
    results = [action(cubin) for cubin in cubins]
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del results
    return {"held": held, "peak": peak}


def _grown(paths: Sequence[Path], action: Callable[[Cubin], object]) -> dict[str, float]:
    """Bytes by which the process has grown once all results exist."""
    importlib.import_module(_LATE)
    cubins = [parse_cubin(path.read_bytes()) for path in paths]
    before = _resident()
    results = [action(cubin) for cubin in cubins]
    grown = _resident() - before
    del results
    return {"grown": grown}


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def _text_of(cubin: Cubin) -> list[list[str]]:
    return [list(lines(section)) for section in _decode(cubin)]


ACTIONS: dict[str, Callable[[Sequence[Path]], dict[str, float]]] = {
    "decode": _decode_all,
    "registers": _registers_all,
    "objects": _objects_all,
    "text": _print_all,
    "decode-memory": lambda paths: _held(paths, _decode),
    "text-memory": lambda paths: _held(paths, _text_of),
    "decode-resident": lambda paths: _grown(paths, _decode),
    "text-resident": lambda paths: _grown(paths, _text_of),
}


def main(arguments: Sequence[str]) -> None:
    """A measuring process: an action and the cubins."""
    action, *paths = arguments
    try:
        print(json.dumps(ACTIONS[action]([Path(path) for path in paths])))
    except SassxlateError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv[1:])
