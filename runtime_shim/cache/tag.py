"""The cache tag: everything that a cached translation depends on besides the program itself.

It changes with the target, with the translator's and the emulator's sources and tables, with
whether the translator's modules are compiled, with LLVM, with the solver and with the host's CPU,
so that files of another version are never taken for ours.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from pathlib import Path

from sassxlate import __version__, compiled
from sassxlate.runtime_shim import paths

_PACKAGES = ("disasm", "cfg", "lowering", "llm", "runtime_shim", "domain")
_MODULES = ("packed.py", "quick_init.py")  # beside them
# Folders and files that do not affect code.  A model's weights are among them: its proposals are
# proved, and stored under the model's own name.  The reference interpreter is another: it judges.
# Of the service and what starts it, whatever only carries requests; if the messages change,
# `paths.PROTOCOL` does.
_SHOWS = frozenset({
    "runtime_shim/cache/runs.py", "runtime_shim/cache/transfer.py",
    "disasm/sass/interpreter", "disasm/sass/reference",
    "cfg/diff", "cfg/pages", "cfg/view", "lowering/report", "lowering/trace",
    "llm/dataset", "llm/evaluation", "llm/training", "llm/weights",
    "runtime_shim/embed", "runtime_shim/lib", "runtime_shim/native",
    "runtime_shim/replay", "runtime_shim/selftest", "runtime_shim/service/early",
    "runtime_shim/signatures",
    *(f"disasm/listing/{name}.py" for name in (  # but not the lines that code objects carry
        "binary_ninja_script", "call_graph", "code_object_file", "cubin", "exchange", "find",
        "ghidra_script", "image", "labels", "rdna3_section", "records", "relocated_operands",
        "sass_section",
    )),
    *(f"runtime_shim/{name}.py" for name in (
        "application", "driver", "hip_probe", "launches", "paths", "perfetto", "run_report",
        "static_runtime", "trusted",
    )),
    *(f"runtime_shim/service/{name}.py" for name in (
        "__main__", "ahead", "client", "jobs", "request", "scheduler",
        "server", "start", "status", "wire", "workers",
    )),
})  # fmt: skip
_SKIP_SUFFIXES = (".pyc", ".md", ".so", ".1", ".swp", "~", ".safetensors")
FORMAT = 2  # version of the cache's files; raise it when their layout changes


def cache_tag(target: str) -> str:
    """32 hexadecimal digits, for the target of a name: two targets have no entry in common."""
    digest = hashlib.blake2b(digest_size=16)

    def add(*parts: str | bytes) -> None:
        for part in parts:
            data = part.encode() if isinstance(part, str) else part
            digest.update(len(data).to_bytes(8, "little") + data)

    add(f"format {FORMAT}", __version__, target, *_llvm(), _solver(), *_host_cpu())
    if isa := os.environ.get("SASSXLATE_ISA"):  # two instruction sets, two services and caches
        add("instruction set", isa)
    if compiled.state() == "used":  # the same code, made by a compiler that may have errors
        add("compiled", str(compiled.library()).rpartition("/")[2].partition(".")[0])
    root = paths.package_root()
    for name in decisive(root):
        add(name, _contents(f"{root}/{name}"))
    return digest.hexdigest()


def decisive(root: Path) -> list[str]:
    """The files that a translation depends on, relative to ``root``, the package's folder.

    These are some 750, and every run of a program reads them: names are strings, not paths, which
    takes half of the time.
    """
    found = [name for name in _MODULES if os.path.isfile(f"{root}/{name}")]
    for package in _PACKAGES:
        for base, dirs, files in os.walk(f"{root}/{package}"):
            here = base[len(f"{root}/") :]
            dirs[:] = sorted(d for d in dirs if d != "__pycache__" and f"{here}/{d}" not in _SHOWS)
            found += [
                name
                for file in sorted(files)
                if not file.endswith(_SKIP_SUFFIXES) and (name := f"{here}/{file}") not in _SHOWS
            ]
    return found


def _contents(path: str) -> bytes:
    """A file's bytes, by the three calls of the system that it takes."""
    with open(path, "rb", buffering=0) as file:
        return file.read()


def _llvm() -> tuple[bytes, ...]:
    # Without importing llvmlite, which costs more than the rest of a warm start.
    spec = importlib.util.find_spec("llvmlite")
    if spec is None or spec.origin is None:
        return (b"no llvmlite",)
    version = Path(spec.origin).with_name("_version.py")
    return (version.read_bytes(),) if version.is_file() else (b"unknown llvmlite",)


def _solver() -> str:
    """z3's version (its verdicts decide which model answers are taken), without importing it."""
    spec = importlib.util.find_spec("z3")
    if spec is None or spec.origin is None:
        return "no z3"
    site = Path(spec.origin).parents[1]
    return " ".join(sorted(path.name for path in site.glob("z3_solver-*.dist-info")))


def _host_cpu() -> tuple[str, ...]:
    keys = ("vendor_id", "cpu family", "model", "flags", "Features")
    found: dict[str, str] = {}
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            for line in file:
                key, _, value = line.partition(":")
                if key.strip() in keys:
                    found.setdefault(key.strip(), value.strip())
                if not line.strip():
                    break
    except OSError:
        return (os.uname().machine,)
    return (os.uname().machine, *(f"{k}={found.get(k, '')}" for k in keys))
