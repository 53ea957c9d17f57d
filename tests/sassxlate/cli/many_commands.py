"""Runs many command lines in one process that forks for each: started by test_grammar.py.

Reads from standard input a JSON list of [name, arguments, whether the reader of the output is
gone], writes one of [name, status, stdout, stderr].
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile


def _child(arguments: list[str], out: int, err: int) -> None:
    from sassxlate.cli import main

    os.dup2(out, 1)
    os.dup2(err, 2)
    sys.stdout = open(1, "w", encoding="ascii", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="ascii", closefd=False)  # noqa: SIM115
    status: object = 70
    try:
        main(arguments)
    except SystemExit as end:
        status = end.code
    finally:
        sys.stderr.flush()
        os._exit(status if isinstance(status, int) else 0)


def _run(arguments: list[str], gone: bool) -> tuple[int, str, str]:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        reading, writing = os.pipe()
        os.close(reading)
        child = os.fork()
        if child == 0:
            _child(arguments, writing if gone else out.fileno(), err.fileno())
        os.close(writing)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts: list[str] = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("ascii", "surrogateescape"))
        return status, texts[0], texts[1]


def _main() -> None:
    import sassxlate.cli as cli

    for name in cli.SUBCOMMANDS:
        importlib.import_module(f"sassxlate.cli.{name}")
    results = [[name, *_run(words, gone)] for name, words, gone in json.load(sys.stdin)]
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    _main()
