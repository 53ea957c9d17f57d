"""`sassxlate trace FILE -k NAME`: a launch step by step, SASS beside its RDNA3."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sassxlate.cli.grammar import Command
from sassxlate.cli.options import (
    arch_option,
    one_kernel_option,
    printing_options,
    target_option,
)
from sassxlate.errors import UsageError, Where
from sassxlate.notes import note, shows_progress
from sassxlate.output import print_json_line, write_whole

if TYPE_CHECKING:
    from sassxlate.disasm.sass.instruction import RegRef
    from sassxlate.disasm.sass.interpreter import Order
    from sassxlate.lowering.trace.lockstep import LockstepPair
    from sassxlate.lowering.trace.memory_history import MemoryChange
    from sassxlate.lowering.trace.observations import Choice, End
    from sassxlate.lowering.trace.points import SourceStep
    from sassxlate.lowering.trace.subject import Subject
    from sassxlate.lowering.trace.text import Printer
    from sassxlate.runtime_shim.replay.trace_subject import Emulated

STEPS = 10_000  # steps printed without --limit
GIVE_UP = 1_000_000
_REGISTER = re.compile(r"(R|UR|P|UP|B)(\d{1,3})", re.IGNORECASE)
_BLOCK = re.compile(r"(?:L_|\.L_)?(?:0x)?([0-9a-f]{1,8})", re.IGNORECASE)
_ORDERS = ("auto", "together", "warps", "reversed")


@click.command(
    cls=Command,
    context_settings={"allow_interspersed_args": True},
    example="sassxlate trace ./saxpy -k '*saxpy*' --run --arch sm_80 --lane 0",
)
@click.argument("file", metavar="FILE")
@one_kernel_option
@arch_option
@click.option("--grid", default="1", metavar="X[,Y[,Z]]", help="Blocks.")
@click.option("--block", default="32", metavar="X[,Y[,Z]]", help="Threads of a block.")
@click.option("--shared", type=click.IntRange(0), default=0, help="Dynamic shared memory, bytes.")
@click.option(
    "--arg", "arguments", multiple=True, metavar="FORM",
    help="One per parameter, in order, as `sassxlate interpret` takes them: u32:5, buf:4k:random.",
)  # fmt: skip
@click.option("--seed", type=int, default=0, help="Seed of random buffers.")
@click.option(
    "--run", is_flag=True, help="FILE is a program: run it with ARGS and trace one of its launches."
)
@click.option(
    "--launch", type=click.IntRange(0), help="Which launch of the kernel, with --run.  [default: 0]"
)
@click.option(
    "--in", "blocks", multiple=True, metavar="BLOCK",
    help="Only this basic block, by its offset or label (00f0, L_00f0); may repeat.",
)  # fmt: skip
@click.option("--cta", metavar="N|X,Y[,Z]", help="Only this block of the grid.  [default: 0]")
@click.option("--warp", type=click.IntRange(0), help="Only this warp of the block.  [default: 0]")
@click.option("--lane", metavar="N,A-B|all", help="Only these lanes of the warp.  [default: 0]")
@click.option(
    "--register", "registers", multiple=True, metavar="R5,P0,UR4",
    help="Only instructions that read or write one of these registers, and these values.",
)  # fmt: skip
@click.option(
    "--until", type=click.Choice(["difference"]),
    help="Print nothing until the sides differ; all lanes unless --cta, --warp or --lane is given.",
)  # fmt: skip
@click.option("--limit", type=click.IntRange(1), help=f"Steps.  [default: {STEPS}; --until: all]")
@click.option(
    "--give-up", type=click.IntRange(1), default=GIVE_UP, show_default=True,
    help="Give up on a launch after this many warp instructions.",
)  # fmt: skip
@click.option(
    "--order", type=click.Choice(_ORDERS), default="auto", show_default=True,
    help="The interpreter's schedule: all warps together, or one after another.",
)  # fmt: skip
@click.option(
    "--strict-seed", type=click.IntRange(0, 2**63 - 1), default=0,
    help="Seed of undefined registers' values and approximation errors; 0: zero and none.",
)  # fmt: skip
@target_option
@click.option(
    "--code-object", metavar="FILE",
    help="Run this translation (from `translate -o` or `run --dump` of this version).",
)  # fmt: skip
@click.option(
    "--counts", type=click.Path(path_type=Path), metavar="OUT.json",
    help="Write execution counts of blocks, for `sassxlate cfg --counts`; "
    "with --run, over all launches of the program.",
)  # fmt: skip
@printing_options()
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def command(context: click.Context, /, file: str, **options: Any) -> None:
    """Run one launch of a kernel in strict emulation and in the reference interpreter, and print
    each SASS instruction with the RDNA3 instructions that implement it and the values of its
    registers before and after it, on both sides.  As JSON each step is a line.

    Exit status with --until difference: 0 none, 1 found, 3 not decided.
    """
    from sassxlate.lowering.trace.points import steps

    options["as_json"] = options.pop("form") == "json"
    subject = _subject(file, options)
    every = steps(subject.translated)
    choice = _choice(subject, every, options)
    if options["counts"] is not None:
        _write_counts(subject, file, options)
    context.exit(_trace(subject, choice, options))


def _subject(file: str, options: dict[str, Any]) -> Subject:
    from sassxlate.lowering.target import target_named
    from sassxlate.lowering.trace.arguments import shape_of
    from sassxlate.runtime_shim.replay.trace_subject import by_hand, of_program

    code, target = options["code_object"], target_named(options["target"])
    if options["run"]:
        if options["arguments"]:
            raise UsageError("SX0836", "--run traces the program's own launches and takes no --arg")
        return of_program(
            file, options["args"], options["kernel"], options["launch"] or 0, options["arch"], code,
            target,
        )  # fmt: skip
    if options["launch"] is not None:
        raise UsageError("SX0836", "--launch needs --run: it selects one of the program's launches")
    if options["args"]:
        raise UsageError("SX0836", "arguments for a program need --run")
    shapes = shape_of(options["grid"]), shape_of(options["block"])
    return by_hand(
        file, options["kernel"], options["arch"], shapes, options["arguments"],
        options["shared"], options["seed"], code, target,
    )  # fmt: skip


# --- what to trace -------------------------------------------------------------------------------


def _choice(subject: Subject, every: dict[int, SourceStep], options: dict[str, Any]) -> Choice:
    from sassxlate.lowering.trace.observations import ALL, Choice
    from sassxlate.lowering.trace.text import chosen_lanes

    until = options["until"] is not None
    registers = registers_of(options["registers"])
    wanted = set(every)
    starts = [_block_of(subject, every, text) for text in options["blocks"]]
    if starts:
        wanted = {offset for offset, step in every.items() if step.block in starts}
    if registers is not None:
        known = {ref for step in every.values() for ref in step.ins.reads | step.ins.writes}
        if strange := sorted(registers - known, key=lambda r: (r.file, r.index)):
            text = f"the kernel has no register {strange[0].file}{strange[0].index}"
            raise UsageError("SX0836", text, Where(None, subject.kernel.name))
        wanted = {o for o in wanted if registers & (every[o].ins.reads | every[o].ins.writes)}

    def bad(text: str) -> UsageError:
        return UsageError("SX0836", f"--lane {text}: lanes are 0 to 31, like 0,4-7, or all")

    lane = options["lane"]
    lanes = chosen_lanes(lane, bad) if lane is not None else ALL if until else 1
    limit = options["limit"] or (0 if until else STEPS)
    warps = _warps(subject, options, until)
    return Choice(every, frozenset(wanted), warps, lanes, until, limit)


def registers_of(texts: Sequence[str]) -> frozenset[RegRef] | None:
    """Parses R5,P0,UR4; None if no registers are given."""
    from typing import cast

    from sassxlate.disasm.sass.instruction import RegRef

    out: set[RegRef] = set()
    for text in (part.strip() for one in texts for part in one.split(",")):
        found = _REGISTER.fullmatch(text)
        if found is None:
            raise UsageError(
                "SX0836", f"--register {text[:80]}: not a register such as R5, P0 or UR4"
            )
        out.add(RegRef(cast("Any", found[1].upper()), int(found[2])))
    return frozenset(out) if texts else None


def _block_of(subject: Subject, every: dict[int, SourceStep], text: str) -> int:
    found = _BLOCK.fullmatch(text)
    step = every.get(int(found[1], 16)) if found else None
    if step is None:
        starts = sorted({s.block for s in every.values()})
        some = " ".join(f"{start:04x}" for start in starts[:40])
        message = f"--in {text[:80]}: not a block or instruction; blocks: {some}"
        raise UsageError("SX0836", message, Where(None, subject.kernel.name))
    return step.block


def _warps(subject: Subject, options: dict[str, Any], until: bool) -> frozenset[int] | None:
    """The warps' numbers in the grid; None: all."""
    cta, warp = options["cta"], options["warp"]
    if until and cta is None and warp is None:
        return None
    block = _cta(subject, cta or "0")
    if warp is not None and warp >= subject.waves:
        text = f"--warp {warp}: warps of a block are 0 to {subject.waves - 1}"
        raise UsageError("SX0836", text, Where(None, subject.kernel.name))
    inside = range(subject.waves) if until and warp is None else [warp or 0]
    if until and cta is None:
        return frozenset(b * subject.waves + w for b in range(subject.blocks) for w in inside)
    return frozenset(block * subject.waves + w for w in inside)


