"""What LLVM's memory model for gfx1100 writes for an atomic or a fence, and what our rules write
for the SASS that NVIDIA's compiler makes of the same one.

Each operation stands between plain accesses, all of another width, so that it is found again.  Of
both codes the part from the last access before it to the first one after it is kept: which counters
are waited for until they are 0, whether the access reads past the L0 (glc), which caches are
invalidated.  A fence has no access of its own.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import llvmlite.binding as llvm

from sassxlate import toolchain
from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.containers.values import Cubin
from sassxlate.lowering.pipeline import translate_kernel

SCOPES = {"cta": 'syncscope("workgroup") ', "gpu": 'syncscope("agent") ', "sys": ""}
ORDERS = {
    "ld": ("relaxed", "acquire"),
    "st": ("relaxed", "release"),
    "atom": ("relaxed", "acquire", "release", "acq_rel"),
    "red": ("relaxed", "release"),
    "fence": ("acq_rel", "sc"),
}
# Further ones: where the access goes, its width in bits, and which kinds of operation there are.
SPACES = (
    ("generic", 32, ("ld", "st", "atom", "red")),
    ("shared", 32, ("ld", "st", "atom", "red")),
    ("global", 128, ("ld", "st")),
)
ARCH = 80
LLVM_ORDER = {"relaxed": "monotonic", "sc": "seq_cst"}
_STEP = 128  # bytes between plain accesses, so that no compiler joins them
_ACCESS = re.compile(r"(global|flat)_(load|store|atomic)_\w+|ds_(load|store|add)_\w+")
_OFFSET = re.compile(r"offset:(\d+)")
_OWN = {
    "ld": re.compile(r"\w+_load_b(32|64|128)"),
    "st": re.compile(r"\w+_store_b(32|64|128)"),
    "atom": re.compile(r"\w+_add(_rtn)?_u32"),
    "red": re.compile(r"\w+_add_u32"),
}
_RELEASES, _ACQUIRES = ("release", "acq_rel"), ("acquire", "acq_rel")
_LINE = re.compile(r"\s*((?:global|flat|ds)_\w+|s_waitcnt\w*|buffer_gl[01]_inv)\b([^/;]*)")


@dataclass(frozen=True, slots=True, order=True)
class Operation:
    """An atomic of PTX: ld.acquire.gpu is ("ld", "acquire", "gpu").  ``space`` is global, generic
    or shared; ``bits`` the width of the access."""

    kind: str
    order: str
    scope: str
    space: str = "global"
    bits: int = 32

    def __str__(self) -> str:
        space = f".{self.space}" * (self.space != "global")
        return f"{self.kind}.{self.order}.{self.scope}{space}" + f".b{self.bits}" * (self.bits > 32)

    @property
    def symbol(self) -> str:
        return str(self).replace(".", "_")


OPERATIONS = tuple(
    Operation(kind, order, scope)
    for kind, orders in ORDERS.items()
    for order in orders
    for scope in SCOPES
) + tuple(
    Operation(kind, order, scope, space, bits)
    for space, bits, kinds in SPACES
    for kind in kinds
    for order in ORDERS[kind]
    for scope in SCOPES
)


def _ptx(op: Operation) -> str:
    space = "" if op.space == "generic" else f".{op.space}"
    place = "[%r3]" if op.space == "shared" else "[%rd1]"
    how = f"{op.order}.{op.scope}{space}"
    result, kind = "", "u32"
    if op.kind in ("ld", "atom"):
        result = f"st.weak.global.u32 [%rd2+{4 * _STEP}], %r2;"
    value, back = "%r4", "%r2"
    if op.bits == 128:
        value, back, kind = "%q1", "%q2", "b128"
        result = "mov.b128 {%rd3, %rd4}, %q2; xor.b64 %rd3, %rd3, %rd4;"
        result += f"st.weak.global.u64 [%rd2+{4 * _STEP}], %rd3;"
        result *= op.kind == "ld"
    what = {
        "ld": f"ld.{how}.{kind} {back}, {place};",
        "st": f"st.{how}.{kind} {place}, {value};",
        "atom": f"atom.{how}.add.u32 {back}, {place}, {value};",
        "red": f"red.{how}.add.u32 {place}, {value};",
        "fence": f"fence.{op.order}.{op.scope};",
    }[op.kind]
    return f"""
