"""Compares our code with AMD's for the same kernels of a library that was built for CUDA and for
HIP."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from sassxlate.bench.codegen.compare import (
    EXPLAIN,
    Side,
    geometric_mean,
    reasons_in,
    short,
    side_of,
)
from sassxlate.bench.codegen.table import CLASSES, cells, markdown_table, registers
from sassxlate.cfg.rdna3_flow import Flow
from sassxlate.disasm.containers import demangle, load
from sassxlate.disasm.containers.code_object import CodeObject
from sassxlate.disasm.containers.values import Cubin, Kernel
from sassxlate.disasm.inputs import arch_name, parse_arch, require_machine_code
from sassxlate.disasm.listing.code_object_file import kernel_descriptors, parts
from sassxlate.disasm.rdna3.tables import kernel_descriptor
from sassxlate.errors import EmulatorError, SassxlateError, UsageError, Where
from sassxlate.llm.engine.choose import TIER
from sassxlate.lowering.codeobject.code_object import read
from sassxlate.lowering.emulate import counts
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.target import DEFAULT, Target
from sassxlate.lowering.tier.report import chosen
from sassxlate.output import table

_A = TypeVar("_A")
_B = TypeVar("_B")
MARKS: Final = ("<!-- pairs: begin -->", "<!-- pairs: end -->")
_HEAD: Final = ("x", "ours", "AMD's", *CLASSES, "VGPRs", "SGPRs", "waves", "SASS")

# Names that differ between the two compilers' headers.
_SPELLINGS: Final = tuple(
    (re.compile(pattern), to)
    for pattern, to in (
        (r"\b(?:__nv_|__hip_|hip_)(?=bfloat16|fp8|fp6|fp4)", ""),
        (r"\b__(?=half2?\b)", ""),
        (r"\bCUB_\d+\w*::", ""),  # the version that nvcc's cub puts into its names
        (r"\bhip(?=cub::|rand)", ""),
        (r"\bcu(?=rand)", ""),
        (r"\(anonymous namespace\)::|\b_GLOBAL__N__\w+::", ""),
        (r"\s+", " "),
    )
)


@dataclass(frozen=True, slots=True)
class LibraryPair:
    """A kernel in both libraries; ``sass`` are its SASS instructions, ``refusal`` is why the engine
    left it to the rules."""

    kernel: str
    sass: int
    ours: Side
    theirs: Side
    refusal: str = ""

    @property
    def ratio(self) -> float:
        """The ratio of the instructions in the code."""
        return self.ours.total(dynamic=False) / self.theirs.total(dynamic=False)

    @property
    def template(self) -> str:
        return self.kernel.partition("<")[0]

    def as_dict(self) -> dict[str, Any]:
        sides = {"ours": self.ours.as_dict(), "amd": self.theirs.as_dict()}
        for side in sides.values():
            del side["dynamic"]
        return {
            "kernel": self.kernel, "sass": self.sass, **sides,
            "static_ratio": round(self.ratio, 3), "refusal": self.refusal,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Found:
    """The pairs in the CUDA library's order; ``refused`` are kernels that we do not translate, or
    whose code cannot be followed, with the error."""

    pairs: tuple[LibraryPair, ...]
    cuda_alone: int
    hip_alone: int
    refused: Mapping[str, str]

    def as_dict(self) -> dict[str, Any]:
        return {
            "kernels": [pair.as_dict() for pair in self.pairs], "cuda_alone": self.cuda_alone,
            "hip_alone": self.hip_alone, "refused": dict(self.refused),
        }  # fmt: skip


def normal(demangled: str) -> str:
    """A kernel's name, normalised for both compilers, with its parameters."""
    name = demangled.removeprefix("void ")
    for pattern, to in _SPELLINGS:
        name = pattern.sub(to, name)
    return name


