from enum import IntEnum

class BranchType(IntEnum):
    UnconditionalBranch = 0
    FalseBranch = 1
    TrueBranch = 2
    CallDestination = 3
    FunctionReturn = 4
    IndirectBranch = 6
    UnresolvedBranch = 127

class Endianness(IntEnum):
    LittleEndian = 0

class InstructionTextTokenType(IntEnum):
    TextToken = 0
    InstructionToken = 1
    RegisterToken = 3
    IntegerToken = 4
    PossibleAddressToken = 5

class SectionSemantics(IntEnum):
    ReadOnlyCodeSectionSemantics = 1

class SegmentFlag(IntEnum):
    SegmentExecutable = 1
    SegmentReadable = 4

class SymbolType(IntEnum):
    FunctionSymbol = 0
    LocalLabelSymbol = 8
