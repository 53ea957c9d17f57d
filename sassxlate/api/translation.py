"""A kernel's translation to RDNA3."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from sassxlate.disasm.amdgpu_machines import CODE_FOR, RDNA3
from sassxlate.errors import SassxlateError

if TYPE_CHECKING:
    from sassxlate.api.binary import Kernel
    from sassxlate.lowering.select.translated import Translated


@dataclass(frozen=True, eq=False)
class Translation:
    """A kernel for an AMD processor.

    ``engine``: what wrote it; ``blocks``: for engines other than the rules, what they did for each
    block, as ``report.json`` of `sassxlate translate` has it, otherwise None.
    """

    kernel: Kernel
    target: str
    engine: str
    blocks: dict[str, Any] | None = field(repr=False)
    _done: Translated = field(repr=False)

    @property
    def code_object(self) -> bytes:
        """The code object, which HIP loads: an ELF file."""
        return self._done.code_object

    @property
    def assembly(self) -> str:
        """The RDNA3 code as text; each line names the SASS that it came from."""
        return self._done.assembly

    @property
    def launch(self) -> str:
        """What a launcher must fill in: sizes, and the fields of the kernarg segment."""
        return str(self._done.launch)

    @property
    def report(self) -> dict[str, Any]:
        """Figures: instructions of both sides, registers, bytes, seconds by pass."""
        return asdict(self._done.report)


def translate(
    kernel: Kernel,
    *,
    target: str = RDNA3[0],
    engine: str = "rules",
    model: str | None = None,
    samples: int = 1,
) -> Translation:
    """Translates a kernel for an AMD processor.

    ``engine``: rules, search, model, hybrid, llvm, best, or a proposer ``FILE.py:NAME``, as for
    `sassxlate translate --engine`; ``model`` and ``samples`` as there.  No code is stored for
    `sassxlate run`.

    Raises LoweringError SX04 and others, with the kernel, the offset and the instruction, if the
    kernel is refused; UsageError SX0880 for an unknown target, ModelError SX1008 for an engine that
    does not exist or lacks something.
    """
    from sassxlate.errors import ModelError, UsageError
    from sassxlate.llm.engine import choose
    from sassxlate.runtime_shim.writer import writer

    if target not in CODE_FOR:
        raise UsageError("SX0880", f"target {target!r} is not one of {', '.join(CODE_FOR)}")
    if not choose.is_engine(engine):
        known = ", ".join(choose.NAMES)
        raise ModelError("SX1008", f"{engine!r} is not one of {known}, nor FILE.py:NAME")
    engines = writer(engine, model, samples, target)
    engines.keeps = ()
    cubin, name = kernel.cubin, kernel.name
    try:
        done, report = engines.translate(cubin, name)
    except SassxlateError as error:
        raise error.at(file=kernel.file, kernel=name) from None
    blocks = None if report is None else report.as_dict()
    return Translation(kernel, target, engines.name, blocks, done)


__all__ = ["Translation", "translate"]