.visible .entry {op.symbol}(.param .u64 a, .param .u64 b) {{
.reg .b16 %h<3>; .reg .b32 %r<5>; .reg .b64 %rd<5>; .reg .b128 %q<3>;
.shared .align 16 .b8 own[16384];
ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];
mov.u32 %r4, %tid.x; mul.wide.u32 %rd3, %r4, 65536; mov.b128 %q1, {{%rd3, %rd3}};
mov.u32 %r3, own; mad.lo.u32 %r3, %r4, 16, %r3;
add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;
ld.weak.global.u16 %h1, [%rd2]; st.weak.global.u16 [%rd2+{_STEP}], 5;
{what}
ld.weak.global.u16 %h2, [%rd2+{2 * _STEP}]; st.weak.global.u16 [%rd2+{3 * _STEP}], 6;
{result}
st.weak.global.u16 [%rd2+{5 * _STEP}], %h1; st.weak.global.u16 [%rd2+{6 * _STEP}], %h2;
ret; }}
"""


def _ir(op: Operation) -> str:
    how = SCOPES[op.scope] + LLVM_ORDER.get(op.order, op.order)
    # 64 bits stand for 128, of which LLVM has no atomics for this target.
    kind, value = ("i32", "%t") if op.bits == 32 else ("i64", "%wide")
    space = {"global": "ptr addrspace(1) %p", "generic": "ptr %f", "shared": "ptr addrspace(3) %s"}
    place, align = space[op.space], f"align {4 if op.bits == 32 else 8}"
    what = {
        "ld": f"%v = load atomic {kind}, {place} {how}, {align}",
        "st": f"store atomic {kind} {value}, {place} {how}, {align}",
        "atom": f"%v = atomicrmw add {place}, {kind} %t {how}, {align}",
        "red": f"%v = atomicrmw add {place}, {kind} %t {how}, {align}",
        "fence": f"fence {how}",
    }[op.kind]
    given = op.kind in ("ld", "atom")
    result = f"store {kind} %v, ptr addrspace(1) %q4, {align}" if given else ""
    places = "\n".join(
        f"%q{i} = getelementptr i8, ptr addrspace(1) %q, i64 {i * _STEP}" for i in range(1, 7)
    )
    return f"""
target triple = "amdgcn-amd-amdhsa"
@own = internal addrspace(3) global [4096 x i32] undef, align 16
declare i32 @llvm.amdgcn.workitem.id.x()
define amdgpu_kernel void @k(ptr addrspace(1) %a, ptr addrspace(1) %b) {{
%t = call i32 @llvm.amdgcn.workitem.id.x()
%wide = zext i32 %t to i64
%far = mul i64 %wide, 65536
%p = getelementptr i8, ptr addrspace(1) %a, i64 %far
%f = addrspacecast ptr addrspace(1) %p to ptr
%s = getelementptr [4096 x i32], ptr addrspace(3) @own, i32 0, i32 %t
%q = getelementptr i8, ptr addrspace(1) %b, i64 %far
{places}
%x = load i16, ptr addrspace(1) %q, align 2
store i16 5, ptr addrspace(1) %q1, align 2
{what}
%y = load i16, ptr addrspace(1) %q2, align 2
store i16 6, ptr addrspace(1) %q3, align 2
{result}
store i16 %x, ptr addrspace(1) %q5, align 2
store i16 %y, ptr addrspace(1) %q6, align 2
ret void
}}
"""


def _around(text: str, op: Operation) -> tuple[str, ...]:
    """The waits, cache controls and the access itself, in order, between the neighbours."""
    lines: list[tuple[str, str]] = []
    for line in text.splitlines():
        if found := _LINE.match(line):
            lines.append((found[1], found[2]))
    start, here, end = _middle(lines, op)
    out: list[str] = []
    for n, (name, rest) in enumerate(lines[start:end], start):
        if n == here:
            out.append(op.kind + (" glc" if "glc" in rest else ""))
        else:
            out += _waits(name, rest)
    return tuple(out)


def _waits(name: str, rest: str) -> list[str]:
    if name == "s_waitcnt_vscnt":
        return ["vscnt(0)"] * rest.strip().endswith(("0", "0x0"))
    if name == "s_waitcnt":
        return [c for c in ("vmcnt(0)", "lgkmcnt(0)") if c in rest]
    return [] if _ACCESS.match(name) else [name]


def waits_of(line: str) -> list[str]:
    """The counters that a line of assembly waits for until they are 0, or the cache that it
    invalidates."""
    found = _LINE.match(line)
    return [] if found is None else _waits(found[1], found[2])


def _middle(lines: Sequence[tuple[str, str]], op: Operation) -> tuple[int, int | None, int]:
    """From after the last access that stands before the operation to the first one after it, and
    where the operation's own access is.  The accesses are known by their distances: what a release
    or a relaxed operation does not order may be on its other side."""
    places = {
        n: int(found[1]) if (found := _OFFSET.search(rest)) else 0
        for n, (name, rest) in enumerate(lines)
        if _ACCESS.match(name) and "16" in name
    }
    first = [n for n, offset in places.items() if offset <= _STEP]
    second = [n for n, offset in places.items() if 2 * _STEP <= offset <= 3 * _STEP]
    if len(first) != 2 or len(second) != 2:
        raise ValueError(f"{op}: {lines}")
    if op.kind == "fence":
        return max(first) + 1, None, min(second)
    (here,) = [n for n, (name, _) in enumerate(lines) if _OWN[op.kind].fullmatch(name)]
    late, early = [n for n in first if n > here], [n for n in second if n < here]
    if (late and op.order in _RELEASES) or (early and op.order in _ACQUIRES):
        raise ValueError(f"{op}: an access on the wrong side: {lines}")
    start = max((n + 1 for n in first if n < here), default=here)
    return start, here, min((n for n in second if n > here), default=len(lines))


def assembly(text: str) -> str:
    """What LLVM writes for gfx1100 in CU mode, of its textual IR."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("amdgcn-amd-amdhsa")
    machine = target.create_target_machine(cpu="gfx1100", features="+cumode,+wavefrontsize32")
    return machine.emit_assembly(llvm.parse_assembly(text))


