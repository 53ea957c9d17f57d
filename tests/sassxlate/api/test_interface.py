"""``import sassxlate as sx``: kernels, translations, launches with NumPy arrays, typed errors."""

from __future__ import annotations

import ast
import ctypes
import doctest
import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sassxlate as sx
from sassxlate import errors
from sassxlate.api.arguments import packed
from sassxlate.api.binary import parameter_types, plain_name
from sassxlate.runtime_shim import paths

INTERFACE: dict[str, str] = vars(sx)["_INTERFACE"]
ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / "fixtures" / "programs"


@pytest.fixture
def device_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skips without the native libraries."""
    try:
        paths.library_dir()
    except sx.ShimError as error:
        pytest.skip(str(error))


def _alone(program: str, **more: str) -> str:
    """What a process of its own prints: a process has one device."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False,
        cwd=ROOT, timeout=120, env={**os.environ, "SASSXLATE_SERVICE_IDLE": "5", **more},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_importing_is_cheap() -> None:
    def own(statement: str) -> set[str]:
        # An editable install has a module of its own, which is not the package's.
        names = _alone(f"import sys; {statement}; print(*sys.modules)").split()
        return {name for name in names if name.partition(".")[0] == "sassxlate"}

    assert own("import sassxlate") == {"sassxlate"}
    # Importing a module asks the package for its name, too.
    assert own("from sassxlate import files") == {"sassxlate", "sassxlate.files"}
    assert "numpy" not in _alone("import sys, sassxlate as s; s.open; print(*sys.modules)").split()


def test_names() -> None:
    assert set(INTERFACE) <= set(dir(sx))
    for name, module in INTERFACE.items():
        assert getattr(sx, name).__module__ == f"sassxlate.{module}"
    assert sx.UsageError is errors.UsageError
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(sx, "nothing")  # noqa: B009


def _stub() -> dict[str, ast.ClassDef | ast.FunctionDef]:
    tree = ast.parse((ROOT / "sassxlate" / "__init__.pyi").read_text())
    return {n.name: n for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef)}


def members_of(owner: type) -> list[str]:
    """The names that a class has itself."""
    return list(vars(owner))


def _signature(function: Any) -> list[tuple[str, bool]]:
    found = inspect.signature(function).parameters.values()
    return [(p.name, p.default is not p.empty) for p in found]


def _stubbed(node: ast.FunctionDef) -> list[tuple[str, bool]]:
    given = node.args
    plain = [*given.posonlyargs, *given.args]
    first = len(plain) - len(given.defaults)
    out = [(a.arg, n >= first) for n, a in enumerate(plain)]
    out += [(given.vararg.arg, False)] if given.vararg else []
    keywords = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    return out + [(a.arg, default is not None) for a, default in keywords]


def test_the_types_are_those_of_the_code() -> None:
    """Each class, method, property and parameter is in both, and none in one only."""
    stub = _stub()
    assert set(stub) == {n for n, module in INTERFACE.items() if module != "errors"}
    for name, node in stub.items():
        real: Any = getattr(sx, name)
        if isinstance(node, ast.FunctionDef):
            assert _stubbed(node) == _signature(real), name
            continue
        members = {n.name: n for n in node.body if isinstance(n, ast.FunctionDef)}
        fields: set[str] = set(getattr(real, "__dataclass_fields__", ()))
        public: set[str] = {n for n in (*members_of(real), *fields) if not n.startswith("_")}
        fixed = {n.target.id for n in node.body if isinstance(n, ast.AnnAssign)
                 and isinstance(n.target, ast.Name)}  # fmt: skip
        assert public - {"size"} <= {*members, *fixed}, name
        for member, one in members.items():
            if member in fields:
                continue
            value = inspect.getattr_static(real, member)
            if inspect.isfunction(value):
                assert _stubbed(one) == _signature(value), f"{name}.{member}"


