"""The operations of the service's workers: read a module, translate a kernel, compile a code
object.

Each operation is a function of a request (a JSON object) and answers with one; its files go to the
cache first.  An operation never raises: a failure is an answer ``{"ok": false, ...}`` with a
code, a CUDA error number and one line of text.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from sassxlate import collector
from sassxlate.disasm.containers import demangle
from sassxlate.disasm.containers.values import Cubin
from sassxlate.disasm.inputs import kernel_matches
from sassxlate.errors import SassxlateError, ServiceError, ShimError
from sassxlate.lowering.abi.link import function_addresses
from sassxlate.lowering.codeobject.debug_lines import CubinLines
from sassxlate.runtime_shim import trusted
from sassxlate.runtime_shim.cache import hybrid
from sassxlate.runtime_shim.cache.keys import host_key, module_key
from sassxlate.runtime_shim.cache.store import Cache, key_of, name_key, unseal
from sassxlate.runtime_shim.cache.upgrade import settle, upgrade
from sassxlate.runtime_shim.ptx.assemble import Assembled
from sassxlate.runtime_shim.ptx.errors import CUDA_ERRORS, PtxError
from sassxlate.runtime_shim.ptx.source import choose_ptx
from sassxlate.runtime_shim.service import just_in_time, manifest
from sassxlate.runtime_shim.service.ahead import kernels_of
from sassxlate.runtime_shim.service.early import library
from sassxlate.runtime_shim.service.engine import Engine
from sassxlate.runtime_shim.service.jobs import Answer, Request, kind_of
from sassxlate.runtime_shim.service.request import path_of, text_of

log = logging.getLogger("sassxlate.service")

CUDA_ERROR_NOT_SUPPORTED = 801
CUDA_ERROR_UNKNOWN = 999
FATBIN_MAGIC = bytes.fromhex("50ed55ba")
ELF_MAGIC = b"\x7fELF"


@dataclass(frozen=True, slots=True)
class _Module:
    """A manifest with its key; ``made``: the machine code, if the image was PTX."""

    key: str
    manifest: manifest.Manifest
    made: Assembled | None = None


@dataclass(slots=True)
class Work:
    """The operations over one cache; keeps the cubins last used."""

    cache: Cache
    engine: Engine
    spare: Callable[[], Cache]  # another cache, for when this one takes no more files
    _cubins: dict[str, Cubin] = field(default_factory=dict[str, Cubin])
    _lines: dict[str, CubinLines] = field(default_factory=dict[str, CubinLines])

    def __post_init__(self) -> None:
        if self.engine.share is not None:
            self.engine.share(self.cache)

    def run(self, request: Request) -> Answer:
        """Performs the operation ``request["op"]``."""
        name = ""
        try:
            operations = {
                "module": self.module,
                "translate": self.translate,
                "compile": self.compile,
                "stencils": self.stencils,
                "ahead": self.ahead,
                "upgrade": self.upgrade,
                "images": self.images,
                "part": self.part,
                "assemble": self.assemble,
                "link": self.link,
            }
            name = _text(request, "op")
            if name not in operations:
                raise ServiceError("SX0903", f"no operation {name!r}")
            return operations[name](request)
        except SassxlateError as error:
            log.info("%s: %s", name, error)
            return failure(error)
        except MemoryError:
            return failure(ServiceError("SX0908", f"{name}: out of memory"))
        except Exception as error:
            # An internal error: report it in one line, and log the traceback.
            log.exception("%s failed", name)
            line = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            return failure(ServiceError("SX0908", f"{name}: internal error: {line}"))

    def module(self, request: Request) -> Answer:
        """Write the manifest of the image in file ``image`` for capability ``cc``; its path."""
        image = just_in_time.file_of(path_of(_text(request, "image")))
        return self._register(image, request)

    def images(self, request: Request) -> Answer:
        """The images that the program or library in file ``image`` registers: places and sizes."""
        return {"ok": True, "images": library.images(path_of(_text(request, "image")))}

    def part(self, request: Request) -> Answer:
        """As :meth:`module` of the image at ``offset`` of a file; the names of its kernels, or of
        those in a record of a run and that match one of some patterns (without any, nothing is
        written)."""
        path, key = path_of(_text(request, "image")), request.get("record")
        names = None if key is None else library.recorded(self.cache, str(key))
        patterns: Sequence[str] = request.get("patterns") or ()

        def wanted(name: str) -> bool:
            if names is not None and name not in names:
                return False
            return not patterns or kernel_matches(name, demangle(name), patterns)

        image = library.part(path, int(request["offset"]), int(request["size"]))
        capability, supported = _number(request, "cc"), self.engine.supported
        if (names is not None or patterns) and not library.kernels(
            image, capability, supported, wanted, ptx=names is None
        ):
            return {"ok": True, "kernels": []}
        answer = self._register(image, request)
        listed = kernels_of(self.cache.read("module", f"{answer['key']}.txt") or b"")
        return {**answer, "kernels": [n for n in listed if wanted(n)]}

    def _register(self, image: bytes, request: Request) -> Answer:
        capability = _number(request, "cc")
        asked = module_key(image, capability, str(request.get("jit") or ""))
        of = self._manifest(asked, image, capability, request)
        for suffix, data in of.manifest.files.items():
            self._write("module", f"{of.key}.{suffix}", data)
        text = of.manifest.text.encode("utf-8", "surrogateescape")
        path = self._write("module", f"{of.key}.txt", text)
        answer: Answer = {"ok": True, "key": of.key, "manifest": text_of(path)}
        if of.made is None:
            return answer
        # Last: who finds it finds the module.
        alias = manifest.made_by(of.key, of.made.tool).text
        self._write("module", f"{asked}.txt", alias.encode("utf-8", "surrogateescape"))
        return {**answer, "log": of.made.log}

    def _manifest(self, key: str, image: bytes, capability: int, request: Request) -> _Module:
        try:
            if image.startswith(FATBIN_MAGIC):
                fatbin = self.engine.parse_fatbin(image)
                entry = manifest.choose(fatbin, capability, self.engine.supported)
                if entry is None:
                    text = choose_ptx(fatbin, capability)
                    if text is not None:
                        return self._compiled(text.payload, capability, request)
                    return _Module(key, manifest.no_code(fatbin))
                payload = entry.payload
            elif image.startswith(ELF_MAGIC):
                payload = image
            elif b".version" in image:
                return self._compiled(image, capability, request)
            else:
                refused = manifest.refuse(
                    manifest.CUDA_ERROR_INVALID_IMAGE, "SX0709", "neither fatbin nor cubin"
                )
                return _Module(key, refused)
            cubin = self.engine.parse_cubin(payload)
            if cubin.arch not in self.engine.supported:
                refused = manifest.refuse(
                    manifest.CUDA_ERROR_NO_BINARY_FOR_GPU,
                    "SX0708",
                    f"sm_{cubin.arch} is not supported",
                )
                return _Module(key, refused)
            made = manifest.write(key, cubin, self.engine.fits and self.engine.fits(cubin))
        except (ShimError, ServiceError):
            raise  # of PTX: with another ptxas it may work
        except SassxlateError as error:
            refused = manifest.refuse(manifest.CUDA_ERROR_INVALID_IMAGE, error.code, _place(error))
            return _Module(key, refused)
        self._write("module", f"{key}.cubin", payload)
        self._keep(key, cubin, payload)
        return _Module(key, made)

    def _compiled(self, text: bytes, capability: int, request: Request) -> _Module:
        """The module of PTX: it has the key of the cubin, so that another ptxas makes another."""
        shop = just_in_time.workshop(request, self.cache, self.engine.supported)
        made = just_in_time.compiled(shop, request, text, capability)
        key = module_key(made.cubin, made.arch)
        return replace(self._manifest(key, made.cubin, made.arch, request), made=made)

    def assemble(self, request: Request) -> Answer:
        """Whether the PTX in file ``image`` can be part of a program for ``cc``; ptxas's log."""
        text = just_in_time.file_of(path_of(_text(request, "image")))
        shop = just_in_time.workshop(request, self.cache, self.engine.supported)
        made = just_in_time.checked_piece(shop, request, text, _number(request, "cc"))
        return {"ok": True, "log": made.log}

    def link(self, request: Request) -> Answer:
        """Link the pieces ``inputs`` for ``cc``; the path of the cubin."""
        shop = just_in_time.workshop(request, self.cache, self.engine.supported)
        made = just_in_time.linked(shop, request, _number(request, "cc"))
        path = self._write("module", f"{key_of(made.cubin)}.linked", made.cubin)
        return {"ok": True, "cubin": text_of(path), "log": made.log}

    def translate(self, request: Request) -> Answer:
        """Translate ``kernel`` of module ``module``; paths of code object and launch text."""
        # The collector would walk all of a translation's result, which is dropped first.
        with collector.paused():
            return self._translate(request)

    def _translate(self, request: Request) -> Answer:
        key, name = _text(request, "module"), _text(request, "kernel")
        stem = f"{key}-{name_key(name)}"
        if request.get("made") and (there := self._translated(stem)):
            return there
        cubin = self._cubin(key)
        kernel = next((k for k in cubin.kernels if k.name == name), None)
        if kernel is None:
            raise ServiceError("SX0903", f"the module has no kernel {name}")
        try:
            done = self.engine.translate(cubin, kernel)
        except SassxlateError as error:
            answer = failure(error.at(kernel=name))
            text = (
                f"cuda_error {answer['cuda_error']}\ncode {answer['code']}\nline {answer['line']}\n"
            )
            path = self._write("kernel", f"{stem}.refused", text.encode("utf-8", "surrogateescape"))
            return {**answer, "refused": text_of(path)}
        text = str(done.launch)
        kept = hybrid.find(self.cache, done.code_object, text)
        chosen = self._lines[key].added_to(done.code_object if kept is None else kept.code)
        code = self._write("kernel", f"{stem}.hsaco", chosen)
        if kept is not None:
            with suppress(OSError):
                settle(self.cache, stem)
        # Last: a reader that finds the launch text finds the code object too.
        launch = self._write("kernel", f"{stem}.launch", text.encode("utf-8", "surrogateescape"))
        return {"ok": True, "code_object": text_of(code), "launch": text_of(launch)}

    def _translated(self, stem: str) -> Answer | None:
        names = (f"{stem}.hsaco", f"{stem}.launch")
        if any(self.cache.read("kernel", name) is None for name in names):
            return None
        code, launch = (text_of(self.cache.path("kernel", name)) for name in names)
        return {"ok": True, "code_object": code, "launch": launch}

    def ahead(self, request: Request) -> Answer:
        """Puts ``kernel`` of ``module`` into the cache, and its host code if ``compile`` is set."""
        name = _text(request, "kernel")
        stem = f"{_text(request, 'module')}-{name_key(name)}"
        if self.cache.read("kernel", f"{stem}.refused") is not None:
            return {"ok": True}
        answer = self._translated(stem) or self.translate(request)
        if not answer["ok"] or not request.get("compile"):
            return {k: v for k, v in answer.items() if k != "log"}
        code = self.cache.read("kernel", f"{stem}.hsaco")
        return answer if code is None else self._compile(code, request)

    def upgrade(self, request: Request) -> Answer:
        """Give ``kernel`` of ``module`` the code of ``engine``; its host code before, if it is to
        be ``ready``."""
        if self.engine.better is None:
            raise ServiceError("SX0903", "this service has no other engine")
        key, name = _text(request, "module"), _text(request, "kernel")
        cubin = self._cubin(key)
        kernel = next((k for k in cubin.kernels if k.name == name), None)
        if kernel is None:
            raise ServiceError("SX0903", f"the module has no kernel {name}")

        def first(code: bytes) -> None:
            if request.get("ready"):
                self._compile(code, request)

        with collector.paused(), suppress(OSError):  # without room all stays as it is
            made = self.engine.better(cubin, kernel, _text(request, "engine"))
            stem = f"{key}-{name_key(name)}"
            upgrade(self.cache, stem, made, self._lines[key].added_to, first)
        return {"ok": True}

    def compile(self, request: Request) -> Answer:
        """Compile ``kernel`` of the code object in a file to host code; the image's path."""
        return self._compile(_code_object(request), request)

    def _compile(self, code: bytes, request: Request) -> Answer:
        name, strict = _text(request, "kernel"), bool(request.get("strict"))
        counts, turns = bool(request.get("counts")), bool(request.get("turns"))
        entered = str(request.get("entered") or "")
        whole = host_key(code, name, strict, counts, turns)
        key = host_key(code, name, strict, counts, turns, entered)
        for known in (f"{whole}.sxh", f"{key}.sxh"):
            if self.cache.read("host", known) is not None:
                return {"ok": True, "image": text_of(self.cache.path("host", known))}
        compiler = self.engine.compile
        if request.get("quick"):
            compiler = self.engine.compile_quickly or compiler
        elif (verdict := self.cache.read("host", f"{key}.slow")) is not None:
            return gave_up(ServiceError("SX0914", f"{name}: {verdict.decode()}"))
        part = self.engine.compile_part if entered else None
        try:
            image = (
                compiler(code, name, strict, counts, turns)
                if part is None
                else part(code, name, strict, counts, turns, entered)
            )
        except SassxlateError as error:
            return failure(error.at(kernel=name))
        made = self._write("host", f"{key}.sxh", image)
        if entered:  # a later run begins with it
            self._write("host", f"{whole}.hot", entered.encode())
        return {"ok": True, "image": text_of(made)}

    def lost(self, limit_s: float, request: Request, error: ServiceError) -> Answer:
        """The answer for a job whose worker was lost.  A limit ends a kernel's optimisation, not
        the kernel; that is kept, so that no later run tries it."""
        compiles = request.get("op") == "compile" or bool(request.get("compile"))
        if not compiles or request.get("quick"):
            return failure(error)
        if error.code == "SX0904":
            text = f"the compiler was stopped after {limit_s:g} s"
            error = ServiceError("SX0914", f"{request.get('kernel')}: {text}")
            try:
                self._keep_verdict(request, text)
            except (SassxlateError, OSError) as reason:
                log.warning("not kept that %s: %s", error, reason)
        return gave_up(error)

    def _keep_verdict(self, request: Request, why: str) -> None:
        name = _text(request, "kernel")
        if request["op"] == "compile":
            code = _code_object(request)
        else:
            code = self.cache.need("kernel", f"{_text(request, 'module')}-{name_key(name)}.hsaco")
        strict, counts, turns = kind_of(request)
        entered = str(request.get("entered") or "")
        key = host_key(code, name, strict, counts, turns, entered)
        self._write("host", f"{key}.slow", why.encode())

    def stencils(self, request: Request) -> Answer:
        """Make the pack of the shapes ``shapes``, or without them the one that the baseline tier
        begins with; its path."""
        shapes: Sequence[str] = request.get("shapes") or ()
        name = f"stencils-{key_of(''.join(shapes).encode())}.sxs" if shapes else "stencils.sxs"
        if self.engine.stencils is None:
            raise ServiceError("SX0903", "this service makes no stencils")
        if self.cache.read("host", name) is None:
            try:
                self._write("host", name, self.engine.stencils(shapes))
            except SassxlateError as error:
                return failure(error)
        return {"ok": True, "pack": text_of(self.cache.path("host", name))}

    def _cubin(self, key: str) -> Cubin:
        kept = self._cubins.get(key)
        if kept is not None:
            return kept
        data = self.cache.read("module", f"{key}.cubin")
        if data is None:
            raise ServiceError("SX0906", f"module {key} is no longer in the cache")
        cubin = self.engine.parse_cubin(data)
        self._keep(key, cubin, data)
        return cubin

    def _keep(self, key: str, cubin: Cubin, data: bytes) -> None:
        while len(self._cubins) >= 8:
            oldest = next(iter(self._cubins))
            del self._cubins[oldest], self._lines[oldest]
        self._cubins[key] = cubin
        self._lines[key] = CubinLines(data, function_addresses(cubin))

    def _write(self, area: str, name: str, data: bytes) -> Path:
        try:
            return self.cache.write(area, name, data)
        except OSError as error:
            try:
                self.cache = self.spare()
                log.warning("%s: %s; using %s", error.filename, error.strerror, self.cache.root)
                return self.cache.write(area, name, data)
            except OSError as second:
                # A failed write names no file.
                place = second.filename or self.cache.root
                raise ServiceError("SX0907", f"{place}: {second.strerror}") from second


