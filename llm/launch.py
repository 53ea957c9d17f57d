"""Training on several GPUs of one machine: a process each, without ``torchrun`` (:mod:`.ranks`)."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, BinaryIO

from sassxlate.errors import ModelError

from .orphans import die_along
from .train import Settings

_GRACE_S = 5.0  # for the first process to say what is wrong, where another ended before it


def gpus() -> int:
    """How many GPUs torch sees; 0 without torch."""
    try:
        import torch
    except ImportError:
        return 0
    return int(torch.cuda.device_count())


def arguments(
    paths: Sequence[Path], output: Path, settings: Settings, held: Sequence[Path], device: str
) -> list[str]:
    """What ``python -m sassxlate.llm.train`` takes, for the same training."""
    out = [*map(str, paths), "--output", str(output), "--device", device]
    if held:
        out += ["--held", *map(str, held)]
    for field in fields(settings):
        value = getattr(settings, field.name)
        name = "--weights" if field.name == "start" else f"--{field.name.replace('_', '-')}"
        if isinstance(value, bool):
            out += [name] * value
        elif value != field.default:
            out.append(f"{name}={value}")
    return out


def together(arguments: Sequence[str], count: int) -> dict[str, Any] | None:
    """Runs ``python -m sassxlate.llm.train`` with these :func:`arguments` in ``count`` processes;
    the first one's figures, or nothing where it has ended with an error, which it has said itself.
    What it shows goes to stderr.

    All end where one does.  Raises ModelError SX1010 where another one than the first fails.
    """
    port = _free_port()
    command = [sys.executable, "-m", "sassxlate.llm.train", *arguments]
    running: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory(prefix="sassxlate-train-") as folder:
        said = [Path(folder, f"{kind}{n}") for n in range(count) for kind in ("out", "err")]
        try:
            for n in range(count):
                with said[2 * n].open("wb") as out, said[2 * n + 1].open("wb") as err:
                    running.append(_start(command, n, count, port, out, err if n else None))
            failed = _wait(running)
        finally:
            for one in running:
                _end(one)
        if failed == 0:
            return None
        if failed is not None:
            status = running[failed].returncode
            last = said[2 * failed + 1].read_text("utf-8", "replace").strip().splitlines()[-1:]
            text = f"process {failed} of {count} ended with status {status}"
            raise ModelError("SX1010", f"{text}: {''.join(last)[:200]}")
        lines = said[0].read_text("utf-8").splitlines()
    return dict(json.loads(lines[-1])) if lines else {}


def _start(
    command: Sequence[str], n: int, count: int, port: int, out: BinaryIO, err: BinaryIO | None
) -> subprocess.Popen[bytes]:
    numbers = {"RANK": n, "LOCAL_RANK": n, "WORLD_SIZE": count, "MASTER_PORT": port}
    here = {"OMP_NUM_THREADS": "1", **os.environ, "MASTER_ADDR": "127.0.0.1"}
    return subprocess.Popen(
        command,
        env=here | {name: str(number) for name, number in numbers.items()},
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=err,
        start_new_session=True,
        preexec_fn=die_along,
    )


def _wait(running: Sequence[subprocess.Popen[bytes]]) -> int | None:
    """Waits for all; which failed, the first of them where it has."""
    since: float | None = None
    while True:
        codes = [one.poll() for one in running]
        bad = [n for n, code in enumerate(codes) if code]
        if not bad and None not in codes:
            return None
        if bad:
            since = time.monotonic() if since is None else since
            if bad[0] == 0 or time.monotonic() - since > _GRACE_S:
                return bad[0]
        time.sleep(0.05)


def _end(one: subprocess.Popen[bytes]) -> None:
    if one.poll() is None:
        one.send_signal(signal.SIGTERM)
        try:
            one.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            one.kill()
    one.wait()


def _free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


__all__ = ["arguments", "gpus", "together"]
