"""The native libraries' parsers on what fuzzing found, and on changes of it.

Each is built with the properties that its fuzzer checks, under AddressSanitizer and
UndefinedBehaviorSanitizer where the compiler has them: what a file says is then refused, or is what
the libraries may rely on.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.runtime_shim.native.hip.hip_code_objects import Arg, Kernel, build

ROOT = Path(__file__).resolve().parents[4]
NATIVE = ROOT / "runtime_shim" / "native"
SIGNATURES = ROOT / "runtime_shim" / "signatures"
DRIVER = ("common/json.cpp", "common/message.cpp", "cuda/manifest.cpp")
DEVICE = (
    *("hip/code_object.cpp", "hip/elf_file.cpp", "hip/msgpack.cpp"),
    *("preload/signature.cpp", "common/blake2b.cpp"),
)
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
KIB_MORE = 32 << 10  # what a small file may cost, with the sanitizers' own memory

Verdicts = tuple[list[str], int]  # a line per file, KiB


def _compile(options: Sequence[str], sources: Sequence[str], program: Path) -> None:
    compiler = next(filter(None, map(shutil.which, ("g++", "clang++", "c++"))), None)
    if compiler is None:
        pytest.skip("there is no C++ compiler here")
    command = [compiler, "-std=c++17", "-O0", "-g1", "-D_GNU_SOURCE", f"-I{NATIVE}", *options]
    command += [f"-I{NATIVE / 'common'}", str(Path(__file__).with_name("parsers.cpp"))]
    command += [*(str(NATIVE / source) for source in sources), "-o", str(program)]
    done = subprocess.run([*command, *SANITIZERS], capture_output=True, text=True, check=False)
    if done.returncode:  # a compiler without the sanitizers' libraries
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@dataclass(frozen=True, slots=True)
class Parsers:
    """A program of them, and a folder for its inputs."""

    program: Path
    folder: Path

    def _go(self, *arguments: str) -> str:
        done = subprocess.run(
            [self.program, *arguments],
            capture_output=True,
            check=False,
            timeout=120,
            env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"},
        )
        assert done.returncode == 0, done.stderr.decode(errors="replace")[-3000:]
        return done.stdout.decode(errors="strict")

    def _files(self, target: str, inputs: Sequence[bytes]) -> list[str]:
        out: list[str] = []
        for number, data in enumerate(inputs):
            out.append(str(self.folder / f"{target}{number}"))
            Path(out[-1]).write_bytes(data)
        return out

    def take(self, target: str, inputs: Sequence[bytes]) -> Verdicts:
        """The parser's answer to each, and the growth of memory in KiB."""
        *lines, grown = self._go(target, *self._files(target, inputs)).splitlines()
        return lines, int(grown)

    def change(self, target: str, inputs: Sequence[bytes], runs: int = 3000) -> None:
        """Random changes of the inputs; what breaks a property ends the program."""
        said = self._go(target, f"-runs={runs}", "-seed=7", *self._files(target, inputs))
        assert said == f"{len(inputs)} files, {runs} changes\n"


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Parsers:
    """The parsers of libcuda.so.1 and of the code that all libraries share."""
    folder = tmp_path_factory.mktemp("parsers")
    _compile(["-DSX_DRIVER"], DRIVER, folder / "driver")
    return Parsers(folder / "driver", folder)


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> Parsers:
    """The parsers of the emulated device and of the detour of static runtimes."""
    folder = tmp_path_factory.mktemp("parsers")
    text = folder / "signatures.txt"
    text.write_bytes(b"".join(path.read_bytes() for path in sorted(SIGNATURES.glob("*.sig"))))
    _compile([f'-DSX_SIGNATURES="{text}"'], DEVICE, folder / "device")
    return Parsers(folder / "device", folder)


