"""Three verdicts, never two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Proved:
    """For all inputs.  ``modulo`` lists the assumptions: NaN payloads, uniform values, rules that
    were only tested on inputs."""

    modulo: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refuted:
    """An input for which the results differ: values by name, the place that differs, both results.

    ``defect`` describes an error that holds for every input, such as a missing wait.
    """

    inputs: Mapping[str, int] = field(default_factory=dict[str, int])
    where: str = ""
    sass: int = 0
    rdna: int = 0
    defect: str = ""

    @property
    def summary(self) -> str:
        """One line: the defect, or both results and the inputs that are not 0."""
        if self.defect:
            return self.defect
        inputs = ", ".join(f"{n} = {v:#x}" for n, v in sorted(self.inputs.items()) if v)
        text = f"{self.where}: SASS {self.sass:#x}, RDNA3 {self.rdna:#x}"
        return f"{text} with {inputs or 'all inputs 0'}"


@dataclass(frozen=True, slots=True)
class Unknown:
    """Not decided; counted apart, never as a pass."""

    reason: str


Verdict: TypeAlias = Proved | Refuted | Unknown


class Undecided(Exception):
    """Raised inside the verifier for something it cannot handle; becomes Unknown.

    ``at`` is the number of the SASS instruction, if known.
    """

    def __init__(self, reason: str, at: int | None = None) -> None:
        super().__init__(reason)
        self.at = at


class Defective(Exception):
    """Raised inside the verifier for an error that holds for every input; becomes Refuted."""
