"""The emulated card's description, as the amdgpu kernel driver shows it below /sys.

AMD's runtime reads it where `libsassxlate_kfd.so` is preloaded (runtime_shim/native/kfd), which
takes the files from a folder.  Names and meanings are those of Linux,
drivers/gpu/drm/amd/amdkfd/kfd_topology.c.  Cheap to import: a part of every start.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sassxlate.disasm.amdgpu_machines import PCI_DEVICES, RDNA3, gfx_version
from sassxlate.errors import ShimError
from sassxlate.runtime_shim import paths, rocm

PRELOAD = "libsassxlate_kfd.so"
GPU_ID = 0x5358  # runtime_shim/native/kfd/card.h has the same
RENDER_MINOR = 128

_PROCESSORS = 48  # where SASSXLATE_MULTIPROCESSORS says nothing
_CPU, _GPU = 0, 1  # nodes
_HEAP_SYSTEM, _HEAP_VRAM_PUBLIC = 0, 1
_LINK_PCI = 2
_CACHE_DATA, _CACHE_OF_UNITS = 1, 8
_CACHES = (32, 6144, 98304)  # KiB, of levels 1 to 3
_SIMDS_PER_UNIT = 2
_UNITS_PER_WORKGROUP_PROCESSOR = 2
_ENGINES, _ARRAYS_PER_ENGINE = 6, 2
# HSA_CAPABILITY: 13:12 doorbells of 64 bits, 27 the interface for host memory (AMDKFD_IOC_SVM),
# 29 firmware that tells of exceptions
_CAPABILITY = 2 << 12 | 1 << 27 | 1 << 29


def _lines(values: Mapping[str, int]) -> str:
    return "".join(f"{name} {value}\n" for name, value in values.items())


def _link(start: int, end: int) -> str:
    return _lines(
        {
            "type": _LINK_PCI,
            "version_major": 0,
            "version_minor": 0,
            "node_from": start,
            "node_to": end,
            "weight": 20,
            "min_latency": 0,
            "max_latency": 0,
            "min_bandwidth": 312,
            "max_bandwidth": 31507,
            "recommended_transfer_size": 0,
            "recommended_sdma_engine_id_mask": 0,
            "flags": 1,
        }
    )


def _bank(heap: int, size: int, width: int, clock: int) -> str:
    return _lines(
        {
            "heap_type": heap,
            "size_in_bytes": size,
            "flags": 0,
            "width": width,
            "mem_clk_max": clock,
        }
    )


def _cache(level: int, kilobytes: int) -> str:
    return _lines(
        {
            "processor_id_low": 2147487744,
            "level": level,
            "size": kilobytes,
            "cache_line_size": 128,
            "cache_lines_per_tag": 1,
            "association": 16,
            "latency": 1,
            "type": _CACHE_DATA | _CACHE_OF_UNITS,
        }
    )


def topology(target: str, processors: int, memory: int, host_memory: int) -> dict[str, str]:
    """The files of the folder, by their paths in it.

    Args:
        target: the processor, of those that sassxlate has code for.
        processors: workgroup processors, which HIP calls multiprocessors.
        memory: bytes of device memory.
        host_memory: bytes of the machine's.
    """
    units = processors * _UNITS_PER_WORKGROUP_PROCESSOR
    cores = os.cpu_count() or 1
    cpu = {
        "cpu_cores_count": cores,
        "simd_count": 0,
        "mem_banks_count": 1,
        "caches_count": 0,
        "io_links_count": 1,
        "p2p_links_count": 0,
        "cpu_core_id_base": 0,
        "simd_id_base": 0,
        "capability": 0,
        "max_waves_per_simd": 0,
        "lds_size_in_kb": 0,
        "gds_size_in_kb": 0,
        "num_gws": 0,
        "wave_front_size": 0,
        "array_count": 0,
        "simd_arrays_per_engine": 0,
        "cu_per_simd_array": 0,
        "simd_per_cu": 0,
        "max_slots_scratch_cu": 0,
        "gfx_target_version": 0,
        "vendor_id": 0,
        "device_id": 0,
        "location_id": 0,
        "domain": 0,
        "drm_render_minor": 0,
        "hive_id": 0,
        "num_sdma_engines": 0,
        "num_sdma_xgmi_engines": 0,
        "num_sdma_queues_per_engine": 0,
        "num_cp_queues": 0,
        "max_engine_clk_ccompute": 2000,
    }
    gpu = {
        **cpu,
        "cpu_cores_count": 0,
        "simd_count": units * _SIMDS_PER_UNIT,
        "simd_id_base": 2147487744,
        "capability": _CAPABILITY,
        "max_waves_per_simd": 16,
        "lds_size_in_kb": 64,
        "num_gws": 64,
        "wave_front_size": 32,
        "array_count": _ENGINES * _ARRAYS_PER_ENGINE,
        "simd_arrays_per_engine": _ARRAYS_PER_ENGINE,
        "cu_per_simd_array": max(1, units // (_ENGINES * _ARRAYS_PER_ENGINE)),
        "simd_per_cu": _SIMDS_PER_UNIT,
        "max_slots_scratch_cu": 32,
        "gfx_target_version": gfx_version(target),
        "vendor_id": 0x1002,
        # names the card in messages; one of a target that has none there is called as the first
        "device_id": PCI_DEVICES.get(target, PCI_DEVICES[RDNA3[0]]),
        "location_id": 3 << 8,
        "drm_render_minor": RENDER_MINOR,
        "caches_count": len(_CACHES),
        "num_sdma_engines": 2,
        "num_sdma_queues_per_engine": 6,
        "num_cp_queues": 8,
        "max_engine_clk_fcompute": 2000,
        "local_mem_size": memory,
        "fw_version": 2200,
        "debug_prop": 0,
        "sdma_fw_version": 21,
        "unique_id": GPU_ID,
        "num_xcc": 1,
    }
    return {
        "generation_id": "1\n",
        "system_properties": _lines({"platform_oem": 0, "platform_id": 0, "platform_rev": 0}),
        f"nodes/{_CPU}/gpu_id": "0\n",
        f"nodes/{_CPU}/name": "\n",
        f"nodes/{_CPU}/properties": _lines(cpu),
        f"nodes/{_CPU}/mem_banks/0/properties": _bank(_HEAP_SYSTEM, host_memory, 64, 2400),
        f"nodes/{_CPU}/io_links/0/properties": _link(_CPU, _GPU),
        f"nodes/{_GPU}/gpu_id": f"{GPU_ID}\n",
        f"nodes/{_GPU}/name": "navi31\n",
        f"nodes/{_GPU}/properties": _lines(gpu),
        f"nodes/{_GPU}/mem_banks/0/properties": _bank(_HEAP_VRAM_PUBLIC, memory, 384, 1249),
        **{
            f"nodes/{_GPU}/caches/{level - 1}/properties": _cache(level, size)
            for level, size in enumerate(_CACHES, 1)
        },
        f"nodes/{_GPU}/io_links/0/properties": _link(_GPU, _CPU),
    }


def folder(target: str, processors: int, memory: int) -> Path:
    """A folder with the topology's files, made where it is missing."""
    host_memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    files = topology(target, processors, memory, host_memory)
    digest = hashlib.blake2b(repr(files).encode(), digest_size=8).hexdigest()
    place = paths.private_dir(paths.runtime_dir() / f"card-{digest}")
    for name, text in files.items():
        path = place / name
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}-{os.getpid()}")
        part.write_text(text)
        part.replace(path)
    return place


