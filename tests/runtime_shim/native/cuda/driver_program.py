"""The driver test program and its kernels, built once a test run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
Tool = Callable[..., str]
SharedBuild = Callable[[str, Callable[[Path], object]], Path]
# nvcc's options for each form of a module.
FORMS = {
    "sm_80": ("-cubin", "-arch=sm_80"),
    "sm_90": ("-cubin", "-arch=sm_90"),
    "fatbin": (
        "-fatbin",
        "-gencode=arch=compute_80,code=sm_80",
        "-gencode=arch=compute_90,code=[sm_90,compute_90]",
        "--compress-mode=size",
    ),
    "ptx": ("-ptx", "-arch=compute_80"),
    "ptx_lineinfo": ("-ptx", "-arch=compute_80", "-lineinfo"),
    "ptx_debug": ("-ptx", "-arch=compute_80", "-G"),
    "ptx_fatbin": ("-fatbin", "-gencode=arch=compute_80,code=compute_80"),
    "ptx_compressed": (
        "-fatbin",
        "-gencode=arch=compute_75,code=compute_75",
        "--compress-mode=size",
    ),
    "rdc": ("-cubin", "-rdc=true", "-arch=sm_80"),
}


@dataclass(frozen=True, slots=True)
class Built:
    """The program and, by name, its images: cubins, fat binaries, PTX."""

    program: Path
    images: dict[str, Path]


def driver_program(shared_build: SharedBuild, nvcc: Tool, libraries: Path) -> Built:
    """driver*.cpp against NVIDIA's own header, kernels.cu in every form of a module."""

    def fill(folder: Path) -> None:
        sources = sorted((HERE / "programs").glob("driver*.cpp"))
        options = ("-std=c++17", "-cudart", "none", f"-L{libraries}", "-l:libcuda.so.1")
        nvcc(*sources, "-o", folder / "driver", *options)
        for name, form in FORMS.items():
            nvcc(*form, HERE / "programs" / "kernels.cu", "-o", folder / f"{name}.image")

    folder = shared_build("driver", fill)
    return Built(folder / "driver", {name: folder / f"{name}.image" for name in FORMS})
