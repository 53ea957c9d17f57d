"""A runtime found in a library by the functions of a neighbouring release's archive."""

from __future__ import annotations

from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest

from tools.generate.cudart_in_library import (
    Archive,
    Outside,
    Reference,
    derive,
    exported,
    place_functions,
    same_names,
    with_bodies,
)
from tools.generate.cudart_signatures import Block, SignatureError

NAMES = ("cudaFirst", "cudaSecond", "cudaThird", "cudaFourth")
_SIZE, _ROOM, _TEXTS = 250, 256, 0x2000  # of a function, with its padding; where the names are
_CALL, _NAME, _MEMBER = 100, 120, 60  # fields of a function


def _function(n: int) -> bytes:
    """Bytes that no other function has; the fields of a linker are zero."""
    out = bytearray((k * k * 31 + n * 57 + k * (n + 3) * 7) % 251 + 1 for k in range(_SIZE))
    for at in (_CALL, _NAME):
        out[at : at + 4] = bytes(4)
    return bytes(out) + b"\x90" * (_ROOM - _SIZE)


def _archive() -> Archive:
    """Each function calls the next one and refers to its own name."""
    masks: list[tuple[int, int]] = []
    references: list[Reference] = []
    for n, name in enumerate(NAMES):
        start = n * _ROOM
        masks += [(start + at, start + at + 4) for at in (_CALL, _NAME)]
        following = (n + 1) % len(NAMES) * _ROOM
        references.append(Reference(start + _CALL, following, b""))
        references.append(Reference(start + _NAME, None, name.encode()))
    text = b"".join(_function(n) for n in range(len(NAMES)))
    entries = tuple((n * _ROOM, name) for n, name in enumerate(NAMES))
    functions = tuple((n * _ROOM, _SIZE) for n in range(len(NAMES)))
    return Archive(Block(text, tuple(masks), entries), functions, tuple(references))


def _library(order: list[int], *, calls: int = 1, names: tuple[str, ...] = NAMES) -> bytes:
    """The functions from 0x1000 on, 64 bytes after the second, a member 24 bytes lower."""
    out = bytearray(0x3000)
    places: dict[int, int] = {}
    at = 0x1000
    for k, n in enumerate(order):
        places[n] = at
        body = bytearray(_function(n))
        if body[_MEMBER] > 24:
            body[_MEMBER] -= 24
        out[at : at + _ROOM] = body
        at += _ROOM
        if k == 1:
            out[at : at + 64] = bytes(range(100, 164))
            at += 64
    for n, place in places.items():
        called = places.get((n + calls) % len(NAMES), 0x1000)
        text = _TEXTS + 32 * n
        for field, target in ((_CALL, called), (_NAME, text)):
            field += place
            out[field : field + 4] = (target - field - 4).to_bytes(4, "little", signed=True)
        out[text : text + 32] = names[n].encode().ljust(32, b"\0")
    return bytes(out)


def test_functions_are_found_where_others_lie_between() -> None:
    library = _library([0, 1, 2, 3])
    block, absent = derive(_archive(), library, library)
    assert absent == ()
    assert block.text == library[0x1000 : 0x1000 + 4 * _ROOM + 64 - (_ROOM - _SIZE)]
    assert block.entries == tuple((n * _ROOM + 64 * (n >= 2), name) for n, name in enumerate(NAMES))
    between = (2 * _ROOM - (_ROOM - _SIZE), 2 * _ROOM + 64)
    assert between in block.masks
    assert (2 * _ROOM + 64 + _CALL, 2 * _ROOM + 64 + _CALL + 4) in block.masks


def test_a_function_that_is_not_there_is_no_entry() -> None:
    library = bytearray(_library([0, 1, 2, 3]))
    place = 0x1000 + 2 * _ROOM + 64
    for at in range(place + 130, place + 190, 3):
        library[at] ^= at & 0x7F | 1
    block, absent = derive(_archive(), bytes(library), bytes(library))
    assert absent == (NAMES[2],)
    assert [name for _, name in block.entries] == [NAMES[0], NAMES[1], NAMES[3]]


