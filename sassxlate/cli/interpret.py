"""`sassxlate interpret FILE -k NAME`: a kernel's SASS, run by the semantics of its instructions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

from sassxlate.cli.grammar import Command
from sassxlate.cli.options import arch_option, one_kernel_option, printing_options
from sassxlate.errors import UsageError
from sassxlate.lowering.trace.arguments import LaunchShape, find_cubin, shape_of
from sassxlate.output import print_json, write_whole
from sassxlate.runtime_shim.ptx.machine_code import machine_code

if TYPE_CHECKING:
    from sassxlate.disasm.containers import Cubin, Kernel
    from sassxlate.disasm.sass.instruction import Instruction
    from sassxlate.disasm.sass.interpreter import Done, Group, Launch, Resident
    from sassxlate.lowering.trace.arguments import Arguments
_COLUMNS = 8  # words per line of a dump


@click.command(
    cls=Command,
    short_help="Run a kernel's SASS in the reference interpreter",
    example="sassxlate interpret ./saxpy -k '*saxpy*' --arch sm_80 --arg u32:32 --arg f32:2"
    " --arg buf:128:ones --arg buf:128:count --dump 3",
)
@click.argument("file", metavar="FILE")
@one_kernel_option
@arch_option
@click.option("--grid", default="1", metavar="X[,Y[,Z]]", help="Blocks.")
@click.option("--block", default="32", metavar="X[,Y[,Z]]", help="Threads of a block.")
@click.option("--shared", type=click.IntRange(0), default=0, help="Dynamic shared memory, bytes.")
@click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="FORM",
    help="One per parameter, in order: u32:5, f32:1.5, i64:-1, hex:00ff, buf:4k:random "
    "(zeros, random, floats, count, ones), file:PATH.",
)
@click.option("--seed", type=int, default=0, help="Seed of random buffers.")
@click.option(
    "--dump",
    multiple=True,
    metavar="N[:WORDS]",
    help="Print the buffer of argument N (from 0) after the launch.",
)
@click.option("--out", multiple=True, metavar="N:FILE", help="Write that buffer to a file.")
@click.option(
    "--trace",
    metavar="WARP[:LANE]",
    help="Print each instruction of a lane (warps of all blocks, from 0) and what it wrote.",
)
@click.option(
    "--stop-at", metavar="OFFSET", help="Stop at this offset and print the first lane's state."
)
@click.option(
    "--order",
    type=click.Choice(["together", "warps", "reversed", "silicon"]),
    default="together",
    show_default=True,
    help="All warps at the lowest address, or one after another; silicon: as an H200 does.",
)
@click.option(
    "--limit", type=click.IntRange(0), default=0, help="Limit of warp instructions; 0: none."
)
@printing_options()
def command(
    file: str,
    kernel: str,
    arch: str | None,
    grid: str,
    block: str,
    shared: int,
    arguments: tuple[str, ...],
    seed: int,
    dump: tuple[str, ...],
    out: tuple[str, ...],
    trace: str | None,
    stop_at: str | None,
    order: str,
    limit: int,
    form: str,
) -> None:
    """Run one launch of a kernel in the reference interpreter of SASS; nothing is translated.

    Buffers are at separate addresses; an access outside them is an error that names the
    instruction.
    """
    from sassxlate.disasm.sass.interpreter import Order, ScheduleOptions, run
    from sassxlate.lowering.trace.arguments import lay_out

    _, cubin, found = find_cubin(file, kernel, arch, machine_code)
    given = lay_out(found, arguments, seed)
    wanted = [_numbered(text, given) for text in dump]
    written = [_numbered(text, given) for text in out]
    launch = prepared(cubin, found, given, shape_of(grid), shape_of(block), shared)
    options = ScheduleOptions(Order(order), limit, _offset(stop_at))
    observer = _Trace(trace) if trace is not None else None
    done = run(launch, options, observer.see if observer else None, _show_state)
    data = {p.base: done.device.data(n) for n, p in enumerate(done.device.pieces)}
    for address, path in written:
        if not path:
            raise UsageError("SX0826", "--out N:FILE")
        write_whole(Path(path), data[address].tobytes())
    if form == "json":
        print_json("interpret", _record(found, done, given, data))
        return
    for address, words in wanted:
        _dump(data[address], int(words) if words.isdecimal() else None)
    what = "stopped after" if done.stopped else "executed"
    text = f"{found.demangled} (sm_{cubin.arch}): {what} {done.executed} warp instructions, "
    click.echo(text + f"{len(done.seen)} of {len(launch.code) // 16} in the code")


def prepared(
    cubin: Cubin,
    kernel: Kernel,
    given: Arguments,
    grid: LaunchShape,
    block: LaunchShape,
    shared: int,
) -> Launch:
    """The launch with the module's constants and variables in memory."""
    from sassxlate.lowering.trace.interpreter_launch import launch_of, module_images

    end = given.end

    def allocate(size: int) -> int:
        nonlocal end
        place, end = end, end + size + 511 & ~511
        return place

    images, banks = module_images(cubin, kernel, allocate)
    pieces = dict(given.buffers)
    pieces |= {place: np.frombuffer(data, np.uint8) for place, data in images.items()}
    return launch_of(cubin, kernel, given.params, (grid, block), pieces, banks, shared=shared)


