"""The compiler's process: `python -m sassxlate.lowering.tier.compiler FD`, a socket to its parent.

Each request is a JSON list (triple, processor, features, whether listed) and a module's text; the
answer is a byte, 1 or 0, and what :func:`.passes.object_of` gives or LLVM's message.  It ends when
the socket does.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from multiprocessing.connection import Connection

from sassxlate.lowering.tier.compiler.passes import object_of

CPU_S = 600  # processor seconds for one module: LLVM hangs if it takes more


def serve(pipe: Connection) -> None:
    """Answers until the parent closes the socket or ends."""
    while True:
        try:
            target = json.loads(pipe.recv_bytes())
            text = pipe.recv_bytes().decode()
        except (EOFError, OSError):
            return
        _limit()
        try:
            answer = b"\1" + object_of(text, *target)
        except RuntimeError as error:
            answer = b"\0" + str(error).encode("utf-8", "replace")
        try:
            pipe.send_bytes(answer)
        except OSError:
            return


def _limit() -> None:
    """SIGXCPU ends this process after ``CPU_S`` more seconds."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = int(used.ru_utime + used.ru_stime) + CPU_S
    limit = soft if hard == resource.RLIM_INFINITY else min(soft, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, hard))


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the parent, and that this process
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    serve(Connection(int(sys.argv[1])))


if __name__ == "__main__":
    main()