MANIFEST = """\
sassxlate-module 2
arch 90
section 0 16 a.s0 .nv.global
section 1 8 - .nv.constant4
reloc 0 8 abs64 1 -8
unresolved 1 0 8 malloc
global 0 8 8 its name
managed 0 0 4 another name
kernel k1 10 0 0 560 1024 -1 its name
param 0 8
fits 768
"""
LAUNCH = """\
kernarg_size 64
param_base 0
param_size 8
lds_static 0
private_size 0
max_threads 1024
heap
comes_apart
fill 0 u64 -1
fill 56 bank4
fill 60 blockdim.x
"""
HUGE, BEYOND = str((1 << 64) - 1), str(1 << 64)
# Lines that take the place of one that begins alike, each in a text of its own.
BAD_MANIFEST = (
    "sassxlate-module 3",
    "arch -0x1",
    "arch 0",
    "arch 4294967386",
    "arch  90",
    "arch +90",
    f"section 0 {BEYOND} a.s0 .nv.global",
    "section 0 -1 a.s0 .nv.global",
    "section 0 16 ../a .nv.global",
    "section 1 16 a.s0 .nv.global",
    "reloc 0 9 abs64 1 0",
    "reloc 2 0 abs64 1 0",
    "reloc 0 0 abs64 2 0",
    "reloc 0 0 abs16 1 0",
    f"reloc 0 {HUGE} abs64 1 0",
    f"reloc 0 8 abs64 1 {BEYOND}",
    "reloc 0 8 abs64 1 -9223372036854775809",
    "unresolved 1 1 8 malloc",
    "unresolved 1 0 2 malloc",
    "unresolved 3 0 8 malloc",
    "global 0 8 9 x",
    f"global 0 {HUGE} 2 x",
    f"global 0 2 {HUGE} x",
    "global 2 0 0 x",
    "global 0 17 0 x",
    "global 0 -8 8 x",
    f"global {1 << 32} 8 8 x",
    "fits 0",
    "fits -1",
    "kernel k1 10 0 0 560 1024 -2 x",
    "kernel k1 10 0 0 560 1024 2 x",
    "kernel k1 -1 0 0 560 1024 -1 x",
    "kernel k1 10 -1 0 560 1024 -1 x",
    "kernel k1 10 0 -1 560 1024 -1 x",
    "kernel k1 10 0 0 -1 1024 -1 x",
    "kernel k1 10 0 0 560 -1 -1 x",
    f"kernel k1 10 0 0 560 {1 << 32} -1 x",
    f"kernel k1 10 0 0 560 1024 {(1 << 32) - 1} x",
    "kernel k/1 10 0 0 560 1024 -1 x",
    "kernel k1 10 0 0 560 1024 -1",
    f"param {BEYOND} 8",
    "param 0 8x",
)
BAD_LAUNCH = (
    "kernarg_size 63",
    "kernarg_size 7",
    f"kernarg_size {BEYOND}",
    "kernarg_size 1048577",
    "param_base 57",
    f"param_base {HUGE}",
    "param_size 65",
    f"max_threads {BEYOND}",
    "max_threads 1e3",
    "heap 1",
    "heap ",
    "heaps",
    "comes_apart 1",
    "comes_apart ",
    "fill 57 bank4",
    f"fill {HUGE} bank4",
    "fill 57 u64 1",
    "fill 61 u32 1",
    "fill 0 u64",
    f"fill 0 u64 {BEYOND}",
    "fill 0 nothing",
    "fill 0",
    "fill 0 bank4\nkernarg_size 8",
)


def _with(text: str, line: str) -> str:
    """The text with another line in the place of the first of its kind."""
    kind = line.split("\n")[0].split(" ")[0].removesuffix("s")
    lines = text.splitlines()
    at = next((n for n, known in enumerate(lines) if known.split(" ")[0] == kind), len(lines))
    return "\n".join([*lines[:at], line, *lines[at + 1 :]]) + "\n"


@pytest.mark.parametrize(
    ("target", "good", "bad"),
    [("manifest", MANIFEST, BAD_MANIFEST), ("launch", LAUNCH, BAD_LAUNCH)],
    ids=["manifest", "launch"],
)
def test_texts_of_the_service(driver: Parsers, target: str, good: str, bad: Sequence[str]) -> None:
    """Numbers that do not fit, places outside their section, sizes that are given twice."""
    texts = [good, *(_with(good, line) for line in bad), good[:-1], "", "\n", good + "\n"]
    lines, grown = driver.take(target, [text.encode() for text in texts])
    wrong = [t for t, line in zip(texts[1:], lines[1:], strict=True) if line != "refused"]
    assert lines[0] == "taken"
    assert not wrong
    assert grown < KIB_MORE
    driver.change(target, [good.encode()])


def test_a_length_alone_costs_no_memory(driver: Parsers) -> None:
    """A message that declares 60 MiB, and has a few bytes."""
    frame = partial(struct.pack, "<I")
    whole = [frame(2) + b"{}", frame(0), frame(5) + b"abcde" + b"more"]
    cut = [
        b"",
        b"\1",
        frame(1),
        frame(60 << 20) + b"{}",
        frame(0xFFFFFFFF) + b"{}",
        frame(65 << 20),
    ]
    lines, grown = driver.take("message", [*whole, *cut])
    assert lines == ["taken"] * len(whole) + ["refused"] * len(cut)
    assert grown < KIB_MORE
    driver.change("message", [*whole, *cut], 500)


