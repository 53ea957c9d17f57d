"""hipHostRegister of memory of every kind answers as an H200's driver does.

Memory that is registered and then taken away is error 700, not the end of the process.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from .conftest import Script

TRUTH = tomllib.loads((Path(__file__).parent / "registration.toml").read_text())

EVERY_KIND = """
import json
from registered import KINDS, SIZE
made = {}
def own(name, *extra):
    p = c_void_p()
    assert getattr(hip, name)(byref(p), c_size_t(SIZE), *extra) == 0
    return p.value, SIZE
kinds = {**KINDS, "device": lambda: own("hipMalloc"), "managed": lambda: own("hipMallocManaged", 1),
         "pinned": lambda: own("hipHostMalloc", 0)}
def register(at, size, flags):
    result = hip.hipHostRegister(c_void_p(at), c_size_t(size), c_uint(flags))
    again = hip.hipHostRegister(c_void_p(at), c_size_t(size), c_uint(flags))
    gone = hip.hipHostUnregister(c_void_p(at))
    device = at and at >> 63 == 0 and kind in ("device", "managed", "pinned")
    assert again == (712 if result == 0 else result), (kind, again)
    assert gone == (0 if result == 0 else 1 if device or not at else 713), (kind, gone)
    return result
for kind, make in kinds.items():
    at, size = make()
    made[kind] = [register(at, size, 0), register(at, size, 8)]
kind = "written"
at, size = KINDS[kind]()
made["flags"] = {flags: register(at, size, int(flags)) for flags in json.loads(sys.argv[1])}
made["sizes"] = {size: register(at, int(size, 0), 0) for size in json.loads(sys.argv[2])}
print(json.dumps(made))
"""


def test_every_kind_of_memory(script: Script) -> None:
    body = f"sys.argv = ['', '{json.dumps([*TRUTH['flags']])}', '{json.dumps([*TRUTH['sizes']])}']"
    done = script(body + EVERY_KIND)
    assert done.returncode == 0, done.stderr
    expected: dict[str, object] = {
        row["kind"]: [row["default"], row["read_only"]] for row in TRUTH["memory"]
    }
    expected |= {"flags": TRUTH["flags"], "sizes": TRUTH["sizes"]}
    assert json.loads(done.stdout) == expected


USE = """
from registered import KINDS, SIZE, READ, NONE, munmap, mprotect, written
m = hip.load(build([Kernel('stop'), Kernel('bump')]))
stop = hip.function(m, 'stop')
p = hip.malloc(SIZE)
at = written()
print(hip.hipHostRegister(c_void_p(at), c_size_t(SIZE), 0))
def use(how):
    size = c_size_t(SIZE)
    return {
        'kernel': lambda: hip.launch(stop, 1, 64, struct.pack('<QIII', at + SIZE - 4, 0, 0, 0)),
        'from': lambda: hip.hipMemcpyHtoD(c_void_p(p), c_void_p(at), size),
        'to': lambda: hip.hipMemcpyDtoH(c_void_p(at), c_void_p(p), size),
        'later': lambda: hip.hipMemcpyDtoHAsync(c_void_p(at), c_void_p(p), size, None),
        'fill': lambda: hip.hipMemsetD8(c_void_p(at), 1, size),
        'value': lambda: hip.hipStreamWriteValue32(None, c_void_p(at + SIZE - 4), 1, 0),
        'wait': lambda: hip.hipStreamWaitValue32(None, c_void_p(at + SIZE - 4), 1, 0, c_uint(~0)),
    }[how]()
"""
ACTIONS = {
    "tail": "munmap(at + SIZE // 2, SIZE // 2)",
    "access": "mprotect(at, SIZE, NONE)",
    "writing": "mprotect(at, SIZE, READ)",
}


@pytest.mark.parametrize("how", ["kernel", "from", "to", "later", "fill", "value", "wait"])
@pytest.mark.parametrize("gone", [*ACTIONS])
def test_memory_that_is_gone(script: Script, gone: str, how: str) -> None:
    """A signal would reach the application; the sticky error is the only way to report it."""
    body = f"{USE}\n{ACTIONS[gone]}\nuse('{how}')\nprint(hip.hipDeviceSynchronize())"
    reads = how in ("from", "wait")
    if gone == "writing" and reads:
        body = body.replace("use('wait')", "pass")  # it would wait forever
    done = script(body)
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert done.stdout.splitlines() == ["0", "0" if gone == "writing" and reads else "700"]
    assert ("SX0661" in done.stderr) == (how == "kernel")
    assert ("SX0678" in done.stderr) == (how != "kernel" and done.stdout.endswith("700\n"))


def test_what_is_left_of_a_range_may_be_used(script: Script) -> None:
    """The pages of a range are asked for in larger parts, of which one page may be gone."""
    done = script(
        USE
        + """