def _cta(subject: Subject, text: str) -> int:
    parts = text.split(",")
    grid = subject.recorded.grid
    if all(p.isdecimal() for p in parts) and len(parts) <= 3:
        numbers = [int(p) for p in parts]
        if len(numbers) == 1 and numbers[0] < subject.blocks:
            return numbers[0]
        x, y, z = (*numbers, 0, 0)[:3]
        if len(numbers) > 1 and all(n < g for n, g in zip((x, y, z), grid, strict=True)):
            return x + grid[0] * (y + grid[1] * z)
    message = f"--cta {text[:80]}: the grid is {','.join(map(str, grid))}"
    raise UsageError("SX0836", message, Where(None, subject.kernel.name))


# --- running -------------------------------------------------------------------------------------


def _write_counts(subject: Subject, file: str, options: dict[str, Any]) -> None:
    """Writes counts of the hand-made launch, or of all kernels of the program, which is run
    again."""
    from sassxlate.lowering.emulate import counts
    from sassxlate.runtime_shim.replay.block_counts import of_program
    from sassxlate.runtime_shim.replay.trace_subject import count

    if options["run"]:
        every = of_program(file, options["args"], options["arch"])
    else:
        runs, stopped = count(subject, seed=options["strict_seed"], give_up=options["give_up"])
        every = [runs]
        if stopped is not None:
            note(f"the counts end where it stopped: {stopped.text}")
    text = json.dumps(counts.to_data(every)) + "\n"
    write_whole(options["counts"], text.encode())


