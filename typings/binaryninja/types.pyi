from binaryninja.enums import SymbolType

class Symbol:
    def __init__(
        self,
        sym_type: SymbolType,
        addr: int,
        short_name: str,
        full_name: str | None = ...,
        raw_name: str | None = ...,
    ) -> None: ...
