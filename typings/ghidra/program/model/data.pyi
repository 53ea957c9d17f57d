class DataType: ...

class ByteDataType(DataType):
    dataType: ByteDataType

class ArrayDataType(DataType):
    def __init__(self, kind: DataType, number: int, size: int) -> None: ...
