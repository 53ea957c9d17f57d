"""Host code between the stencils of instructions: a wave's begin, blocks, back edges."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_HI, EXEC_LO, VCC_HI
from sassxlate.lowering.emulate.image.abi import (
    RUNTIME_STOP,
    WAVE_SIZE,
    DeviceFault,
    Rt,
    WaveLayout,
)
from sassxlate.lowering.emulate.stencils import frame
from sassxlate.lowering.emulate.stencils.stencil import NEXT, TAKEN, go, symbol
from sassxlate.lowering.emulate.wave.access.memory_helpers import runtime_call

if TYPE_CHECKING:
    from sassxlate.lowering.emulate.options import Isa

_LINE: Final = "<16 x i32>"


class Glue(IntEnum):
    """The pieces; native/hip/stencils.h has the same numbers."""

    ENTER = 0  # the entry of the kernel: makes the frame, runs the wave
    BLOCK = 1  # NUMBER more instructions are executed
    COUNT = 2  # increments the counter at byte NUMBER
    FUEL = 3  # the back edge of a loop that reads memory, to TAKEN
    STOP = 4  # of one that does not
    JUMP = 5  # to TAKEN
    ILLEGAL = 6  # the end of the code
    EQUAL = 7  # to TAKEN if the frame's target is NUMBER
    BELOW = 8  # to TAKEN if it is less
    LOST = 9  # it is no place that the kernel jumps to
    MARK = 10  # notes at byte NUMBER of the marks that the block was entered
    RESUME = 11  # the entry for a wave whose frame is there: goes on at a block's code


def _member(name: str, type_: str, at: WaveLayout) -> str:
    return (
        f"  %{name}.p = getelementptr i8, ptr %w, i64 {int(at)}\n"
        f"  %{name} = load {type_}, ptr %{name}.p\n"
    )


def _fill(name: str, start: str, lines: str, source: str | None, before: str) -> str:
    """A loop that copies or clears so many lines of 64 bytes from byte `start` of the frame."""
    load = f"  %{name}.v = load {_LINE}, ptr %{name}.s, align 4\n" if source else ""
    value = f"%{name}.v" if source else "zeroinitializer"
    where = f"  %{name}.s = getelementptr i8, ptr {source}, i64 %{name}.o\n" if source else ""
    return (
        f"  br label %{name}.loop\n{name}.loop:\n"
        f"  %{name}.i = phi i64 [ 0, %{before} ], [ %{name}.j, %{name}.body ]\n"
        f"  %{name}.c = icmp ult i64 %{name}.i, {lines}\n"
        f"  br i1 %{name}.c, label %{name}.body, label %{name}.end\n{name}.body:\n"
        f"  %{name}.o = shl i64 %{name}.i, 6\n{where}{load}"
        f"  %{name}.q = getelementptr i8, ptr %f, i64 {start}\n"
        f"  %{name}.d = getelementptr i8, ptr %{name}.q, i64 %{name}.o\n"
        f"  store {_LINE} {value}, ptr %{name}.d, align 64\n"
        f"  %{name}.j = add i64 %{name}.i, 1\n  br label %{name}.loop\n{name}.end:\n"
    )


def _enter() -> str:
    """At CONSTANTS is a line with the bytes of the frame and the lines of its VGPRs and constants,
    then the constants."""
    zero = "".join(
        f"  %z{i} = getelementptr i8, ptr %f, i64 {frame.SGPR + 4 * i}\n  store i32 0, ptr %z{i}\n"
        for i in (*range(VCC_HI + 1, EXEC_LO), EXEC_HI)
    )
    numbers = "".join(
        f"  %n{i}.p = getelementptr i8, ptr @CONSTANTS, i64 {8 * i}\n"
        f"  %n{i} = load i64, ptr %n{i}.p\n"
        for i in range(3)
    )
    executed = int(WaveLayout.EXECUTED)
    v0 = frame.VGPR
    lane_mask = "".join(f"{'' if not i else ', '}i32 {1 << i}" for i in range(32))
    return (
        numbers + "  %f = alloca i8, i64 %n0, align 64\n"
        "  %const.p = getelementptr i8, ptr @CONSTANTS, i64 64\n"
        + _fill("wave", "0", str(WAVE_SIZE // 64), "%w", "entry")
        + _fill("rest", str(WAVE_SIZE), str((0x400 - WAVE_SIZE) // 64), None, "wave.end")
        + _fill("vgpr", str(v0), "%n1", None, "rest.end")
        + _fill("first", str(v0), "2", "%v0", "vgpr.end")
        + _fill("const", str(frame.CONSTANTS), "%n2", "%const.p", "first.end")
        + f"  %e.p = getelementptr i8, ptr %w, i64 {int(WaveLayout.EXEC)}\n"
        "  %e = load i32, ptr %e.p\n"
        f"  %e.q = getelementptr i8, ptr %f, i64 {frame.SGPR + 4 * EXEC_LO}\n"
        "  store i32 %e, ptr %e.q\n"
        "  %e.1 = insertelement <32 x i32> poison, i32 %e, i64 0\n"
        "  %e.v = shufflevector <32 x i32> %e.1, <32 x i32> poison, <32 x i32> zeroinitializer\n"
        f"  %e.b = and <32 x i32> %e.v, <{lane_mask}>\n"
        "  %e.c = icmp ne <32 x i32> %e.b, zeroinitializer\n"
        "  %e.m = sext <32 x i1> %e.c to <32 x i32>\n"
        f"  %e.l = getelementptr i8, ptr %f, i64 {frame.LANE_MASK}\n"
        "  store <32 x i32> %e.m, ptr %e.l, align 64\n" + zero + f"  call {_CALL} @{NEXT}(ptr %f)\n"
        f"  %x.p = getelementptr i8, ptr %f, i64 {executed}\n  %x = load i64, ptr %x.p\n"
        f"  %x.q = getelementptr i8, ptr %w, i64 {executed}\n  store i64 %x, ptr %x.q\n"
        "  ret void\n"
    )


_CALL = "preserve_nonecc void"


def _give_way(when: str) -> str:
    """Calls SxRuntime.yield if the condition holds; then goes to TAKEN."""
    call = runtime_call(Rt.YIELD, "void", f"ptr %w, i32 trunc (i64 {symbol('PC')} to i32)")
    return (
        f"  br i1 {when}, label %now, label %go, !prof !9\nnow:\n{call}  br label %go\ngo:\n"
        + go(TAKEN)
    )


def _fault(address: str) -> str:
    """Ends the wave: there is no instruction at the address."""
    where = f"i32 trunc (i64 {symbol('PC')} to i32), i32 0, i64 {address}"
    return (
        runtime_call(Rt.FAULT, "void", f"ptr %w, i32 {int(DeviceFault.ILLEGAL)}, {where}")
        + "  unreachable\n"
    )


_TARGET: Final = (
    f"  %to.p = getelementptr i8, ptr %w, i64 {frame.TARGET}\n  %to = load i64, ptr %to.p\n"
)


def _compare(how: str) -> str:
    """Goes to TAKEN or NEXT by a comparison of the frame's target with NUMBER."""
    return (
        f"{_TARGET}  %is = icmp {how} i64 %to, {symbol('NUMBER')}\n"
        f"  br i1 %is, label %yes, label %no\nyes:\n{go(TAKEN)}no:\n{go(NEXT)}"
    )


