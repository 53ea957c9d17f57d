"""``--engine`` and ``--model``: the writer of blocks' code.  Cheap to import."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from sassxlate.disasm.amdgpu_machines import RDNA3, parted
from sassxlate.errors import ModelError
from sassxlate.llm.engine.choose import tier_identity
from sassxlate.notes import shows_progress
from sassxlate.runtime_shim.cache import place as _cache_place

if TYPE_CHECKING:
    from sassxlate.disasm.containers import Cubin
    from sassxlate.lowering.engine.engine import Engine
    from sassxlate.lowering.engine.memo import Memo
    from sassxlate.lowering.engine.report import EngineReport
    from sassxlate.lowering.select.stages import Selected
    from sassxlate.lowering.select.translated import Translated
    from sassxlate.lowering.verify.steps.region_proofs import RegionProofs
    from sassxlate.runtime_shim.cache.store import Cache

_T = TypeVar("_T")
_QUIET_S, _EVERY_S = 2.0, 0.2  # seconds before progress is shown, and between two updates
_BAR = 24
_TOGETHER = 32  # kernels that are asked for at once
KEEPS = ("hybrid", "search")  # their code is proved, and cheaper than the rules'
UNIT = 16  # of lowering/optimize/cost.py: of a cycle


@dataclass(slots=True)
class Writer:
    """Translates kernels with an engine, with a report on each.

    ``tier``: llvm or best, where whole kernels are LLVM's (`lowering/tier`); otherwise empty.

    ``keeps``: the engines whose code programs get that run later, with ``place`` as their cache
    (None: the usual one).  The code is for ``target``.  ``tells``: whether progress is drawn.
    """

    engine: Engine | None
    keeps: tuple[str, ...] = KEEPS
    place: Path | None = None
    target: str = RDNA3[0]
    tier: str = ""
    tells: bool = True
    # The files of the cache that have this engine's code, as far as it was asked for here.
    entries: set[str] = field(default_factory=set[str], repr=False)
    _store: Cache | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """What `--engine` calls it."""
        return self.tier or ("rules" if self.engine is None else self.engine.name)

    @property
    def splits(self) -> bool:
        """Whether kernels may be translated in several processes, with the same code.  A model asks
        for several kernels at once, in processes of its own; a proposer from a file may have a
        state."""
        return self.name in ("rules", "search") or bool(self.tier)

    @property
    def identity(self) -> str:
        """All that its code depends on."""
        if self.tier:
            return tier_identity(self.tier)
        return "rules" if self.engine is None else self.engine.identity

    def translate(
        self,
        cubin: Cubin,
        name: str,
        after: Callable[[str, object], None] | None = None,
        *,
        placed: bool = False,
    ) -> tuple[Translated, EngineReport | None]:
        """One kernel; ``after`` and ``placed`` as of translate_kernel.  Raises as that does;
        ModelError SX1007 in mode ``model``, SX1014 if the proposer's ``ahead`` fails."""
        from sassxlate.lowering.pipeline import translate_kernel
        from sassxlate.lowering.target import target_named

        engine = self.engine
        if engine is None:
            target = target_named(self.target)
            first = target.of_rules if self.tier else target
            done = translate_kernel(cubin, name, target=first, placed=placed, after=after)
            if not self.tier:
                return done, None
            from sassxlate.lowering.tier.report import chosen

            made, report = chosen(done, target, self.tier)
            if self.tier in self.keeps:
                self._keep(done, made, report)
            return made, report
        reports: list[EngineReport] = []

        def rewrite(selected: Selected) -> Selected:
            made, report = engine.rewrite(selected, name)
            reports.append(report)
            return made

        with _Progress(engine, name, self.tells):
            target = target_named(self.target)
            done = translate_kernel(cubin, name, rewrite, target=target, placed=placed, after=after)
        if engine.name in self.keeps:
            rules = translate_kernel(cubin, name, target=target_named(self.target))
            self._keep(rules, done, reports[0])
        return done, reports[0]

    def _keep(self, rules: Translated, made: Translated, report: EngineReport) -> None:
        """For `sassxlate run`; a full disk is not an error."""
        from sassxlate.runtime_shim.cache import hybrid

        cache, launch = self._cache(), str(rules.launch)
        if cache is None or launch != str(made.launch):
            return
        with suppress(OSError):
            said, code = report.as_dict(), rules.code_object
            hybrid.keep(cache, code, launch, made.code_object, said, self.identity)
            self.entries |= self._names(code, launch)

    def _names(self, code: bytes, launch: str) -> set[str]:
        from sassxlate.runtime_shim.cache import hybrid

        return {hybrid.file_name(code, launch, who) for who in (self.identity, "")}

    def asked(
        self, items: Iterable[_T], kernel_of: Callable[[_T], tuple[Cubin, str]], name: str
    ) -> Iterator[_T]:
        """The same items; what their kernels need is asked some kernels at a time.
        ``name`` is what the progress is called."""
        if self.engine is None:
            yield from items
            return
        waiting = iter(items)
        while group := list(islice(waiting, _TOGETHER)):
            if len(group) > 1:
                with _Progress(self.engine, name, self.tells):
                    self.engine.ahead(_selected(map(kernel_of, group), self.target))
            yield from group

    def done(self, cubin: Cubin, name: str) -> bool:
        """Whether the cache has this engine's code for a kernel."""
        from sassxlate.errors import SassxlateError
        from sassxlate.lowering.pipeline import translate_code
        from sassxlate.lowering.target import target_named
        from sassxlate.runtime_shim.cache import hybrid

        if self.name == "rules":
            return False
        try:
            rules = translate_code(cubin, name, target=target_named(self.target))
        except SassxlateError:
            return False
        cache = self._cache()
        if cache is None:
            return False
        code, launch = rules.code_object, str(rules.launch)
        if not all(hybrid.find(cache, code, launch, who) for who in (self.identity, "")):
            return False
        self.entries |= self._names(code, launch)
        return True

    def _cache(self) -> Cache | None:
        """The cache, opened once: its tag is a digest of all sources, its first write counts it."""
        root = self.place or _cache_place.place()
        if root is None:
            return None
        if self._store is None or self._store.root != root:
            self._store = _cache(self.target, root)
        return self._store

    def keeps_in(self, root: Path) -> Path:
        """The folder below ``root`` for runs with this engine alone, which keeps all of its code
        there, whatever it costs."""
        from sassxlate.runtime_shim import paths

        self.keeps = (self.name,)
        self.place = paths.private_dir(root / f"engine-{self.key}")
        return self.place

    @property
    def key(self) -> str:
        """Of the engine and all that its code depends on."""
        from sassxlate.runtime_shim.cache.store import key_of

        if self.name == "rules":
            return "rules"
        return key_of(self.identity.encode())[:16]