munmap(at + 8192, 4096)
for address in (at, at + 4096, at + 12288, at + 8192):
    hip.launch(stop, 1, 64, struct.pack('<QIII', address, 0, 0, 0))
    print(hip.hipDeviceSynchronize())
"""
    )
    assert done.stdout.splitlines() == ["0", "0", "0", "0", "700"], done.stderr


def test_memory_that_came_back(script: Script) -> None:
    """The kernel sees the mapping at the time of the launch."""
    done = script(
        USE
        + """
import mmap
use('kernel'); print(hip.hipDeviceSynchronize())
mprotect(at, SIZE, NONE); mprotect(at, SIZE, 3)
use('kernel'); print(hip.hipDeviceSynchronize(), hip.hipHostUnregister(c_void_p(at)))
munmap(at, SIZE)
print(hip.hipHostRegister(c_void_p(at), c_size_t(SIZE), 0))
"""
    )
    assert done.stdout.splitlines() == ["0", "0", "0 0", "1"], done.stderr


# What each call answers on memory that was registered for reading, and the synchronisation after
# it.  What was not measured is refused like a copy where the device would write, and allowed where
# the processor copies.
READ_ONLY = {
    "reading": "1 700",  # a kernel reads a word there; it faults where it writes the next
    "kernel": f"0 {TRUTH['read_only']['kernel_writes']}",
    "to": f"{TRUTH['read_only']['copy_from_device']} 0",
    "later": "1 0",
    "rows": "1 0",
    "default": "1 0",
    "managed": "1 0",
    "from": "0 0",
    "host": "0 0",
    "pinned": "0 0",
    "fill": "1 0",
    "value": "1 0",
}


@pytest.mark.parametrize(
    ("how", "memory"),
    [
        *((how, "written()") for how in READ_ONLY),
        *((how, "written(READ)") for how in READ_ONLY if how not in ("host", "pinned")),
    ],
)
def test_the_device_does_not_write_what_it_was_given_to_read(
    script: Script, how: str, memory: str
) -> None:
    """Whether the processor may write there or not; the memory keeps what it had."""
    done = script(
        USE
        + f"""
from ctypes import c_char_p, string_at
hip.hipHostUnregister(c_void_p(at))
at = {memory}
assert hip.hipHostRegister(c_void_p(at), c_size_t(SIZE), c_uint(8)) == 0
managed, pinned = c_void_p(), c_void_p()
assert hip.hipMallocManaged(byref(managed), c_size_t(SIZE), c_uint(1)) == 0
assert hip.hipHostMalloc(byref(pinned), c_size_t(SIZE), c_uint(0)) == 0
m = hip.load(build([Kernel('wait_flag')]))
def copy(kind, source):
    return hip.hipMemcpy(c_void_p(at), source, c_size_t(SIZE), kind)
def read():
    # The kernel goes on when it has read a word there, and writes the next.
    hip.launch(hip.function(m, 'wait_flag'), 1, 64, struct.pack('<QIII', at, 0, 0, 0))
    return 1
more = {{
    'reading': read,
    'rows': lambda: hip.hipMemcpy2DAsync(c_void_p(at), c_size_t(256), c_void_p(p), c_size_t(512),
                                         c_size_t(100), c_size_t(8), 4, None),
    'default': lambda: copy(4, c_void_p(p)),
    'managed': lambda: copy(4, managed),
    'host': lambda: copy(0, c_char_p(b'x' * SIZE)),
    'pinned': lambda: copy(0, pinned),
}}
before = string_at(at, SIZE)
how = {how!r}
print(more[how]() if how in more else use(how), hip.hipDeviceSynchronize())
print(string_at(at, SIZE) == before)
"""
    )
    want = [READ_ONLY[how], str(how not in ("host", "pinned"))]
    assert done.stdout.splitlines()[1:] == want, (done.stdout, done.stderr)
