"""Maps directions to coordinates on the faces of a cube."""

from __future__ import annotations

from collections.abc import Sequence

from sassxlate.disasm.rdna3.instruction import Arg, I, V
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.target import ZERO

_ONE = I(0x3F800000)


def face_of(c: RuleEmitter, direction: Sequence[V]) -> tuple[list[V], V]:
    """The point where a direction meets a cube: two coordinates from -1 to 1 on a face, and its
    number
    (+x -x +y -y +z -z)."""
    x, y, z = direction
    s, t, face, most = c.vtemp(), c.vtemp(), c.vtemp(), c.vtemp()
    with c.scope():
        mask, also = c.stemp(), c.stemp()
        sizes: dict[V, V] = {}
        for value in direction:  # a NaN becomes 0, and is never the longest
            size = sizes[value] = c.vtemp()
            c.emit("v_and_b32", size, I(0x7FFFFFFF), value)
            c.emit("v_cmp_class_f32", mask, value, c.to_v(I(3)))
            c.emit("v_cndmask_b32", size, size, c.to_v(I(0xBF800000)), mask)
            c.emit("v_cndmask_b32", value, value, c.to_v(ZERO), mask)
        below, turned = c.vtemp(), c.vtemp()

        def pick(out: V, value: Arg, neg: int = 0) -> None:
            """out = the value if the mask holds, negated if neg is 1."""
            c.emit("v_mul_f32", turned, _ONE, c.to_v(value), neg=2 if neg else 0)
            c.emit("v_cndmask_b32", out, out, turned, mask)

        def longest(axis: V, others: tuple[V, V]) -> None:
            c.emit("v_cmp_ge_f32", mask, sizes[axis], sizes[others[0]])
            c.emit("v_cmp_ge_f32", also, sizes[axis], sizes[others[1]])
            c.emit("s_and_b32", mask, mask, also)

        for out in (face, s, t, most):
            c.emit("v_mov_b32", out, ZERO)
        # z has priority over y, and y over x, if two are equally long.
        for number, axis, others, (u, v) in (
            (0, x, (y, z), ((z, 1), (y, 1))),
            (2, y, (x, z), ((x, 0), (z, 0))),
            (4, z, (x, y), ((x, 0), (y, 1))),
        ):
            longest(axis, others)
            c.emit("v_cmp_gt_f32", also, ZERO, axis)
            c.emit("v_cndmask_b32", below, I(number), I(number + 1), also)
            c.emit("v_cndmask_b32", face, face, below, mask)
            c.emit("v_max_f32", turned, axis, axis, neg=2)
            c.emit("v_cndmask_b32", most, most, turned, mask)
            for out, (value, neg) in ((s, u), (t, v)):
                pick(out, value, neg)
            # On a negative face one of the two coordinates is reversed.
            flipped = t if number == 2 else s
            c.emit("s_and_b32", mask, mask, also)
            if number == 2:
                pick(flipped, z, 1)
            elif number == 0:
                pick(flipped, z, 0)
            else:
                pick(flipped, x, 1)
        c.emit("v_rcp_f32", most, most)
        for out in (s, t):
            c.emit("v_mul_f32", out, most, out)
    return [s, t], face
