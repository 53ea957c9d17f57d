"use strict";
// A report: summary, kernel, block, instruction.  Details are unpacked when a kernel is opened, and
// the rows of a block are made when it is unfolded.
(() => {
const $ = (s) => document.querySelector(s);
const data = JSON.parse($("#data").textContent);
const main = $("#main"), detail = $("#detail"), find = $("#find"), count = $("#count");
const kept = new Map();
let shown = null, sort = ["", 1], at = -1;

function el(tag, more, ...inside) {
  const node = document.createElement(tag);
  for (const [k, v] of Object.entries(more || {})) {
    if (v === undefined || v === null || v === false) continue;
    if (k === "class") node.className = v;
    else if (k.startsWith("on")) node.addEventListener(k.slice(2), v);
    else node.setAttribute(k, v === true ? "" : v);
  }
  for (const x of inside.flat()) if (x !== null && x !== undefined) node.append(clean(x));
  return node;
}
function put(...inside) {
  main.replaceChildren(...inside.flat(3).filter((x) => x !== null && x !== undefined));
}
const clean = (x) => typeof x === "string" ? x.replace(/[\0-\x1f]/g, "\ufffd") : typeof x === "number" ? num(x) : x;
const num = (n) => n === null || n === undefined ? "" : n.toLocaleString("en");
const hex = (n) => n.toString(16).padStart(4, "0");
const clip = (s, most) => s.length > most ? s.slice(0, most) + "\u2026" : s;
const tag = (kind, text) => el("span", { class: "tag " + kind }, text || kind);
const share = (a, b) => !b ? "" : a && a / b < .0005 ? "<0.1 %"
  : Math.round(1000 * a / b) / 10 + " %";

async function details(n) {
  if (kept.has(n)) return kept.get(n);
  const bytes = Uint8Array.from(atob($("#k" + n).textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const made = JSON.parse(await new Response(stream).text());
  kept.set(n, made);
  if (kept.size > 8) kept.delete(kept.keys().next().value);
  return made;
}

// --- facts ---------------------------------------------------------------------------------------

function facts(title, rows) {
  const body = rows.filter((r) => r && r[1] !== null && r[1] !== undefined && r[1] !== "")
    .map(([k, v]) => el("tr", {}, el("th", { scope: "row" }, k), el("td", {}, v)));
  return el("table", {}, title ? el("caption", { class: "faint" }, title) : null, el("tbody", {}, body));
}
function verdictLine(v) {
  if (!v) return "not asked (sassxlate translate --verify)";
  return el("span", {}, ["proved", "refuted", "unknown"].filter((k) => v[k])
    .map((k) => [tag(k, `${num(v[k])} ${k}`), " "]).flat());
}
const addedLine = (added) => Object.entries(added).map(([k, n]) => `${k} ${num(n)}`).join(", ");
const addedSum = (added) => Object.values(added).reduce((a, b) => a + b, 0);
const cycles = (n) => n === null || n === undefined ? "" : num(n / 16);
function askedLine(a) {
  return `${a.engine}, model ${a.model}: wrote ${num(a.accepted)} of ${num(a.regions)} regions ` +
    `(${num(a.asked)} asked), cost ${a.saved ? "\u2212" : ""}${cycles(a.saved)} cycles, each once`;
}
function occupancy(o) {
  if (!o) return "not known for this architecture";
  return `${o.resident} of ${o.most} ${o.unit} (${share(o.resident, o.most)}), ${o.blocks} ` +
    `blocks; bound by ${o.limit}`;
}

// --- summary -------------------------------------------------------------------------------------

const columns = [
  ["kernel", (k) => k.shown, (k) => el("a", { href: "#" + k.i, class: "clip" }, clip(k.shown, 4000)), "name"],
  ["arch", (k) => k.arch, (k) => k.arch, ""],
  ["state", (k) => k.status, (k) => k.refused
    ? el("span", {}, tag("refused"), " ", k.refused.code) : tag(k.status), ""],
  ["SASS", (k) => k.sass ?? -1, (k) => num(k.sass), "n"],
  ["RDNA3", (k) => k.rdna3 ?? -1, (k) => num(k.rdna3), "n"],
  ["added", (k) => k.added ? addedSum(k.added) : -1, (k) => k.added ? num(addedSum(k.added)) : "", "n"],
  ["VGPRs", (k) => k.resources?.rdna3.vgprs ?? -1, (k) => num(k.resources?.rdna3.vgprs), "n"],
  ["occupancy", (k) => occ(k, "rdna3"), (k) => k.resources
    ? `${pct(k, "sass")} \u2192 ${pct(k, "rdna3")}` : "", "n"],
  ["verdicts", (k) => k.verdicts ? -k.verdicts.refuted * 1e6 - k.verdicts.unknown : 1,
    (k) => k.verdicts ? verdictLine(k.verdicts) : "", ""],
  ["by the model", (k) => k.asked ? k.asked.accepted / Math.max(1, k.asked.regions) : -1,
    (k) => k.asked ? `${num(k.asked.accepted)} of ${num(k.asked.regions)}` : "", "n"],
  ["executed", (k) => k.runs ? k.runs.executed : -1, (k) => k.runs ? num(k.runs.executed) : "", "n"],
];
const occ = (k, side) => {
  const o = k.resources?.[side].occupancy;
  return o ? o.resident / o.most : -1;
};
const pct = (k, side) => occ(k, side) < 0 ? "?" : Math.round(100 * occ(k, side)) + " %";

function chosen() {
  const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = data.kernels.filter((k) => words.every((w) =>
    `${k.shown} ${k.name} ${k.arch} ${k.status} ${k.refused ? k.refused.message : ""}`.toLowerCase().includes(w)));
  const column = columns.find((c) => c[0] === sort[0]);
  if (column) rows.sort((a, b) => {
    const x = column[1](a), y = column[1](b);
    return sort[1] * (x < y ? -1 : x > y ? 1 : 0);
  });
  return rows;
}
function used() {
  return columns.filter(([name]) => name === "verdicts" ? data.totals.verdicts
    : name === "by the model" ? data.totals.asked
    : name === "executed" ? data.totals.executed !== null : true);
}
function tableOfKernels() {
  const heads = used().map(([name, , , kind]) => el("th", { class: kind === "n" ? "n" : null, scope: "col",
    "aria-sort": sort[0] === name ? (sort[1] > 0 ? "ascending" : "descending") : null },
    el("button", { onclick: () => {
      sort = sort[0] === name ? [name, -sort[1]] : [name, ["kernel", "arch", "state"].includes(name) ? 1 : -1];
      list();
    } }, name)));
  return el("table", { class: "wide", id: "kernels" }, el("thead", {}, el("tr", {}, heads)), el("tbody"));
}
const STEP = 400;  // rows that are made at a time
function list() {
  const old = $("#kernels");
  if (!old) return;
  const fresh = tableOfKernels(), rows = chosen(), body = fresh.querySelector("tbody");
  let done = 0;
  const more = el("button", { class: "more", onclick: () => add() }, "");
  const add = () => {
    for (const k of rows.slice(done, done + STEP)) {
      body.append(el("tr", { class: "go", "data-k": k.i, onclick: (e) => {
        if (!e.target.closest("a")) location.hash = k.i;
      } }, used().map(([, , cell, kind]) => el("td", { class: kind || null }, cell(k)))));
    }
    done = Math.min(rows.length, done + STEP);
    more.hidden = done === rows.length;
    more.textContent = `${num(rows.length - done)} more`;
  };
  add();
  const box = el("div", { id: "list" }, fresh, more);
  $("#list").replaceWith(box);
  at = -1;
  count.textContent = rows.length === data.kernels.length ? "" : `${rows.length} of ${data.kernels.length}`;
}
function summary() {
  shown = null;
  find.placeholder = "filter (/)";
  document.title = `${data.program}: ${data.command} report`;
  $("#crumbs").textContent = "";
  closeDetail();
  const t = data.totals;
  const refused = data.kernels.filter((k) => k.refused);
  put(
    el("h1", {}, el("span", { class: "mono" }, clip(data.program, 1000))),
    el("div", { class: "facts" },
      facts("", [
        ["made by", `sassxlate ${data.version}, ${data.command}, for ${data.target}`],
        ["kernels", num(t.kernels)], ["translated", num(t.translated)],
        t.withheld ? ["withheld", `${num(t.withheld)} (refuted)`] : null,
        ["refused", num(t.refused)],
      ]),
      facts("", [
        ["SASS instructions", num(t.sass)], ["RDNA3 instructions", num(t.rdna3)],
        ["of them added", t.rdna3 ? `${num(addedSum(t.added))} (${addedLine(t.added)})` : ""],
        ["blocks", verdictLine(t.verdicts)],
        t.asked ? ["engine", askedLine(t.asked)] : null,
        ["executed", t.executed === null ? "not counted" : `${num(t.executed)} RDNA3 instructions`],
      ])),
    data.notes.map((n) => el("p", {}, n)),
    refused.length ? [
      el("h2", {}, "Refused"),
      el("table", { id: "refused" }, el("thead", {}, el("tr", {},
        ["code", "kernels", "what it means"].map((x) => el("th", { scope: "col" }, x)))), el("tbody", {},
        t.refusals.map((r) => el("tr", {}, el("td", {}, el("a", { href: "#", onclick: (e) => {
          e.preventDefault(); find.value = r.code; list();
        } }, r.code)), el("td", {}, num(r.kernels)), el("td", {}, r.title || `sassxlate explain ${r.code}`)))))] : [],
    el("h2", {}, "Kernels"),
    data.kernels.length ? el("div", { id: "list" }, tableOfKernels()) : el("p", { id: "nothing" }, "There are none."),
  );
  list();
}

// --- kernel --------------------------------------------------------------------------------------

function blockHead(k, part, hottest, said) {
  const lines = part.rows.filter((r) => r.sass).length;
  const codes = part.rows.reduce((n, r) => n + r.rdna3.length, 0);
  const v = part.verdict;
  const executed = part.rows.reduce((n, r) => n + r.rdna3.reduce((m, c) => m + (c.runs || 0), 0), 0);
  return el("summary", {}, el("b", {}, part.name),
    el("span", { class: "wide2" }, part.sass_block === null ? `no SASS, ${codes} RDNA3` : `${lines} SASS, ${codes} RDNA3`),
    v ? tag(v.is) : part.sass_block !== null && k.verdicts && lines ? el("span", { class: "faint" }, "control only: no verdict") : null,
    said.length ? el("span", {}, `model ${said.filter((a) => a.outcome === "accepted").length} of ${said.length}`) : null,
    k.runs ? el("span", {}, el("span", { class: "bar", role: "img", "aria-label": share(executed, k.runs.executed) },
      el("span", { class: "heat", style: `width:${hottest ? 100 * executed / hottest : 0}%` })),
      ` ${share(executed, k.runs.executed)}` + (part.runs === undefined ? "" : `, ${num(part.runs)} times`)) : null);
}
function verdict(v) {
  if (!v) return null;
  const lines = [];
  if (v.is === "proved" && v.modulo.length) lines.push(`modulo ${v.modulo.join(", ")}`);
  if (v.is === "unknown") lines.push(v.reason);
  if (v.is === "refuted") {
    if (v.shown) lines.push(...v.shown);
    else lines.push(v.defect || `${v.where}: SASS ${v.sass}, RDNA3 ${v.rdna}`);
  }
  return lines.length ? el("div", { class: "verdict" }, tag(v.is),
    el("pre", {}, lines.map((x) => el("div", {}, x || " ")))) : null;
}
// What an engine said of regions: who wrote each, why, the verdict, and both costs.
const SAID = {
  accepted: "proved and cheaper", dearer: "no cheaper than the rules' code", refuted: "the verifier refuted it",
  unknown: "the verifier has no proof", accesses: "reaches memory otherwise than the rules' code",
  registers: "writes registers that are not its own", encoding: "does not assemble", text: "is no answer",
  none: "no answer", macro: "not asked: beyond the language", guarded: "not asked: a guard spans its edge",
  unsaid: "not asked: a register without a name", long: "not asked: too long",
};
function regions(rows) {
  return el("table", { class: "regions" }, el("thead", {}, el("tr", {},
    ["at", "SASS", "written by", "outcome", "verdict", "rules' cost", "model's cost"].map((x, i) =>
      el("th", { scope: "col", class: [1, 5, 6].includes(i) ? "n" : null }, x)))), el("tbody", {},
    rows.map((a) => el("tr", {}, el("td", { class: "mono" }, hex(a.start)), el("td", { class: "n" }, num(a.instructions)),
      el("td", {}, a.engine), el("td", {}, `${a.outcome}: ${SAID[a.outcome] || ""}`,
        a.detail ? el("div", { class: "faint" }, clip(a.detail, 400)) : null),
      el("td", {}, a.verdict ? tag(a.verdict.toLowerCase()) : "",
        a.modulo.length ? el("div", { class: "faint" }, `modulo ${a.modulo.join(", ")}`) : null),
      el("td", { class: "n" }, cycles(a.rules_cost)), el("td", { class: "n" }, cycles(a.model_cost))))));
}
function ofPart(more, part) {
  const offsets = new Set(part.rows.map((r) => r.sass && r.sass.offset));
  return (more.answers || []).filter((a) => offsets.has(a.start));
}
function allRegions(more) {
  const rows = more.answers || [];
  if (!rows.length) return null;
  const sums = {};
  rows.forEach((a) => { sums[a.outcome] = (sums[a.outcome] || 0) + 1; });
  const box = el("details", { id: "regions" }, el("summary", {}, el("b", {}, "regions"),
    Object.entries(sums).map(([name, n]) => `${name} ${num(n)}`).join(", ") + "; costs in cycles"));
  box.addEventListener("toggle", () => {
    if (!box.open || box.dataset.full) return;
    box.dataset.full = "1";
    let done = 0;
    const body = regions(rows.slice(0, STEP)), button = el("button", { class: "more", onclick: () => add() });
    const add = () => {
      if (done) body.querySelector("tbody").append(...regions(rows.slice(done, done + STEP)).querySelectorAll("tbody tr"));
      done = Math.min(rows.length, done + STEP);
      button.hidden = done === rows.length;
      button.textContent = `${num(rows.length - done)} more`;
    };
    add();
    box.append(body, button);
  });
  return box;
}
function fill(box, k, part, more) {
  if (box.dataset.full) return;
  box.dataset.full = "1";
  const body = el("tbody");
  let done = 0;
  const step = 500;
  const button = el("button", { class: "more", onclick: () => add() });
  const add = () => {
    part.rows.slice(done, done + step).forEach((row, n) => body.append(rowOf(k, part, row, done + n, more)));
    done = Math.min(part.rows.length, done + step);
    button.hidden = done === part.rows.length;
    button.textContent = `${num(part.rows.length - done)} more rows`;
  };
  add();
  const note = verdict(part.verdict);
  if (note) box.append(note);
  const said = ofPart(more, part);
  if (said.length) box.append(regions(said));
  box.append(el("table", { class: "code" }, body), button);
}
function rowOf(k, part, row, n, more) {
  const left = row.sass ? [row.rule || row.engine ? el("span", { class: "k" }, row.rule || row.engine) : null,
    el("span", { class: "o" }, hex(row.sass.offset)), "  " + row.sass.text] : [];
  const right = row.rdna3.map((c) => el("div", { class: c.added ? "add" : null },
    c.added ? el("span", { class: "k" }, c.added) : null,
    el("span", { class: "o" }, hex(c.offset)), "  " + c.text));
  if (row.why) right.push(el("div", { class: "none" }, row.why));
  const line = el("tr", { class: "i", tabindex: "0" }, el("td", {}, left), el("td", {}, right));
  line.addEventListener("click", () => show(k, part, row, line, more));
  line.row = row;
  return line;
}
function closeDetail() {
  detail.hidden = true;
  document.querySelectorAll("table.code tr.at").forEach((r) => r.classList.remove("at"));
}
function show(k, part, row, line, more) {
  closeDetail();
  line.classList.add("at");
  const made = row.rdna3.filter((c) => !c.added).length;
  const runs = row.rdna3.find((c) => !c.added && c.runs !== undefined);
  const rows = [
    ["block", part.name + (part.runs === undefined ? "" : `, begun ${num(part.runs)} times`)],
    row.sass && row.engine ? ["written by", row.rule ? `rule ${row.rule} (engine ${row.engine})` : `engine ${row.engine}`] : null,
    row.why ? ["without code", row.why] : null,
    ["stands for it", row.sass ? `${made} RDNA3 instruction${made === 1 ? "" : "s"}` : "no SASS: the translator added it"],
    ["executed", runs ? `${num(runs.runs)} times by a wave` : ""],
    part.verdict ? ["the block is", tag(part.verdict.is)] : null,
  ];
  const code = row.rdna3.map((c) => el("tr", { class: c.added ? "add" : null }, el("td", { class: "o" }, hex(c.offset)),
    el("td", { class: "mono" }, c.text), el("td", { class: "n" }, c.runs === undefined ? "" : num(c.runs)),
    el("td", {}, c.added ? `${c.added}: ${more.kinds[c.added] || ""}` : "")));
  detail.replaceChildren(
    el("h2", { class: "mono" }, row.sass ? `/*${hex(row.sass.offset)}*/ ${row.sass.text}` : "added by the translator"),
    facts("", rows), el("table", {}, el("tbody", {}, code)),
    el("button", { onclick: closeDetail }, "close (Esc)"));
  detail.hidden = false;
  line.focus({ preventScroll: true });
  line.scrollIntoView({ block: "nearest" });
}
function hot(k, more, boxes) {
  if (!k.runs || !k.runs.executed) return [];
  const sums = more.parts.map((p, i) => [i, p.rows.reduce((n, r) => n + r.rdna3.reduce((m, c) => m + (c.runs || 0), 0), 0)]);
  sums.sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  const rows = sums.slice(0, 8).filter(([, n]) => n).map(([i, n]) => el("tr", {}, el("td", {},
    el("a", { href: "#", onclick: (e) => { e.preventDefault(); reveal(boxes[i]); } }, more.parts[i].name)),
    el("td", { class: "n" }, num(n)), el("td", { class: "n" }, share(n, k.runs.executed)),
    el("td", { class: "n" }, more.parts[i].runs === undefined ? "" : num(more.parts[i].runs))));
  return [el("h2", {}, "Hot blocks"), el("table", { id: "hot" }, el("thead", {}, el("tr", {},
    ["block", "instructions executed", "share", "times"].map((x, i) => el("th", { scope: "col", class: i ? "n" : null }, x)))),
    el("tbody", {}, rows))];
}
function reveal(box) {
  box.open = true;
  box.scrollIntoView({ block: "start" });
  scrollBy(0, -$("header").offsetHeight);
  box.querySelector("summary").focus({ preventScroll: true });
}
async function kernel(n) {
  const k = data.kernels[n];
  document.title = `${clip(k.shown, 100)}: report`;
  $("#crumbs").replaceChildren(" \u203a ", el("b", {}, clip(k.shown, 4000)), ` ${k.arch}`);
  closeDetail();
  find.value = ""; find.placeholder = "search this kernel (/)"; count.textContent = "";
  if (k.refused) {
    shown = { n, boxes: [], parts: [] };
    put(el("h1", {}, tag("refused"), " ", k.refused.code), facts("", [
      ["why", k.refused.title], ["said", k.refused.message],
      ["at", k.refused.offset === null ? "" : `/*${hex(k.refused.offset)}*/ ${k.refused.instruction}`],
      ["name", el("span", { class: "mono" }, k.name)], ["from", k.where],
      ["more", el("span", { class: "mono" }, `sassxlate explain ${k.refused.code}`)]]));
    return;
  }
  let more;
  try { more = await details(n); } catch (e) {
    put(el("p", {}, `This browser cannot unpack the details (${e}). ` +
      "--report-format json has them as data."));
    return;
  }
  if (location.hash !== "#" + n) return;
  const r = k.resources, s = r.sass, a = r.rdna3;
  const sums = more.parts.map((p) => p.rows.reduce((x, row) => x + row.rdna3.reduce((m, c) => m + (c.runs || 0), 0), 0));
  const hottest = Math.max(0, ...sums);
  const boxes = more.parts.map((part) => {
    const box = el("details", {}, blockHead(k, part, hottest, ofPart(more, part)));
    box.addEventListener("toggle", () => { if (box.open) fill(box, k, part, more); });
    return box;
  });
  shown = { n, k, more, boxes, parts: more.parts };
  put(
    el("div", { class: "facts" },
      facts("", [["state", tag(k.status)], ["engine", k.asked ? askedLine(k.asked) : k.engine], ["blocks", num(k.blocks)],
        ["verdicts", verdictLine(k.verdicts)], ["points where lanes wait", num(k.waiting_points)],
        ["recursion", k.comes_apart ? "an NVIDIA GPU may run lanes apart that stay together here" : null],
        ["SASS", `${num(k.sass)} instructions, ${num(k.sass_without_code)} without code`],
        ["RDNA3", `${num(k.rdna3)} instructions, ${num(k.code_bytes)} bytes`],
        ["added", addedLine(k.added)], ["name", el("span", { class: "mono" }, k.name)], ["from", k.where]]),
      el("div", {}, facts(k.arch, [["registers", num(s.registers)], ["shared memory", `${num(s.shared)} bytes`],
        ["stack", `${num(s.stack)} bytes per thread`], ["barriers", num(s.barriers)],
        ["occupancy", occupancy(s.occupancy)]]),
        k.runs ? facts("run", [["launches", num(k.runs.launches)], ["workgroups", num(k.runs.workgroups)],
        ["waves", num(k.runs.waves)], ["executed", `${num(k.runs.executed)} RDNA3 instructions`]]) : null),
      facts(data.target, [["VGPRs", num(a.vgprs) + (a.spilled ? `, ${a.spilled} registers in scratch` : "")],
        ["SGPRs", num(a.sgprs)], ["LDS", `${num(a.lds)} bytes`], ["scratch", `${num(a.scratch)} bytes per lane`],
        ["threads of a block", `at most ${num(a.max_threads)}`], ["occupancy", occupancy(a.occupancy)]])),
    el("p", { class: "faint" }, `Occupancy of blocks of ${r.threads} threads (${r.threads_are})` +
      (r.dynamic_shared ? ` with ${num(r.dynamic_shared)} bytes of dynamic shared memory.` : ".")),
    hot(k, more, boxes), el("h2", {}, "Blocks"), allRegions(more), boxes);
  if (boxes.length < 3) boxes.forEach((b) => { b.open = true; });
  scrollTo(0, 0);
  at = -1;
}
function route() {
  const n = /^#\d+$/.test(location.hash) ? +location.hash.slice(1) : -1;
  if (data.kernels[n]) return kernel(n);
  find.value = "";
  summary();
}

// --- searching, keys -----------------------------------------------------------------------------

let hits = [], hit = -1;
function search() {
  if (!shown) return list();
  const word = find.value.toLowerCase();
  document.querySelectorAll("tr.hit").forEach((r) => r.classList.remove("hit"));
  hits = []; hit = -1;
  if (word) shown.parts.forEach((p, i) => p.rows.forEach((row) => {
    const text = [row.sass ? row.sass.text : "", row.rule || "", ...row.rdna3.map((c) => `${c.text} ${c.added || ""}`)];
    if (text.some((t) => t.toLowerCase().includes(word))) hits.push([i, row]);
  }));
  count.textContent = word ? `${hits.length} found` : "";
}
function nextHit(by) {
  if (!hits.length) return;
  hit = (hit + by + hits.length) % hits.length;
  const [i, row] = hits[hit], box = shown.boxes[i];
  box.open = true;
  fill(box, shown.k, shown.parts[i], shown.more);
  let line;
  for (;;) {
    line = [...box.querySelectorAll("tr.i")].find((r) => r.row === row);
    const more = box.querySelector("button.more");
    if (line || !more || more.hidden) break;
    more.click();
  }
  if (!line) return;
  line.classList.add("hit");
  line.scrollIntoView({ block: "center" });
  line.focus({ preventScroll: true });
  count.textContent = `${hit + 1} of ${hits.length}`;
}
function step(by) {
  const lines = [...document.querySelectorAll(shown ? "details[open] tr.i, details>summary" : "tr.go")];
  if (!lines.length) return;
  const now = lines.indexOf(document.activeElement.closest("tr,summary"));
  at = Math.min(lines.length - 1, Math.max(0, now < 0 ? (by > 0 ? 0 : lines.length - 1) : now + by));
  const line = lines[at], focus = line.querySelector("a") || line;
  document.querySelectorAll("tr.go.at").forEach((r) => r.classList.remove("at"));
  if (!shown) line.classList.add("at");
  focus.focus();
  line.scrollIntoView({ block: "nearest" });
  if (!detail.hidden && line.matches("tr.i")) line.click();
}
function stepBlock(by) {
  if (!shown || !shown.boxes.length) return;
  const now = shown.boxes.indexOf(document.activeElement.closest("details"));
  reveal(shown.boxes[(now + by + shown.boxes.length) % shown.boxes.length]);
}
function toggleAll() {
  if (!shown) return;
  const open = shown.boxes.some((b) => !b.open);
  if (open && shown.parts.reduce((n, p) => n + p.rows.length, 0) > 20000) {
    count.textContent = "too many rows to open all"; return;
  }
  shown.boxes.forEach((b) => { b.open = open; });
}
function theme() {
  const dark = matchMedia("(prefers-color-scheme:dark)").matches;
  const now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
  document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
}
function back() {
  if (!detail.hidden) closeDetail();
  else if (shown) { const n = shown.n; location.hash = ""; setTimeout(() => {
    const row = document.querySelector(`tr[data-k="${n}"] a`);
    if (row) row.focus();
  }, 0); }
}
const keys = {
  j: () => step(1), k: () => step(-1), n: () => hits.length ? nextHit(1) : stepBlock(1),
  p: () => hits.length ? nextHit(-1) : stepBlock(-1), a: toggleAll, t: theme, Escape: back,
  "/": () => { find.focus(); find.select(); }, "?": () => $("#help").showModal(),
};
document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || $("#help").open) return;
  if (e.target === find) {
    if (e.key === "Enter") { if (shown) nextHit(e.shiftKey ? -1 : 1); else step(1); e.preventDefault(); }
    else if (e.key === "Escape") { find.value = ""; search(); find.blur(); e.preventDefault(); }
    return;
  }
  if (e.key === "Enter" && e.target.matches?.("tr.i")) { e.target.click(); e.preventDefault(); return; }
  if (!keys[e.key]) return;
  keys[e.key](); e.preventDefault();
});
find.addEventListener("input", search);
const actions = { all: toggleAll, theme, help: keys["?"] };
document.querySelectorAll("button[data-do]").forEach((b) => b.addEventListener("click", () => actions[b.dataset.do]()));
$("#top").addEventListener("click", (e) => { e.preventDefault(); location.hash = ""; if (!shown) summary(); });
data.kernels.forEach((k, i) => { k.i = i; });
addEventListener("hashchange", route);
route();
document.documentElement.dataset.ready = "1";
})();