@dataclass(frozen=True, slots=True)
class EmulatedCard:
    """What a program needs to run on AMD's runtime with the emulated card: variables of its
    environment, and the userland that starts it."""

    userland: rocm.Userland
    settings: Mapping[str, str]

    def start(self, app: str, path: Path, env: dict[str, str]) -> tuple[Path, list[str]]:
        """The program to start and the words before the application's arguments; ``env`` gets the
        library that is the card.

        Raises:
            ShimError: SX0875, a script, which a linker of its own cannot start.
        """
        if self.userland.loader is not None:
            with open(path, "rb") as file:
                if file.read(4) != b"\x7fELF":
                    text = f"{path} is a script: name its interpreter and then the script"
                    raise ShimError("SX0875", text)
        env["LD_PRELOAD"] = ":".join(filter(None, [PRELOAD, env.get("LD_PRELOAD", "")]))
        return self.userland.start(app, path, env["LD_LIBRARY_PATH"])


def _bytes(text: str) -> int | None:
    """A size as SASSXLATE_DEVICE_MEMORY has it; None if it is none."""
    digits = text.strip().lower()
    units = {"k": 10, "m": 20, "g": 30, "t": 40}
    shift = units.get(digits[-1:], 0)
    number = digits[:-1] if shift else digits
    return int(number) << shift if number.isdecimal() else None


def emulated_card(target: str) -> EmulatedCard:
    """The card for programs whose code is for a target.

    Raises:
        ShimError: SX0874, there is no ROCm.
    """
    userland = rocm.find()
    asked = os.environ.get("SASSXLATE_MULTIPROCESSORS", "")
    processors = int(asked) if asked.isdecimal() and int(asked) else _PROCESSORS
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    memory = _bytes(os.environ.get("SASSXLATE_DEVICE_MEMORY", "")) or physical // 2
    memory = max(memory & ~0xFFFFF, 1 << 28)
    uuid = f"{GPU_ID:016x}".encode().hex()
    return EmulatedCard(
        userland,
        {
            **userland.settings(),
            # ROCr copies large code objects, as rocBLAS's, by a kernel of its own with 64 lanes.
            "HSA_CO_DMACOPY_SIZE": os.environ.get("HSA_CO_DMACOPY_SIZE", "2147483647"),
            "SASSXLATE_CARD": str(folder(target, processors, memory)),
            "SASSXLATE_DEVICE_MEMORY": str(memory),
            "SASSXLATE_MULTIPROCESSORS": str(processors),
            "SASSXLATE_DEVICES": f"{memory} 0000:03:00.0 {uuid} Emulated card (sassxlate)",
        },
    )
