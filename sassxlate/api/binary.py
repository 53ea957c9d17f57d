"""A file with device code, and its kernels."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sassxlate.errors import SassxlateError, UsageError, Where

if TYPE_CHECKING:
    from sassxlate.cfg.graph import Cfg
    from sassxlate.disasm.containers.values import Cubin
    from sassxlate.disasm.containers.values import Kernel as KernelImage

_NEWEST = 90  # the newest architecture that is taken unasked, as `sassxlate run` does


class UnknownKernelError(UsageError, KeyError):
    """No kernel has the name, or several do (SX0802)."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A kernel's parameter: its place in the parameter space, in bytes.

    ``type`` is the C++ type by the kernel's demangled name, such as ``float const*``; empty where
    the name does not have it (``extern "C"``).
    """

    offset: int
    size: int
    type: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Kernel:
    """A kernel of a :class:`Binary`.

    ``image`` is the cubin that holds it, ``cubin`` the same as read, ``file`` where it is from.
    """

    file: str
    image: bytes
    cubin: Cubin
    _kernel: KernelImage

    def __repr__(self) -> str:
        return f"Kernel({self.demangled!r}, {self.arch!r})"

    @property
    def name(self) -> str:
        """The mangled name."""
        return self._kernel.name

    @property
    def demangled(self) -> str:
        """The name as in the source, with the types of its parameters."""
        return self._kernel.demangled

    @property
    def arch(self) -> str:
        """The architecture, like ``sm_80``."""
        return f"sm_{self.cubin.arch}{self.cubin.variant}"

    @property
    def code(self) -> bytes:
        """The machine code, before relocation."""
        return self._kernel.code

    @property
    def registers(self) -> int:
        """Registers of a lane."""
        return self._kernel.registers

    @property
    def shared(self) -> int:
        """Static shared memory of a block, in bytes."""
        return self._kernel.shared_size

    @property
    def local(self) -> int:
        """Local memory of a lane, in bytes."""
        return self._kernel.local_size

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters in order."""
        found = self._kernel.params
        types = parameter_types(self.demangled)
        if len(types) != len(found):
            types = [""] * len(found)
        return tuple(Parameter(p.offset, p.size, t) for p, t in zip(found, types, strict=True))

    @cached_property
    def cfg(self) -> Cfg:
        """The control-flow graph: blocks with their instructions, and edges.

        Raises DecodeError SX02 and CfgError SX03 where the code cannot be followed.
        """
        from sassxlate.lowering.abi.link import link_kernel
        from sassxlate.lowering.kernel_graph import kernel_cfg

        try:
            return kernel_cfg(link_kernel(self._kernel, self.cubin))
        except SassxlateError as error:
            raise error.at(file=self.file, kernel=self.name) from None

    def graph(self) -> Any:
        """The control-flow graph as a ``networkx.MultiDiGraph`` of block numbers.

        Nodes have ``start``, ``instructions``, ``divergent``, ``loop`` and more, edges ``kind`` and
        ``back``; the same as ``sassxlate cfg --format graphml``.  Raises as :attr:`cfg`.
        """
        from sassxlate.cfg.view.exchange import to_networkx
        from sassxlate.cfg.view.sass import picture

        return to_networkx(picture(self.cfg, self.demangled))

    def disassemble(self, *, encoding: bool = False, control: bool = False) -> str:
        """The kernel's SASS as ``nvdisasm -c`` prints it.

        ``encoding`` adds the words in hexadecimal, ``control`` waits, scoreboards and stall counts.
        Raises DecodeError SX0204 for an unknown architecture.
        """
        from sassxlate.disasm.listing.cubin import Document, ListingOptions

        try:
            options = ListingOptions(encoding, control, {self.name}.__contains__, None)
            return "\n".join(Document(self.image, options, self.cubin).lines()) + "\n"
        except SassxlateError as error:
            raise error.at(file=self.file, kernel=self.name) from None