def test_paths_that_are_no_text_are_quoted(driver: Parsers) -> None:
    """As Python's surrogateescape, which is what the service reads: valid UTF-8 in any case."""
    rng = random.Random(3)
    texts = [bytes([n]) for n in range(256)]
    texts += [b"\xc3\xa9", b"\xe2\x82\xac", b"\xf0\x9f\x98\x80", b"\xed\xa0\x80", b"\xc0\x80"]
    texts += [b"\xf4\x90\x80\x80", b"\xe0\x80\x80", b"\xc3", b"\xe2\x82", b'a\xffb"\\\0\n']
    texts += [
        bytes(rng.choice(b'\x7f\x80\xbf\xc2\xe0\xed\xf0\xff"\\u') for _ in range(9))
        for _ in "x" * 99
    ]
    lines, _ = driver.take("json", texts)
    assert [json.loads(line) for line in lines[::2]] == [os.fsdecode(text) for text in texts]
    driver.change(
        "json", [b'{"a":[1,-2.5e3,null,true,{"b":"\\ud83d\\ude00\\udcff"}]}', *texts[-9:]]
    )


def test_values_of_metadata(device: Parsers) -> None:
    """Depths and counts that the bytes cannot hold."""
    good = [b"\xc0", b"\x93\1\2\3", b"\x81\xa1a\x92\1\xcb" + bytes(8), b"\x91" * 30 + b"\x80"]
    bad = [
        b"", b"\xc1", b"\x91" * 40 + b"\x80", b"\x81\xc0" * 40 + b"\xc0",
        b"\xdd\xff\xff\xff\xff\xc0",
        b"\xdf\x7f\xff\xff\xff\xc0\xc0", b"\xc6\xff\xff\xff\xffa", b"\xdb\xff\xff\xff\xffa",
        b"\xc9\xff\xff\xff\xff\1", b"\xd8" + bytes(16), b"\xc7\0", b"\xcf" + bytes(7),
        b"\xdc\xff\xff" + b"\xdc\xff\xff" * 30 + b"\xc0",
    ]  # fmt: skip
    lines, grown = device.take("msgpack", good + bad)
    assert lines == ["taken"] * len(good) + ["refused"] * len(bad)
    assert grown < KIB_MORE
    device.change("msgpack", good + bad)


def _symbols(count: int, length: int) -> bytes:
    """An ELF file of symbols that all have the same long name."""
    strings = b"\0" + b"x" * length + b"\0"
    table = struct.pack("<IBBHQQ", 1, 0x12, 0, 1, 0, 0) * count
    at, end = 64 + len(strings), 64 + len(strings) + len(table)
    rows = [(0, 0, 0), (3, 64, len(strings)), (11, at, len(table))]
    sections = b"".join(
        struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, offset, size, 1, 0, 1, 24)
        for kind, offset, size in rows
    )
    header = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header += struct.pack("<HHIQQQIHHHHHH", 3, 224, 1, 0, 0, end, 0, 64, 56, 0, 64, len(rows), 0)
    return header + strings + table + sections


def test_many_symbols_of_one_long_name(device: Parsers) -> None:
    """160 KB of a file once expanded to 256 MB of copies of the name."""
    lines, grown = device.take("elf", [_symbols(4000, 64 << 10)])
    assert lines == ["taken"]
    assert grown < KIB_MORE


GOOD = Kernel("k", kernarg_size=16, args=(Arg(0, 8), Arg(8, 8)))
BAD_KERNELS: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda image: image[:-1],
    "no ELF file": lambda image: b"\x7fELG" + image[4:],
    "sections beyond": lambda image: image[:40] + struct.pack("<Q", 1 << 63) + image[48:],
    "sections that wrap": lambda image: image[:40] + struct.pack("<Q", (1 << 64) - 64) + image[48:],
    "segments beyond": lambda image: image[:32] + struct.pack("<Q", len(image)) + image[40:],
    "size of a section": lambda image: image[:58] + struct.pack("<H", 65) + image[60:],
    "a bundle without end": lambda _: b"__CLANG_OFFLOAD_BUNDLE__" + b"\xff" * 64,
    "a bundle of nothing": lambda _: b"__CLANG_OFFLOAD_BUNDLE__" + bytes(8),
}


def _descriptor(**fields: int) -> bytes:
    """The image with other words in the kernel's descriptor."""
    image = build([GOOD])
    words = {"group_size": (0, "<I"), "private_size": (4, "<I"), "kernarg_size": (8, "<I")}
    words |= {"entry": (16, "<q"), "properties": (56, "<H")}
    at = image.index(GOOD.descriptor(0)[:12])
    out = bytearray(image)
    for name, value in fields.items():
        offset, form = words[name]
        struct.pack_into(form, out, at + offset, value)
    return bytes(out)


