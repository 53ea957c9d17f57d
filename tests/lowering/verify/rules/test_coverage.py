"""The coverage page: counts, synthetic words, the results known for a form."""

from __future__ import annotations

import json
from pathlib import Path

from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.encode import assemble
from tools.coverage import __main__, tables
from tools.coverage import page as coverage_page

ROOT = Path(__file__).resolve().parents[4]


KERNEL = ROOT / "fixtures" / "kernels" / "sm_90" / "carry_chains.cubin"


def _form(text: str, **counts: int) -> tables.Form:
    word = assemble(text + " ;", 90, 0)
    return tables.Form(word, 90, {f"{k[2:]} here": n for k, n in counts.items()})


def test_counts_of_a_file(tmp_path: Path) -> None:
    """Each instruction is counted; the words keep none of its registers."""
    forms = __main__.count([f"own={KERNEL}"])
    assert all(set(f.counts) == {"90 own"} for f in forms)
    wide = [decode(f.word, 0, 90, strict=False) for f in forms]
    assert {"IADD3", "IADD3.X"} <= {__main__.key_of(i) for i in wide}
    assert {r.index for i in wide for r in i.writes if r.file == "R"} <= {16, 17, 18, 19, 20, 21}
    path = tmp_path / "forms.xz"
    tables.write_forms([*forms, *forms], path)
    again = tables.read_forms(path)
    total = sum(f.counts["90 own"] for f in forms)
    assert sum(f.counts["90 own"] for f in again) == 2 * total > 40


def test_page() -> None:
    forms = [
        _form("IADD3 R16, R4, R8, R12", sm90=60),
        _form("FADD R16, R4, R8", sm90=30),
        _form("LEPC R16", sm90=9),
        _form("EXIT", sm90=1),
    ]
    rules = {(90, f"{forms[0].word:032x}"): ("proved", "")}
    page = coverage_page.page(forms, {"IADD3": 3}, rules, {}, {"EXIT": (2, 3, 0, 1, 0)})
    row = next(line for line in page.splitlines() if line.startswith("| sm_90 | 100 "))
    shares = "1.00 % | 0.00 % | 99 | 90.91 % | 60.61 % | 100.00 % | 61.00 % |"
    assert row == f"| sm_90 | 100 | 0.00 % | {shares}"
    assert "| EXIT | 2 | 3 |  | 1 |  |" in page
    assert "* LEPC (no meaning): 9.09 %" in page
    assert "* FADD: 30.30 %" in page


def test_scopes_change_no_value() -> None:
    ours = ("LDG", ("E", "64", "STRONG", "GPU"))
    assert tables.normal(ours) == ("LDG", ("64",))


def test_what_is_committed() -> None:
    """The tables can be read; every form decodes."""
    forms = tables.read_forms()
    assert len(forms) > 5000
    for form in forms[::50]:
        decode(form.word, 0, form.arch, strict=False)
    assert tables.read_confirmed()
    assert tables.read_rules()


def test_findings_of_some_rules() -> None:
    """The counts of other rules stay, and so do their reasons for Unknown."""

    def line(rule: str, status: str, detail: str = "") -> str:
        found = {"arch": "sm_90", "rule": rule, "status": status, "detail": detail,
                 "immediates": ""}  # fmt: skip
        return json.dumps(found)

    known = tables.summed(
        [line("a", "proved"), line("b", "unknown", "late"), line("c", "unknown", "late")], {}
    )
    both = tables.summed([line("c", "proved"), line("d", "tested")], known, some=True)
    rules, reasons, _ = both[90]
    assert {r: next(iter(n)) for r, n in rules.items()} == {
        "a": "proved", "b": "unknown", "c": "proved", "d": "tested"
    }  # fmt: skip
    assert reasons == {("b", "late"): 1}