def by_llvm(op: Operation) -> tuple[str, ...]:
    """What LLVM writes for gfx1100 in CU mode."""
    return _around(assembly(_ir(op)), op)


def compiled() -> Cubin | None:
    """All operations as kernels, by NVIDIA's compiler; None where there is none."""
    nvcc = toolchain.nvcc()
    if nvcc is None:
        return None
    head = f".version 8.4\n.target sm_{ARCH}\n.address_size 64\n"
    with TemporaryDirectory() as folder:
        source, out = Path(folder, "a.ptx"), Path(folder, "a.cubin")
        source.write_text(head + "".join(map(_ptx, OPERATIONS)))
        words = [*nvcc.command, "-cubin", f"-arch=sm_{ARCH}", "-o", str(out), str(source)]
        subprocess.run(words, check=True, capture_output=True)
        return parse_cubin(out.read_bytes())


def by_rules(cubin: Cubin, op: Operation) -> tuple[str, ...]:
    """What our rules write for the SASS of it."""
    return _around(translate_kernel(cubin, op.symbol).assembly, op)


@dataclass(frozen=True, slots=True)
class Sides:
    """What stands before an access, the access, and what stands after it; a fence has one side."""

    before: tuple[str, ...]
    access: str
    after: tuple[str, ...]

    @classmethod
    def of(cls, op: Operation, around: tuple[str, ...]) -> Sides:
        if op.kind == "fence":
            return cls(around, "", ())
        (here,) = [i for i, word in enumerate(around) if word.split()[0] == op.kind]
        return cls(around[:here], around[here], around[here + 1 :])


def missing(op: Operation, theirs: tuple[str, ...], ours: tuple[str, ...]) -> tuple[str, ...]:
    """What LLVM writes and the rules do not, on either side of the access; an access of another
    kind; a cache that is invalidated before the last wait."""
    llvms, mine = Sides.of(op, theirs), Sides.of(op, ours)
    lacks = [f"before: {word}" for word in llvms.before if word not in mine.before]
    lacks += [f"after: {word}" for word in llvms.after if word not in mine.after]
    if llvms.access != mine.access:
        lacks.append(f"{llvms.access}, not {mine.access}")
    for name, side in (("before", mine.before), ("after", mine.after)):
        waits = [i for i, word in enumerate(side) if word.endswith("(0)")]
        caches = [i for i, word in enumerate(side) if word.startswith("buffer_")]
        if caches and (not waits or max(waits) > max(caches)):
            lacks.append(f"{name}: a wait ahead of the caches")
    return tuple(lacks)


def row(op: Operation, theirs: tuple[str, ...], ours: tuple[str, ...]) -> str:
    """A line of the table of docs/memory-order.md."""
    llvms, mine = Sides.of(op, theirs), Sides.of(op, ours)
    notes = ""
    for their_side, my_side in ((llvms.before, mine.before), (llvms.after, mine.after)):
        more = [word for word in my_side if word not in their_side]
        if any(word.endswith("(0)") for word in more):
            notes += "a" * ("a" not in notes)
        if any(word.startswith("buffer_") for word in more):
            notes += "b" * ("b" not in notes)
        if len(set(my_side)) < len(my_side):
            notes += "c"
    if missing(op, theirs, ours):
        notes += "d"
    return f"| `{op}` | {short(theirs)} | {short(ours)} | {' '.join(notes) or 'equal'} |"


def short(around: Sequence[str]) -> str:
    """The words of a row: gl1 for buffer_gl1_inv, vmcnt for vmcnt(0)."""
    names = {"buffer_gl1_inv": "gl1", "buffer_gl0_inv": "gl0"}
    return " ".join(names.get(word, word.removesuffix("(0)").replace(" ", ".")) for word in around)


def table(cubin: Cubin) -> Sequence[str]:
    """All rows."""
    return [row(op, by_llvm(op), by_rules(cubin, op)) for op in OPERATIONS]
