"""Files that only this user or root can have written; native/common/trusted.h has the same rules.

A file is opened folder by folder, each by its own descriptor, so that nothing can be replaced
between the check and the use.  The file is not a link, belongs to this user or root, and gives
others no right to write.  A folder belongs to this user, root or the owner of "/", and gives others
no right to write unless it is sticky, as /tmp is: there only an entry's owner can exchange it, and
each entry's owner is looked at.  A link among the folders is followed if one of those owns it.

Cheap to import: a part of every start of `sassxlate run`.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
from collections.abc import Generator
from functools import cache
from pathlib import Path

from sassxlate.errors import ServiceError

_MOST_LINKS = 40  # as the kernel's own limit (path_resolution(7))
_FOLDER = os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW


class UntrustedError(ServiceError):
    """SX0912: others can write to a file or folder; the message says to which."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__("SX0912", f"{path} {what}")


@cache
def _folder_owners() -> frozenset[int]:
    # The owner of "/" can replace everything below.  In a container that maps no root: "nobody".
    return frozenset({os.geteuid(), 0, os.stat("/").st_uid})


def _check_folder(status: os.stat_result, place: str) -> None:
    if status.st_uid not in _folder_owners():
        raise UntrustedError(place, f"belongs to user {status.st_uid}")
    if status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX:
        raise UntrustedError(place, _writable(status.st_mode))


def _writable(mode: int) -> str:
    return f"can be written by other users (mode {stat.S_IMODE(mode):04o})"


def _names(path: str) -> list[str]:
    """The names of a path, the next one last."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]


@contextlib.contextmanager
def folder(path: Path) -> Generator[int, None, None]:
    """A descriptor (O_PATH) of the folder.

    Raises:
        UntrustedError: SX0912, others can write to it or to one on the way.
        OSError: it is missing, or not a folder.
    """
    at = os.open("/", _FOLDER | os.O_DIRECTORY)
    try:
        _check_folder(os.fstat(at), "/")
        # The working directory may be gone; an absolute path does not ask for it.
        whole = path if path.is_absolute() else os.path.join(os.getcwd(), path)
        names, place, links = _names(os.fspath(whole)), "", 0
        while names:
            name = names.pop()
            here = f"{place}/{name}"
            found = os.open(name, _FOLDER, dir_fd=at)
            try:
                status = os.fstat(found)
                if stat.S_ISDIR(status.st_mode):
                    _check_folder(status, here)
                    at, found, place = found, at, here
                    continue
                if not stat.S_ISLNK(status.st_mode):
                    raise NotADirectoryError(errno.ENOTDIR, "not a directory", here)
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, "too many links", here)
                if status.st_uid not in _folder_owners():
                    raise UntrustedError(here, f"is a link that belongs to user {status.st_uid}")
                target = os.readlink("", dir_fd=found)
                names += _names(target)
                if target.startswith("/"):
                    os.close(found)
                    at, found, place = os.open("/", _FOLDER | os.O_DIRECTORY), at, ""
            finally:
                os.close(found)
        yield at
    finally:
        os.close(at)


def check_folder(path: Path) -> None:
    """UntrustedError SX0912 if others can write to the folder, as far as it exists."""
    with contextlib.suppress(OSError), folder(path):
        pass


def make_folder(path: Path) -> None:
    """Make the folder and those above it where they are missing, for this user alone (0700).

    Raises:
        UntrustedError: SX0912, others can write to it or to one on the way.
        OSError: it cannot be made.
    """
    try:
        with folder(path):
            return
    except FileNotFoundError:
        if path.parent == path:  # of a relative path, when the working directory is gone
            raise
        make_folder(path.parent)
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
    with folder(path):
        pass


def read(path: Path) -> tuple[bytes, float]:
    """The bytes of a file, and when it was last written or marked as used (seconds).

    Raises:
        UntrustedError: SX0912, others can write to it or to a folder on the way.
        OSError: it is missing, or cannot be read.
    """
    with opened(path) as file:
        return file.readall(), os.fstat(file.fileno()).st_mtime


@contextlib.contextmanager
def opened(path: Path) -> Generator[io.FileIO, None, None]:
    """The file, open for reading; raises as :func:`read`."""
    # Not blocking: the name may be that of a pipe.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    with folder(path.parent) as at:
        try:
            descriptor = os.open(path.name, flags, dir_fd=at)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise UntrustedError(str(path), "is a link") from None
            raise
    with open(descriptor, "rb", buffering=0) as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UntrustedError(str(path), "is not a regular file")
        if status.st_uid not in (os.geteuid(), 0):
            raise UntrustedError(str(path), f"belongs to user {status.st_uid}")
        if status.st_mode & 0o022:
            raise UntrustedError(str(path), _writable(status.st_mode))
        yield file
