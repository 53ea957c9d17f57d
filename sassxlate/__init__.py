"""sassxlate: runs precompiled CUDA programs (SASS) on AMD RDNA3, or on no GPU at all.

``import sassxlate as sx`` is also the Python interface, see docs/python.md: its names are imported
when they are used.  Their types are in ``__init__.pyi``.
"""

import resource
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

__version__ = "0.1.0"

if resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY:
    # CPython leaves compiled modules that such a limit cut short, and cannot start from them again.
    sys.dont_write_bytecode = True


class _Compiled:
    """The finder of compiled modules: imported with the first module that may be one of them, since
    ``import sassxlate`` alone needs none."""

    def find_spec(
        self,
        name: str,
        path: "Sequence[str] | None" = None,
        target: "ModuleType | None" = None,
    ) -> "ModuleSpec | None":
        if not name.startswith("sassxlate.") or name.count(".") < 2:
            return None
        from sassxlate import compiled

        finder = compiled.install()  # before this one is gone: other threads import meanwhile
        sys.meta_path[:] = [one for one in sys.meta_path if one is not self]
        return None if finder is None else finder.find_spec(name, path, target)


sys.meta_path.insert(0, _Compiled())

# The Python interface: each name, and the module that has it.
_INTERFACE = {
    **dict.fromkeys(("Binary", "Kernel", "Kernels", "Parameter"), "api.binary"),
    **dict.fromkeys(("UnknownKernelError", "open"), "api.binary"),
    **dict.fromkeys(("Translation", "translate"), "api.translation"),
    **dict.fromkeys(("Buffer", "Device", "LaunchConfig", "emulate"), "api.device"),
    **dict.fromkeys(
        ("SassxlateError", "ContainerError", "DecodeError", "InterpretError"), "errors"
    ),
    **dict.fromkeys(("CfgError", "LoweringError", "EncodeError", "EmulatorError"), "errors"),
    **dict.fromkeys(("ShimError", "UsageError", "ServiceError", "ModelError", "Where"), "errors"),
}


def __getattr__(name: str) -> object:
    """A name of the Python interface, imported at its first use."""
    if name not in _INTERFACE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(f"{__name__}.{_INTERFACE[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_INTERFACE})
