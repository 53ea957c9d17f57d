"""The text of a kernel's LLVM module."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sassxlate.lowering.target import Family, Target, target_named
from sassxlate.lowering.tier.control import Blocks
from sassxlate.lowering.tier.functions import ATTRIBUTES
from sassxlate.lowering.tier.lane import Lane, argument
from sassxlate.lowering.tier.refusal import FORM, refused

NAME = "kernel"
_LOCATIONS = 100  # the number of the first debug location
TRIPLE = "amdgcn-amd-amdhsa"
_UNUSED = (
    "dispatch-ptr", "queue-ptr", "implicitarg-ptr", "dispatch-id", "hostcall-ptr", "heap-ptr",
    "multigrid-sync-arg", "default-queue", "completion-action", "lds-kernel-id",
)  # fmt: skip
# LLVM's own choice lets all loads of a tile begin first: a matrix product then has 44 vector
# registers instead of 26, more than the emulated device's host has (docs/performance.md).
_SCHEDULE = "max-ilp"
# LLVM 22 makes v_dot4 of ``a * b - c + ...`` with the sign of ``c`` lost (AMDGPU's combine of dot
# products): it writes none.
_COMMON = "+wavefrontsize32,+cumode"
_FEATURES: Mapping[Family, str] = {
    "RDNA2": f"{_COMMON},-dot1-insts,-dot6-insts,-dot7-insts",
    "RDNA3": f"{_COMMON},-real-true16,-dot7-insts,-dot8-insts",
    "RDNA4": f"{_COMMON},-real-true16,-dot7-insts,-dot8-insts",
}


def features(target: Target) -> str:
    """What LLVM may and may not use of a processor."""
    return _FEATURES[target.instructions]


def attributes(lane: Lane, target: Target) -> str:
    """The functions' attributes: no fast-math of any kind, denormals kept, IEEE mode off."""
    most = lane.launch.max_threads
    pairs = {
        "amdgpu-flat-work-group-size": f"1,{most}",
        "amdgpu-lds-size": str(lane.kernel.shared_size + lane.shared_after),
        "amdgpu-ieee": "false",
        "amdgpu-sched-strategy": _SCHEDULE,
        "denormal-fp-math": "ieee,ieee",
        "denormal-fp-math-f32": "preserve-sign,preserve-sign" if lane.d.flushes else "ieee,ieee",
        "no-trapping-math": "true",
        "target-cpu": target.cpu,
        "target-features": features(target),
        "uniform-work-group-size": "true",
        **{f"amdgpu-no-{name}": "" for name in _UNUSED},
    }
    said = [f'"{k}"="{v}"' if v else f'"{k}"' for k, v in pairs.items()]
    return f"nounwind null_pointer_is_valid {' '.join(said)}"


def parameters(read: Iterable[tuple[int, int]], size: int) -> str:
    """The function's parameters: those words of the kernel's ``size`` bytes of arguments that are
    ``read`` by themselves (offset, width), each at its offset, and arrays for what is between.

    Raises Refused SX0460 if some overlap or are not aligned to their width.
    """
    out: list[str] = []
    at = 0
    for offset, width in (*sorted(read), (size & ~3, 0)):
        if offset < at or offset % 4 or offset % (width // 8 or 4):
            raise refused(FORM, "arguments that overlap")
        if offset > at:
            out.append(f"[{(offset - at) // 4} x i32] %gap.{at}")
        if width:
            out.append(f"i{width} {argument(offset, width)}")
        at = offset + width // 8
    return ", ".join(out)


def text(lane: Lane, blocks: Blocks, target: Target) -> str:
    """The module, with a debug location for each instruction whose line is that of SASS."""
    fn = lane.fn
    lane.module.declare("ptr addrspace(4) @llvm.amdgcn.kernarg.segment.ptr()")
    entry = ["  %karg = call align 16 ptr addrspace(4) @llvm.amdgcn.kernarg.segment.ptr()"]
    if lane.uses_stack:
        size = max(lane.stack, 16)
        entry.append(f"  %stack = alloca [{size} x i8], align 16, addrspace(5)")
    entry += fn.entry
    entry.append(f"  br label %b{lane.found.cfg.blocks[0].start:x}")
    used = {(line, lane.columns.get(n, 0)) for n, line in enumerate(blocks.lines)}
    place = {at: f", !dbg !{n}" for n, at in enumerate(sorted(used), _LOCATIONS)}
    body = [
        line if line.endswith(":") else line + place[blocks.lines[n], lane.columns.get(n, 0)]
        for n, line in enumerate(fn.lines)
    ]
    lines = "\n".join(["entry:", *entry, *body])
    declared = "".join(f"declare {d}\n" for d in lane.module.declarations)
    version = 100 * target_named(target.cpu).code_object_version
    given = parameters(lane.arguments, lane.launch.kernarg_size)
    locations = "".join(
        f"!{n} = !DILocation(line: {line}, column: {column}, scope: !4)\n"
        for n, (line, column) in enumerate(sorted(used), _LOCATIONS)
    )
    said = attributes(lane, target)
    functions, scopes = _functions(lane, _LOCATIONS + len(used))
    return (
        f'target triple = "{TRIPLE}"\n{declared}'
        f"define amdgpu_kernel void @{NAME}({given}) #0 !dbg !4 {{\n{lines}\n}}\n"
        f"{functions}attributes #0 = {{ {said} }}\n"
        f"attributes {ATTRIBUTES} = {{ noinline convergent noduplicate {said} }}\n"
        "!llvm.module.flags = !{!1, !2, !9}\n!llvm.dbg.cu = !{!3}\n!0 = !{}\n"
        f'!1 = !{{i32 1, !"amdhsa_code_object_version", i32 {version}}}\n'
        '!2 = !{i32 2, !"Debug Info Version", i32 3}\n'
        "!3 = distinct !DICompileUnit(language: DW_LANG_C, file: !5, "
        "emissionKind: LineTablesOnly)\n"
        f"!4 = {_subprogram(NAME)}"
        '!5 = !DIFile(filename: "sass", directory: "")\n!6 = !DISubroutineType(types: !7)\n'
        '!7 = !{null}\n!8 = !{i32 5, i32 6}\n!9 = !{i32 2, !"Dwarf Version", i32 4}\n'
        + locations
        + scopes
    )


def _subprogram(name: str) -> str:
    return (
        f'distinct !DISubprogram(name: "{name}", scope: !5, file: !5, line: 1, type: !6, '
        "spFlags: DISPFlagDefinition, unit: !3)\n"
    )


def _functions(lane: Lane, first: int) -> tuple[str, str]:
    """The functions that the kernel calls, and their metadata, numbered from ``first``."""
    code: list[str] = []
    scopes: list[str] = []
    for called in lane.called.values():
        fn = called.function
        assert fn is not None
        scope, place = first + len(scopes), first + len(scopes) + 1
        scopes.append(f"!{scope} = {_subprogram(called.name)}")
        scopes.append(f"!{place} = !DILocation(line: {called.line}, scope: !{scope})\n")
        body = [line if line.endswith(":") else f"{line}, !dbg !{place}" for line in fn.lines]
        lines = "\n".join(["entry:", *fn.entry, *body])
        code.append(f"{fn.signature} {ATTRIBUTES} !dbg !{scope} {{\n{lines}\n}}\n")
    return "".join(code), "".join(scopes)


__all__ = ["NAME", "TRIPLE", "features", "parameters", "text"]
