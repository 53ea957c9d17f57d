"""The kernel and the launch of a trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sassxlate.disasm.containers import Cubin, Kernel
from sassxlate.lowering.select.translated import Translated
from sassxlate.lowering.trace.recording import Recorded

if TYPE_CHECKING:
    from sassxlate.disasm.sass.interpreter import Launch


@dataclass(frozen=True, slots=True)
class Subject:
    """A kernel, its translation and a launch of it; ``code`` is the code object that runs."""

    cubin: Cubin
    kernel: Kernel
    translated: Translated
    code: bytes
    recorded: Recorded

    @property
    def waves(self) -> int:
        """Waves of a workgroup."""
        x, y, z = self.recorded.block
        return -(-x * y * z // 32)

    @property
    def blocks(self) -> int:
        x, y, z = self.recorded.grid
        return x * y * z

    def launch(self) -> Launch:
        """The launch for the interpreter."""
        from sassxlate.lowering.trace.interpreter_launch import replayed

        text = str(self.translated.launch)
        fields = (line.rpartition(" ") for line in text.splitlines())
        fills = {key: value for key, _, value in fields}
        return replayed(self.cubin, self.kernel, fills, self.recorded)