class Kernels(Mapping[str, Kernel]):
    """The kernels of a binary by their mangled names, in the file's order.

    ``kernels["saxpy"]`` also finds one by its demangled name, with or without parameters, or by a
    glob that only one name matches.
    """

    def __init__(self, file: str, found: Mapping[str, Kernel]) -> None:
        self._file, self._found = file, dict(found)

    def __getitem__(self, name: str) -> Kernel:
        """The kernel; UnknownKernelError SX0802 (a KeyError, too) unless it is exactly one."""
        from sassxlate.disasm.inputs import kernel_matches

        if name in self._found:
            return self._found[name]
        same = [k for k in self._found.values() if name in (k.demangled, plain_name(k.demangled))]
        same = same or [
            k for k in self._found.values() if kernel_matches(k.name, k.demangled, (name,))
        ]
        if len(same) == 1:
            return same[0]
        some = ", ".join(k.demangled for k in same or self._found.values())[:400] or "none"
        what = "several kernels match" if same else "no kernel matches"
        raise UnknownKernelError("SX0802", f"{what} {name!r}: {some}", Where(self._file))

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        return f"Kernels({[k.demangled for k in self._found.values()]})"


@dataclass(frozen=True, eq=False)
class Binary:
    """A file with device code, seen for one architecture.

    ``kind`` is executable, shared object, cubin and so on; ``arch`` the architecture that
    ``kernels`` are of, ``architectures`` all for which there is machine code.
    """

    path: str
    kind: str
    arch: str
    architectures: tuple[str, ...]
    kernels: Kernels = field(repr=False)

    def for_arch(self, arch: str) -> Binary:
        """The same file for another architecture, such as ``sm_90``; raises as :func:`open`."""
        return open(self.path, arch=arch)


def open(path: str | os.PathLike[str], *, arch: str | None = None) -> Binary:
    """Reads an executable, a shared object, an object file, an archive, a fatbin or a cubin.

    ``arch``: the architecture, like ``sm_80``; by default the newest up to sm_90, as for the
    programs that `sassxlate run` starts, or the oldest if all are newer.  PTX is not compiled.

    Raises ContainerError SX01 if the file cannot be read or holds no device code, UsageError SX0802
    if it has none for ``arch``.
    """
    from sassxlate.disasm.inputs import (
        arch_name,
        no_match,
        parse_arch,
        read_input,
        require_machine_code,
    )

    name = os.fspath(path)
    loaded = require_machine_code(read_input(name), arch)
    images = [(data, cubin) for _, data, cubin in loaded.images() if cubin.kernels]
    found = sorted({(cubin.arch, cubin.variant) for _, cubin in images})
    if arch is not None:
        number, variant = parse_arch(arch)
        wanted = [one for one in found if one[0] == number and variant in ("", one[1])]
    else:
        wanted = [one for one in found if one[0] <= _NEWEST][-1:] or found[:1]
    if not wanted:
        raise no_match(name, (), arch)
    kernels: dict[str, Kernel] = {}
    for data, cubin in images:
        if (cubin.arch, cubin.variant) == wanted[-1]:
            for kernel in cubin.kernels:
                kernels.setdefault(kernel.name, Kernel(name, data, cubin, kernel))
    return Binary(
        name,
        loaded.kind,
        arch_name(*wanted[-1]),
        tuple(arch_name(*one) for one in found),
        Kernels(name, kernels),
    )


def plain_name(demangled: str) -> str:
    """``void a::f<int>(float*)`` -> ``a::f``: no return type, template arguments, parameters."""
    depth, out = 0, ""
    head = _before_parameters(demangled)
    for letter in head:
        depth += (letter == "<") - (letter == ">")
        if not depth and letter != ">":
            out += letter
    return out.strip().rpartition(" ")[2]


def parameter_types(demangled: str) -> list[str]:
    """The types of a function's parameters; none where the name has no list of them."""
    head = _before_parameters(demangled)
    inside = demangled[len(head) :].strip()
    if not (inside.startswith("(") and inside.endswith(")")):
        return []
    out, depth = [""], 0
    for letter in inside[1:-1]:
        depth += (letter in "<([") - (letter in ">)]")
        if letter == "," and not depth:
            out.append("")
        else:
            out[-1] += letter
    types = [part.strip() for part in out]
    return [] if types in ([""], ["void"]) else types


def _before_parameters(demangled: str) -> str:
    """What stands before the last parenthesis that is open at depth 0."""
    depth = 0
    for at in range(len(demangled) - 1, -1, -1):
        depth += (demangled[at] == ")") - (demangled[at] == "(")
        if demangled[at] == "(" and not depth:
            return demangled[:at]
    return demangled


__all__ = [
    "Binary",
    "Kernel",
    "Kernels",
    "Parameter",
    "UnknownKernelError",
    "open",
    "parameter_types",
    "plain_name",
]
