"""An instruction with another origin, or with other operands, keeps every other field."""

from __future__ import annotations

from dataclasses import fields, replace

from sassxlate.disasm.rdna3.instruction import Inst, InstOrigin, V


def test_every_other_field_is_kept() -> None:
    """Each field in turn with a value of its own, so that no two can be exchanged unseen."""
    old, new = InstOrigin("old", 0), InstOrigin("new", 16)
    values = {field.name: object() for field in fields(Inst)}
    inst = Inst(**values)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    made = inst.with_origin(new)
    kept = {name: getattr(made, name) for name in values}
    assert kept == {**values, "origin": new}
    args = (V(2),)
    other = inst.with_args(args)
    assert {name: getattr(other, name) for name in values} == {**values, "args": args}
    plain = Inst("v_mov_b32", (V(0), V(1)), origin=old)
    assert plain.with_origin(new).origin == replace(plain, origin=new).origin == new
