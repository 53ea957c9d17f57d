"""Files that are written whole or not at all.  Cheap to import."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def replace_file(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Writes a file under a temporary name in its folder, and renames it.

    ``mode`` is the file's, before the umask.  The temporary name has the process's number, so that
    what a killed process left can be removed.  Raises OSError.
    """
    temporary = path.with_name(f".tmp-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        with open(temporary, "xb", opener=lambda p, flags: os.open(p, flags, mode)) as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


__all__ = ["replace_file"]
