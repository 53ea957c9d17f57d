"""``python -m tools.witness.memory_order``: the two tables of docs/memory-order.md, anew."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.witness.memory_order import litmus, orders

PAGE = Path(__file__).resolve().parents[3] / "docs" / "memory-order.md"
HEADS = (
    "| PTX | LLVM | rules | difference |",
    "| litmus test | scope | thread | LLVM | rules | difference |",
)


def placed(page: str, head: str, rows: list[str]) -> str:
    """The page with other rows below a table's head."""
    lines = page.splitlines()
    start = lines.index(head) + 2
    end = next(n for n, line in enumerate([*lines, ""]) if n >= start and not line.startswith("|"))
    return "\n".join([*lines[:start], *rows, *lines[end:]]) + "\n"


def main() -> int:
    """Writes the rows into the page; 1 if there is no nvcc."""
    operations, threads = orders.compiled(), litmus.compiled()
    if operations is None or threads is None:
        print("no nvcc", file=sys.stderr)
        return 1
    page = PAGE.read_text(encoding="utf-8")
    for head, rows in zip(HEADS, (orders.table(operations), litmus.table(threads)), strict=True):
        page = placed(page, head, list(rows))
    PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
