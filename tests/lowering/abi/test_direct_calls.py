"""Direct calls of the driver's functions, as in debug and separately compiled code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.containers.values import Cubin, Kernel, Reloc
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.disasm.sass.instruction import Const, RegRef
from sassxlate.errors import LoweringError
from sassxlate.lowering.abi.link import address_words, bank4_size, link_kernel
from sassxlate.lowering.kernel_graph import kernel_cfg
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.runtime_shim.service.manifest import write

FIXTURE = Path(__file__).resolve().parents[3] / "fixtures/kernels"
CALL = {80: 0x3A, 90: 0x4B}  # the relocation of a call's target


def _calling(arch: int, *names: str, addend: int = 0) -> tuple[Cubin, Kernel]:
    """A kernel that calls these functions one after another, and does nothing else."""
    file = FIXTURE / f"sm_{arch}" / "lane_flags.cubin"
    cubin = parse_cubin(file.read_bytes())
    kernel = cubin.kernels[0]
    lines = ["CALL.ABS.NOINC 0x0" for _ in names] + ["EXIT"]
    code = b"".join(assemble(f"{t} ;", arch, 0).to_bytes(16, "little") for t in lines)
    section = f".text.{kernel.name}"
    relocs = tuple(Reloc(section, 16 * n, CALL[arch], f, addend) for n, f in enumerate(names))
    kernel = replace(kernel, code=code, relocs=relocs, externs=tuple(dict.fromkeys(names)))
    return replace(cubin, kernels=(kernel,)), kernel


@pytest.mark.parametrize("arch", [80, 90])
def test_each_call_is_its_function_alone(arch: int) -> None:
    cubin, kernel = _calling(arch, "malloc", "vprintf", "malloc", "free", "__assertfail")
    words = address_words(cubin)
    assert sorted(words) == [(n, 0) for n in ("__assertfail", "free", "malloc", "vprintf")]
    assert bank4_size(cubin) == 32
    whole = link_kernel(kernel, cubin)
    names = ("malloc", "vprintf", "malloc", "free", "__assertfail")
    assert whole.host_calls == {16 * n: (f, words[f, 0]) for n, f in enumerate(names)}
    calls = [i for b in kernel_cfg(whole).blocks for i in b.instructions][:-1]
    assert [i.mnemonic for i in calls] == ["HOSTCALL"] * 5
    assert calls[0].operands["Ra"] == Const(4, words["malloc", 0], width=2)
    assert calls[0].writes == {RegRef("R", 4), RegRef("R", 5)}
    assert calls[3].writes == frozenset()
    made = translate_kernel(cubin, kernel.name)
    # malloc: the charge, the free list, the heap's end; free: the free list; room for a record.
    assert made.assembly.count("global_atomic_cmpswap_b64") == 3 * 2 + 1 + 2
    assert "\nheap\n" in str(made.launch)
    lines = write("key", cubin).text.splitlines()  # what the loader fills in
    filled = [line.split() for line in lines if line.startswith("unresolved ")]
    assert {(int(f[2]), f[4]) for f in filled} == {(at, name) for (name, _), at in words.items()}


def test_what_the_driver_lacks_is_refused() -> None:
    cubin, kernel = _calling(90, "vprintf", "cudaDeviceSynchronize")
    with pytest.raises(LoweringError, match="cudaDeviceSynchronize is not in this module") as found:
        link_kernel(kernel, cubin)
    assert found.value.code == "SX0420"
    cubin, kernel = _calling(90, "vprintf", addend=16)  # not its first instruction
    with pytest.raises(LoweringError, match="vprintf is not in this module"):
        link_kernel(kernel, cubin)
