"""sassxlate: runs precompiled CUDA programs (SASS) on AMD RDNA3, or on no GPU at all.

``import sassxlate as sx`` is also the Python interface, see docs/python.md: its names are imported
when they are used.  Their types are in ``__init__.pyi``.
"""

import resource
import sys

__version__ = "0.1.0"

if resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY:
    # CPython leaves compiled modules that such a limit cut short, and cannot start from them again.
    sys.dont_write_bytecode = True


def __getattr__(name):
    """A name of the Python interface, imported at its first use."""
    if not name.startswith("__"):
        from importlib import import_module

        interface = import_module(f"{__name__}.api")
        if name in interface.ERRORS:
            found = getattr(import_module(f"{__name__}.errors"), name)
        elif name in interface.PUBLIC:
            found = getattr(import_module(f"{__name__}.api.{interface.PUBLIC[name]}"), name)
        else:
            found = None
        if found is not None:
            globals()[name] = found
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    from importlib import import_module

    interface = import_module(f"{__name__}.api")
    return sorted({*globals(), *interface.PUBLIC, *interface.ERRORS})
