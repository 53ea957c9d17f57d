"""Images without the blocks that no wave had entered, in the library."""

from __future__ import annotations

from pathlib import Path

import pytest

from sassxlate.disasm.rdna3.codec.assemble import Item, Label, assemble
from sassxlate.disasm.rdna3.instruction import I, Inst, LabelRef, S, Sp, V
from sassxlate.lowering.codeobject.code_object import KernelImage, write
from sassxlate.lowering.emulate.image.abi import FLAG_PARTIAL
from sassxlate.lowering.target import DEFAULT
from sassxlate.runtime_shim.cache.keys import host_key
from sassxlate.runtime_shim.cache.store import SEAL_SIZE, seal

from .conftest import Script
from .test_tiers import TieredService, tiered

__all__ = ["tiered"]

_EXEC, _VCC, _WAIT = Sp("exec_lo"), Sp("vcc_lo"), Inst("s_waitcnt", (), 0)
_LONG = 1000


def _code_object() -> bytes:
    """A loop; then, in the workgroup and the launches that the arguments name, a long part with a
    barrier, and lanes that are not active in some of it; each thread stores a word."""
    items: list[Item] = [
        Inst("s_load_b64", (S(2, 2), S(0, 2))),
        Inst("s_load_b64", (S(4, 2), S(0, 2)), 8),
        _WAIT,
        Inst("v_mov_b32", (V(2), I(0))),
        Inst("s_mov_b32", (S(6), I(300))),
        Label("loop"),
        Inst("v_add_nc_u32", (V(2), V(2), V(0))),
        Inst("v_xor_b32", (V(2), S(6), V(2))),
        Inst("s_sub_u32", (S(6), S(6), I(1))),
        Inst("s_cmp_lg_u32", (S(6), I(0))),
        Inst("s_cbranch_scc1", (LabelRef("loop"),)),
        Inst("s_cmp_eq_u32", (S(13), S(5))),
        Inst("s_cbranch_scc1", (LabelRef("rare"),)),
        Inst("s_cmp_lg_u32", (S(4), I(0))),
        Inst("s_cbranch_scc1", (LabelRef("rare"),)),
        Label("store"),
        Inst("s_lshl_b32", (S(7), S(13), I(6))),
        Inst("v_add_nc_u32", (V(3), S(7), V(0))),
        Inst("v_lshlrev_b32", (V(3), I(2), V(3))),
        Inst("global_store_b32", (V(3), V(2), S(2, 2))),
        Inst("s_endpgm"),
        Label("rare"),
        Inst("v_cmp_lt_u32", (_VCC, I(20), V(0))),
        Inst("s_and_saveexec_b32", (S(8), _VCC)),
        *(Inst("v_lshl_add_u32", (V(2), V(2), I(1), V(0))) for _ in range(_LONG)),
        Inst("s_or_b32", (_EXEC, _EXEC, S(8))),
        Inst("v_lshlrev_b32", (V(4), I(2), V(0))),
        Inst("ds_store_b32", (V(4), V(2))),
        _WAIT,
        Inst("s_barrier"),
        Inst("v_xor_b32", (V(4), I(0xFC), V(4))),
        Inst("ds_load_b32", (V(5), V(4))),
        _WAIT,
        Inst("v_xor_b32", (V(2), V(2), V(5))),
        Inst("s_cmp_eq_u32", (S(4), I(2))),
        Inst("s_cbranch_scc0", (LabelRef("store"),)),
        Inst("v_mov_b32", (V(4), I(0x4000))),
        Inst("ds_store_b32", (V(4), V(2))),
        Inst("s_branch", (LabelRef("store"),)),
    ]
    image = KernelImage("rare", assemble(items).data, 8, 16, 256, 0, 16, source="blocks 0:0000\n")
    return write([image], DEFAULT)


