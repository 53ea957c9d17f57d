"""A cache moved to another machine: whole, or refused with nothing written."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from click.testing import CliRunner

from sassxlate.cli import cli
from sassxlate.errors import ServiceError
from sassxlate.runtime_shim.cache import transfer
from sassxlate.runtime_shim.cache.store import Cache

KEY, OTHER = "0" * 32, "f" * 32
FILES = {
    ("module", f"{KEY}.txt"): b"sassxlate-module 2\n",
    ("module", f"{KEY}.cubin"): b"\x7fELF" + bytes(5000),
    ("kernel", f"{KEY}-{OTHER}.hsaco"): os.urandom(3000),
    ("kernel", f"{KEY}-{OTHER}.launch"): b"kernarg_size 552\n",
    ("kernel", f"{KEY}-{KEY}.refused"): b"cuda_error 801\n",
    ("host", f"{KEY}.sxh"): os.urandom(100_000),
    ("host", "stencils.sxs"): b"",
}


def _filled(root: Path) -> Cache:
    cache = Cache(root, "tag")
    for (area, name), content in FILES.items():
        cache.write(area, name, content)
    return cache


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An archive of FILES."""
    cache = _filled(tmp_path / "from")
    # What is not a translation, and what is damaged, stays.
    (cache.path("module", f"{KEY}.ran")).write_bytes(b"")
    (cache.path("module", f".tmp-1-{KEY}")).write_bytes(b"half")
    (cache.path("kernel", f"{OTHER}-{OTHER}.launch")).write_bytes(b"not sealed")
    made = transfer.export(cache, "gfx1100", tmp_path / "archive")
    assert made == transfer.Moved(len(FILES), sum(map(len, FILES.values())))
    return tmp_path / "archive"


def _content(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file() and path.name != ".evict.lock"]


def test_there_and_back(archive: Path, tmp_path: Path) -> None:
    """Every file, sealed and private; a second import finds nothing to do."""
    assert archive.stat().st_mode & 0o777 == 0o600
    cache = Cache(tmp_path / "to", "tag")
    moved = transfer.import_(cache, archive)
    assert moved.files == len(FILES)
    assert {at: cache.read(*at) for at in FILES} == FILES
    assert len(_content(cache.root)) == len(FILES)
    assert {path.stat().st_mode & 0o777 for path in _content(cache.root)} == {0o600}
    assert transfer.import_(cache, archive) == transfer.Moved(0, 0)
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def _refused(archive: Path, root: Path, code: str, cache: Cache | None = None) -> str:
    with pytest.raises(ServiceError) as error:
        transfer.import_(cache or Cache(root, "tag"), archive)
    assert error.value.code == code
    assert not root.exists() or _content(root) == []
    return str(error.value)


def test_another_kind(archive: Path, tmp_path: Path) -> None:
    """Another tag: the message names both, and what the archive was made by."""
    text = _refused(archive, tmp_path / "to", "SX0918", Cache(tmp_path / "to", "another"))
    assert "gfx1100" in text
    assert "tag tag, not another" in text


def test_too_large(archive: Path, tmp_path: Path) -> None:
    _refused(archive, tmp_path / "to", "SX0916", Cache(tmp_path / "to", "tag", 10_000))


def test_every_damaged_byte(archive: Path, tmp_path: Path) -> None:
    """A changed byte anywhere, and an end anywhere, is found before anything is written."""
    data = archive.read_bytes()
    for at in [*range(0, 400, 3), *range(400, len(data), 997), *range(len(data) - 40, len(data))]:
        damaged = bytearray(data)
        damaged[at] ^= 0x41
        archive.write_bytes(damaged)
        with pytest.raises(ServiceError, match=r"SX091[568]"):
            transfer.import_(Cache(tmp_path / "to", "tag"), archive)
        archive.write_bytes(data[:at])
        _refused(archive, tmp_path / "to", "SX0915")
    archive.write_bytes(data + b"\0")
    _refused(archive, tmp_path / "to", "SX0915")
    assert not (tmp_path / "to").exists()


def _made(records: list[tuple[bytes, bytes]], **head: object) -> bytes:
    """An archive of any names and contents, with right checksums."""
    body = b""
    for name, content in records:
        packed = zstandard.ZstdCompressor().compress(content)
        digest = hashlib.blake2b(name + b"\0" + content, digest_size=16).digest()
        sizes = len(content).to_bytes(8, "little") + len(packed).to_bytes(8, "little")
        body += len(name).to_bytes(2, "little") + name + sizes + digest + packed
    about: dict[str, object] = {
        "tag": "tag", "version": "v", "target": "t", "host": "h",
        "files": len(records), "bytes": sum(len(c) for _, c in records),
    }  # fmt: skip
    text = json.dumps({**about, **head}).encode()
    data = transfer.MAGIC + len(text).to_bytes(8, "little") + text + body
    return data + hashlib.blake2b(data, digest_size=32).digest()


