"""`callgraph --host`: the launches of host programs, in stripped ones, too."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from sassxlate.cfg.view import launches
from sassxlate.cli.callgraph import command
from sassxlate.disasm.containers.elf import Elf
from sassxlate.disasm.host_code import HostGraph, host_graph, show
from sassxlate.disasm.host_code.listing import host_functions, to_lines
from sassxlate.errors import SassxlateError
from sassxlate.runtime_shim.static_runtime import functions_of
from tools.generate import programs

ROOT = Path(__file__).resolve().parents[3]
KEPT = ROOT / "fixtures" / "programs"
Runner = Callable[..., str]
KERNELS = ("first", "second", "third", "fourth", "fifth")

# What nvcc writes, without nvcc: registration, a stub, a handle, launches; in a function of its
# own, through a helper that passes the kernel on, through a table, and from a thread.
CUDA = """
extern "C" {
int __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *,
                           void *, void *, int *);
int cudaLaunchKernel(const void *, int, int, void **, long, void *);
int __cudaLaunchKernel(void *, int, int, void **, long, void *);
int __cudaGetKernel(void **, const void *);
int __cudaPushCallConfiguration(int, int, long, void *);
int __cudaPopCallConfiguration(int *, int *, long *, void **);
int start_thread(void (*)(void));
}
"""
RUNTIME = """
#define P __attribute__((visibility("default")))
extern "C" {
P int __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *,
                             void *, void *, int *) { return 0; }
