"""The report of a translation: its data, its page in a browser, and its escaping."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sassxlate.cfg.pages.report import pack, to_html, unpack
from sassxlate.cfg.view.picture import Line
from sassxlate.cfg.view.side_by_side import Beside, Code, Part, SideBySideRow
from sassxlate.cli.translate import command
from sassxlate.disasm.containers import parse_cubin
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.lowering.emulate.counts import Runs
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.report.judged import Judged
from sassxlate.lowering.report.occupancy import of_cu, of_sm
from sassxlate.lowering.report.pages import wrote
from sassxlate.lowering.report.report import KernelReports, Ran, RefusedBy
from sassxlate.lowering.report.side_by_side import of_translated
from sassxlate.lowering.select.translated import Translated
from sassxlate.lowering.target import GFX1100
from sassxlate.lowering.verify import Proved, Refuted, Unknown

from .test_page import browser as browser  # a fixture
from .test_page import played

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).parent / "golden"
SAXPY = str(ROOT / "fixtures/programs/saxpy")
KERNELS = ROOT / "fixtures/kernels/sm_80"
EVIL = "</script><img src=x onerror='window.evil=1'>&amp;\"]]>"
LONG = "_Z" + "x" * 4000


def translated(name: str) -> Translated:
    cubin = parse_cubin((KERNELS / f"{name}.cubin").read_bytes())
    return translate_kernel(cubin, cubin.kernels[0].name)


def report(form: Any = "html", more: int = 0) -> KernelReports:
    """A kernel that was verified and run, one that was neither, and two that were refused."""
    made = KernelReports(form, "run", EVIL, "gfx1100", verified=True, counted=True, notes=[EVIL])
    done = translated("divergent_if")
    size = len(done.program.data)
    starts = [b.start for b in done.cfg.blocks]
    sass = {i.offset: 5 for b in done.cfg.blocks for i in b.instructions}
    runs = Runs(done.kernel.name, sass, ((0, size, 7),), 2, 8, "sm_80")
    refuted = Refuted({"R4": 1}, "R5", 2, 3)
    judged = [
        Judged(0, starts[0], 5, refuted, 1.0, False, ("R4 = 0x1", f"R5: {EVIL}")),
        Judged(1, starts[1], 3, Unknown("beyond it"), 1.0, False),
        *(Judged(n, s, 2, Proved(("NaN payload",)), 1.0, False)
          for n, s in enumerate(starts[2:], 2)),
    ]  # fmt: skip
    found = of_translated(done, EVIL, runs)
    made.translated(done, found, "module 0", judged, Ran(2, 4, 8, 64, 128))
    plain = translated("byte_lanes")
    for _ in range(1 + more):
        made.translated(plain, of_translated(plain, LONG), "module 0")
    made.refused(EVIL, EVIL, "sm_90", "module 1", RefusedBy("SX0403", EVIL, 0x40, EVIL))
    made.refused("a\x00\x1b[31m\ufffe\ud800", "", "", "", RefusedBy("SX9999", "unheard of"))
    return made


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    answer: dict[str, Any] = json.loads(found[1])
    return answer


def test_data_and_page_say_the_same() -> None:
    whole = json.loads(report("json").text())
    page = report().text().encode("utf-8", "replace").decode()
    inside = data_of(page)
    kernels = inside["kernels"]
    for n, one in enumerate(kernels):
        packed = re.search(rf'id="k{n}">(.*?)</script>', page)
        assert packed is not None
        one["details"] = unpack(packed[1])
    assert inside == whole
    assert (whole["schema"], whole["kind"]) == (1, "sassxlate-report")
    assert whole["totals"] | {"added": 0} == {
        "kernels": 4, "translated": 1, "withheld": 1, "refused": 2, "added": 0,
        "sass": sum(k.get("sass", 0) for k in kernels),
        "rdna3": sum(k.get("rdna3", 0) for k in kernels),
        "verdicts": {"proved": len(kernels[0]["details"]["parts"]) - 4, "refuted": 1, "unknown": 1},
        "executed": 7 * kernels[0]["rdna3"], "asked": None,
        "refusals": [{"code": "SX0403", "title": whole["totals"]["refusals"][0]["title"],
                      "kernels": 1}, {"code": "SX9999", "title": "", "kernels": 1}],
    }  # fmt: skip
    verdicts = [p["verdict"]["is"] for p in kernels[0]["details"]["parts"] if "verdict" in p]
    assert verdicts[:3] == ["refuted", "unknown", "proved"]
    assert kernels[0]["resources"]["threads_are"] == "as it was run"
    assert kernels[1]["runs"] is kernels[1]["verdicts"] is None


def test_who_wrote_what() -> None:
    """A model's region: its instructions have the model's name, the others their rules'."""
    done = translated("byte_lanes")
    sass = [i.offset for b in done.cfg.blocks for i in b.instructions]
    first, last = sass[2], sass[4]
    taken: dict[str, Any] = {
        "block": 0, "start": first, "last": last, "instructions": 3, "engine": "model-1",
        "outcome": "accepted", "detail": "", "rules_cost": 160, "model_cost": 128,
        "verdict": "Proved", "modulo": ["NaN payload"], "answers": 1, "kept": False,
    }  # fmt: skip
    left = taken | {"start": sass[6], "last": sass[7], "engine": "rules", "outcome": "dearer"}
    answers: dict[str, Any] = {
        "engine": "hybrid", "model": "model-1", "blocks": [taken, left], "regions": 2, "asked": 2,
        "accepted": 1, "saved": 32, "distinct": 2, "remembered": 0, "asking_s": 0.5,
        "judging_s": 0.25,
    }  # fmt: skip
    made = KernelReports("json", "translate", "p", "gfx1100")
    found = of_translated(done, engines=wrote(answers["blocks"]))
    made.translated(done, found, "module 0", answers=answers)
    made.translated(done, of_translated(done), "module 0")
    whole = json.loads(made.text())
    assert whole["totals"]["asked"] == {k: v for k, v in answers.items() if k != "blocks"}
    kernel, plain = whole["kernels"]
    assert (kernel["engine"], plain["engine"]) == ("rules, model-1", "rules")
    assert plain["asked"] is None
    assert kernel["details"]["answers"] == [taken, left]
    named = {
        row["sass"]["offset"]
        for part in kernel["details"]["parts"]
        for row in part["rows"]
        if row.get("sass") and row.get("engine") == "model-1"
    }
    assert named <= set(sass[2:5])
    assert named