def _code_object(request: Request) -> bytes:
    path = path_of(_text(request, "code_object"))
    try:
        code, _ = trusted.read(path)
    except OSError as error:
        raise ServiceError("SX0903", f"{path}: {error.strerror}") from error
    kept = unseal(path.name, code)  # a file of the cache
    return code if kept is None else kept


def gave_up(error: SassxlateError) -> Answer:
    """The answer where the compiler was stopped or ended: the kernel can be had without
    optimisation (``quick``)."""
    return {**failure(error), "slow": True}


def failure(error: SassxlateError) -> Answer:
    """The answer for a typed error: a refusal is 801, an internal error 999; PTX has its own."""
    ours = error.code.startswith("SX09")
    number = CUDA_ERROR_UNKNOWN if ours else CUDA_ERROR_NOT_SUPPORTED
    answer: Answer = {
        "ok": False,
        "code": error.code,
        "cuda_error": CUDA_ERRORS.get(error.code, number),
        "line": _line(error),
    }
    return {**answer, "log": error.log} if isinstance(error, PtxError) else answer


def _line(error: SassxlateError) -> str:
    return " ".join(str(error).split())


def _place(error: SassxlateError) -> str:
    where = str(error.where)
    return f"{where}: {error.message}" if where else error.message


def _text(request: Request, key: str) -> str:
    value = request.get(key)
    if not isinstance(value, str) or not value or "\0" in value:
        raise ServiceError("SX0903", f"the request's {key!r} is not a text")
    return value


def _number(request: Request, key: str) -> int:
    value = request.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 1000:
        raise ServiceError("SX0903", f"the request's {key!r} is not a number")
    return value
