"""LLVM's passes over a module's text, up to a relocatable file.  Cheap to import but for LLVM."""

from __future__ import annotations

from functools import cache

import llvmlite.binding as llvm

from sassxlate.lowering.tier.compiler.cycles import several_entries
from sassxlate.lowering.tier.compiler.held_values import held
from sassxlate.lowering.tier.compiler.known_numbers import hidden
from sassxlate.lowering.tier.compiler.lane_tests import by_lanes
from sassxlate.lowering.tier.compiler.mixed import mixed
from sassxlate.lowering.tier.compiler.searches import searched
from sassxlate.lowering.tier.compiler.shared_words import together
from sassxlate.lowering.tier.compiler.shifted_pairs import joined
from sassxlate.lowering.tier.compiler.shuffled import unchosen
from sassxlate.lowering.tier.compiler.signed_bytes import known_signs
from sassxlate.lowering.tier.compiler.wide_indices import whole

_OPTIONS = (
    # Only an LLVM with assertions has this option, without an effect here; another one ends its
    # process.  PyPI's llvmlite has them.  Of some kernels the lowering of truth values puts masks
    # together before they are computed (llvm-project#179267), and of one the register allocator
    # splits a live range wrongly (warps_s11_0736 on sm_90): assertions find both, and without them
    # LLVM goes on with wrong code.  What no assertion finds is refused in backend.py.
    "-debug-buffer-size=0",
    # Arrays on the stack never move to shared memory, whose layout is the kernel's own.
    "-disable-promote-alloca-to-lds",
    # The pass that ends a register's life in the arm of a branch which does not read it makes
    # wrong code: programs_s5_0095 of the random kernels on sm_75 (test_live_ranges.py).  LLVM
    # mended one fault of it after llvmlite 0.50's version (llvm-project#218342).
    "-amdgpu-opt-vgpr-liverange=false",
    # Functions of constants are folded without the mode that flushes (known_numbers.py), and the
    # sine of -0 to +0.
    "-disable-fp-call-folding",
    # This would make new parts of vectors before phis (held_values.py says what becomes of them).
    "-amdgpu-codegenprepare-break-large-phis=false",
)
_LEVEL = 3
# Of code with masks of lanes, known by the slot of the live ones: with what LLVM adds at level 2 a
# random kernel was wrong (warps_s11_0346 on sm_120; backend.py says why, and refuses its like).
_MASKED, _MASKED_LEVEL = "%m.live = alloca ", 1


@cache
def _machine(triple: str, cpu: str, features: str) -> llvm.TargetMachine:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for option in _OPTIONS:
        llvm.set_option("", option)
    target = llvm.Target.from_triple(triple)
    return target.create_target_machine(cpu=cpu, features=features, opt=_LEVEL)


def object_of(text: str, triple: str, cpu: str, features: str, listed: bool = False) -> bytes:
    """A relocatable file of the optimised module; ``listed``: after its size, in eight bytes, and
    before the same code as assembly.

    Raises RuntimeError if LLVM refuses the module, or has no such backend.  LLVM may also end the
    process.
    """
    machine = _machine(triple, cpu, features)
    module = llvm.parse_assembly(text)
    module.data_layout = str(machine.target_data)
    module.verify()
    level = _MASKED_LEVEL if _MASKED in text else _LEVEL
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    text = by_lanes(unchosen(searched(whole(hidden(str(module))))))
    text = known_signs(mixed(held(joined(together(text)))))
    if (block := several_entries(text)) is not None:
        raise RuntimeError(f"a cycle with several entries, {block}")
    # Code generation changes a module, and depends on the order in which it was built.
    same = [llvm.parse_assembly(text) for _ in range(2 if listed else 1)]
    same[0].verify()  # code generation takes for granted that it is right, and may end the process
    if not listed:
        return bytes(machine.emit_object(same[0]))
    made = bytes(machine.emit_object(same[0]))
    return len(made).to_bytes(8, "little") + made + machine.emit_assembly(same[1]).encode()


__all__ = ["object_of"]