def matched(ours: Mapping[str, _A], theirs: Mapping[str, _B]) -> dict[str, tuple[_A, _B]]:
    """Pairs by ``normal`` names, which are the keys.  If parameters differ, by the names without
    them, provided each library has one kernel of that name.  The result's names are without
    parameters if these are not needed to distinguish kernels."""
    pairs = {name: (one, theirs[name]) for name, one in ours.items() if name in theirs}
    rest = _by_head(name for name in theirs if name not in pairs)
    for head, name in _by_head(name for name in ours if name not in pairs).items():
        if name and (other := rest.get(head)):
            pairs[name] = ours[name], theirs[other]
    heads = _by_head(pairs)
    ordered = [name for name in ours if name in pairs]
    return {short(name) if heads[short(name)] else name: pairs[name] for name in ordered}


def _by_head(names: Iterable[str]) -> dict[str, str]:
    """The name without parameters to the name; to nothing if several have it."""
    found: dict[str, str] = {}
    for name in names:
        found[short(name)] = "" if short(name) in found else name
    return found


def cuda_kernels(path: Path, arch: str) -> dict[str, tuple[Cubin, Kernel]]:
    """The kernels for an architecture by normal name; UsageError SX0832 if there is none."""
    loaded = load(str(path))
    require_machine_code(loaded)
    wanted = parse_arch(arch)
    found: dict[str, tuple[Cubin, Kernel]] = {}
    others: set[str] = set()
    for _, cubin in loaded.cubins():
        if (cubin.arch, cubin.variant) == wanted:
            for kernel in cubin.kernels:
                found.setdefault(normal(kernel.demangled), (cubin, kernel))
        elif cubin.kernels:
            others.add(arch_name(cubin.arch, cubin.variant))
    if not found:
        has = ", ".join(sorted(others)) or "nothing"
        raise UsageError("SX0832", f"no kernel for {arch}: there is {has}", Where(str(path)))
    return found