def test_nothing_in_a_name_is_markup() -> None:
    page = report().text()
    assert "<img" not in page
    assert page.count("</script>") == 2 + 4
    assert "default-src 'none'" in page


def test_report_is_as_it_was(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(SAXPY, tmp_path / "saxpy")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(command, ["saxpy", "--arch", "sm_80", "--report", "r.json"])
    assert done.exit_code == 0, done.output
    made = json.loads((tmp_path / "r.json").read_text())
    made["version"] = ""
    text = json.dumps(made, indent=1) + "\n"
    file = GOLDEN / "saxpy.sm_80.report.json"
    if request.config.getoption("--bless", default=False):
        file.write_text(text)
    assert text == file.read_text(), "pytest --bless takes it over"


def test_refused_kernels_and_verdicts(tmp_path: Path) -> None:
    data = (KERNELS / "early_exit.cubin").read_bytes()
    (kernel,) = parse_cubin(data).kernels
    place = data.index(kernel.code) + 0x30
    word = assemble("KILL", 80, 0x30).to_bytes(16, "little")
    (tmp_path / "bad.cubin").write_bytes(data[:place] + word + data[place + 16 :])
    out = tmp_path / "deep" / "r.txt"
    arguments = [str(tmp_path / "bad.cubin"), "--report", str(out), "--report-format", "json"]
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 3, done.output
    made = json.loads(out.read_text())
    (row,) = made["kernels"]
    assert (row["status"], row["refused"]["code"]) == ("refused", "SX0403")
    assert (row["refused"]["offset"], row["refused"]["instruction"]) == (0x30, "KILL")
    assert row["refused"]["title"] == made["totals"]["refusals"][0]["title"] != ""
    pytest.importorskip("z3")
    out = tmp_path / "r.html"
    arguments = [str(KERNELS / "early_exit.cubin"), "--verify", "--report", str(out)]
    assert CliRunner().invoke(command, arguments).exit_code == 0
    (row,) = data_of(out.read_text())["kernels"]
    assert row["verdicts"]["proved"] > 0
    assert not row["verdicts"]["refuted"]


def test_what_has_no_kernels(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    out = tmp_path / "r.html"
    run = CliRunner()
    done = run.invoke(command, [str(tmp_path / "empty"), "--report", str(out)])
    assert getattr(done.exception, "code", "").startswith("SX01")
    assert not out.exists()
    done = run.invoke(command, [SAXPY, "-k", "none", "--report", str(out)])
    assert getattr(done.exception, "code", "") == "SX0802"
    assert data_of(out.read_text())["totals"]["kernels"] == 0
    done = run.invoke(command, [SAXPY, "--report", str(tmp_path / "r.txt")])
    assert getattr(done.exception, "code", "") == "SX0841"
    assert run.invoke(command, [SAXPY]).exit_code == 2


# --- occupancy -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arch", "registers", "shared", "threads", "resident", "limit"),
    [
        (80, 32, 0, 256, 64, "warps"),
        (80, 33, 0, 256, 48, "registers"),
        (80, 255, 0, 256, 8, "registers"),
        (80, 255, 0, 1024, 0, "registers"),
        (80, 16, 48 << 10, 128, 12, "shared memory"),
        (80, 16, 0, 32, 32, "blocks"),
        (86, 32, 0, 256, 48, "warps"),
        (90, 128, 1024, 256, 16, "registers"),
        (90, 16, 65 << 10, 256, 24, "shared memory"),
    ],
)
def test_warps_of_a_multiprocessor(
    arch: int, registers: int, shared: int, threads: int, resident: int, limit: str
) -> None:
    """As in NVIDIA's calculator (cuda_occupancy.h)."""
    found = of_sm(arch, registers, shared, threads)
    assert found is not None
    assert (found.resident, found.limit) == (resident, limit)


@pytest.mark.parametrize(
    ("vgprs", "lds", "threads", "resident", "limit"),
    [
        (96, 0, 256, 32, "waves"),
        (97, 0, 256, 24, "VGPRs"),
        (256, 0, 256, 8, "VGPRs"),
        (24, 32 << 10, 64, 4, "LDS"),
        (24, 0, 33, 32, "waves"),
        (24, 0, 32, 32, "waves"),
        (97, 0, 1024, 0, "VGPRs"),
    ],
)
def test_waves_of_a_compute_unit(
    vgprs: int, lds: int, threads: int, resident: int, limit: str
) -> None:
    """As LLVM's getNumWavesPerEU says it for gfx1100, of two SIMDs."""
    found = of_cu(GFX1100, vgprs, lds, threads)
    assert found is not None
    assert (found.resident, found.limit) == (resident, limit)


def test_unknown_architectures_have_no_occupancy() -> None:
    assert of_sm(37, 32, 0, 256) is None
    assert of_sm(80, 32, 0, 0) is None


# --- in a browser --------------------------------------------------------------------------------

SCRIPT = """
const said = {};
const $ = (s) => document.querySelector(s), all = (s) => [...document.querySelectorAll(s)];
const key = (k, on) => (on || document.activeElement || document).dispatchEvent(
  new KeyboardEvent("keydown", { key: k, bubbles: true }));
const frame = (n) => new Promise((done) => setTimeout(done, n || 80));
// The browser's clock runs ahead while details are unpacked in another thread: so work, too.
const spin = () => { let x = 0; for (let i = 0; i < 1e6; i++) x += i %% 7; return x; };
const until = async (what) => {
  for (let n = 0; n < 1500 && !what(); n++) { spin(); await frame(1); }
};
const play = async () => {
  said.ready = document.documentElement.dataset.ready;
  said.milliseconds = performance.now();
  said.rows = all("#kernels tbody tr").length;
  said.refusals = all("#refused tbody tr").length;
  // From the summary to an instruction by three clicks.
  $("#kernels tbody tr a").click(); await until(() => $("details"));
  said.blocks = all("details").length; said.hot = all("#hot tbody tr").length;
  said.occupancy = main.textContent.includes("waves (");
  said.lazy = all("tr.i").length;
  all("details>summary")[1].click(); await until(() => $("tr.i"));
  said.lines = all("tr.i").length; said.counterexample = $(".verdict pre").textContent;
  all("tr.i")[1].click();
  said.detail = $("#detail").textContent;
  // By keys alone: on, close, back, another kernel.
  key("j"); said.stepped = $("#detail").textContent !== said.detail;
  key("Escape"); said.closed = $("#detail").hidden;
  key("n"); await frame(); said.opened = all("details[open]").length;
  key("/"); said.finding = document.activeElement.id;
  $("#find").value = "s_"; $("#find").dispatchEvent(new Event("input"));
  said.found = $("#count").textContent; key("Enter", $("#find")); await frame();
  said.hit = $("#count").textContent; said.marked = all("tr.hit").length;
  said.contrast = [contrast()];
  key("a"); await frame(); said.allOpen = all("details:not([open])").length;
  $("#find").blur(); key("Escape"); await until(() => $("#kernels"));
  said.back = location.hash;
  $("#find").value = "xxxx"; $("#find").dispatchEvent(new Event("input"));
  said.filtered = $("#count").textContent;
  $("#find").value = ""; $("#find").dispatchEvent(new Event("input"));
  $("#find").blur(); document.body.focus();
  key("j"); said.on = document.activeElement.tagName;
  all("#kernels thead button")[0].click();
  said.sorted = $("#kernels th[aria-sort]").textContent;
  location.hash = "%d"; await until(() => $("h1 .refused"));
  said.refused = main.textContent;
  location.hash = "1"; await until(() => $("details"));
  said.notAsked = main.textContent.includes("not asked");
  key("?"); said.help = $("#help").open; $("#help").close();
  key("t"); said.theme = document.documentElement.dataset.theme;
  await frame(); said.contrast.push(contrast());
  said.evil = window.evil === 1; said.images = all("img").length;
  said.loaded = performance.getEntriesByType("resource").length;
};
play().catch((e) => { said.error = e.stack; }).finally(() => {
  const pre = document.createElement("pre");
  pre.id = "result"; pre.textContent = JSON.stringify(said);
  document.body.append(pre);
});
"""


def test_report_in_a_browser(browser: str, tmp_path: Path) -> None:
    page = report().text().encode("utf-8", "replace").decode()
    said = played(browser, page, tmp_path, SCRIPT % 2)
    assert "error" not in said, said
    assert (said["ready"], said["rows"], said["refusals"]) == ("1", 4, 2)
    assert said["blocks"] > 3
    assert said["hot"] > 0
    assert said["occupancy"] is True
    assert said["lazy"] == 0
    assert said["lines"] > 0
    assert EVIL in said["counterexample"]
    assert "rule" in said["detail"]
    assert "7 times by a wave" in said["detail"]
    for done in ("stepped", "closed", "notAsked", "help"):
        assert said[done] is True, (done, said)
    assert said["opened"] == 2
    assert said["finding"] == "find"
    assert re.fullmatch(r"\d+ found", said["found"])
    assert said["hit"].startswith("1 of ")
    assert said["marked"] == 1
    assert (said["allOpen"], said["back"]) == (0, "")
    assert (said["filtered"], said["on"], said["sorted"]) == ("1 of 4", "A", "kernel")
    assert EVIL in said["refused"]
    assert "sassxlate explain SX0403" in said["refused"]
    assert said["theme"] in ("light", "dark")
    for contrast in said["contrast"]:  # WCAG AA, light and dark
        assert contrast["least"] >= 4.5, contrast
    assert (said["evil"], said["images"], said["loaded"]) == (False, 0, 0)


@pytest.mark.sweep
def test_a_report_of_1000_kernels_is_there_at_once(browser: str, tmp_path: Path) -> None:
    """The target is two seconds, on an idle machine."""
    rows = tuple(
        SideBySideRow(Line(16 * n, f"IADD3 R{n % 250}, R2, R3, RZ"),
            (Code(4 * n, f"v_add_nc_u32 v{n}"),), "iadd3", "rules")
        for n in range(1000)
    )  # fmt: skip
    part = Part("0000", 0, 0, 4000, rows)
    found = Beside("k", "k", "sm_80", "gfx1100", (part,) * 3, "x")
    made = report("html", 999)
    made.translated(translated("divergent_if"), found, "module 0")
    page = made.text().encode("utf-8", "replace").decode()
    said = played(browser, page, tmp_path, SCRIPT % 1001)
    print(f"{len(page) / 1e6:.1f} MB, ready after {said['milliseconds']:.0f} ms")
    assert "error" not in said, said
    assert said["rows"] == 400


def test_packing() -> None:
    some = {"a": [1, "\ud800", EVIL], "b": None}
    assert unpack(pack(some)) == some
    assert to_html(
        {"program": "", "command": "run", "totals": {"kernels": 0, "translated": 0, "refused": 0},
         "kernels": []}, []
    ).count("<script") == 2  # fmt: skip
