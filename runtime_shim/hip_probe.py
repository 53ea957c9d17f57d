"""Whether AMD's HIP library is here with a GPU that runs our code, asked in a process apart."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass

# By majors whose ABI we use the same way; a path first, for what is not in the linker's cache.
CANDIDATES = (
    "libamdhip64.so.7",
    "libamdhip64.so.6",
    "/opt/rocm/lib/libamdhip64.so.7",
    "/opt/rocm/lib/libamdhip64.so.6",
)

# A broken driver may end the process that asks it, or hang.
_PROBE = """
import ctypes, json, sys
for name in sys.argv[1:]:
    try:
        hip = ctypes.CDLL(name)
    except OSError:
        continue
    count = ctypes.c_int(0)
    status = hip.hipInit(0) or hip.hipGetDeviceCount(ctypes.byref(count))
    if status or not count.value:
        print(json.dumps([name, f"{name} finds no GPU (error {status})"]))
        break
    code = sys.stdin.buffer.read()
    module = ctypes.c_void_p()
    status = hip.hipModuleLoadData(ctypes.byref(module), code)
    print(json.dumps([name, f"the GPU takes no gfx1100 code (error {status})" if status else ""]))
    break
else:
    print(json.dumps(["", "libamdhip64.so.6 or .7 is not found"]))
"""


@dataclass(frozen=True, slots=True)
class Found:
    """The library's name for dlopen, or why there is none."""

    path: str | None
    reason: str


def find_hip(candidates: tuple[str, ...] = CANDIDATES) -> Found:
    """Load the first library that is there and let its first GPU take an empty gfx1100 kernel."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", _PROBE, *candidates],
            input=_empty_kernel(),
            capture_output=True,
            timeout=30,
            check=False,
        )
        name, reason = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return Found(None, "HIP does not answer")
    except ValueError:
        return Found(None, "HIP ends the process that asks it")
    return Found(None, str(reason)) if reason else Found(str(name), "")


def _empty_kernel() -> bytes:
    from sassxlate.disasm.rdna3 import assemble
    from sassxlate.disasm.rdna3.ir import Inst
    from sassxlate.lowering.codeobject import KernelImage, write

    program = assemble([Inst("s_endpgm", ())])
    return write(
        [
            KernelImage(
                name="empty",
                code=program.data,
                vgprs=1,
                sgprs=106,
                group_segment=0,
                private_segment=0,
                kernarg_size=8,
                max_flat_workgroup_size=1024,
            )
        ]
    )
