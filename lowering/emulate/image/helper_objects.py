"""Out-of-line functions as separate objects, compiled once and cached by content.

Half of a small kernel's compile time goes into its memory helpers, which are the same in all
kernels.  So each is a module of its own here, whose object is cached by its source text: in
this process, and also in a store if one is given.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from sassxlate.lowering.llvm.ir_text import METADATA, Module

_NAME = re.compile(r"@([\w.]+)")
_DIGEST = 16


class Store(Protocol):
    """Keeps objects beyond the process; it may lose objects, and may refuse them."""

    def read(self, key: str) -> bytes | None: ...

    def write(self, key: str, data: bytes) -> None: ...


@dataclass(frozen=True, slots=True)
class Parts:
    """A module split up: the LLVM IR of its kernel, and of every helper by its name."""

    kernel: str
    helpers: dict[str, str]


def _is_inline(text: str) -> bool:
    return "alwaysinline" in text.partition("\n")[0]


def _declaration(text: str) -> str:
    """A definition's head as a declaration for other modules."""
    head = text.partition("{\n")[0]
    return head.replace("define internal ", "declare hidden ", 1) + "\n"


def _definition(text: str) -> str:
    return text.replace("define internal ", "define hidden ", 1)


def split(module: Module, *entries: str) -> Parts:
    """The functions ``entries`` with what is inlined into them, and every helper that they may
    call."""
    declared = {_NAME.findall(text)[0]: text for text in module.declarations}
    functions = module.functions

    def whole(*names: str) -> tuple[str, list[str]]:
        """(the module of some functions, the helpers that they call)"""
        text: dict[str, str] = {}
        head: dict[str, str] = {}
        calls: list[str] = []
        todo = list(names)
        while todo:
            one = todo.pop()
            text[one] = _definition(functions[one]) if one in names else functions[one]
            for other in _NAME.findall(functions[one]):
                if other in text or other in head:
                    continue
                if other not in functions and other not in declared:
                    continue  # a symbol that the caller declares
                if other in declared:
                    head[other] = f"declare {declared[other]}\n"
                elif _is_inline(functions[other]):
                    todo.append(other)
                else:
                    head[other] = _declaration(functions[other])
                    calls.append(other)
        return "".join((*head.values(), *text.values(), METADATA)), calls

    kernel, todo = whole(*entries)
    helpers: dict[str, str] = {}
    while todo:
        name = todo.pop()
        if name not in helpers:
            helpers[name], more = whole(name)
            todo += more
    return Parts(kernel, helpers)


_made: dict[str, bytes] = {}
_store: Store | None = None


def keep_in(store: Store | None) -> None:
    """Also keeps objects in ``store``, and looks them up there."""
    global _store
    _store = store


def _from_store(key: str) -> bytes | None:
    data = _store.read(key) if _store is not None else None
    if (
        data is None
        or hashlib.blake2b(data[_DIGEST:], digest_size=_DIGEST).digest() != (data[:_DIGEST])
    ):
        return None
    return data[_DIGEST:]


def helpers(texts: Iterable[str], how: str, make: Callable[[str], bytes]) -> list[bytes]:
    """The objects of helpers by their text; ``make`` compiles one, with the options in ``how``."""
    out: list[bytes] = []
    for text in texts:
        key = hashlib.blake2b(f"{how}\0{text}".encode(), digest_size=_DIGEST).hexdigest()
        data = _made.get(key)
        if data is None:
            data = _from_store(key)
            if data is None:
                data = make(text)
                if _store is not None:
                    digest = hashlib.blake2b(data, digest_size=_DIGEST).digest()
                    _store.write(key, digest + data)
            _made[key] = data
        out.append(data)
    return out