def _selected(kernels: Iterable[tuple[Cubin, str]], target: str) -> Iterator[Selected]:
    """The kernels as the rules translate them; kernels that they refuse are reported later."""
    from sassxlate.errors import SassxlateError
    from sassxlate.lowering.pipeline import translate_kernel
    from sassxlate.lowering.target import target_named

    for cubin, name in kernels:
        with suppress(SassxlateError):
            yield translate_kernel(cubin, name, target=target_named(target)).selected


def writer(
    engine: str | None,
    model: str | None,
    samples: int,
    target: str = RDNA3[0],
    processes: int = 0,
) -> Writer:
    """The engine that the options name, for a target; without any, what is usual here.  For a
    target that is not of RDNA3 it is the optimising tier.  ``processes``: that a model answers in,
    0 for one per core.

    ModelError SX1008 for an engine that writes no code for the target, SX1001 to SX1013 for a model
    or a proposer's file that cannot be used.
    """
    from sassxlate.llm.engine import choose

    name = engine
    if parted(target)[0] not in RDNA3:
        name = name or "llvm"
        if name not in choose.TIER:
            text = f"--engine {name} writes no code for {target}: --engine llvm does"
            raise ModelError("SX1008", text)
    if name is None:
        name = "hybrid" if model is not None else choose.usual(model)
    # The rules remember nothing: no cache is opened for them.
    store, memo, proofs = None, None, None
    if name not in ("rules", *choose.TIER):
        store = _cache(target, _cache_place.place())
        memo, proofs = _remembered(store)
    made = choose.engine(name, model, samples, memo=memo, proofs=proofs, processes=processes)
    own = (made.name,) if made is not None and choose.is_file(name) else ()
    tier = name if name in choose.TIER else ""
    return Writer(made, (*KEEPS, *own), target=target, tier=tier, _store=store)


def _remembered(cache: Cache | None) -> tuple[Memo, RegionProofs]:
    """Answers of before and their proofs, in the cache: read and written like code objects, and as
    trusted (docs/decisions.md)."""
    from sassxlate.lowering.engine.memo import Memo
    from sassxlate.lowering.verify.steps.region_proofs import RegionProofs

    def read(kind: str, key: str) -> bytes | None:
        return None if cache is None else cache.read("verdict", f"{kind}-{key}")

    def write(kind: str, key: str, data: bytes) -> None:
        with suppress(OSError):
            if cache is not None:
                cache.write("verdict", f"{kind}-{key}", data)

    memo = Memo(partial(read, "answers"), partial(write, "answers"))
    return memo, RegionProofs(partial(read, "proof"), partial(write, "proof"))


def _cache(target: str, root: Path | None) -> Cache | None:
    from sassxlate.runtime_shim.cache.store import Cache, size_cap
    from sassxlate.runtime_shim.cache.tag import cache_tag

    return None if root is None else Cache(root, cache_tag(target), size_cap())


class _Progress:
    """A progress line on the terminal, once it takes long."""

    def __init__(self, engine: Engine, name: str, tells: bool) -> None:
        self.engine, self.name, self.tells = engine, name[:40], tells
        self.started = time.monotonic()
        self.last = 0.0
        self.visible = False

    def __enter__(self) -> None:
        if self.tells and shows_progress():
            self.engine.progress = self.step

    def step(self, what: str, done: int, of: int) -> None:
        now = time.monotonic()
        if now - self.started > _QUIET_S and now - self.last > _EVERY_S:
            self.last, self.visible = now, True
            wide = round(_BAR * done / of) if of else _BAR
            bar = "#" * wide + "." * (_BAR - wide)
            click.echo(f"\r{self.name}: {what} [{bar}] {done} of {of}\x1b[K", err=True, nl=False)

    def __exit__(self, *_: object) -> None:
        if self.visible:
            click.echo("\r\x1b[K", err=True, nl=False)


__all__ = ["UNIT", "Writer", "writer"]
