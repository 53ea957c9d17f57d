from ghidra.program.model.address import Address

class Namespace: ...

class SourceType:
    IMPORTED: SourceType

class RefType:
    UNCONDITIONAL_JUMP: RefType
    CONDITIONAL_JUMP: RefType
    COMPUTED_JUMP: RefType
    UNCONDITIONAL_CALL: RefType
    DATA: RefType

class SymbolTable:
    def getOrCreateNameSpace(
        self, parent: Namespace, name: str, source: SourceType
    ) -> Namespace: ...
    def createLabel(
        self, address: Address, name: str, namespace: Namespace, source: SourceType
    ) -> object: ...

class ReferenceManager:
    def addMemoryReference(
        self, source: Address, target: Address, kind: RefType, by: SourceType, operand: int
    ) -> object: ...