def test_for_a_consumer(tmp_path: Path) -> None:
    """mypy --strict on a program that uses the interface, with the package as it is installed."""
    (tmp_path / "use.py").write_text(
        "import numpy as np\nimport sassxlate as sx\n"
        "binary = sx.open('a.out', arch='sm_80')\n"
        "kernel: sx.Kernel = binary.kernels['saxpy']\n"
        "code: bytes = sx.translate(kernel, engine='best').code_object\n"
        "starts: list[int] = [block.start for block in kernel.cfg.blocks]\n"
        "out, = sx.emulate(kernel, sx.LaunchConfig(1, 32), 1, np.zeros(3))\n"
        "with sx.Device('hip').copy(out) as buffer:\n    size: int = buffer.size\n"
        "try:\n    pass\nexcept sx.LoweringError as error:\n    text: str = error.code\n"
        "wrong: int = kernel.name\n"
    )
    pytest.importorskip("mypy")
    package = Path(sx.__file__).parent.parent
    installed = "site-packages" in package.parts  # where mypy looks by itself
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir",
         str(tmp_path / "cache"), "use.py"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "MYPYPATH": "" if installed else str(package)},
    )  # fmt: skip
    lines = done.stdout.splitlines()
    mine = [line for line in lines if line.startswith("use.py") and ": error:" in line]
    assert [line.partition("  [")[2] for line in mine] == ["assignment]"], done.stdout
    assert "use.py:14:" in mine[0]


def test_open_and_names() -> None:
    binary = sx.open(PROGRAMS / "collatz")
    assert (binary.arch, binary.architectures) == ("sm_90", ("sm_80", "sm_90"))
    (name,) = binary.kernels
    kernel = binary.kernels[name]
    for other in ("collatz", kernel.demangled, "*collatz*"):
        assert binary.kernels[other] is kernel
    assert "nothing" not in binary.kernels
    with pytest.raises(KeyError) as missing:
        binary.kernels["nothing"]
    assert isinstance(missing.value, sx.UsageError)
    assert missing.value.code == "SX0802"
    assert binary.for_arch("sm_80").kernels["collatz"].arch == "sm_80"
    with pytest.raises(sx.UsageError, match="SX0802"):
        sx.open(PROGRAMS / "collatz", arch="sm_75")
    with pytest.raises(sx.ContainerError, match="SX0102"):
        sx.open(__file__)


def test_a_kernel_as_the_commands_show_it() -> None:
    kernel = sx.open(PROGRAMS / "collatz", arch="sm_80").kernels["collatz"]
    assert "FLO" not in kernel.disassemble()
    assert "/* 0x" in kernel.disassemble(encoding=True)
    graph = kernel.graph()
    assert graph.number_of_nodes() == len(kernel.cfg.blocks)
    assert graph.graph["target"] == "sm_80"
    assert any(data["divergent"] for _, data in graph.nodes(data=True))
    done = sx.translate(kernel)
    assert done.code_object.startswith(b"\x7fELF")
    assert done.report["sass_instructions"] == sum(len(b.instructions) for b in kernel.cfg.blocks)
    with pytest.raises(sx.ModelError, match="SX1008"):
        sx.translate(kernel, engine="neural")
    with pytest.raises(sx.UsageError, match="SX0880"):
        sx.translate(kernel, target="gfx900")


@pytest.mark.parametrize(
    ("demangled", "name", "types"),
    [
        ("saxpy(int, float const*)", "saxpy", ["int", "float const*"]),
        ("void a::f<int, b<3>>(float*, t<int, 2>)", "a::f", ["float*", "t<int, 2>"]),
        ("void f<(int)3>(void (*)(int, int), long)", "f", ["void (*)(int, int)", "long"]),
        ("plain", "plain", []),
        ("f()", "f", []),
    ],
)
def test_demangled_names(demangled: str, name: str, types: list[str]) -> None:
    assert (plain_name(demangled), parameter_types(demangled)) == (name, types)


def test_arguments() -> None:
    kernel: Any = sx.open(PROGRAMS / "saxpy").kernels["saxpy"]  # int, float, 2 pointers
    assert packed(kernel, (-1, 2, 16, np.uint64(3))) == [
        b"\xff" * 4, b"\0\0\0\x40", (16).to_bytes(8, "little"), b"\3" + bytes(7),
    ]  # fmt: skip
    assert packed(kernel, (np.int32(1), 0.5, ctypes.c_uint64(2), bytes(8)))[1] == b"\0\0\0\x3f"
    for bad in ((1, 2, 3), (1.5, 2, 3, 4), (1 << 32, 2, 3, 4), (1, np.float64(2), 3, 4),
                (1, 2, 3.0, 4), (1, 2, "3", 4), (1, 2, b"3", 4), (1, 2, 3, None),
                (1, np.int32(2), 3, 4), (np.float32(1), 2, 3, 4),
                (1, 2, np.float64(3), 4)):  # fmt: skip
        with pytest.raises(sx.UsageError, match="SX0881"):
            packed(kernel, bad)
    for grid in (0, (1, 2, 3, 4), (), -1):
        with pytest.raises(sx.UsageError, match="SX0881"):
            sx.LaunchConfig(grid).shape()