def _start(called: int, at: int) -> bytes:
    """Code at ``at`` that calls a function."""
    return b"\x55\x48\xe8" + (called - at - 7).to_bytes(4, "little", signed=True) + b"\x5d\xc3"


def test_what_the_start_calls_is_quiet() -> None:
    """It is found by the code that calls it, also where the function itself differs."""
    archive = replace(_archive(), outside=(Outside(_start(4, 0), (3,), ((3, 2 * _ROOM),)),))
    library, called = bytearray(_library([0, 1, 2, 3])), 0x1000 + 2 * _ROOM + 64
    with pytest.raises(SignatureError, match="0 places have the code that refers to 0x200"):
        derive(archive, bytes(library), bytes(library))
    library[0x2800:0x2809] = _start(0x2F00, 0x2800)  # the same code, which calls another block's
    library[0x2900:0x2909] = _start(called, 0x2900)
    assert derive(archive, bytes(library), bytes(library))[0].quiet == (2 * _ROOM + 64,)
    for at in range(called + 130, called + 190, 3):
        library[at] ^= at & 0x7F | 1
    block, _ = derive(archive, bytes(library), bytes(library))
    assert (block.quiet, block.absent) == ((2 * _ROOM + 64,), (NAMES[2],))
    library[0x2A00:0x2A09] = _start(called + 16, 0x2A00)
    with pytest.raises(SignatureError, match="2 places"):
        derive(archive, bytes(library), bytes(library))


def test_contradictions_are_errors() -> None:
    """A call of another function; another name; nothing of the runtime."""
    for library, message in (
        (_library([0, 1, 2, 3], calls=2), "cudaFirst calls another function"),
        (_library([0, 1, 2, 3], names=(*NAMES[:3], "cudaFifth")), "cudaFourth names itself"),
    ):
        with pytest.raises(SignatureError, match=message):
            derive(_archive(), library, library)
    alone = bytearray(_library([0, 1, 2, 3]))
    alone[0x1000 + _ROOM : 0x2000] = bytes(0x1000 - _ROOM)
    with pytest.raises(SignatureError, match="only 1 of 4 public functions"):
        derive(_archive(), bytes(alone), bytes(alone))
    with pytest.raises(SignatureError, match="none of the archive's functions"):
        derive(_archive(), bytes(0x3000), bytes(0x3000))


def test_a_function_without_references_is_no_entry() -> None:
    """Its shape alone does not say which function it is."""
    library = _library([0, 1, 2, 3])
    archive = _archive()
    lone = replace(archive, references=tuple(r for r in archive.references if r.at >= _ROOM))
    assert 0 in place_functions(lone, library)
    block, absent = derive(lone, library, library)
    assert absent == (NAMES[0],)
    assert len(block.entries) == 3


def _call(library: bytes, first: int, second: int) -> bytes:
    """What cudaFirst and cudaSecond call instead of their next function."""
    out = bytearray(library)
    for n, target in ((0, first), (1, second)):
        at = 0x1000 + n * _ROOM + _CALL
        out[at : at + 4] = (target - at - 4).to_bytes(4, "little", signed=True)
    return bytes(out)


def test_what_known_functions_call_tells_the_others() -> None:
    """cudaFirst does not name itself; the archive's calls what cudaSecond calls, which is not in
    the library as it is in the archive."""
    archive = _archive()
    names = tuple(r for r in archive.references if r.text and r.at >= _ROOM)
    calls = (Reference(_CALL, 0x7000, b""), Reference(_ROOM + _CALL, 0x7000, b""))
    lone = replace(archive, references=names + calls)
    library = _library([0, 1, 2, 3])
    same, other = _call(library, 0x2800, 0x2800), _call(library, 0x2800, 0x2810)
    assert derive(lone, same, same)[1] == ()
    assert derive(lone, other, other)[1] == (NAMES[0],)
    named = replace(archive, references=tuple(r for r in archive.references if r.text) + calls)
    with pytest.raises(SignatureError, match="that call one function in the archive call several"):
        derive(named, other, other)
    twice = replace(lone, references=(*names, *calls, Reference(_NAME, 0x7000, b"")))
    with pytest.raises(SignatureError, match="cudaFirst calls two functions"):
        derive(twice, same, same)