_START = """
import hashlib
m = hip.load(open({path!r}, 'rb').read()); f = hip.function(m, 'rare')
out = hip.malloc(4 * 64 * 90)
def launch(flag=0, group=0xffffffff):
    assert hip.launch(f, 90, 64, struct.pack('<QII', out, flag, group)) == 0
def result():
    return hashlib.sha256(hip.read(out, 4 * 64 * 90)).hexdigest()
"""
_UNTIL_COMPILED = """
end = time.time() + 25; after = 0
while after < 20 and time.time() < end:
    launch()
    hip.hipDeviceSynchronize()
    after += any(name.startswith('rare-False-') for name in os.listdir({made!r}))
"""
_RARE = """
for n in range(60):
    launch(int(n in (2, 50)), 89 if n == 57 else 0xffffffff)
    print(n, result())
"""
_FAULT = "launch(2)\nprint(hip.hipDeviceSynchronize())\n"
_UNTIL_MORE = """
end = time.time() + 25
while time.time() < end and sum(n.endswith('.sxh') for n in os.listdir({made!r})) < 2:
    launch(1)
    hip.hipDeviceSynchronize()
launch(1); print(result())
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "rare.hsaco"
    made.write_bytes(_code_object())
    return made


def _entered(tiered: TieredService) -> list[str]:
    return [str(request.get("entered", "")) for request in tiered.asked("compile")]


def _compiled(script: Script, tiered: TieredService, path: Path, more: str) -> str:
    """The output of a script that goes on as soon as a part of the kernel has been compiled."""
    tiered.directory /= "made"
    tiered.directory.mkdir()
    until = _UNTIL_COMPILED.format(made=str(tiered.directory))
    text = _START.format(path=str(path)) + until + more
    done = script(text, timeout=60, SASSXLATE_TIER="auto", SASSXLATE_THREADS="1")
    return done.stdout + done.stderr


def _copied(script: Script, path: Path, more: str) -> str:
    """The same by the baseline tier."""
    text = _START.format(path=str(path)) + more
    done = script(text, SASSXLATE_TIER="baseline", SASSXLATE_THREADS="1")
    return done.stdout + done.stderr


def test_waves_that_leave(
    script: Script, tiered: TieredService, path: Path, tmp_path: Path
) -> None:
    """In the 3rd and the 51st launch, in the last workgroup of another, and at a fault; in a later
    run, which begins with the cache's part, too."""
    said = _compiled(script, tiered, path, _RARE + _FAULT)
    (part,) = _entered(tiered)
    (image,) = tiered.directory.glob("rare-False-*.sxh")
    assert image.read_bytes()[32] & FLAG_PARTIAL
    assert image.stat().st_size < 15000  # the long part is not in it
    assert said == _copied(script, path, _RARE + _FAULT)
    assert "\n700\n" in said
    assert "SX0664" in said
    code, cache = path.read_bytes(), tmp_path / "cache" / "host" / "tiered"
    content = image.read_bytes()[:-SEAL_SIZE]
    cache.mkdir(parents=True, exist_ok=True)
    name = f"{host_key(code, 'rare', False, entered=part)}.sxh"
    whole, hot = (f"{host_key(code, 'rare', False)}.{ending}" for ending in ("sxh", "hot"))
    (cache / name).write_bytes(seal(name, content))
    (cache / hot).write_bytes(seal(hot, part.encode()))
    start = _START.format(path=str(path))
    mapped = f"print({name!r} in open('/proc/self/maps').read())\n"
    again = script(start + _RARE + mapped + _FAULT, SASSXLATE_TIER="auto", SASSXLATE_THREADS="1")
    assert again.stdout.replace("True\n", "") + again.stderr == said
    assert "True" in again.stdout
    assert len(tiered.asked("compile")) == 1
    # A part's file in the place of the whole kernel's is not taken for that.
    (cache / whole).write_bytes(seal(whole, content))
    script(start + "launch()\n", SASSXLATE_TIER="llvm")
    assert _entered(tiered) == [part, ""]


def test_a_part_that_is_left_often_is_compiled(
    script: Script, tiered: TieredService, path: Path
) -> None:
    made = str(tiered.directory / "made")
    said = _compiled(script, tiered, path, _UNTIL_MORE.format(made=made))
    first, second = (int.from_bytes(bytes.fromhex(e), "little") for e in _entered(tiered))
    assert first & ~second == 0 < second & ~first
    assert said == _copied(script, path, "launch(1); print(result())\n")
