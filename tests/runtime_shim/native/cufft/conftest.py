"""The emulated device and our cuFFT in this process."""

from __future__ import annotations

import pytest

from .cufft_api import Cuda, Cufft, library_folder


@pytest.fixture(scope="session")
def cuda() -> Cuda:
    """The driver; skips where the libraries are not built."""
    if not (library_folder() / "cufft" / "libcufft.so.12").is_file():
        pytest.skip("libcufft.so.12 is not built (runtime_shim/native/build.sh)")
    return Cuda()


@pytest.fixture(scope="session")
def cufft(cuda: Cuda) -> Cufft:
    """The library of CUDA 13."""
    assert cuda
    return Cufft(12)
