"""What the service's workers do their work with: the translator and the emulator's compiler, as
functions that tests replace."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from sassxlate.disasm.containers.values import Cubin, Fatbin, Kernel
from sassxlate.lowering.target import DEFAULT, Target
from sassxlate.runtime_shim import paths
from sassxlate.runtime_shim.cache.store import Cache
from sassxlate.runtime_shim.cache.upgrade import Better
from sassxlate.runtime_shim.service import prebuilt


class TranslatedKernel(Protocol):
    """The translator's result for one kernel."""

    @property
    def code_object(self) -> bytes:
        """The code object."""
        ...

    @property
    def launch(self) -> object:
        """The launch information; ``str()`` of it is the text that the driver library reads."""
        ...


@dataclass(frozen=True, slots=True)
class Engine:
    """The parts below the service, as functions, so that tests can replace them."""

    parse_fatbin: Callable[[bytes], Fatbin]
    parse_cubin: Callable[[bytes], Cubin]
    translate: Callable[[Cubin, Kernel], TranslatedKernel]
    # code object, kernel, strict, counts, turns
    compile: Callable[[bytes, str, bool, bool, bool], bytes]
    supported: frozenset[int]
    # Called with a cache that may store parts shared by many kernels.
    share: Callable[[Cache], None] | None = None
    # The pack of some shapes; of no shapes: of those that are known beforehand.
    stencils: Callable[[Sequence[str]], bytes] | None = None
    # `compile` without optimisation, in less time.
    compile_quickly: Callable[[bytes, str, bool, bool, bool], bytes] | None = None
    # `compile` of the blocks that have been entered, as `Work.compile` is told.
    compile_part: Callable[[bytes, str, bool, bool, bool, str], bytes] | None = None
    # Threads of the largest block, by kernel, where that is fewer than on an NVIDIA GPU.
    fits: Callable[[Cubin], dict[str, int]] | None = None
    # Of a kernel by another engine.
    better: Callable[[Cubin, Kernel, str], Better] | None = None
    # Imports what a first launch does without; called when there is nothing to do.
    later: Callable[[], None] | None = None


def default_engine(target: Target = DEFAULT) -> Engine:
    """The real translator, for a target, and emulator compiler.  Imports the translator, which
    takes about a third of a second; LLVM and what compiles host code only when it is used, or by
    ``later``, so that workers forked after it share it."""
    from sassxlate.disasm import containers
    from sassxlate.lowering import emulate, pipeline
    from sassxlate.lowering.abi.kernarg import LAYOUTS
    from sassxlate.lowering.emulate.image import helper_objects
    from sassxlate.lowering.select import allocation

    def translate(cubin: Cubin, kernel: Kernel) -> TranslatedKernel:
        if target.has_rules:
            return pipeline.translate_code(cubin, kernel.name, target=target)
        from sassxlate.lowering.tier.translate import by_tier

        rules = pipeline.translate_kernel(cubin, kernel.name, target=target.of_rules)
        return by_tier(rules, target)

    def compile_one(
        code: bytes,
        kernel: str,
        strict: bool,
        counts: bool,
        turns: bool,
        entered: str = "",
        *,
        quick: bool = False,
    ) -> bytes:
        return emulate.compile_code_object(
            code, kernel, strict=strict, counts=counts, turns=turns, quick=quick, entered=entered
        )

    def pack_of(shapes: Sequence[str]) -> bytes:
        from sassxlate.lowering.emulate.options import host_isa

        if not shapes and (made := prebuilt.read(paths.library_dir(), host_isa())) is not None:
            return made
        from sassxlate.lowering.emulate.stencils import known  # with LLVM

        return known.pack_of(shapes)

    def better(cubin: Cubin, kernel: Kernel, engine: str) -> Better:
        from sassxlate.llm.engine.choose import tier_identity
        from sassxlate.lowering.tier.report import chosen

        rules = pipeline.translate_kernel(cubin, kernel.name, target=target.of_rules)
        made, report = chosen(rules, target, engine)
        code, launch, other = rules.code_object, str(rules.launch), str(made.launch)
        said = report.as_dict()
        return Better(code, made.code_object, launch, other, said, tier_identity(engine))

    def later() -> None:
        from sassxlate.lowering.emulate import compiler

        assert compiler

    return Engine(
        parse_fatbin=containers.parse_fatbin,
        parse_cubin=containers.parse_cubin,
        translate=translate,
        compile=compile_one,
        stencils=pack_of,
        compile_quickly=partial(compile_one, quick=True),
        compile_part=compile_one,
        supported=frozenset(LAYOUTS),
        fits=partial(allocation.expected_threads, target=target),
        better=better,
        share=lambda cache: helper_objects.keep_in(_Objects(cache)),
        later=later,
    )


@dataclass(frozen=True, slots=True)
class _Objects:
    """Objects of the emulator's helper functions, kept in the cache beside the host code."""

    cache: Cache

    def read(self, key: str) -> bytes | None:
        return self.cache.read("host", f"{key}.o")

    def write(self, key: str, data: bytes) -> None:
        # An object that cannot be stored is made again.
        with contextlib.suppress(OSError):
            self.cache.write("host", f"{key}.o", data)


__all__ = ["Engine", "TranslatedKernel", "default_engine"]