def hip_kernels(path: Path, target: Target) -> dict[str, tuple[CodeObject, str]]:
    """The kernels for a target in waves of 32 lanes, by normal name.

    Raises:
        EncodeError: SX0531 to SX0533; UsageError: SX0832, there is none.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError("SX0832", f"cannot read the file: {reason}", Where(str(path))) from None
    found: dict[str, tuple[CodeObject, str]] = {}
    for _, obj in parts(str(path), data):
        if obj.machine != target.name:
            continue
        for name, body in kernel_descriptors(obj).items():
            if kernel_descriptor.fields(body)["wavefront_size32"]:
                found.setdefault(normal(demangle(name)), (obj, name))
    if not found:
        raise UsageError(
            "SX0832", f"no kernel for {target.name} in waves of 32 lanes", Where(str(path))
        )
    return found


def _flow(obj: CodeObject, name: str) -> Flow:
    for section in obj.sections:
        for symbol in obj.symbols_of(section):
            if symbol.kind == 2 and symbol.name == name:
                return counts.flow_of(section.data, symbol.value - section.address)
    raise EmulatorError("SX0621", "the code object has no code of this kernel", Where(kernel=name))


def _static(flow: Flow, target: Target) -> Side:
    return side_of(flow, [0] * len(flow.blocks), target)


def measure(
    cuda: Path,
    hip: Path,
    arch: str,
    pattern: str = "",
    target: Target = DEFAULT,
    engine: str = "rules",
) -> Found:
    """Translates the kernels of both libraries whose names have ``pattern``, by an engine: rules,
    llvm or best."""
    ours, theirs = cuda_kernels(cuda, arch), hip_kernels(hip, target)
    both = matched(ours, theirs)
    if not both:
        raise UsageError("SX0832", f"no kernel is in {cuda} and in {hip}")
    pairs: list[LibraryPair] = []
    refused: dict[str, str] = {}
    for name, ((cubin, kernel), (other, symbol)) in both.items():
        if not re.search(pattern, name):
            continue
        try:
            made, refusal = translate_kernel(cubin, kernel.name, target=target), ""
            if engine in TIER:
                made, said = chosen(made, target, engine)
                refusal = said.blocks[0].detail
            obj = read(made.code_object)
            mine = counts.flow_of(obj.text, obj.kernel(kernel.name).entry)
            sides = _static(mine, target), _static(_flow(other, symbol), target)
        except SassxlateError as error:
            refused[name] = f"{error.code} {error.message}"
        else:
            pairs.append(LibraryPair(name, made.report.sass_instructions, *sides, refusal))
    return Found(tuple(pairs), len(ours) - len(both), len(theirs) - len(both), refused)


# --- tables ------------------------------------------------------------------------------------


def _row(pair: LibraryPair) -> list[str]:
    sides = pair.ours, pair.theirs
    return [*cells(*sides, dynamic=False), *registers(*sides), str(pair.sass)]


def mean(pairs: Sequence[LibraryPair]) -> float:
    """The geometric mean of the ratios."""
    return geometric_mean([pair.ratio for pair in pairs])


def templates(pairs: Sequence[LibraryPair]) -> list[list[LibraryPair]]:
    """The instances of each template by their ratios."""
    found: dict[str, list[LibraryPair]] = {}
    for pair in pairs:
        found.setdefault(pair.template, []).append(pair)
    return [sorted(some, key=lambda pair: (pair.ratio, pair.kernel)) for some in found.values()]


def explained(fixtures: Path) -> dict[str, str]:
    """The reasons why instances of a template are over ``EXPLAIN``."""
    return reasons_in(fixtures / "codegen" / "pairs.toml")


def _over(pairs: Sequence[LibraryPair]) -> list[str]:
    return list(dict.fromkeys(pair.template for pair in pairs if pair.ratio > EXPLAIN))


def _summary(found: Found) -> str:
    over = sum(pair.ratio > EXPLAIN for pair in found.pairs)
    sass = geometric_mean([p.sass / p.theirs.total(dynamic=False) for p in found.pairs])
    return (
        f"geometric mean of instructions in the code: {mean(found.pairs):.2f} times AMD's; "
        f"{len(found.pairs)} kernels, {over} over {EXPLAIN:g}; SASS has {sass:.2f} times AMD's"
    )


def _unpaired(found: Found) -> str:
    return (
        f"{found.cuda_alone} kernels of the CUDA library and {found.hip_alone} of the HIP library "
        f"have no counterpart, {len(found.refused)} pairs were refused."
    )


def text(found: Found, reasons: Mapping[str, str]) -> list[str]:
    """The table for the terminal: every kernel."""
    lines = table(("kernel", *_HEAD), [[pair.kernel, *_row(pair)] for pair in found.pairs])
    lines += ["", _summary(found), _unpaired(found)]
    lines += [f"{p.kernel}: by the rules: {p.refusal}" for p in found.pairs if p.refusal]
    lines += [f"{name}: {why}" for name, why in found.refused.items()]
    return lines + [f"{n}: {reasons[n]}" for n in _over(found.pairs) if n in reasons]


def markdown(found: Found, reasons: Mapping[str, str], versions: str) -> list[str]:
    """The table for a document: the median instance of each template, and all instances' ratios."""
    rows: list[list[str]] = []
    for some in templates(found.pairs):
        middle, low, high = some[(len(some) - 1) // 2], some[0].ratio, some[-1].ratio
        ratios = f"{low:.2f} to {high:.2f}" if len(some) > 1 else ""
        rows.append([middle.kernel, *_row(middle), str(len(some)), ratios])
    lines = [f"{versions} {_unpaired(found)}", "", f"**{_summary(found)}.**", ""]
    lines += markdown_table(("kernel", *_HEAD, "instances", "x of all"), rows)
    lines += [f"* {name}: {why}" for name, why in found.refused.items()]
    lines += ["", f"Over {EXPLAIN:g} times:", ""]
    return lines + [f"* {n}: {reasons.get(n, 'not explained')}" for n in _over(found.pairs)]


def missed(found: Found, reasons: Mapping[str, str]) -> list[str]:
    """The missed targets, one line each."""
    lines = [f"{n}: over {EXPLAIN:g}, not explained" for n in _over(found.pairs)
             if n not in reasons]  # fmt: skip
    return lines + [f"{name}: {why}" for name, why in found.refused.items()]
