"""Litmus tests, thread by thread: what LLVM writes for gfx1100 between their accesses, and what our
rules write for the SASS that NVIDIA's compiler makes of the same thread.

`orders` compares single operations; here the operations stand next to each other, as in the
programs that a memory model is described by.  x is data or the first location, y the second one;
both are 32 bits wide.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from sassxlate import toolchain
from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.containers.values import Cubin
from sassxlate.lowering.pipeline import translate_kernel
from tools.witness.memory_order.orders import ARCH, LLVM_ORDER, SCOPES, assembly, short, waits_of

Gap = tuple[str, ...]  # waits and cache controls between two accesses


@dataclass(frozen=True, slots=True)
class Step:
    """An access or a fence of a thread: ("ld", "acquire", "y").  Order "weak" is a plain access;
    a fence has no ``place``; ``shared``: the place is in shared memory."""

    kind: str
    order: str
    place: str = ""
    shared: bool = False

    def __str__(self) -> str:
        space = ".shared" * self.shared
        return f"{self.kind}.{self.order}{space}" + f" {self.place}" * bool(self.place)


@dataclass(frozen=True, slots=True)
class Thread:
    """One thread of a litmus test at a scope."""

    test: str
    name: str
    scope: str
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return f"{self.test} {self.name} {self.scope}"

    @property
    def symbol(self) -> str:
        return re.sub(r"\W", "_", str(self))

    @property
    def accesses(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.place)


_WRITER = (Step("st", "weak", "x"), Step("st", "release", "y"))
_READER = (Step("ld", "acquire", "y"), Step("ld", "weak", "x"))
TESTS: dict[str, dict[str, tuple[Step, ...]]] = {
    "message passing": {"writer": _WRITER, "reader": _READER},
    "message passing by fences": {
        "writer": (Step("st", "weak", "x"), Step("fence", "acq_rel"), Step("st", "relaxed", "y")),
        "reader": (Step("ld", "relaxed", "y"), Step("fence", "acq_rel"), Step("ld", "weak", "x")),
    },
    "message passing, flag in shared memory": {
        "writer": (_WRITER[0], Step("st", "release", "y", shared=True)),
        "reader": (Step("ld", "acquire", "y", shared=True), _READER[1]),
    },
    "store buffering": {
        "both": (Step("st", "relaxed", "x"), Step("fence", "sc"), Step("ld", "relaxed", "y")),
    },
    "coherence": {
        "writer": (Step("st", "relaxed", "x"), Step("ld", "relaxed", "x")),
        "reader": (Step("ld", "relaxed", "x"), Step("ld", "relaxed", "x")),
    },
    "IRIW by acquire": {"reader": (Step("ld", "acquire", "x"), Step("ld", "acquire", "y"))},
    "IRIW by fences": {
        "reader": (Step("ld", "relaxed", "x"), Step("fence", "sc"), Step("ld", "relaxed", "y")),
    },
}
THREADS = tuple(
    Thread(test, name, scope, steps)
    for test, threads in TESTS.items()
    for scope in SCOPES
    for name, steps in threads.items()
)


def _ptx(thread: Thread) -> str:
    lines: list[str] = []
    for n, step in enumerate(thread.steps):
        scope = f".{thread.scope}" * (step.order != "weak")
        place = "%r1" if step.shared else {"x": "%rd1", "y": "%rd2"}.get(step.place, "")
        space = "shared" if step.shared else "global"
        how = f"{step.kind}.{step.order}{scope}"
        lines.append({
            "ld": f"{how}.{space}.u32 %v{n}, [{place}];",
            "st": f"{how}.{space}.u32 [{place}], {n + 1};",
            "fence": f"{how};",
        }[step.kind])  # fmt: skip
    loads = [n for n, step in enumerate(thread.steps) if step.kind == "ld"]
    if loads:
        lines.append(
            f"mov.b64 %rd4, {{%v{loads[0]}, %v{loads[-1]}}}; st.weak.global.u64 [%rd3], %rd4;"
        )
    body = "\n".join(lines)
    return f"""
.visible .entry {thread.symbol}(.param .u64 a, .param .u64 b, .param .u64 c) {{
.reg .b32 %r<3>; .reg .b32 %v<4>; .reg .b64 %rd<6>; .shared .align 4 .b8 own[4096];
ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c];
mov.u32 %r2, %tid.x; mul.wide.u32 %rd5, %r2, 64; mov.u32 %r1, own; mad.lo.u32 %r1, %r2, 4, %r1;
add.u64 %rd1, %rd1, %rd5; add.u64 %rd2, %rd2, %rd5; add.u64 %rd3, %rd3, %rd5;
{body}
ret; }}
"""


def _ir(thread: Thread) -> str:
    lines: list[str] = []
    for n, step in enumerate(thread.steps):
        order = LLVM_ORDER.get(step.order, step.order)
        place = "ptr addrspace(3) %s" if step.shared else f"ptr addrspace(1) %{step.place}"
        atomic, how = (
            ("", "") if step.order == "weak" else ("atomic ", SCOPES[thread.scope] + order)
        )
        lines.append({
            "ld": f"%v{n} = load {atomic}i32, {place} {how}, align 4",
            "st": f"store {atomic}i32 {n + 1}, {place} {how}, align 4",
            "fence": f"fence {how}",
        }[step.kind])  # fmt: skip
    loads = [n for n, step in enumerate(thread.steps) if step.kind == "ld"]
    if loads:
        lines += [
            f"%i = insertelement <2 x i32> undef, i32 %v{loads[0]}, i32 0",
            f"%j = insertelement <2 x i32> %i, i32 %v{loads[-1]}, i32 1",
            "store <2 x i32> %j, ptr addrspace(1) %o, align 8",
        ]
    body = "\n".join(lines)
    return f"""
