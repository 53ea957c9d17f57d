"""Checks in a separate process for AMD's HIP library and a GPU that runs our code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from sassxlate.disasm.amdgpu_machines import CODE_FOR
from sassxlate.errors import ShimError

# The major versions whose ABI we use in the same way.
_NAMES = ("libamdhip64.so.7", "libamdhip64.so.6")
_ROCM = "/opt/rocm"  # its packages' folder, which may be missing from the linker's cache

# A broken driver may end the calling process, or hang; drivers also print to stdout.
_MARK = "sassxlate-probe:"
_PROBE = (
    f"mark = {_MARK!r}"
    + """
import ctypes, json, os, sys
def say(name, reason, takers=(), count=0, devices=""):
    print("\\n" + mark + json.dumps([name, reason, list(takers), count, devices]), flush=True)
def described(hip, device):
    text = lambda size: ctypes.create_string_buffer(size)
    memory, bus, uuid, label = ctypes.c_size_t(0), text(32), text(16), text(96)
    hip.hipDeviceTotalMem(ctypes.byref(memory), device)
    hip.hipDeviceGetPCIBusId(bus, 32, device)
    hip.hipDeviceGetUuid(uuid, device)
    hip.hipDeviceGetName(label, 96, device)
    where = bus.value.decode(errors="replace") or "0000:00:00.0"
    return f"{memory.value} {where} {uuid.raw.hex()} {label.value.decode(errors='replace')}"
code = sys.stdin.buffer.read()
problem = "libamdhip64.so.6 or .7 is not found"
for name in sys.argv[2:]:
    try:
        hip = ctypes.CDLL(name)
    except OSError as error:
        if os.path.exists(name):
            problem = str(error)
        continue
    count = ctypes.c_int(0)
    status = hip.hipInit(0) or hip.hipGetDeviceCount(ctypes.byref(count))
    if status or not count.value:
        say(name, f"{name} finds no GPU (error {status})")
        break
    takers = []
    for device in range(count.value):
        module = ctypes.c_void_p()
        status = hip.hipSetDevice(device) or hip.hipModuleLoadData(ctypes.byref(module), code)
        if not status:
            takers.append(device)
    reason = "" if takers else f"the GPU takes no {sys.argv[1]} code (error {status})"
    devices = "" if reason else "\\n".join(described(hip, n) for n in takers)
    say(name, reason, takers, count.value, devices)
    break
else:
    say("", problem)
"""
)

# The properties' structure has gcnArchName after name, whose 256 bytes may also begin so; where
# depends on the version of the structure.
_NAME_PROBE = (
    f"mark = {_MARK!r}"
    + """
import ctypes, json, re, sys
name = ""
for path in sys.argv[1:]:
    try:
        hip = ctypes.CDLL(path)
    except OSError:
        continue
    for call in ("hipGetDevicePropertiesR0600", "hipGetDeviceProperties"):
        data = ctypes.create_string_buffer(8192)
        if hasattr(hip, call) and not hip.hipInit(0) and not getattr(hip, call)(data, 0):
            found = re.search(rb"gfx[0-9a-f]+", data.raw[256:])
            name = found[0].decode() if found else ""
            break
    break
print("\\n" + mark + json.dumps(name), flush=True)
"""
)


@dataclass(frozen=True, slots=True)
class Found:
    """The library's name for dlopen, or the reason why there is none.

    ``visible`` is what HIP_VISIBLE_DEVICES must be where only some of the GPUs take the target's
    code (a processor's own graphics beside a card); None where all do.  ``devices`` has a line for
    each that takes it, for libraries that may not initialise HIP to ask: bytes of memory, PCI bus
    ID, UUID and name.
    """

    path: str | None
    reason: str
    visible: str | None = None
    devices: str = ""


def candidates() -> list[str]:
    """Names and paths of AMD's library, in the order in which they are tried."""
    roots = dict.fromkeys(
        root for root in (os.environ.get("ROCM_PATH"), os.environ.get("HIP_PATH"), _ROCM) if root
    )
    paths = [f"{root}/lib/{name}" for root in roots for name in _NAMES]
    # One named by the user goes first.
    return [*paths, *_NAMES] if len(roots) > 1 else [*_NAMES, *paths]


def find_hip(target: str) -> Found:
    """Load the first library that is there and let its GPUs take an empty kernel for a target."""
    try:
        name, reason, takers, count, devices = _asked(_PROBE, [target], empty_kernel(target))
    except ShimError as error:
        return Found(None, error.message)
    if reason:
        return Found(None, str(reason))
    visible = _visible(takers) if len(takers) < count else None
    return Found(str(name), "", visible, str(devices))


def own_target(device: str) -> str | None:
    """The target that the first AMD GPU is, by HIP's gcnArchName; None where kernels are emulated
    or no code is written for it.  ``device``: as :func:`chosen`."""
    if _emulated(device):
        return None
    try:
        name = _asked(_NAME_PROBE, [])
    except ShimError:
        return None
    return name if name in CODE_FOR else None


def _asked(script: str, arguments: list[str], data: bytes = b"") -> Any:
    """What a probe prints, run in a process of its own on the candidates.  ShimError SX0707."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", script, *arguments, *candidates()],
            input=data,
            capture_output=True,
            timeout=30,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ShimError("SX0707", "HIP does not answer") from None
    lines = done.stdout.decode(errors="replace").splitlines()
    answers = [line for line in lines if line.startswith(_MARK)]
    if not answers:
        raise ShimError("SX0707", "HIP ends the process that asks it")
    return json.loads(answers[-1].removeprefix(_MARK))


def _emulated(device: str) -> bool:
    """Whether kernels are emulated without asking for a GPU."""
    return device == "emulator" or (device == "auto" and not os.path.exists("/dev/kfd"))


def chosen(device: str, target: str) -> Found | None:
    """AMD's HIP library if kernels are to run on an AMD GPU; None: emulated.

    ``device``: auto (a GPU if there is one), emulator or hip; ShimError SX0707 if there is none
    for hip.
    """
    if _emulated(device):
        return None
    found = find_hip(target)
    if found.path is None and device == "hip":
        raise ShimError("SX0707", f"no AMD GPU that runs {target} code: {found.reason}")
    return found if found.path else None


def _visible(takers: list[int]) -> str:
    """The ordinals, in the terms of the variable that the user may have set."""
    already = os.environ.get("HIP_VISIBLE_DEVICES")
    names = already.split(",") if already else [str(n) for n in range(max(takers) + 1)]
    return ",".join(names[n] for n in takers if n < len(names))


def empty_kernel(name: str) -> bytes:
    """The code object of a kernel that does nothing, for a target."""
    from sassxlate.lowering.codeobject.code_object import KernelImage, write
    from sassxlate.lowering.target import target_named

    target = target_named(name)
    return write(
        [
            KernelImage(
                name="empty",
                code=target.end_program,
                vgprs=1,
                sgprs=target.sgprs,
                group_segment=0,
                private_segment=0,
                kernarg_size=8,
                max_flat_workgroup_size=target.threads,
            )
        ],
        target,
    )
