"""The JSON documents that commands print: one JSON Schema each, as ``<name>.json`` beside this.

A document's ``schema`` is its identifier, such as ``sassxlate.ls/1``: the name and the version.
Fields may be added within a version; a field that changes its meaning, or goes, makes a new one.
"""

from __future__ import annotations

from functools import cache
from typing import Any

PREFIX = "sassxlate."
DIALECT = "https://json-schema.org/draft/2020-12/schema"

# Name (a command with its spaces as dashes, and what follows where it prints several) -> version.
VERSIONS: dict[str, int] = {
    "ls": 1,
    "disasm": 1,
    "disasm-count": 1,
    "disasm-host": 1,
    "disasm-rdna3": 1,
    "extract": 1,
    "asm": 1,
    "isa": 1,
    "cfg": 1,
    "callgraph": 1,
    "callgraph-host": 1,
    "listing": 1,
    "listing-script": 1,
    "diff": 1,
    "diff-translation": 1,
    "translate": 1,
    "verify-blocks": 1,
    "verify-kernels": 1,
    "verify-text": 1,
    "verify-rules": 1,
    "verify-launches": 1,
    "interpret": 1,
    "trace-step": 1,
    "trace-end": 1,
    "trace-state": 1,
    "train": 1,
    "eval": 1,
    "doctor": 1,
    "explain": 1,
    "warm": 1,
    "service-status": 1,
    "service-stop": 1,
    "cache-dir": 1,
    "cache-clean": 1,
    "cache-stats": 1,
    "cache-runs": 1,
    "cache-export": 1,
    "cache-import": 1,
    "bench-figures": 1,
    "bench-skipped": 1,
    "bench-programs": 1,
    "bench-applications": 1,
    "bench-codegen": 1,
    "bench-codegen-pairs": 1,
    "bench-hybrid": 1,
    "dataset-generate": 1,
    "dataset-build": 1,
    "dataset-tokens": 1,
    "dataset-improve": 1,
    "selftest": 1,
    "embed": 1,
    "unembed": 1,
    "selftest-list": 1,
    "schema": 1,
}


def identifier(name: str) -> str:
    """What a document's ``schema`` field is: ``ls`` -> ``sassxlate.ls/1``."""
    return f"{PREFIX}{name}/{VERSIONS[name]}"


@cache
def schema(name: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a document.  KeyError for an unknown name."""
    import json
    from importlib import resources

    VERSIONS[name]
    text = resources.files(__name__).joinpath(f"{name}.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return {"$schema": DIALECT, "$id": identifier(name), **found}


__all__ = ["DIALECT", "VERSIONS", "identifier", "schema"]
