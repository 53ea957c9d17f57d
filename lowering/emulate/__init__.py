"""RDNA3 machine code to host machine code: each wave is one function over vectors of 32 lanes."""

from __future__ import annotations


def compile_code_object(
    code: bytes,
    kernel: str,
    *,
    strict: bool = False,
    counts: bool = False,
    turns: bool = False,
    quick: bool = False,
    entered: str = "",
) -> bytes:
    """The host image (runtime_shim/native/abi.h) of a kernel of a code object; ``quick``: without
    optimisation, in less time; ``entered``: two hexadecimal digits for each eight blocks, the
    lowest bit for the first one: those whose bit is 0 may be left out.  Empty: none may.

    Raises:
        EmulatorError: SX06xx, with the offset from the kernel's start and the mnemonic.
        EncodeError: SX05xx, the code object cannot be read.
    """
    from sassxlate.lowering.emulate.compiler import compile_code_object as compile_one
    from sassxlate.lowering.emulate.options import CompileOptions

    bits = int.from_bytes(bytes.fromhex(entered), "little")
    options = CompileOptions(
        strict=strict,
        counts=counts,
        turns=turns,
        quick=quick,
        entered=frozenset(n for n in range(bits.bit_length()) if bits >> n & 1) if bits else None,
    )
    return compile_one(code, kernel, options).data