target triple = "amdgcn-amd-amdhsa"
@own = internal addrspace(3) global [1024 x i32] undef, align 4
declare i32 @llvm.amdgcn.workitem.id.x()
define amdgpu_kernel void @k(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c) {{
%t = call i32 @llvm.amdgcn.workitem.id.x()
%w = zext i32 %t to i64
%far = mul i64 %w, 64
%x = getelementptr i8, ptr addrspace(1) %a, i64 %far
%y = getelementptr i8, ptr addrspace(1) %b, i64 %far
%o = getelementptr i8, ptr addrspace(1) %c, i64 %far
%s = getelementptr [1024 x i32], ptr addrspace(3) @own, i32 0, i32 %t
{body}
ret void
}}
"""


_ACCESS = re.compile(r"\s*(?:global|ds)_(load|store)_b32\b([^/;]*)")


@dataclass(frozen=True, slots=True)
class Code:
    """A thread's accesses ("ld glc"), and what stands between each and the next."""

    accesses: tuple[str, ...]
    gaps: tuple[Gap, ...]


def _code(thread: Thread, text: str) -> Code:
    accesses: list[str] = []
    gaps: list[list[str]] = []
    for line in text.splitlines():
        if found := _ACCESS.match(line):
            kind = {"load": "ld", "store": "st"}[found[1]]
            accesses.append(kind + " glc" * ("glc" in found[2]))
            gaps.append([])
        elif gaps:
            gaps[-1] += waits_of(line)
    if [access[:2] for access in accesses] != [step.kind for step in thread.accesses]:
        raise ValueError(f"{thread}: other accesses: {accesses}")
    return Code(tuple(accesses), tuple(map(tuple, gaps[:-1])))


def by_llvm(thread: Thread) -> Code:
    """What LLVM writes for gfx1100 in CU mode."""
    return _code(thread, assembly(_ir(thread)))


def compiled() -> Cubin | None:
    """All threads as kernels, by NVIDIA's compiler; None where there is none."""
    nvcc = toolchain.nvcc()
    if nvcc is None:
        return None
    head = f".version 8.0\n.target sm_{ARCH}\n.address_size 64\n"
    with TemporaryDirectory() as folder:
        source, out = Path(folder, "a.ptx"), Path(folder, "a.cubin")
        source.write_text(head + "".join(map(_ptx, THREADS)))
        words = [*nvcc.command, "-cubin", f"-arch=sm_{ARCH}", "-o", str(out), str(source)]
        subprocess.run(words, check=True, capture_output=True)
        return parse_cubin(out.read_bytes())


def by_rules(cubin: Cubin, thread: Thread) -> Code:
    """What our rules write for the SASS of it."""
    return _code(thread, translate_kernel(cubin, thread.symbol).assembly)


def missing(theirs: Code, mine: Code) -> tuple[str, ...]:
    """What LLVM writes and the rules do not, at the same place; an access of another kind; a cache
    that is invalidated before the last wait."""
    lacks: list[str] = []
    if theirs.accesses != mine.accesses:
        lacks.append(f"{theirs.accesses}, not {mine.accesses}")
    for n, (gap, own) in enumerate(zip(theirs.gaps, mine.gaps, strict=True)):
        lacks += [f"after {n}: {word}" for word in gap if word not in own]
        waits = [i for i, word in enumerate(own) if word.endswith("(0)")]
        caches = [i for i, word in enumerate(own) if word.startswith("buffer_")]
        if caches and (not waits or max(waits) > max(caches)):
            lacks.append(f"after {n}: a wait ahead of the caches")
    return tuple(lacks)


def row(thread: Thread, theirs: Code, mine: Code) -> str:
    """A line of the table of docs/memory-order.md."""
    notes = ""
    for gap, own in zip(theirs.gaps, mine.gaps, strict=True):
        more = [word for word in own if word not in gap]
        notes += "a" * (any(w.endswith("(0)") for w in more) and "a" not in notes)
        notes += "b" * (any(w.startswith("buffer_") for w in more) and "b" not in notes)
        notes += "c" * (len(set(own)) < len(own) and "c" not in notes)
    program = "; ".join(map(str, thread.steps))
    cells = (thread.test, thread.scope, f"{thread.name}: `{program}`", _line(thread, theirs))
    return f"| {' | '.join((*cells, _line(thread, mine), ' '.join(notes) or 'equal'))} |"


def _line(thread: Thread, code: Code) -> str:
    words: list[str] = []
    for n, access in enumerate(code.accesses):
        words.append(f"{access.replace(' ', '.')}({thread.accesses[n].place})")
        if n < len(code.gaps):
            words.append(short(code.gaps[n]))
    return " ".join(word for word in words if word)


def table(cubin: Cubin) -> Sequence[str]:
    """All rows."""
    return [row(thread, by_llvm(thread), by_rules(cubin, thread)) for thread in THREADS]