GOOD = (f"host/{KEY}.sxh".encode(), b"code")


@pytest.mark.parametrize(
    "name",
    [
        b"../../.bashrc", b"/etc/passwd", b"host/../../x", f"host/../{KEY}.sxh".encode(),
        f"other/{KEY}.sxh".encode(), f"tmp/{KEY}".encode(), f"host/{KEY}.sxh\n".encode(),
        f"host/{KEY}.sxh/x".encode(), f"host/{'A' * 32}.sxh".encode(), f"{KEY}.sxh".encode(),
        f"host/{KEY}.so".encode(), f"module/{KEY}.ran".encode(), b"host/\xff", b"host/", b"",
        b"host/.tmp-1-ab", b"host/" + b"0" * 5000 + b".sxh", GOOD[0],
    ],
    ids=str,
)  # fmt: skip
def test_hostile_names(name: bytes, tmp_path: Path) -> None:
    """Names that are no cache file's, and one twice: nothing is written, also not the good one."""
    archive = tmp_path / "archive"
    archive.write_bytes(_made([GOOD, (name, b"x")]))
    archive.chmod(0o600)
    _refused(archive, tmp_path / "to", "SX0915")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["archive"]


def _bomb() -> bytes:
    """One byte said, a gigabyte packed."""
    data = bytearray(_made([(GOOD[0], b"x")]))
    packed = zstandard.ZstdCompressor().compress(bytes(1 << 24))
    at = data.index(GOOD[0]) + len(GOOD[0])
    data[at + 8 : at + 16] = len(packed).to_bytes(8, "little")
    data[at + 32 : -32] = packed
    data[-32:] = hashlib.blake2b(data[:-32], digest_size=32).digest()
    return bytes(data)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"rubbish", transfer.MAGIC, transfer.MAGIC + b"\xff" * 8, _bomb(),
        _made([GOOD], files=2), _made([GOOD], files=0), _made([GOOD], bytes=5),
        _made([GOOD], files=-1), _made([GOOD], bytes="4"), _made([GOOD], tag=None),
        _made([GOOD], files=True), _made([GOOD], files=1 << 70),
        transfer.MAGIC + (2).to_bytes(8, "little") + b"[]",
        transfer.MAGIC + (30000).to_bytes(8, "little") + b"[" * 30000,
        b"PK\3\4" + bytes(100), b"ustar" * 100,
    ],
    ids=lambda data: f"{len(data)} bytes",
)  # fmt: skip
def test_hostile_archives(data: bytes, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    archive.write_bytes(data)
    archive.chmod(0o600)
    _refused(archive, tmp_path / "to", "SX0915")


def test_what_others_can_write(archive: Path, tmp_path: Path) -> None:
    """The archive, and the cache, follow the rules of the cache's own files."""
    archive.chmod(0o622)
    _refused(archive, tmp_path / "to", "SX0912")
    archive.chmod(0o600)
    link = tmp_path / "link"
    link.symlink_to(archive)
    _refused(link, tmp_path / "to", "SX0912")
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    with pytest.raises(PermissionError, match="SX0912"):
        transfer.import_(Cache(open_to_all, "tag"), archive)
    assert _content(open_to_all) == []


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`cache export` and `cache import`, between two folders; statuses of what is refused."""

    def run(place: str, *arguments: str) -> tuple[int, str]:
        monkeypatch.setenv("SASSXLATE_CACHE_DIR", str(tmp_path / place))
        done = CliRunner().invoke(cli, ["cache", *arguments])
        return done.exit_code, done.output

    from sassxlate.runtime_shim.cache.tag import cache_tag

    _cache: Callable[[str], Cache] = lambda place: Cache(tmp_path / place, cache_tag("gfx1100"))  # noqa: E731
    _cache("a").write("host", f"{KEY}.sxh", b"code")
    file = tmp_path / "file"
    status, text = run("a", "export", str(file))
    assert (status, text.splitlines()) == (0, [f"1 files, 4 bytes, tag {cache_tag('gfx1100')}"])
    assert run("b", "import", str(file)) == (0, "1 new files, 4 bytes\n")
    assert _cache("b").read("host", f"{KEY}.sxh") == b"code"
    status, text = run("b", "import", "--target", "gfx1102", str(file))
    assert (status, "SX0918" in text) == (2, True)
    assert run("b", "export", str(tmp_path / "none" / "file"))[0] == 2
