"""The emulated device and our cuBLAS in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sassxlate.runtime_shim import application
from tests.runtime_shim.native.cufft.cufft_api import library_folder

from .cublas_api import Blas


@pytest.fixture(scope="module", params=[12, 13])
def library(request: pytest.FixtureRequest) -> Iterator[Blas]:
    """Both libraries."""
    if not (library_folder() / "cublas" / f"libcublas.so.{request.param}").is_file():
        pytest.skip("libcublas is not built (runtime_shim/native/build.sh)")
    host = application.host_blas()
    if host is None:
        pytest.skip("this NumPy brings no OpenBLAS")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SASSXLATE_BLAS", str(host))
        made = Blas(request.param)
    yield made
    # On a card each has memory of its own.
    made.code("cublasDestroy_v2", made.handle)


@pytest.fixture
def blas(library: Blas) -> Iterator[Blas]:
    """A library whose memory is freed after the test."""
    yield library
    library.call("cublasSetPointerMode_v2", 0)
    library.call("cublasSetStream_v2", None)
    library.cuda.free(*library.memory)
    library.memory.clear()