def _bodies() -> dict[Glue, str]:
    fuel = (
        _member("fuel", "i64", WaveLayout.FUEL)
        + "  %new = sub i64 %fuel, 1\n  store i64 %new, ptr %fuel.p\n"
        "  %out = icmp sle i64 %new, 0\n"
    )
    stop = (
        _member("calls", "ptr", WaveLayout.RT)
        + f"  %stop.p = getelementptr ptr, ptr %calls, i64 {RUNTIME_STOP}\n"
        "  %stop = load volatile i32, ptr %stop.p\n  %told = icmp ne i32 %stop, 0\n"
    )
    return {
        Glue.BLOCK: _member("n", "i64", WaveLayout.EXECUTED)
        + f"  %m = add i64 %n, {symbol('NUMBER')}\n  store i64 %m, ptr %n.p\n"
        + go(NEXT),
        Glue.COUNT: _member("table", "ptr", WaveLayout.COUNTS)
        + f"  %c = getelementptr i8, ptr %table, i64 {symbol('NUMBER')}\n"
        "  %old = atomicrmw add ptr %c, i64 1 monotonic\n" + go(NEXT),
        # Other threads read the byte: it is written only once.
        Glue.MARK: _member("table", "ptr", WaveLayout.COUNTS)
        + f"  %c = getelementptr i8, ptr %table, i64 {symbol('NUMBER')}\n"
        "  %old = load atomic i8, ptr %c monotonic, align 1\n  %new = icmp eq i8 %old, 0\n"
        "  br i1 %new, label %set, label %done, !prof !9\nset:\n"
        "  store atomic i8 1, ptr %c monotonic, align 1\n  br label %done\ndone:\n" + go(NEXT),
        Glue.FUEL: fuel + _give_way("%out"),
        Glue.STOP: stop + _give_way("%told"),
        Glue.JUMP: go(TAKEN),
        Glue.ILLEGAL: _fault("0"),
        Glue.EQUAL: _compare("eq"),
        Glue.BELOW: _compare("ult"),
        Glue.LOST: _TARGET + _fault("%to"),
    }


def name_of(glue: Glue) -> str:
    return f"glue.{glue.name.lower()}"


def text(isa: Isa, attributes: str) -> str:
    """The functions of all pieces, with what they need besides the stencils' preamble."""
    del isa
    out = "@CONSTANTS = external dso_local hidden global i8\n"
    out += '!9 = !{!"branch_weights", i32 1, i32 2000}\n'
    v0 = f"  %v0 = getelementptr i8, ptr %w, i64 {int(WaveLayout.V0)}\n"
    enter = name_of(Glue.ENTER)
    out += (
        f'define void @{enter}(ptr %w) {attributes} section ".text.{enter}" '
        f"{{\nentry:\n{v0}{_enter()}}}\n"
    )
    resume = name_of(Glue.RESUME)
    out += (
        f'define void @{resume}(ptr %f, ptr %to) {attributes} section ".text.{resume}" '
        f"{{\nentry:\n  call {_CALL} %to(ptr %f)\n  ret void\n}}\n"
    )
    for glue, body in _bodies().items():
        name = name_of(glue)
        out += (
            f'define {_CALL} @{name}(ptr %w) {attributes} section ".text.{name}" '
            f"{{\nentry:\n{body}}}\n"
        )
    return out