def _trace(subject: Subject, choice: Choice, options: dict[str, Any]) -> int:
    from sassxlate.disasm.sass.interpreter import Order
    from sassxlate.lowering.trace.lockstep import compare, order_of
    from sassxlate.lowering.trace.observations import DIFFERENCES
    from sassxlate.lowering.trace.text import Printer
    from sassxlate.runtime_shim.replay.trace_subject import emulate

    until, give_up = choice.until, options["give_up"]
    lanes = choice.lanes
    printer = Printer(
        subject, lanes, registers_of(options["registers"]), as_json=options["as_json"]
    )
    _say(f"{subject.kernel.demangled[:60]}: emulating")
    room = (1 << 62) if not choice.limit else choice.limit * (_largest(choice) + 64) * 8 + (1 << 20)
    done = emulate(subject, choice, seed=options["strict_seed"], give_up=give_up, room=room)
    _say("interpreting")
    wanted = options["order"]
    order: Order = (
        order_of(s.ins for s in choice.steps.values()) if wanted == "auto" else Order(wanted)
    )
    end, pair, finished = compare(
        subject.launch(), choice, done.streams, done.stopped, printer.show, order, give_up
    )
    _say("")
    if finished is not None and until and end.kind == "done":
        end = _memory(subject, choice, done, finished, end, order, options)
    end = _stored(subject, choice, end, order, options)
    facts = _facts(choice, pair)
    printer.end(end, facts, until)
    if until and end.seen is not None and not options["as_json"]:
        _difference(subject, printer, end, pair, options)
    elif until and end.seen is not None:
        print_json_line("trace-step", printer.record(end.seen))
        _states(subject, printer, end, pair, options)
    if not options["as_json"]:
        _notes(choice, pair, end, options, order.value)
    if not until:
        return 0
    if end.kind in DIFFERENCES:
        return 1
    return 0 if end.kind in ("done", "both") or (end.kind == "limit" and choice.limit) else 3


def _largest(choice: Choice) -> int:
    """Bytes of the longest record."""
    return max((4 * (6 + 32 * len(p.places)) for p in choice.points()), default=0)


def _say(text: str) -> None:
    """Progress, if stderr is a terminal."""
    if shows_progress():
        click.echo(f"\r\x1b[K{text}", nl=False, err=True)


def _facts(choice: Choice, pair: LockstepPair) -> dict[str, Any]:
    return {"steps": pair.number, "taken_over": pair.adopted, "met": pair.met != 0}


def _notes(
    choice: Choice, pair: LockstepPair, end: End, options: dict[str, Any], order: str
) -> None:
    for why, many in sorted(pair.adopted.items()):
        what = "" if why.startswith("lanes") else "results taken over from RDNA3: "
        click.echo(f"note: {many} {what}{why}")
    if pair.order:
        click.echo(f"note: with the interpreter's order {pair.order}; others may differ")
    if end.kind == "order":
        click.echo(f"note: the interpreter's order was {order}; try another --order")
    if not choice.wanted:
        click.echo("note: no instruction there reads or writes such a register")
    elif not pair.number and end.kind != "both":
        where = f"block {', '.join(options['blocks'])}" if options["blocks"] else "the selection"
        click.echo(f"note: no selected warp ever executes {where}")
    elif not pair.met & choice.lanes and pair.number:
        from sassxlate.lowering.trace.text import lanes_text

        click.echo(f"note: lanes {lanes_text(choice.lanes)} never execute it")