def test_a_mask_that_begins_before_its_function_is_kept() -> None:
    """A jump is a function's first instruction: its mask has bytes of the padding before."""
    archive = _archive()
    start = 2 * _ROOM
    masks = tuple(sorted((*archive.block.masks, (start - 2, start + 5))))
    tail = replace(archive, block=replace(archive.block, masks=masks))
    block, absent = derive(tail, (library := _library([0, 1, 2, 3])), library)
    assert absent == ()
    moved = bytearray(library)
    moved[0x1000 + start + 64 + 1] ^= 0x5A
    again, _ = derive(tail, bytes(moved), bytes(moved))
    assert block.text != again.text
    assert block.masked() == again.masked()


def test_a_shared_runtime_is_a_witness() -> None:
    """A function of another length says nothing; another function with the name is an error."""
    library = _library([0, 1, 2, 3])
    archive = _archive()
    block, _ = derive(archive, library, library)
    bodies = {name: _function(n)[:_SIZE] for n, name in enumerate(NAMES)}
    assert same_names(archive, block, bodies) == ()
    member = bytearray(bodies[NAMES[3]])
    member[_MEMBER] += 8
    assert same_names(archive, block, bodies | {NAMES[3]: bytes(member)}) == ()
    assert same_names(archive, block, bodies | {NAMES[1]: b"\x90" * 7}) == (NAMES[1],)
    with pytest.raises(SignatureError, match="cudaSecond is another function"):
        same_names(archive, block, bodies | {NAMES[1]: bodies[NAMES[2]]})


def _unlike(n: int) -> bytes:
    """A function of the same length whose only relative field is a call at its start."""
    return b"\xe8" + bytes(4) + bytes((k * 7 + n) % 5 + 0x90 for k in range(_SIZE - 5))


def test_what_the_archive_does_not_have_is_found_by_the_shared_runtimes_code() -> None:
    """Once in the block, whatever it calls; a short function's code says too little."""
    library = bytearray(_library([0, 1, 2, 3]))
    place = 0x1000 + 2 * _ROOM + 64
    library[place : place + _SIZE] = b"\xe8\x01\x02\x03\x04" + _unlike(1)[5:]
    block, absent = derive(_archive(), bytes(library), bytes(library))
    assert block.absent == absent == (NAMES[2],)
    found = with_bodies(block, {NAMES[2]: _unlike(1)})
    assert found.absent == ()
    assert (2 * _ROOM + 64, NAMES[2]) in found.entries
    assert not any(low <= 2 * _ROOM + 64 + 100 < high for low, high in found.masks)
    assert found.masked()[2 * _ROOM + 64 :][:6] == b"\xe8" + bytes(4) + _unlike(1)[5:6]
    assert with_bodies(block, {NAMES[2]: _unlike(1)[:40]}) == block
    assert with_bodies(block, {NAMES[2]: _unlike(2)}) == block
    between = 2 * _ROOM + 64 - 64
    twice = replace(block, text=block.text[:between] + _unlike(1)[:64] + block.text[between + 64 :])
    assert with_bodies(twice, {NAMES[2]: _unlike(1)[:64]}) == twice


def _without_names(library: bytes) -> bytes:
    return library.replace(b".dynsym\0", b".dynsim\0")


def test_what_a_shared_library_exports() -> None:
    library = Path(str(resources.files("sassxlate.runtime_shim") / "lib" / "libcudart.so.12"))
    if not library.is_file():
        pytest.skip("libcudart.so.12 is not built")
    bodies = exported(library.read_bytes())
    assert {"cudaMalloc", "cudaLaunchKernel"} <= bodies.keys()
    assert all(bodies.values())
    with pytest.raises(SignatureError, match="exports nothing"):
        exported(_without_names(library.read_bytes()))
