"""A service that the library starts in the tests: notes how it was started, refuses everything."""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
from pathlib import Path


def main() -> None:
    path = Path(os.environ["SASSXLATE_SOCKET"])
    notes = {
        "argv": sys.argv[1:],
        "cwd": os.getcwd(),
        "environment": dict(os.environ),
        "descriptors": sorted(int(name) for name in os.listdir("/proc/self/fd")),
        "session": os.getsid(0),
        "parent": os.getppid(),
        "pid": os.getpid(),
    }
    with path.with_name("starts").open("a") as file:
        file.write(json.dumps(notes) + "\n")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    listener.settimeout(4)
    drop = int(os.environ.get("SASSXLATE_TEST_DROP", "0"))
    while True:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            path.unlink(missing_ok=True)
            return
        with connection, connection.makefile("rwb") as stream:
            head = stream.read(4)
            if len(head) < 4:
                continue
            if drop:  # goes away in the middle
                drop -= 1
                continue
            request = json.loads(stream.read(struct.unpack("<I", head)[0]))
            answer = {"ok": True, "tag": "fake"}
            if request["op"] != "tag":
                answer = {"ok": False, "cuda_error": 801, "line": "SX0601: refused"}
            body = json.dumps(answer).encode()
            stream.write(struct.pack("<I", len(body)) + body)


main()
