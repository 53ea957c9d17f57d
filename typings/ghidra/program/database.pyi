from ghidra.program.model.lang import CompilerSpec, Language
from ghidra.program.model.listing import Program

class ProgramDB(Program):
    def __init__(
        self, name: str, language: Language, spec: CompilerSpec, consumer: object
    ) -> None: ...