_LAUNCHES = """
import numpy as np, sassxlate as sx
kernel = sx.open("fixtures/programs/saxpy", arch="sm_80").kernels["saxpy"]
device = sx.Device()
assert device is not sx.Device() and device.emulated and "gfx1100" in device.name
for bad in (lambda: sx.Device(strict=True), lambda: device.allocate(-1),
            lambda: device.allocate(4).copy_from(np.zeros(2, np.float32)),
            lambda: device.allocate(4).copy_to(np.zeros(2, np.float32)),
            lambda: device.allocate(64).copy_to(np.zeros((4, 4), np.float32).T)):
    try:
        bad()
    except sx.UsageError as error:
        assert error.code in ("SX0883", "SX0884"), error
    else:
        raise AssertionError
closed = device.allocate(4)
closed.close()
closed.close()
try:
    closed.handle
except sx.UsageError as error:
    assert error.code == "SX0884"
try:  # more threads than a block has
    device.launch(sx.LaunchConfig(1, 4096), kernel, 1, 1.0, 0, 0)
except sx.ShimError as error:
    assert error.code == "SX0882" and "cuLaunchKernel" in error.message, error
    assert error.where.kernel == kernel.name
else:
    raise AssertionError
x = np.arange(6, dtype=np.float32).reshape(2, 3)
y = np.ones_like(x)
before = y.copy()
_, out = sx.emulate(kernel, sx.LaunchConfig(1, 32), 6, 3, x, y)
assert out.shape == (2, 3) and (out == 3 * x + 1).all() and (y == before).all()
try:  # a null pointer
    sx.emulate(kernel, sx.LaunchConfig(1, 32), 6, 3, 0, y)
except sx.ShimError as error:
    assert error.code == "SX0882", error
else:
    raise AssertionError
print("done")
"""


@pytest.mark.usefixtures("device_here")
def test_launches_and_their_errors() -> None:
    assert _alone(_LAUNCHES) == "done\n"


_REFUSED = """
import sassxlate as sx
kernel = next(iter(sx.open({!r}).kernels.values()))
for _ in range(2):
    try:
        sx.Device().launch(sx.LaunchConfig(1, 32), kernel, *[0] * len(kernel.parameters))
    except sx.{} as error:
        print(error.code, error)
"""


@pytest.mark.usefixtures("device_here")
def test_a_refused_kernel_is_the_translators_error(tmp_path: Path) -> None:
    """The code, and the type that belongs to it, as `sassxlate translate` has them."""
    source = (ROOT / "fixtures" / "kernels" / "sm_80" / "early_exit.cubin").read_bytes()
    kernel = sx.open(ROOT / "fixtures" / "kernels" / "sm_80" / "early_exit.cubin").kernels
    code = kernel["early_exit"].code
    broken = bytearray(code)
    broken[:16] = b"\xff" * 16
    assert source.count(code) == 1
    file = tmp_path / "broken.cubin"
    file.write_bytes(source.replace(code, bytes(broken)))
    with pytest.raises(sx.SassxlateError) as refused:
        sx.translate(sx.open(file).kernels["early_exit"])
    kind = type(refused.value).__name__
    lines = _alone(_REFUSED.format(str(file), kind)).splitlines()
    assert len(lines) == 2
    assert lines[0] == lines[1]
    assert lines[0].startswith(f"{refused.value.code} {refused.value.code}: {file}:early_exit: ")


@pytest.mark.usefixtures("device_here")
def test_the_page() -> None:
    """The examples of docs/python.md."""
    program = (
        "import doctest, sys\n"
        "found = doctest.testfile('docs/python.md', module_relative=False)\n"
        "assert found.attempted > 20, found\nsys.exit(found.failed)"
    )
    assert _alone(program) == ""
    assert doctest.DocTestParser().get_examples((ROOT / "docs" / "python.md").read_text())
