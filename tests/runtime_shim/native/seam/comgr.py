"""AMD's own reader of code objects (libamd_comgr), where a machine has it."""

from __future__ import annotations

import ctypes

NAMES = ("libamd_comgr.so.3", "libamd_comgr.so.2")
_EXECUTABLE = 8  # AMD_COMGR_DATA_KIND_EXECUTABLE


class _Handle(ctypes.Structure):
    _fields_ = (("handle", ctypes.c_uint64),)


def library() -> ctypes.CDLL | None:
    """The library, or None if there is none."""
    for name in NAMES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            pass
    return None


class Metadata:
    """The metadata of one code object; AssertionError where comgr does not take it."""

    def __init__(self, comgr: ctypes.CDLL, data: bytes) -> None:
        self.comgr = comgr
        handle, self.root = _Handle(), _Handle()
        assert comgr.amd_comgr_create_data(_EXECUTABLE, ctypes.byref(handle)) == 0
        assert comgr.amd_comgr_set_data(handle, ctypes.c_size_t(len(data)), data) == 0
        assert comgr.amd_comgr_get_data_metadata(handle, ctypes.byref(self.root)) == 0

    def kernel(self, key: str) -> str:
        """A member of the first kernel, as text."""
        kernels, first, member = self._member(self.root, "amdhsa.kernels"), _Handle(), _Handle()
        index = ctypes.c_size_t(0)
        status = self.comgr.amd_comgr_index_list_metadata(kernels, index, ctypes.byref(first))
        assert status == 0
        member = self._member(first, key)
        size = ctypes.c_size_t()
        get = self.comgr.amd_comgr_get_metadata_string
        assert get(member, ctypes.byref(size), None) == 0
        text = ctypes.create_string_buffer(size.value)
        assert get(member, ctypes.byref(size), text) == 0
        return text.value.decode()

    def _member(self, of: _Handle, key: str) -> _Handle:
        found = _Handle()
        lookup = self.comgr.amd_comgr_metadata_lookup
        assert lookup(of, key.encode(), ctypes.byref(found)) == 0, key
        return found
