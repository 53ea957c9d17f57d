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
ARCH = 80
_LLVM_ORDER = {"relaxed": "monotonic", "sc": "seq_cst"}
_STEP = 128  # bytes between plain accesses, so that no compiler joins them
_ACCESS = re.compile(r"(global|flat)_(load|store|atomic)_\w+")
_LINE = re.compile(r"\s*((?:global|flat)_\w+|s_waitcnt\w*|buffer_gl[01]_inv)\b([^/;]*)")


@dataclass(frozen=True, slots=True, order=True)
class Operation:
    """An atomic of PTX: ld.acquire.gpu is ("ld", "acquire", "gpu")."""

    kind: str
    order: str
    scope: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.order}.{self.scope}"

    @property
    def symbol(self) -> str:
        return str(self).replace(".", "_")


OPERATIONS = tuple(
    Operation(kind, order, scope)
    for kind, orders in ORDERS.items()
    for order in orders
    for scope in SCOPES
)


def _ptx(op: Operation) -> str:
    what = {
        "ld": f"ld.{op.order}.{op.scope}.global.u32 %r2, [%rd1];",
        "st": f"st.{op.order}.{op.scope}.global.u32 [%rd1], %r4;",
        "atom": f"atom.{op.order}.{op.scope}.global.add.u32 %r2, [%rd1], %r4;",
        "red": f"red.{op.order}.{op.scope}.global.add.u32 [%rd1], %r4;",
        "fence": f"fence.{op.order}.{op.scope};",
    }[op.kind]
    result = f"st.weak.global.u32 [%rd2+{4 * _STEP}], %r2;" if op.kind in ("ld", "atom") else ""
    return f"""
.visible .entry {op.symbol}(.param .u64 a, .param .u64 b) {{
.reg .b16 %h<3>; .reg .b32 %r<5>; .reg .b64 %rd<5>;
ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];
mov.u32 %r4, %tid.x; mul.wide.u32 %rd3, %r4, 65536;
add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;
ld.weak.global.u16 %h1, [%rd2]; st.weak.global.u16 [%rd2+{_STEP}], 5;
{what}
ld.weak.global.u16 %h2, [%rd2+{2 * _STEP}]; st.weak.global.u16 [%rd2+{3 * _STEP}], 6;
{result}
st.weak.global.u16 [%rd2+{5 * _STEP}], %h1; st.weak.global.u16 [%rd2+{6 * _STEP}], %h2;
ret; }}
"""


def _ir(op: Operation) -> str:
    how = SCOPES[op.scope] + _LLVM_ORDER.get(op.order, op.order)
    what = {
        "ld": f"%v = load atomic i32, ptr addrspace(1) %p {how}, align 4",
        "st": f"store atomic i32 %t, ptr addrspace(1) %p {how}, align 4",
        "atom": f"%v = atomicrmw add ptr addrspace(1) %p, i32 %t {how}, align 4",
        "red": f"%v = atomicrmw add ptr addrspace(1) %p, i32 %t {how}, align 4",
        "fence": f"fence {how}",
    }[op.kind]
    given = op.kind in ("ld", "atom")
    result = "store i32 %v, ptr addrspace(1) %q4, align 4" if given else ""
    places = "\n".join(
        f"%q{i} = getelementptr i8, ptr addrspace(1) %q, i64 {i * _STEP}" for i in range(1, 7)
    )
    return f"""
target triple = "amdgcn-amd-amdhsa"
declare i32 @llvm.amdgcn.workitem.id.x()
define amdgpu_kernel void @k(ptr addrspace(1) %a, ptr addrspace(1) %b) {{
%t = call i32 @llvm.amdgcn.workitem.id.x()
%wide = zext i32 %t to i64
%far = mul i64 %wide, 65536
%p = getelementptr i8, ptr addrspace(1) %a, i64 %far
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
    middle = _middle(lines, op)
    out: list[str] = []
    for name, rest in lines[middle[0] : middle[1]]:
        if _ACCESS.match(name):
            out.append(op.kind + (" glc" if "glc" in rest else ""))
        elif name == "s_waitcnt_vscnt":
            out += ["vscnt(0)"] * rest.strip().endswith(("0", "0x0"))
        elif name == "s_waitcnt":
            out += [c for c in ("vmcnt(0)", "lgkmcnt(0)") if c in rest]
        else:
            out.append(name)
    return tuple(out)


def _middle(lines: Sequence[tuple[str, str]], op: Operation) -> tuple[int, int]:
    """From after the last neighbour before the operation to the first after it."""
    accesses = [i for i, (name, _) in enumerate(lines) if _ACCESS.match(name)]
    narrow = [i for i in accesses if "16" in lines[i][0]]
    if op.kind == "fence":
        if len(accesses) != len(narrow) or len(narrow) < 4:
            raise ValueError(f"{op}: {lines}")
        return narrow[1] + 1, narrow[2]
    wide = {"ld": "load_b32", "st": "store_b32"}.get(op.kind, "atomic_add_u32")
    (here,) = [i for i in accesses if lines[i][0].endswith(wide)]
    return max(i for i in narrow if i < here) + 1, min(i for i in narrow if i > here)


def by_llvm(op: Operation) -> tuple[str, ...]:
    """What LLVM writes for gfx1100 in CU mode."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("amdgcn-amd-amdhsa")
    machine = target.create_target_machine(cpu="gfx1100", features="+cumode,+wavefrontsize32")
    return _around(machine.emit_assembly(llvm.parse_assembly(_ir(op))), op)


def compiled() -> Cubin | None:
    """All operations as kernels, by NVIDIA's compiler; None where there is none."""
    nvcc = toolchain.nvcc()
    if nvcc is None:
        return None
    head = f".version 8.0\n.target sm_{ARCH}\n.address_size 64\n"
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
    return f"| `{op}` | {_short(theirs)} | {_short(ours)} | {' '.join(notes) or 'equal'} |"


def _short(around: tuple[str, ...]) -> str:
    names = {"buffer_gl1_inv": "gl1", "buffer_gl0_inv": "gl0"}
    return " ".join(names.get(word, word.removesuffix("(0)").replace(" ", ".")) for word in around)
