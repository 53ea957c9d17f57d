"""The published CASS models: whole kernels as text, one question, one answer.

The format is the one of the models ``ahmedheakl/cass-smA100-{1.5b,3b,7b}``: one turn of a user, the
line "Convert the following CUDA device assembly code to HIP device assembly:" and the SASS in a
fenced block ``cudaasm``; the answer in a fenced block ``hipasm`` is what clang writes for AMD.  It
is read, assembled, and compared as a whole: launches of it and of the rules' code must leave the
same memory.  That is evidence, not a proof, and the code never replaces the rules'.
"""

from __future__ import annotations

import multiprocessing
import re
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias, cast

from sassxlate.disasm.rdna3 import assemble, info
from sassxlate.disasm.rdna3.codec.text.parse import parse
from sassxlate.disasm.rdna3.instruction import Inst, Item, Label, LabelRef
from sassxlate.errors import EncodeError, SassxlateError, Where
from sassxlate.lowering.select.translated import Translated

QUESTION = "Convert the following CUDA device assembly code to HIP device assembly:"
Generate: TypeAlias = Callable[[str], str]  # a user's turn to the model's answer
Three: TypeAlias = tuple[int, int, int]
SECONDS = 20  # time limit of a launch of an answer
_FENCE = re.compile(r"```hipasm[^\n]*\n(.*?)(?:```|\Z)", re.DOTALL)
_LABEL = re.compile(r"([.\w$@]+):")
_BRANCH = re.compile(r"(s_c?branch\w*)\s+([.\w$@]+)")
_KERNEL = re.compile(r"\.amdhsa_kernel\s+([\w.$@]+)")
_SETTING = re.compile(r"\.amdhsa_(\w+)\s+(0x[0-9a-fA-F]+|\d+)")
# Scheduling hints: they do not change results, so they are dropped.
_HINTS = ("s_delay_alu", "s_clause", "s_sendmsg", "s_nop", "s_code_end", "s_setprio")
_POINTERS = (("dispatch_ptr", 2), ("queue_ptr", 2), ("kernarg_segment_ptr", 2), ("dispatch_id", 2))
_HIDDEN = 256  # bytes of arguments that HIP adds (AMDGPUUsage, code object version 5)


def question(sass: str) -> str:
    """The user's turn."""
    return f"{QUESTION}\n```cudaasm\n{sass.rstrip()}\n```"


def answer(text: str) -> str:
    """The assembly in an answer.  EncodeError SX0548 if there is no such block."""
    found = _FENCE.search(text)
    if found is None:
        raise EncodeError("SX0548", "the answer has no block of hipasm")
    return found[1]


@dataclass(frozen=True, slots=True)
class HipKernel:
    """A kernel of the answer; ``settings`` are its ``.amdhsa_`` directives."""

    name: str
    items: tuple[Item, ...]
    settings: dict[str, int]

    @property
    def code(self) -> bytes:
        """Machine code.  EncodeError if it does not assemble."""
        return assemble(self.items).data


def kernels_of(text: str) -> tuple[HipKernel, ...]:
    """The kernels of an assembly: those with a descriptor (``.amdhsa_kernel``), or, in a text
    text that a directive declares a function.

    Raises EncodeError: SX0548, no kernel, or one without code; SX0525, a line that is no
    instruction, with the line; SX0510, a branch to a missing label.
    """
    settings = _settings(text)
    functions = re.findall(r"\.type\s+([\w.$@]+)\s*,\s*@function", text)
    bodies = _bodies(text, {*settings, *functions})
    out: list[HipKernel] = []
    for name in settings or {key: dict[str, int]() for key in functions}:
        if name not in bodies:
            raise EncodeError("SX0548", f"{name} has no code")
        kernel = HipKernel(name, bodies[name], dict(settings.get(name, {})))
        try:
            assemble(kernel.items)
        except SassxlateError as error:
            raise error.at(kernel=name) from None
        out.append(kernel)
    if not out:
        raise EncodeError("SX0548", "an assembly without kernels")
    return tuple(out)


def _settings(text: str) -> dict[str, dict[str, int]]:
    out: dict[str, dict[str, int]] = {}
    here: dict[str, int] | None = None
    for line in text.splitlines():
        begins = _KERNEL.search(line)
        if begins is not None:
            here = out.setdefault(begins[1], {})
        elif ".end_amdhsa_kernel" in line:
            here = None
        elif here is not None and (found := _SETTING.search(line)) is not None:
            here[found[1]] = int(found[2], 0)
    return out