def _memory(
    subject: Subject, choice: Choice, done: Emulated, finished: Any, end: End, order: Order,
    options: dict[str, Any],
) -> End:  # fmt: skip
    """A difference in final memory although registers never differed; the word's history names the
    instruction that wrote it."""
    from sassxlate.lowering.trace.compare_memory import first_difference
    from sassxlate.lowering.trace.memory_history import Word
    from sassxlate.lowering.trace.observations import End
    from sassxlate.runtime_shim.replay.trace_subject import watched

    found = first_difference(subject.launch(), finished.device, done.memory)
    if found is None:
        return end
    text = f"{found.words} words of memory differ after the launch; the first is at "
    text += f"{found.address:#x}: RDNA3 {found.rdna:#010x}, SASS {found.sass:#010x}"
    whose = watched(
        subject, choice, Word(found.address), order, options["strict_seed"], options["give_up"]
    )
    if isinstance(whose, tuple):
        return End("memory", f"{text}.  {_whose(subject, choice, *whose)}")
    if found.offset is None:
        return End("memory", text + "; no SASS instruction wrote it")
    ins = choice.steps[found.offset].ins
    text += f", written by /*{found.offset:04x}*/ {ins.text}"
    if found.lane is not None:
        text += ", lane {2} of warp {1} of block {0}".format(*found.lane)
    return End("memory", text)


def _whose(subject: Subject, choice: Choice, change: MemoryChange, theirs: bool) -> str:
    ins = choice.steps[change.offset].ins
    block, warp = divmod(max(change.warp, 0), subject.waves)
    side = "RDNA3 changed it" if theirs else "SASS alone changed it"
    text = f"{side} to {change.value:#010x} at /*{change.offset:04x}*/ {ins.text}"
    return f"{text}, warp {warp} of block {block}"


def _stored(
    subject: Subject, choice: Choice, end: End, order: Order, options: dict[str, Any]
) -> End:
    """For a difference in a loaded value, the store that it comes from."""
    from sassxlate.lowering.trace.memory_history import word_of
    from sassxlate.lowering.trace.tolerances import reads_memory
    from sassxlate.runtime_shim.replay.trace_subject import watched

    if end.kind != "value" or end.seen is None or not reads_memory(end.seen.step.ins):
        return end
    word = word_of(end.seen, subject.waves)
    if word is None:
        return end
    whose = watched(subject, choice, word, order, options["strict_seed"], options["give_up"])
    if whose is None:
        return end
    if whose == "same":
        text = f"{end.text}: both sides store the same at {word.address:#x}; the order differs"
        return replace(end, kind="order", text=text)
    text = f"{end.text}, by what was stored at {word.address:#x}: "
    return replace(end, text=text + _whose(subject, choice, *whose))


def _difference(
    subject: Subject, printer: Printer, end: End, pair: LockstepPair, options: dict[str, Any]
) -> None:
    assert end.seen is not None
    if end.kind == "path":
        click.echo("the step before:")
    printer.lanes &= end.seen.differs or end.seen.active
    printer.show(end.seen)
    _states(subject, printer, end, pair, options)


def _states(
    subject: Subject, printer: Printer, end: End, pair: LockstepPair, options: dict[str, Any]
) -> None:
    """All live registers of the first lane that differs, on both sides."""
    from sassxlate.lowering.emulate.options import Place, TracePoint
    from sassxlate.lowering.trace.points import place_of
    from sassxlate.runtime_shim.replay.trace_subject import recorded_at

    seen = end.seen
    if seen is None or not pair.state or seen.step.after is None:
        return
    regs = subject.translated.selected.regs
    refs = _live(subject, seen.step)
    places: list[Place] = []
    for ref in refs:
        place = place_of(regs, ref)
        if place is not None and place not in places:
            places.append(place)
    after = seen.step.after
    point = TracePoint(0, after.pc, after.after, tuple(places), after.mask)
    state = recorded_at(
        subject, point, seen.warp, pair.passing, options["strict_seed"], options["give_up"]
    )
    if not state:
        return
    lanes = seen.differs or seen.active
    lane = (lanes & -lanes).bit_length() - 1
    printer.states(refs, pair.state, state, lane)


def _live(subject: Subject, step: SourceStep) -> list[RegRef]:
    """The registers that are live after a step, and those that it writes."""
    from sassxlate.cfg.liveness import live_before, liveness

    cfg = subject.translated.cfg
    block = next(b for b in cfg.blocks if b.start == step.block)
    live = liveness(cfg).live_out[block.index]
    for ins in reversed(block.instructions):
        if ins.offset == step.ins.offset:
            break
        live = live_before(ins, live)
    some = live | step.ins.writes
    return sorted((r for r in some if r.file != "B"), key=lambda r: (r.file, r.index))
