"""Paths of the cache, the service's socket and the native libraries.

Everything here is cheap to import: `sassxlate run` pays for it at each start.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from importlib import resources
from pathlib import Path

import sassxlate
from sassxlate.errors import ServiceError, ShimError
from sassxlate.runtime_shim import trusted

PROTOCOL = 2  # of the messages to the service; raise it when they change
SOCKET_PATH_MAX = 107  # sun_path holds 108 bytes with its NUL (unix(7))


def package_root() -> Path:
    """The folder of the package's modules, in a checkout or where a wheel was installed.

    Not what ``importlib.resources`` gives: an editable install may have a second folder, for the
    native libraries alone, and both together are no path that could be walked.
    """
    return Path(sassxlate.__file__).absolute().parent


def cache_dir() -> Path:
    """The cache directory that the environment asks for; it need not exist."""
    own = os.environ.get("SASSXLATE_CACHE_DIR")
    if own:
        return Path(own).absolute()
    xdg = os.environ.get("XDG_CACHE_HOME")
    if xdg and os.path.isabs(xdg):
        return Path(xdg) / "sassxlate"
    home = os.path.expanduser("~")
    if os.path.isabs(home):
        return Path(home) / ".cache" / "sassxlate"
    return private_dir(Path(tempfile.gettempdir()) / f"sassxlate-{os.getuid()}") / "cache"


def usable(directory: Path) -> bool:
    """Whether ``directory``, created where it is missing, can be a cache."""
    return unusable(directory) is None


def unusable(directory: Path) -> ServiceError | None:
    """Why ``directory``, created where it is missing, can be no cache: SX0907, no files can be made
    there; SX0912, others can write there."""
    try:
        trusted.make_folder(directory)
        descriptor, name = tempfile.mkstemp(prefix=".tmp-", dir=directory)
        try:
            # On a full disk a file can be created but not filled.
            os.write(descriptor, b"\0" * 4096)
        finally:
            os.close(descriptor)
            os.unlink(name)
    except trusted.UntrustedError as error:
        return error
    except OSError:
        return ServiceError("SX0907", f"{directory} takes no files")
    return None


def private_dir(directory: Path) -> Path:
    """``directory``, made with mode 0700; ServiceError SX0901 if others own it or have access.

    In /tmp another user may have made it first, to answer our requests.
    """
    with contextlib.suppress(FileExistsError):
        directory.mkdir(mode=0o700, parents=True)
    status = os.lstat(directory)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise ServiceError("SX0901", f"{directory} is not a directory of this user alone (0700)")
    return directory


def runtime_dir() -> Path:
    """The private directory of sockets and locks, created if missing."""
    xdg = os.environ.get("XDG_RUNTIME_DIR")
    if xdg and os.path.isabs(xdg):
        try:
            return private_dir(Path(xdg) / _own_name())
        except OSError:
            pass  # left over from another session, or read-only: /tmp will do
    return _runtime_dir_in_tmp()


def _own_name() -> str:
    return f"sassxlate-{os.getuid()}"


def _runtime_dir_in_tmp() -> Path:
    try:
        return private_dir(Path("/tmp") / _own_name())
    except OSError as error:
        raise ServiceError("SX0901", f"/tmp/{_own_name()}: {error.strerror}") from error


def socket_path(tag: str | None = None, cache: Path | None = None) -> Path:
    """The service's socket: SASSXLATE_SOCKET, or a name in the runtime directory.

    The name depends on ``tag`` and ``cache``, so that two versions of the translator, or two
    caches, each have a service.  If the runtime directory's own path is too long for a socket,
    it is in /tmp.
    """
    own = os.environ.get("SASSXLATE_SOCKET")
    if own:
        if len(os.fsencode(own)) > SOCKET_PATH_MAX:
            text = f"the socket's path is longer than {SOCKET_PATH_MAX}: {own}"
            raise ServiceError("SX0901", text)
        return Path(own)
    name = "service.sock"
    if tag is not None and cache is not None:
        import hashlib

        digest = hashlib.blake2b(
            os.fsencode(f"{PROTOCOL}\0{tag}\0{cache}"), digest_size=6
        ).hexdigest()
        name = f"service-{digest}.sock"
    path = runtime_dir() / name
    if len(os.fsencode(path)) > SOCKET_PATH_MAX:
        path = _runtime_dir_in_tmp() / name
    return path


def library_dir() -> Path:
    """The directory of the native libraries; ShimError SX0706 if they are not built."""
    own = os.environ.get("SASSXLATE_LIB")
    if own:
        directory = Path(own).absolute()
    else:
        directory = package_root() / "runtime_shim" / "lib"
        if not (directory / "libcuda.so.1").is_file():
            # An editable install may have two places; `build.sh` writes to the first.
            found = resources.files("sassxlate.runtime_shim").joinpath("lib", "libcuda.so.1")
            directory = Path(str(found)).parent.absolute()
    if not (directory / "libcuda.so.1").is_file():
        raise ShimError("SX0706", f"the native libraries are not in {directory}")
    return directory