def _bodies(text: str, names: set[str]) -> dict[str, tuple[Item, ...]]:
    """The items after each name's label, up to the next name or the end of the function."""
    out: dict[str, list[Item]] = {}
    here: list[Item] | None = None
    for raw in text.splitlines():
        line = re.split(r";|//", raw)[0].strip()
        label = _LABEL.match(line)
        if label is not None:
            if label[1] in names:
                here = out.setdefault(label[1], [])
            elif label[1].startswith(".Lfunc_end"):
                here = None
            elif here is not None:
                here.append(Label(label[1]))
            line = line[label.end() :].strip()
        if not line or here is None:
            continue
        if line.startswith("."):
            if line.startswith((".section", ".amdhsa", ".rodata")):
                here = None
            continue
        if not line.startswith(_HINTS):
            here.append(_inst(line))
    return {name: tuple(items) for name, items in out.items()}


def _inst(line: str) -> Inst:
    branch = _BRANCH.fullmatch(line)
    if branch is not None:
        info(branch[1])
        return Inst(branch[1], (LabelRef(branch[2]),))
    return parse(" ".join(line.split()))


# --- comparison ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Launch:
    """The input of a launch for both sides: parameters in SASS's layout, with the addresses of
    ``arrays`` put in as 64-bit addresses at ``pointers`` (offset, number of the array)."""

    grid: Three
    block: Three
    parameters: bytes
    pointers: tuple[tuple[int, int], ...]
    arrays: tuple[bytes, ...]
    shared: int = 0


@dataclass(frozen=True, slots=True)
class Whole:
    """The outcome of an answer: ``equal`` on all launches, ``different`` on one, a ``fault``
    (it stopped, or needs something that the emulated device lacks), or a ``text`` that cannot be
    read."""

    outcome: Literal["equal", "different", "fault", "text"]
    detail: str = ""

    @property
    def accepted(self) -> bool:
        return self.outcome == "equal"


def judge(text: str, rules: Translated, launches: Sequence[Launch]) -> Whole:
    """Compares the kernel of the rules' name, or the only one, with the rules' code."""
    try:
        found = kernels_of(answer(text))
        mine = [k for k in found if k.name == rules.kernel.name] or list(found)
        if len(mine) != 1:
            return Whole("text", f"{len(mine)} kernels, none of which is {rules.kernel.name}")
        code = mine[0].code
    except SassxlateError as error:
        return Whole("text", str(error))
    if not launches:
        return Whole("text", "nothing to compare on")
    for n, launch in enumerate(launches):
        try:
            ours = _run_rules(rules, launch)
        except SassxlateError as error:
            return Whole("fault", f"the rules' code: {error}")
        try:
            theirs = _in_time(partial(_run, mine[0], code, launch))
        except SassxlateError as error:
            return Whole("fault", str(error))
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            if a != b:
                at = next(k for k, (x, y) in enumerate(zip(a, b, strict=True)) if x != y)
                return Whole("different", f"launch {n}: byte {at} of array {i}")
    return Whole("equal")


