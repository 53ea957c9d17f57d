"""What the translator imports is compiled, or it is said here why not."""

from __future__ import annotations

import subprocess
import sys

from sassxlate import compiled

# Folders and modules of the package, by what they begin with.
_NOT: dict[str, str] = {
    "collector": "nothing of it runs for an instruction",
    "compiled": "it finds the library",
    "errors": "classes of errors, and what is said of them",
    "packed": "helpers of packed classes, whose methods are compiled with these",
    "quick_init": "makes methods of classes that are imported as Python",
    "disasm.containers": "runs once for a file or a kernel",
    "disasm.sass.codec.section": "hands words to the decoder",
    "disasm.sass.semantics": "meanings, of which a translation reads few",
    "disasm.sass.tables": "tables",
    "disasm.rdna3.codec.decode": "reads RDNA3, as proofs do",
    "disasm.rdna3.codec.dpp": "instructions that no common rule writes",
    "disasm.rdna3.codec.encode.graphics": "instructions that no common rule writes",
    "disasm.rdna3.codec.encode.vopd": "instructions that no common rule writes",
    "disasm.rdna3.codec.text": "prints RDNA3",
    "domain": "protocols, without code",
    "lowering.builder.lane_id": "a few instructions of a kernel",
    "lowering.codeobject.elf_writer": "once in a kernel",
    "lowering.codeobject.msgpack": "once in a kernel",
    "lowering.lane_checks.between_blocks": "mypyc 2.4.1 ends with an error of its own there",
    "lowering.lane_checks.bits": "for between_blocks, and bits of a lane in others",
    "lowering.region": "of models and searches",
    "lowering.rules": "rules of the less common instructions",
}
_SAY = """
import sys
import sassxlate.lowering.pipeline
for name, module in sorted(sys.modules.items()):
    if name.startswith("sassxlate.") and not hasattr(module, "__path__"):
        print(name.removeprefix("sassxlate."))
"""


def _imported() -> set[str]:
    done = subprocess.run([sys.executable, "-c", _SAY], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def _reasons(module: str) -> list[str]:
    return [name for name in _NOT if module == name or module.startswith(f"{name}.")]


def test_what_the_translator_imports_is_compiled() -> None:
    """A module that is missing from compiled_modules.txt runs as Python, several times as long."""
    others = _imported() - {name.removeprefix("sassxlate.") for name in compiled.names()}
    assert sorted(name for name in others if not _reasons(name)) == []
    used = {reason for name in others for reason in _reasons(name)}
    assert sorted(_NOT.keys() - used) == []  # each says something of a module
