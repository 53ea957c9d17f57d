"""Three verdicts, never two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Proved:
    """For all inputs.  ``modulo`` says under which reading: NaN payloads, uniform values, rules
    that were tried on inputs."""

    modulo: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refuted:
    """An input for which the results differ: values by name, what differs, both results.

    ``defect`` says in words what is wrong whatever the input: a wait that is missing.
    """

    inputs: Mapping[str, int] = field(default_factory=dict[str, int])
    where: str = ""
    sass: int = 0
    rdna: int = 0
    defect: str = ""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Not decided; counted apart, never as a pass."""

    reason: str


Verdict: TypeAlias = Proved | Refuted | Unknown


class Undecided(Exception):
    """Raised inside the verifier where something is beyond it; becomes Unknown.

    ``at`` is the number of the SASS instruction, where it is known.
    """

    def __init__(self, reason: str, at: int | None = None) -> None:
        super().__init__(reason)
        self.at = at


class Defective(Exception):
    """Raised inside the verifier for what is wrong whatever the input; becomes Refuted."""