def _in_time(run: Callable[[], list[bytes]]) -> list[bytes]:
    """Runs in a separate process with a time limit, because an answer may loop.  EncodeError if it
    fails."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)

    def work() -> None:
        try:
            theirs.send(run())
        except SassxlateError as error:
            theirs.send((error.code, str(error)))

    child = context.Process(target=work, daemon=True)
    child.start()
    theirs.close()
    try:
        got: Any = ours.recv() if ours.poll(SECONDS) else None
    except EOFError:
        got = None
    child.kill()
    child.join()
    if got is None:
        raise EncodeError("SX0548", f"no end within {SECONDS} s")
    if isinstance(got, tuple):
        code, text = cast("tuple[str, str]", got)
        raise EncodeError(code, text)
    return cast("list[bytes]", got)


def _device(launch: Launch) -> tuple[Any, list[int], bytes]:
    from sassxlate.lowering.emulate.runner import EmulatedDevice

    device = EmulatedDevice(max(1 << 22, 4 * sum(map(len, launch.arrays))))
    places = [device.alloc(a) for a in launch.arrays]
    parameters = bytearray(launch.parameters)
    for offset, n in launch.pointers:
        struct.pack_into("<Q", parameters, offset, places[n])
    return device, places, bytes(parameters)


def _read(device: Any, places: Iterable[int], launch: Launch) -> list[bytes]:
    return [bytes(device.read(at, len(a))) for at, a in zip(places, launch.arrays, strict=True)]


def _run_rules(rules: Translated, launch: Launch) -> list[bytes]:
    from sassxlate.lowering.emulate.runner import run_code_object

    device, places, parameters = _device(launch)
    segment = rules.launch.kernarg(parameters, launch.block, launch.grid, {}, launch.shared)
    run_code_object(
        rules.code_object, rules.kernel.name, launch.grid, launch.block, segment, device,
        dynamic_lds=launch.shared,
    )  # fmt: skip
    return _read(device, places, launch)


def _run(kernel: HipKernel, code: bytes, launch: Launch) -> list[bytes]:
    from sassxlate.lowering.emulate.runner import Setup, run_code

    s = kernel.settings
    if s.get("wavefront_size32", 1) != 1:
        raise EncodeError("SX0548", "waves of 64 lanes", Where(kernel=kernel.name))
    at, kernarg = 0, 0
    for name, n in _POINTERS:
        on = s.get(f"user_sgpr_{name}", int(name == "kernarg_segment_ptr"))
        if on and name == "kernarg_segment_ptr":
            kernarg = at
        at += n if on else 0
    at = s.get("user_sgpr_count", 15)
    groups: list[int | None] = []
    for axis in "xyz":
        on = s.get(f"system_sgpr_workgroup_id_{axis}", int(axis == "x"))
        groups.append(at if on else None)
        at += bool(on)
    setup = Setup(
        kernarg_sgpr=kernarg,
        wg_sgpr=(groups[0], groups[1], groups[2]),
        lds_size=s.get("group_segment_fixed_size", 0),
        scratch_size=s.get("private_segment_fixed_size", 0),
    )
    device, places, parameters = _device(launch)
    segment = parameters + bytes(-len(parameters) % 8) + _hidden(launch)
    run_code(code, launch.grid, launch.block, segment, device, setup, dynamic_lds=launch.shared)
    return _read(device, places, launch)


def _hidden(launch: Launch) -> bytes:
    """HIP's own arguments: counts and sizes of workgroups (none is partial), dimensions."""
    out = bytearray(_HIDDEN)
    struct.pack_into("<3I3H", out, 0, *launch.grid, *launch.block)
    struct.pack_into("<H", out, 64, 3)
    struct.pack_into("<I", out, 120, launch.shared)
    return bytes(out)


# --- the model -------------------------------------------------------------------------------


class CassModel:
    """A CASS checkpoint, or any causal model with the same prompt, through transformers."""

    def __init__(self, model: str, device: str = "auto", most: int = 4096) -> None:
        """Raises ModelError as :func:`.transformers_model.load`; SX1005 without a tokenizer."""
        from sassxlate.errors import ModelError
        from sassxlate.llm.inference.transformers_model import libraries, load

        self.model, self.words, self.device = load(model, device)
        if self.words is None:
            raise ModelError("SX1005", "a model for text needs its tokenizer", Where(model))
        self.torch, _ = libraries()
        self.most = most

    def __call__(self, turn: str) -> str:
        """The answer to a user's turn, the likeliest."""
        text = turn
        if getattr(self.words, "chat_template", None):
            text = self.words.apply_chat_template(
                [{"role": "user", "content": turn}], tokenize=False, add_generation_prompt=True
            )
        ids = self.words(text, return_tensors="pt").to(self.device)
        asked = int(ids["input_ids"].shape[1])
        room = int(getattr(self.model.config, "max_position_embeddings", 32768)) - asked - 1
        if room < 1:
            return ""
        with self.torch.no_grad():
            made = self.model.generate(**ids, max_new_tokens=min(self.most, room), do_sample=False)
        return str(self.words.decode(made[0][asked:], skip_special_tokens=True))


def translate(
    generate: Generate, sass: str, rules: Translated, launches: Sequence[Launch]
) -> tuple[str, Whole]:
    """Asks a model for a kernel's assembly and judges the answer."""
    text = generate(question(sass))
    return text, judge(text, rules, launches)


__all__ = [
    "CassModel", "HipKernel", "Launch", "Whole", "answer", "judge", "kernels_of", "question",
    "translate",
]  # fmt: skip