P int cudaLaunchKernel(const void *, int, int, void **, long, void *) { return 0; }
P int __cudaLaunchKernel(void *, int, int, void **, long, void *) { return 0; }
P int __cudaGetKernel(void **, const void *) { return 0; }
P int __cudaPushCallConfiguration(int, int, long, void *) { return 0; }
P int __cudaPopCallConfiguration(int *, int *, long *, void **) { return 0; }
P int start_thread(void (*)(void)) { return 0; }
}
"""
KERNEL = """
void %(name)s(int);
__attribute__((noinline)) static void stub_of_%(name)s(int) {
  int g = 1, b = 1; long s = 0; void *stream = 0, *args[1] = {&g};
  if (__cudaPopCallConfiguration(&g, &b, &s, &stream)) return;
  cudaLaunchKernel((const void *)%(name)s, g, b, args, s, stream);
}
void %(name)s(int n) { stub_of_%(name)s(n); }
"""
NEWER = """
static void *handle;
void newer(int);
static void stub_of_newer(int n) {
  int g = 1, b = 1; long s = 0; void *stream = 0, *args[1] = {&n};
  static int got = __cudaGetKernel(&handle, (const void *)newer);
  if (got || __cudaPopCallConfiguration(&g, &b, &s, &stream)) return;
  __cudaLaunchKernel(handle, g, b, args, s, stream);
}
void newer(int n) { stub_of_newer(n); }
"""
# A template's stub without optimisation: a wrapper between it and its launch.
WRAPPED = """
void wrapped(int);
__attribute__((noinline)) static void stub_of_wrapped(int) {
  int g = 1, b = 1; long s = 0; void *stream = 0, *args[1] = {&g};
  if (__cudaPopCallConfiguration(&g, &b, &s, &stream)) return;
  cudaLaunchKernel((const void *)wrapped, g, b, args, s, stream);
}
__attribute__((noinline)) static void wrapper_of_wrapped(int &n) { stub_of_wrapped(n); }
void wrapped(int n) { wrapper_of_wrapped(n); }
"""
REST = """
__attribute__((noinline)) int helper(long, const void *kernel) {
  void *args[1] = {0};
  return cudaLaunchKernel(kernel, 1, 1, args, 0, 0);
}
__attribute__((noinline)) void direct() { __cudaPushCallConfiguration(1, 1, 0, 0); first(1); }
__attribute__((noinline)) void templated() {
  __cudaPushCallConfiguration(1, 1, 0, 0);
  wrapped(1);
}
__attribute__((noinline)) void passed() { helper(7, (const void *)second); }
void threaded() { __cudaPushCallConfiguration(1, 1, 0, 0); newer(2); }
__attribute__((noinline)) static void through(int n, void (*kernel)(int)) {
  __cudaPushCallConfiguration(1, 1, 0, 0);
  kernel(n);
  kernel(n + 1);
}
void (*volatile table[2])(int) = {third, third};
__attribute__((noinline)) void chosen(int n) {
  __cudaPushCallConfiguration(1, 1, 0, 0);
  table[n & 1](n);
}
__attribute__((constructor)) static void all() {
#define R(f) __cudaRegisterFunction(0, (const char *)f, (char *)0, "_Z" #f, -1, 0, 0, 0, 0, 0);
  R(first) R(second) R(third) R(newer) R(fourth) R(fifth) R(wrapped)
}
int main(int n, char **) {
  direct();
  templated();
  passed();
  start_thread(threaded);
  chosen(n);
  through(n, n > 1 ? fourth : fifth);
  return 0;
}
"""


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory, gxx: Runner) -> Callable[..., Path]:
    """Builds the program with options for the compiler."""
    folder = tmp_path_factory.mktemp("host")
    (folder / "runtime.cpp").write_text(RUNTIME)
    kernels = "".join(KERNEL % {"name": name} for name in KERNELS)
    (folder / "program.cpp").write_text(CUDA + kernels + NEWER + WRAPPED + REST)
    gxx("-shared", "-fPIC", "-O1", folder / "runtime.cpp", "-o", folder / "libcudart.so")

    def go(*options: str) -> Path:
        out = folder / ("program" + "".join(options))
        gxx(*options, folder / "program.cpp", folder / "libcudart.so", "-o", out)
        return out

    return go


def _graph(path: Path) -> HostGraph:
    elf = Elf(path.read_bytes())
    return host_graph(elf, *functions_of(elf))


def _launching(graph: HostGraph) -> dict[str, set[str]]:
    return {
        kernel.name: {graph.label(f).partition("(")[0] for f in graph.launching(stub)}
        for stub, kernel in graph.kernels.items()
    }


@pytest.mark.parametrize("options", [("-O0",), ("-O2",), ("-O2", "-no-pie"), ("-O3", "-fno-plt")])
def test_ways_to_launch(options: tuple[str, ...], build: Callable[..., Path]) -> None:
    graph = _graph(build(*options))
    found = _launching(graph)
    assert found["_Zfirst"] == {"direct"}
    assert found["_Zsecond"] == {"passed"}
    assert found["_Zwrapped"] == {"templated"}
    assert found["_Znewer"] == {"threaded"}
    assert found["_Zfourth"] == found["_Zfifth"] == {"through"}
    assert found["_Zthird"] == set()  # through a table that is written to
    assert {graph.label(f).partition("(")[0] for f in graph.unknown} >= {"chosen"}
    stubs = {kernel.name: stub for stub, kernel in graph.kernels.items()}
    ways = {n: [graph.label(f).partition("(")[0] for f in graph.way(s)] for n, s in stubs.items()}
    assert ways["_Zfirst"] == ["main", "direct"]
    assert ways["_Znewer"] == ["main", "threaded"]
    assert ways["_Zthird"] == []
    text = show.text("program", graph)
    assert "unknown call: chosen(int) 0x" in text
    assert "_Zthird: stub" in text or "third: stub" in text
    assert show.dot("program", graph).count("style=bold") == 7 + 6


@pytest.mark.parametrize("options", [("-O0",), ("-O2",)])
def test_stripped_says_the_same(options: tuple[str, ...], build: Callable[..., Path]) -> None:
    """The same addresses, without names."""
    named, stripped = _graph(build(*options)), _graph(build(*options, "-s"))
    assert named.main == stripped.main
    assert named.kernels == stripped.kernels
    for stub in named.kernels:
        assert named.launching(stub) == stripped.launching(stub)
        assert named.way(stub) == stripped.way(stub)
    assert named.launches == stripped.launches


@pytest.mark.parametrize("name", ["saxpy", "collatz", "reduction"])
def test_kept_programs(name: str) -> None:
    """Stripped, with a statically linked runtime: each kernel is launched on a way from main."""
    graph = _graph(KEPT / name)
    assert {k.demangled.partition("(")[0] for k in graph.kernels.values()} == _kernels(name)
    for stub in graph.kernels:
        assert graph.launching(stub)
        assert graph.label(graph.way(stub)[0]) == "main"
    assert all(launch.stubs for launch in graph.launches)


def test_damaged_programs(build: Callable[..., Path]) -> None:
    """Any bytes end in a graph or a typed error."""
    original = build("-O0").read_bytes()
    places = random.Random(1)
    errors = 0
    for _ in range(25):
        data = bytearray(original)
        for _ in range(places.choice((1, 4, 64))):
            data[places.randrange(len(data))] = places.randrange(256)
        errors += _ends_in_an_error(bytes(data))
    assert 0 < errors < 25


def _ends_in_an_error(data: bytes) -> bool:
    try:
        elf = Elf(data)
        graph = host_graph(elf, *functions_of(elf))
        show.text("file", graph)
        for function in host_functions(elf, graph):
            assert [*to_lines(function)][-1] == ""
    except SassxlateError:
        return True
    return False


def _kernels(name: str) -> set[str]:
    """The kernels of a source, all of which it launches."""
    source = programs.load_programs()[name].source.read_text()
    return set(re.findall(r"__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)", source))


@pytest.mark.sweep
@pytest.mark.parametrize("name", sorted(programs.load_programs()))
def test_sixteen_programs(name: str, nvcc: Runner, tmp_path: Path) -> None:
    """At -O0 and -O3, with each runtime: the kernels that the source launches, each on a way from
    main; the same addresses without symbols."""
    if shutil.which("strip") is None:
        pytest.skip("there is no strip here")
    program = programs.load_programs()[name]
    for level in ("-O0", "-O3"):
        for runtime in ("static", "shared"):
            out, bare = tmp_path / "program", tmp_path / "stripped"
            more = (level, "-arch=sm_80", "-cudart", runtime, *program.flags, program.source)
            nvcc(*more, "-o", out)
            subprocess.run(["strip", "-o", bare, out], check=True)
            named, stripped = _graph(out), _graph(bare)
            launched = {
                re.sub(r"^void |[<(].*", "", k.demangled)
                for stub, k in named.kernels.items()
                if named.launching(stub)
            }
            assert launched == _kernels(name), (level, runtime)
            assert all(launch.stubs for launch in named.launches)
            for stub in named.kernels:
                assert named.launching(stub) == stripped.launching(stub), (level, runtime)
                assert named.way(stub) == stripped.way(stub)
                assert named.label(named.way(stub)[0]) == "main"
                held = {named.label(f) for f in named.launching(stub)}
                assert not any("__device_stub" in label for label in held)


def test_of_some_kernels() -> None:
    path = KEPT / "reduction"
    asked = ["-k", "sum_of_floats", "--host"]
    text = CliRunner().invoke(command, [str(path), *asked]).output
    whole = CliRunner().invoke(command, [str(path), "--host"]).output.splitlines()
    assert "1 kernel, 2 launches" in text
    assert set(text.splitlines()[1:]) <= set(whole)
    assert "sum_and_largest" not in text
    refused = CliRunner().invoke(command, [str(path), "--host", "-k", "nothing"])
    assert str(refused.exception).endswith("no kernel matches nothing")


@pytest.mark.parametrize("form", ["svg", "graphml"])
def test_drawn(form: str) -> None:
    """Both are XML; each kernel is there, and an arc from the function that launches it."""
    path = KEPT / "reduction"
    if not path.is_file():
        pytest.skip("fixtures/programs/reduction is absent")
    run = CliRunner().invoke(command, [str(path), "--host", "--format", form])
    assert run.exit_code == 0, run.output
    text = "".join(ElementTree.fromstring(run.output).itertext())
    kernels = _graph(path).kernels.values()
    assert len(kernels) == 2
    assert all(kernel.demangled in text for kernel in kernels)
    assert "main" in text
    if form == "svg":
        assert re.search(r"\d functions, 2 kernels, \d+ launch", text)
    drawn = launches.picture("reduction", _graph(path))
    starts = {node.index: node.lines[0].text for node in drawn.nodes}
    made = {(starts[a.src], starts[a.dst]) for a in drawn.arcs if a.kind == "jump"}
    assert {kernel for _, kernel in made} == {kernel.demangled for kernel in kernels}
    refused = CliRunner().invoke(command, [str(path), "--format", form])
    assert refused.exception is not None
