"""Which functions of a host program launch which kernels.

The code that nvcc writes registers each kernel with ``__cudaRegisterFunction(fatbin, stub, ...,
name, ...)`` before main runs, and launches it with the stub's address: ``cudaLaunchKernel(stub,
...)``, or from CUDA 13 on ``__cudaGetKernel(&handle, stub)`` once and ``__cudaLaunchKernel(handle,
...)``.  The compiler may leave each of these calls in a function of its own or put it into its
callers, and a helper may pass the stub on; so functions that pass a parameter on are followed to
their callers.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from sassxlate.disasm.containers.demangle import demangle
from sassxlate.disasm.containers.elf import Elf
from sassxlate.disasm.host_code.calls import Calls, calls, plt, targets
from sassxlate.disasm.host_code.program import Function, Program
from sassxlate.disasm.host_code.values import Value, arguments

_REGISTER, _HANDLE = "__cudaRegisterFunction", "__cudaGetKernel"
# Which argument is the kernel (the runtime's headers, CUDA 12 and 13).
_LAUNCHES = {
    name + end: argument
    for name, argument in (
        ("cudaLaunchKernel", 0),
        ("__cudaLaunchKernel", 0),
        ("cudaLaunchCooperativeKernel", 0),
        ("cudaLaunchKernelExC", 1),
    )
    for end in ("", "_ptsz")
}
# Launches whose kernel is not an argument.
_OTHERS = frozenset(
    name + end
    for name in (
        *("cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel", "cudaGraphLaunch"),
        *("cudaGraphAddKernelNode", "cudaLaunchCooperativeKernelMultiDevice"),
    )
    for end in ("", "_ptsz")
)
_START = "__libc_start_main"
_SET, _TAKE = "__cudaPushCallConfiguration", "__cudaPopCallConfiguration"  # of `<<<...>>>`
_MOST_PASSES = 8  # functions between a launch and the one that names the kernel


@dataclass(frozen=True, slots=True)
class HostKernel:
    """A registered kernel: its mangled and demangled name, its stub's address, where it is
    registered."""

    name: str
    demangled: str
    stub: int
    registered: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch: the function that it is in, its address, the runtime's function; the kernel's stubs
    by their addresses, () if the code does not say which."""

    function: int
    address: int
    by: str
    stubs: tuple[int, ...]


@dataclass(slots=True)
class HostGraph:
    """Functions by address, calls between them, kernels by their stubs' addresses, and launches.

    ``takes`` are the functions whose addresses a function takes, ``registrations`` the functions
    and places that register kernels, ``places_of`` the places of a function's calls of another;
    ``inner`` are the functions that take a launch's configuration and set none: stubs' own code.
    ``unknown`` are places of calls through pointers that are not known, by function.
    """

    functions: dict[int, Function] = field(default_factory=dict[int, Function])
    edges: dict[int, set[int]] = field(default_factory=dict[int, "set[int]"])
    takes: dict[int, set[int]] = field(default_factory=dict[int, "set[int]"])
    registrations: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    kernels: dict[int, HostKernel] = field(default_factory=dict[int, HostKernel])
    launches: list[Launch] = field(default_factory=list[Launch])
    unknown: dict[int, list[int]] = field(default_factory=dict[int, "list[int]"])
    main: int | None = None
    exported: set[int] = field(default_factory=set[int])
    inner: set[int] = field(default_factory=set[int])
    places_of: dict[tuple[int, int], list[int]] = field(
        default_factory=dict[tuple[int, int], "list[int]"]
    )

    def of_kernels(self, stubs: Collection[int]) -> HostGraph:
        """The same program with these kernels alone, by their stubs; launches of unknown kernels
        stay."""
        kernels = {stub: kernel for stub, kernel in self.kernels.items() if stub in stubs}
        launches = [
            replace(one, stubs=tuple(s for s in one.stubs if s in kernels))
            for one in self.launches
            if not one.stubs or any(s in kernels for s in one.stubs)
        ]
        return replace(self, kernels=kernels, launches=launches)

    def places(self, function: int, stub: int) -> list[int]:
        """Where a function launches a kernel, itself or by a call of its stub."""
        own = {
            one.address for one in self.launches if one.function == function and stub in one.stubs
        }
        for code in self._stub_code(stub) - {function}:
            own |= set(self.places_of.get((function, code), ()))
        return sorted(own)

    def taking(self, stub: int) -> list[int]:
        """The functions that take the address of a kernel's stub, but to register it."""
        registering = {function for function, _ in self.registrations}
        return sorted(
            f for f, taken in self.takes.items() if stub in taken and f not in registering
        )

    def label(self, address: int) -> str:
        """A function's name, demangled, or ``sub_ADDRESS``."""
        function = self.functions.get(address)
        return demangle(function.name) if function and function.name else f"sub_{address:x}"

    def launching(self, stub: int) -> list[int]:
        """The functions that launch a kernel, without its own stub's where others call it."""
        own = {one.function for one in self.launches if stub in one.stubs}
        code = self._stub_code(stub)
        through = {caller for caller, called in self.edges.items() if called & code}
        return sorted((own | through) - code)

    def _stub_code(self, stub: int) -> set[int]:
        """The stub, the functions that launch the kernel for it, which take the configuration of a
        launch that another function has set, and those on the way there: without optimisation
        nvcc leaves a wrapper between a template's stub and its launch."""
        code = {one.function for one in self.launches if stub in one.stubs} & self.inner
        code.add(stub)
        reached, work = {stub}, [stub]
        while work:
            for callee in self.edges.get(work.pop(), set()) - reached - code:
                reached.add(callee)
                work.append(callee)
        between = {f for f in reached - code if self.edges.get(f, set()) & code}
        while between:
            code |= between
            between = {f for f in reached - code if self.edges.get(f, set()) & code}
        return code

    def way(self, stub: int) -> list[int]:
        """The shortest way from main, in a library from an exported function, to a function that
        launches the kernel; [] if there is none by calls and functions whose address is taken."""
        goals = set(self.launching(stub))
        roots = sorted(self.exported) if self.main is None else [self.main]
        came: dict[int, int] = {root: root for root in roots}
        queue = deque(roots)
        while queue:
            at = queue.popleft()
            if at in goals:
                way = [at]
                while came[way[-1]] != way[-1]:
                    way.append(came[way[-1]])
                return way[::-1]
            for following in sorted(self.edges.get(at, set()) | self.takes.get(at, set())):
                if following not in came:
                    came[following] = at
                    queue.append(following)
        return []


