"""A proposer from a user's own file, named as ``FILE.py:NAME``.

NAME is a proposer, a class whose instances are proposers (it is called without arguments), or a
function that takes a :class:`~.seam.Question` and returns :class:`~.seam.Proposals`.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, cast

from sassxlate.errors import ModelError, Where
from sassxlate.lowering.engine.seam import Proposals, Proposer, Question, raised_at


@dataclass(frozen=True, slots=True)
class Loaded:
    """A proposer, what reports call its engine, and the digest of its file."""

    proposer: Proposer
    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class _Function:
    """A function as a proposer."""

    function: Callable[[Question], Proposals]
    name: str

    def propose(self, question: Question) -> Proposals:
        return self.function(question)


def load(spec: str) -> Loaded:
    """The proposer that ``FILE.py:NAME`` names.  The file is executed.

    Raises ModelError: SX1011 if the file cannot be read or has no NAME, SX1012 if the file or the
    constructor raises an error, SX1013 if NAME is not a proposer.
    """
    file, _, attribute = spec.rpartition(":")
    if not file.endswith(".py") or not attribute.isidentifier():
        raise ModelError("SX1011", f"--engine {spec}: write FILE.py:NAME")
    path = Path(file)
    try:
        source = path.read_bytes()
    except OSError as error:
        raise ModelError("SX1011", f"cannot be read: {error.strerror}", Where(file)) from None
    digest = hashlib.blake2b(source, digest_size=16).hexdigest()
    module = _executed(path, source, digest)
    found = vars(module).get(attribute)
    if found is None:
        names = ", ".join(n for n, v in vars(module).items() if _may_propose(v, module.__name__))
        text = f"it has no {attribute}" + (f", but {names}" if names else "")
        raise ModelError("SX1011", text, Where(file))
    shown = f"{path.name}:{attribute}"
    return Loaded(_proposer(found, shown, file), shown, digest)


def _executed(path: Path, source: bytes, digest: str) -> ModuleType:
    """The file as a module.  Nothing is written beside it; changed files are new modules."""
    name = f"sassxlate_engine_{digest}"
    module = module_from_spec(ModuleSpec(name, None, origin=str(path)))
    module.__file__ = str(path)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        code: CodeType = compile(source, str(path), "exec")
        exec(code, vars(module))
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise _failed(error, str(path), "loading it") from error
    return module


def _failed(error: BaseException, file: str, doing: str) -> ModelError:
    text = f"{doing} raised {type(error).__name__}: {error}{raised_at(error, __file__)}"
    return ModelError("SX1012", text, Where(file))


def _may_propose(value: object, module: str) -> bool:
    """Whether a message lists a value of the module as a candidate for NAME."""
    if inspect.isfunction(value):
        return value.__module__ == module and len(inspect.signature(value).parameters) == 1
    return callable(getattr(value, "propose", None)) and (
        not inspect.isclass(value) or value.__module__ == module
    )


def _proposer(found: Any, shown: str, file: str) -> Proposer:
    if inspect.isclass(found):
        if not callable(getattr(found, "propose", None)):
            raise ModelError("SX1013", f"{shown} has no method propose(question)", Where(file))
        try:
            found = cast("Any", found)()
        except (Exception, SystemExit) as error:
            raise _failed(error, file, f"{shown.rpartition(':')[2]}()") from error
    elif inspect.isfunction(found):
        _check_call(found, shown, file)
        return _Function(cast("Callable[[Question], Proposals]", found), shown)
    propose = getattr(found, "propose", None)
    if not callable(propose):
        text = f"{shown} is {type(found).__name__}, without a method propose(question)"
        raise ModelError("SX1013", text, Where(file))
    _check_call(propose, f"{shown}.propose", file)
    name = getattr(found, "name", None)
    if not isinstance(name, str) or not name or not name.isprintable():
        text = f"{shown} needs a name: a line of text, shown in reports"
        raise ModelError("SX1013", text, Where(file))
    return cast("Proposer", found)


def _check_call(function: Callable[..., object], shown: str, file: str) -> None:
    try:
        inspect.signature(function).bind(None)
    except TypeError as error:
        text = f"{shown} cannot be called with one question: {error}"
        raise ModelError("SX1013", text, Where(file)) from None
    except ValueError:  # a function without a signature, written in C: called and seen
        return


__all__ = ["Loaded", "load"]
