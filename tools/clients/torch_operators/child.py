"""Some cases of the operator suite in torch's own Python: a line of JSON for each.

``python -m tools.clients.torch_operators.child RESULTS CASES DEVICE [TRUTH]``: CASES is a file with
names of cases, DEVICE cuda or cpu, TRUTH a real GPU's results.  The watching process learns from
RESULTS which case began last.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import inputs, values
from .declare import TYPES, Case
from .operators import cases

torch: Any = inputs.torch
_TEXT = 400
_STICKY = 4  # status of a process whose device no longer answers


def gradient(function: Callable[[Any], Any], a: Any) -> Any:
    """The gradient of the sum of squares of ``function(a)``."""
    leaf = a.clone().requires_grad_()
    (function(leaf).float().square().sum() if leaf.dtype == torch.float16 else
     function(leaf).square().sum()).backward()  # fmt: skip
    return leaf.grad


def step(optimiser: Any, a: Any, **given: Any) -> Any:
    """``a`` after five steps of an optimiser towards a sum of squares."""
    leaf = a.clone().requires_grad_()
    chosen = optimiser([leaf], **given)
    for _ in range(5):
        chosen.zero_grad()
        (leaf - 1).square().sum().backward()
        chosen.step()
    return leaf


def attention(backend: str, a: Any, b: Any, c: Any) -> Any:
    """scaled_dot_product_attention by one backend; on the CPU always by its formula."""
    kernels = importlib.import_module("torch.nn.attention")
    chosen = getattr(kernels.SDPBackend, backend if a.is_cuda else "MATH")
    with kernels.sdpa_kernel(chosen):
        return torch.nn.functional.scaled_dot_product_attention(a, b, c)


def evaluate(case: Case, device: str) -> list[Any]:
    """The case's result on a device, copied to the CPU."""
    generator = torch.Generator().manual_seed(inputs.seed(case.id))
    given = [inputs.make(spec, case.dtype, generator).to(device) for spec in case.op.inputs]
    torch.manual_seed(inputs.seed(case.id))
    names: dict[str, Any] = {
        "torch": torch,
        "F": torch.nn.functional,
        "dt": getattr(torch, TYPES[case.dtype]),
        "dev": device,
        "grad": gradient,
        "step": step,
        "attention": attention,
        **dict(zip("abcdefgh", given, strict=False)),
    }
    # The expressions are this package's own declarations.
    return values.flat(eval(case.op.call, names))


def judge(case: Case, device: str, truth: dict[str, Any] | None) -> dict[str, Any]:
    """The row of a case: a verdict, what it rests on, the values."""
    expected: list[Any] | None = None
    fault = ""
    try:
        expected = evaluate(case, "cpu")
    except Exception as error:
        fault = f"{type(error).__name__}: {error}"
    try:
        got = evaluate(case, device)
    except Exception as error:
        kind = type(error).__name__
        text = f"{kind}: {error}"[:_TEXT]
        if truth is not None and truth.get("error") == kind:
            return {"verdict": "right", "by": "gpu", "text": text, "error": kind}
        both = expected is None and truth is None
        return {"verdict": "neither" if both else "error", "text": text, "error": kind}
    row: dict[str, Any] = {"values": [values.compact(tensor) for tensor in got]}
    if truth is not None and "values" in truth:
        said = values.against_kept(got, truth["values"], case.op.tolerance)
        row |= {"by": "gpu", "gpu": "bits" if not said else "close" if said == "close" else said}
        row["verdict"] = "right" if said in ("", "close") else "wrong"
        row["text"] = "" if said in ("", "close") else said
    elif truth is not None and truth.get("error"):
        row |= {"verdict": "wrong", "by": "gpu", "text": f"the GPU gave {truth['error']}"}
    elif expected is None:
        row |= {"verdict": "unchecked", "text": fault[:_TEXT]}
    else:
        said = values.compare(got, expected, case.op.tolerance)
        row |= {"verdict": "wrong" if said else "right", "by": "cpu", "text": said}
        if not said and case.op.tolerance.units < 0:
            row["verdict"] = "unchecked"
    if expected is not None and row.get("by") == "gpu":
        row["cpu"] = values.compare(got, expected, case.op.tolerance)[:_TEXT]
    return row


def main() -> None:
    """The command of the module's description."""
    results, listed, device = sys.argv[1:4]
    truths: dict[str, Any] = {}
    if len(sys.argv) > 4:
        for line in Path(sys.argv[4]).read_text("utf-8").splitlines():
            row = json.loads(line)
            if "id" in row:
                truths[row["id"]] = row
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.deterministic = True
    torch.set_num_threads(1)
    by_name = {case.id: case for case in cases()}
    with Path(results).open("a", encoding="utf-8") as out:

        def write(**row: Any) -> None:
            out.write(json.dumps(row) + "\n")
            out.flush()

        write(event="versions", torch=torch.__version__, device=_device(device))
        for name in Path(listed).read_text("utf-8").splitlines():
            sys.stdout.flush()
            sys.stderr.write(f"\n@@ {name}\n")
            sys.stderr.flush()
            write(event="start", id=name)
            began = time.monotonic()
            row = judge(by_name[name], device, truths.get(name))
            sys.stderr.flush()
            seconds = round(time.monotonic() - began, 2)
            write(event="end", id=name, seconds=seconds, **row)
            if row["verdict"] == "error" and not _answers(device):
                sys.exit(_STICKY)
        write(event="finished")


def _device(device: str) -> str:
    """The device's name."""
    return str(torch.cuda.get_device_name()) if device == "cuda" else device


def _answers(device: str) -> bool:
    """Whether the device still works after an error: some errors stay until the process ends."""
    try:
        return int(torch.ones(3, device=device).sum().item()) == 3
    except Exception:
        return False


if __name__ == "__main__":
    main()