def host_graph(elf: Elf, known: Mapping[int, str], skipped: Iterable[range] = ()) -> HostGraph:
    """The graph of a host program.

    ``known``: names of functions that the symbol tables lack, as those of a statically linked
    runtime that was recognised; ``skipped``: address ranges whose functions are not looked into.

    Raises:
        UsageError: SX0890, it is no x86-64 program.
        ContainerError: it is damaged.
    """
    return _Reader(Program(elf, known), tuple(skipped)).graph()


class _Reader:
    def __init__(self, program: Program, skipped: tuple[range, ...]) -> None:
        self.program = program
        first = program.functions()
        outside = [f for f in first if not any(f.start in r for r in skipped)]
        self.functions = program.functions(tuple(targets(program, outside)))
        ignored = {f.start for f in self.functions if any(f.start in r for r in skipped)}
        self.stubs = plt(program)
        self.calls = calls(program, self.functions, self.stubs, ignored)
        self.by_start = {f.start: f for f in self.functions}
        self._values: dict[int, dict[int, tuple[Value | None, ...]]] = {}
        self.callers: dict[int, list[tuple[int, int]]] = defaultdict(list)
        # Those that others may call, too: exported, or called through a pointer.
        self.open = {target for one in self.calls.values() for _, target in one.takes}
        self.open |= set(program.pointers.values()) | program.exported
        for start, one in self.calls.items():
            for place, target in one.direct:
                self.callers[target].append((start, place))

    def graph(self) -> HostGraph:
        """Reads registrations, then handles, then launches."""
        found = HostGraph(self.by_start)
        places: dict[int, list[int]] = defaultdict(list)
        names: dict[int, str] = {}
        found.registrations = self._sites({_REGISTER})
        for function, place in found.registrations:
            values = self._at(function, place)
            stubs, texts = _addresses(values[1]), _addresses(values[3])
            text = self.program.string(texts[0]) if len(texts) == 1 else None
            for stub in stubs:
                places[stub].append(place)
                names[stub] = text or f"kernel_{stub:x}"
        found.kernels = {
            stub: HostKernel(names[stub], demangle(names[stub]), stub, tuple(places[stub]))
            for stub in sorted(places)
        }
        handles = self._handles()
        found.launches = sorted(self._launches(found, handles), key=lambda one: one.address)
        for start, one in self.calls.items():
            found.edges[start] = {t for _, t in one.direct if t in self.by_start}
            for place, target in one.direct:
                found.places_of.setdefault((start, target), []).append(place)
            found.takes[start] = {t for _, t in one.takes} - {start}
            if one.unknown:
                found.unknown[start] = self._unknown(found, start, one)
        found.unknown = {start: places for start, places in found.unknown.items() if places}
        found.main = self._main()
        found.exported = self.program.exported & self.by_start.keys()
        takers = {function for function, _ in self._sites({_TAKE})}
        found.inner = takers - {function for function, _ in self._sites({_SET})}
        return found

    def _unknown(self, found: HostGraph, start: int, one: Calls) -> list[int]:
        """The calls through pointers whose values the data flow does not know."""
        left: list[int] = []
        for place in one.unknown:
            value = self._at(start, place)[6]
            if value and all(kind == "word" and at in self.program.slots for kind, at in value):
                continue  # an imported function
            target, all_known = self._constants(start, value, 0)
            for one_of_them in target & self.by_start.keys():
                found.edges[start].add(one_of_them)
                found.places_of.setdefault((start, one_of_them), []).append(place)
            if not all_known or not target <= self.by_start.keys():
                left.append(place)
        return left

    def _constants(self, start: int, value: Value | None, passes: int) -> tuple[set[int], bool]:
        """The addresses that a value in a function may be, of a parameter those that callers give;
        whether these are all."""
        found: set[int] = set()
        known = value is not None
        for kind, number in value or ():
            if kind == "address":
                found.add(number)
            elif kind == "parameter" and passes < _MOST_PASSES:
                callers = self.callers[start]
                known = known and bool(callers) and start not in self.open
                for caller, place in callers:
                    given = self._at(caller, place)[number]
                    more, whole = self._constants(caller, given, passes + 1)
                    found |= more
                    known = known and whole
            else:
                known = False
        return found, known

    def _sites(self, names: Iterable[str]) -> list[tuple[int, int]]:
        """The calls of imported or known functions: the caller's start and the place."""
        wanted = set(names)
        starts = {f.start for f in self.functions if f.name in wanted}
        return [
            (start, place)
            for start, one in self.calls.items()
            for place, target in (*one.imported, *one.direct)
            if (target in wanted if isinstance(target, str) else target in starts)
        ]

    def _at(self, start: int, place: int) -> tuple[Value | None, ...]:
        """The arguments of a call."""
        if start not in self._values:
            function = self.by_start[start]
            one = self.calls[start]
            places = [p for p, _ in (*one.direct, *one.imported)] + one.unknown
            code = self.program.bytes_at(start, function.end)
            self._values[start] = arguments(code, start, places)
        return self._values[start].get(place, (None,) * 7)

    def _handles(self) -> dict[int, tuple[int, ...]]:
        """The stubs of the words that hold kernels' handles."""
        found: dict[int, tuple[int, ...]] = {}
        for function, place in self._sites({_HANDLE}):
            values = self._at(function, place)
            for word in _addresses(values[0]):
                found[word] = (*found.get(word, ()), *_addresses(values[1]))
        return found

    def _launches(self, graph: HostGraph, handles: dict[int, tuple[int, ...]]) -> list[Launch]:
        found: dict[int, Launch] = {}
        sites = [
            (function, place, argument, name, 0)
            for name, argument in _LAUNCHES.items()
            for function, place in self._sites({name})
        ]
        followed: set[tuple[int, int]] = set()
        while sites:
            function, place, argument, name, passes = sites.pop()
            value = self._at(function, place)[argument]
            stubs: set[int] = set()
            passed = False
            for kind, number in value or ():
                if kind == "address" and number in graph.kernels:
                    stubs.add(number)
                elif kind == "word":
                    stubs |= {s for s in handles.get(number, ()) if s in graph.kernels}
                elif kind == "parameter" and passes < _MOST_PASSES and self.callers[function]:
                    passed = True
                    if (function, number) not in followed:
                        followed.add((function, number))
                        sites += [
                            (f, p, number, name, passes + 1) for f, p in self.callers[function]
                        ]
            if stubs or not passed:
                known = found.get(place)
                stubs |= set(known.stubs) if known else set()
                found[place] = Launch(function, place, name, tuple(sorted(stubs)))
        for name in _OTHERS:
            for function, place in self._sites({name}):
                found.setdefault(place, Launch(function, place, name, ()))
        return list(found.values())

    def _main(self) -> int | None:
        """main: by its name, or as the argument of the C library's start."""
        named = next((f.start for f in self.functions if f.name == "main"), None)
        if named is not None:
            return named
        for function, place in self._sites({_START}):
            for address in _addresses(self._at(function, place)[0]):
                if address in self.by_start:
                    self.by_start[address].name = "main"
                    return address
        return None


def _addresses(value: Value | None) -> tuple[int, ...]:
    """The constants of a value; () if it may be something else."""
    if value is None or any(kind != "address" for kind, _ in value):
        return ()
    return tuple(sorted(number for _, number in value))


__all__ = ["HostGraph", "HostKernel", "Launch", "host_graph"]