def _entries() -> Iterator[bytes]:
    yield _descriptor(entry=1)
    yield _descriptor(entry=-(1 << 63))
    yield _descriptor(entry=(1 << 63) - 1)
    yield _descriptor(entry=1 << 40)
    yield _descriptor(group_size=0xFFFFFFFF)
    yield _descriptor(private_size=0xFFFFFFFF)
    yield _descriptor(kernarg_size=0xFFFFFFFF)
    yield _descriptor(properties=0)
    for offset, size in ((9, 8), (17, 0), ((1 << 64) - 8, 16), (8, (1 << 64) - 8), (0, 17)):
        yield build([Kernel("k", kernarg_size=16, args=(Arg(offset, size),))])


def test_code_objects(device: Parsers) -> None:
    """Entries, segments and arguments that lie nowhere; files that end early, at every page."""
    image = build([GOOD])
    bad = [change(image) for change in BAD_KERNELS.values()] + [*_entries()]
    bad += [image[:length] for length in range(0, len(image), 97)]
    lines, grown = device.take("code_object", [image, *bad])
    taken = [n for n, line in enumerate(lines[1:]) if line != "refused"]
    assert lines[0] == "taken"
    assert not taken, [*BAD_KERNELS, *range(99)][taken[0]]
    assert grown < KIB_MORE
    device.change("code_object", [image, *bad[:8]], 1500)
    device.change("elf", [image, _symbols(3, 20)], 1500)


_MULTIPLIER, _WORD = 0x9E3779B97F4A7C15, (1 << 64) - 1


def _window(value: int) -> bytes:
    """32 bytes of code with this hash: the last word undoes what the first three are."""
    inverse = pow(_MULTIPLIER, -1, 1 << 64)
    state = 0
    for _ in range(3):
        state = state * _MULTIPLIER & _WORD
        state ^= state >> 29
    before = value ^ value >> 29 ^ value >> 58
    return bytes(24) + struct.pack("<Q", before * inverse & _WORD ^ state)


def test_anchors_near_the_ends_of_code(device: Parsers) -> None:
    """Code that has a runtime's anchor where the rest of the runtime would lie outside of it."""
    inputs: list[bytes] = []
    for path in sorted(SIGNATURES.glob("*.sig"))[:3]:
        text = path.read_text()
        length = re.search(r"^length (\w+)$", text, re.M)
        anchor = re.search(r"^anchor (\w+) (\w+)$", text, re.M)
        assert length
        assert anchor
        size, at, window = int(length[1], 16), int(anchor[1], 16), _window(int(anchor[2], 16))
        assert at % 16 == 0
        fits = bytes(at) + window
        early = bytes(max(at - 16, 0)) + window + bytes(size)
        inputs += [window, fits, early, bytes(16) + fits]
        inputs += [fits.ljust(size, b"\0"), fits.ljust(size - 1, b"\0")]
    lines, _ = device.take("signature", inputs)
    assert lines == ["taken"] * len(inputs)  # each anchor was met
    device.change("signature", inputs[:4], 300)


def test_the_fuzzers_fit_the_parsers() -> None:
    """Those that parsers.cpp does not include are built by the sweep below alone: a parser's new
    signature must not wait for it."""
    compiler = next(filter(None, map(shutil.which, ("g++", "clang++", "c++"))), None)
    if compiler is None:
        pytest.skip("there is no C++ compiler here")
    built = Path(__file__).with_name("parsers.cpp").read_text()
    every = sorted((NATIVE / "fuzz").glob("*.cpp"))
    sources = [path for path in every if f'#include "fuzz/{path.name}"' not in built]
    assert 0 < len(sources) < len(every)
    command = [compiler, "-std=c++17", "-fsyntax-only", "-D_GNU_SOURCE", f"-I{NATIVE}"]
    command += [f"-I{NATIVE / 'common'}", *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.sweep
def test_the_fuzzers_without_libfuzzer(tmp_path: Path) -> None:
    """The `replay` preset builds each of them with g++; they take files and changes of these."""
    cmake = shutil.which("cmake")
    if cmake is None or not all(map(shutil.which, ("ninja", "g++"))):
        pytest.skip("needs cmake, ninja and g++")
    for command in (["--preset", "replay"], ["--build", "--preset", "replay"]):
        subprocess.run([cmake, *command], cwd=NATIVE, check=True, stdout=subprocess.DEVNULL)
    inputs = [MANIFEST.encode(), LAUNCH.encode(), build([GOOD]), _symbols(3, 20), b'{"a":[1]}', b""]
    files: list[str] = []
    for number, data in enumerate(inputs):
        files.append(str(tmp_path / str(number)))
        Path(files[-1]).write_bytes(data)
    sources = sorted((NATIVE / "fuzz").glob("fuzz_*.cpp"))
    assert len(sources) >= 10
    for source in sources:
        program = ROOT / "build" / "replay" / "fuzz" / source.stem
        done = subprocess.run(
            [program, "-runs=2000", *files], capture_output=True, text=True, check=False
        )
        assert done.stdout == f"{len(files)} files, 2000 changes\n", (source.stem, done.stderr)