def _offset(text: str | None) -> int:
    if text is None:
        return -1
    try:
        return int(text, 16)
    except ValueError:
        raise UsageError("SX0826", f"--stop-at {text}: not an offset such as 0x1f0") from None


def _numbered(text: str, given: Arguments) -> tuple[int, str]:
    number, _, rest = text.partition(":")
    place = None
    if number.isdecimal() and int(number) < len(given.places):
        place = given.places[int(number)]
    if place is None:
        raise UsageError("SX0826", f"{text}: argument {number} is not a buffer")
    return place, rest


def _dump(data: NDArray[np.uint8], limit: int | None) -> None:
    words = np.frombuffer(data.tobytes().ljust(-(-len(data) // 4) * 4, b"\0"), "<u4")[:limit]
    for at in range(0, len(words), _COLUMNS):
        line = " ".join(f"{w:08x}" for w in words[at : at + _COLUMNS].tolist())
        click.echo(f"{4 * at:06x}: {line}")


def _record(
    kernel: Kernel, done: Done, given: Arguments, data: dict[int, NDArray[np.uint8]]
) -> dict[str, Any]:
    import hashlib

    return {
        "kernel": kernel.name,
        "executed": done.executed,
        "seen": sorted(done.seen),
        "stopped": done.stopped,
        "buffers": {
            number: hashlib.blake2b(data[place].tobytes(), digest_size=16).hexdigest()
            for number, place in enumerate(given.places)
            if place is not None
        },
    }


class _Trace:
    """Prints the instructions of one lane."""

    def __init__(self, text: str) -> None:
        warp, _, lane = text.partition(":")
        if not warp.isdecimal() or not (lane or "0").isdecimal() or int(lane or 0) > 31:
            raise UsageError("SX0826", f"--trace {text}: not WARP[:LANE]")
        self.warp, self.lane = int(warp), int(lane or 0)

    def see(self, ins: Instruction, group: Group, lanes: NDArray[np.bool_]) -> None:
        """Called after each instruction."""
        row = self.warp - group.s.first * group.s.each
        at = int(np.searchsorted(group.rows, row))
        if at >= group.count or group.rows[at] != row or not group.act[at, self.lane]:
            return
        if not lanes[at, self.lane]:
            click.echo(f"/*{ins.offset:04x}*/ ({ins.text})")
            return
        written = ", ".join(_value(group.s, row, self.lane, r.file, r.index) for r in _sorted(ins))
        click.echo(f"/*{ins.offset:04x}*/ {ins.text}" + (f"    {written}" if written else ""))


def _sorted(ins: Instruction) -> list[Any]:
    return sorted(ins.writes, key=lambda r: (r.file, r.index))


def _value(s: Resident, row: int, lane: int, file: str, index: int) -> str:
    match file:
        case "R":
            return f"R{index} = {int(s.r[index][row, lane]):#x}"
        case "UR":
            return f"UR{index} = {int(s.ur[index][row, 0]):#x}"
        case "P":
            return f"P{index} = {int(s.p[index][row, lane])}"
        case "UP":
            return f"UP{index} = {int(s.up[index][row, 0])}"
        case _:
            return f"B{index} = {int(s.b[index][row, lane]):#010x}"


def _show_state(s: Resident, group: Group) -> None:
    """Registers of the first lane of a group that stopped."""
    row = int(group.rows[0])
    lane = int(np.argmax(group.act[0]))
    click.echo(f"lane {lane} of warp {row + s.first * s.each}, {int(group.act.sum())} lanes here")
    values = [_value(s, row, lane, "R", i) for i in range(len(s.r)) if s.r[i][row, lane]]
    values += [_value(s, row, lane, "UR", i) for i in range(255) if s.ur[i][row, 0]]
    values += [_value(s, row, lane, "P", i) for i in range(7)]
    values += [_value(s, row, lane, "UP", i) for i in range(7) if s.up[i][row, 0]]
    for at in range(0, len(values), 6):
        click.echo("  " + ", ".join(values[at : at + 6]))
