"""Modifiers that rules handle: only those that rows have, and every rule has an entry."""

from __future__ import annotations

import pytest

from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.disasm.sass.tables import ROWS
from sassxlate.disasm.sass.tables.spec import Idiom, Row
from sassxlate.lowering.rules import TABLE
from sassxlate.lowering.rules.known_modifiers import unknown_modifiers
from sassxlate.lowering.rules.rule import Rule, choose, knowing

# Parts that several fields of a word decide together: the rows have them in functions.
IDIOMS = {"MOV", "SHL", "IADD"}


def spelled(row: Row) -> set[str]:
    out: set[str] = set()
    for mod in row.mods:
        if not isinstance(mod, Idiom):
            out |= {part for name in mod.names.values() for part in name.split(".")}
    return out


def rule(name: str) -> Rule:
    return next(r for rules in TABLE.values() for r in rules if r.name == name)


def test_rules_know_only_what_rows_can_say() -> None:
    """A modifier that no row has is a typo."""
    said = IDIOMS.union(*(spelled(row) for row in ROWS))
    known = {(r.name, m) for rules in TABLE.values() for r in rules for m in r.modifiers}
    assert {(name, m) for name, m in known if m not in said} == set()


def test_a_modifier_that_is_not_known_is_named() -> None:
    ins = decode(assemble("VIADDMNMX.U32 R0, R1, R2, R3, PT ;", 90), 0, 90)
    found = choose(TABLE["VIADDMNMX"], ins)
    assert found is not None
    assert unknown_modifiers(ins, found) == []
    assert unknown_modifiers(ins, Rule("none", "VIADDMNMX", lambda _: None)) == ["U32"]


def test_who_says_what_a_rule_knows() -> None:
    """A rule's name takes precedence over its mnemonic; the uniform data path uses the vector
    entry."""
    known = {"imnmx64": "S64", "IMNMX": "U32", "FADD": ""}
    names = ("imnmx64", "IMNMX"), ("imnmx", "IMNMX"), ("uimnmx", "UIMNMX")
    made = knowing(known, *(Rule(n, m, lambda _: None) for n, m in names))
    assert [set(r.modifiers) for r in made] == [{"S64"}, {"U32"}, {"U32"}]
    with pytest.raises(KeyError):
        knowing(known, Rule("fmul", "FMUL", lambda _: None))
    assert rule("uimnmx64").modifiers == {"U64", "S64"}
