from collections.abc import Iterator
from typing import ClassVar

from binaryninja.enums import BranchType, Endianness
from binaryninja.platform import Platform

class RegisterName(str): ...

class RegisterInfo:
    def __init__(self, full_width_reg: RegisterName, size: int) -> None: ...

class InstructionInfo:
    length: int
    def add_branch(self, branch_type: BranchType, target: int = ...) -> None: ...

class _Architectures(type):
    def __iter__(cls) -> Iterator[Architecture]: ...

class Architecture(metaclass=_Architectures):
    name: str
    endianness: Endianness
    address_size: int
    default_int_size: int
    instr_alignment: int
    max_instr_length: int
    regs: ClassVar[dict[RegisterName, RegisterInfo]]
    stack_pointer: str
    @property
    def standalone_platform(self) -> Platform: ...
    @classmethod
    def register(cls) -> None: ...
