"""The Python interface: ``import sassxlate as sx``.

The names are those of the package itself, which imports this one when they are used; their types
are in ``sassxlate/__init__.pyi``.  ``docs/python.md`` shows them at work.
"""

from __future__ import annotations

# Public name -> the module that has it.
PUBLIC = {
    "Binary": "binary",
    "Kernel": "binary",
    "Kernels": "binary",
    "Parameter": "binary",
    "UnknownKernelError": "binary",
    "open": "binary",
    "Translation": "translation",
    "translate": "translation",
    "Buffer": "device",
    "Device": "device",
    "LaunchConfig": "device",
    "emulate": "device",
}
ERRORS = (
    "SassxlateError", "ContainerError", "DecodeError", "InterpretError", "CfgError",
    "LoweringError", "EncodeError", "EmulatorError", "ShimError", "UsageError", "ServiceError",
    "ModelError", "Where",
)  # fmt: skip

__all__ = ["ERRORS", "PUBLIC"]
