"use strict";
// Two graphs side by side: pairs of blocks are joined, both move together, a pair's instructions
// are below.  Several kernels have an overview first; their graphs unpack when they are opened.
(() => {
const $ = (id) => document.getElementById(id);
const KERNELS = JSON.parse($("kernels").textContent);
const said = $("said"), count = $("count"), find = $("find"), pairBox = $("pair");
const panes = [$("left"), $("right")], help = $("help");
let K = null;  // the open kernel: data, two drawings, groups of each block
let mode = "", sel = [-1, -1], side = 0, stop = -1, together = true, hits = [], hit = -1;
let opening = 0;

// --- opening ----------------------------------------------------------------------------------
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}
async function open_(number) {
  const mine = ++opening;
  const from = $(`k${number}`);
  if (!from) {
    said.textContent = KERNELS[number].why;
    return;
  }
  const data = from.type === "application/json"
    ? JSON.parse(from.textContent) : await unpacked(from.textContent);
  if (mine !== opening) return;  // the reader went elsewhere
  const of = data.sides.map((g) => g.nodes.map(() => []));
  data.groups.forEach((g, n) => [g.l, g.r].forEach((some, s) =>
    some.forEach((i) => of[s][i].push(n))));
  K = { data, of, stops: data.groups.flatMap((g, n) => (g.d ? [n] : [])), drawn: [] };
  sel = [-1, -1]; stop = -1; hits = []; hit = -1; side = 0; find.value = ""; count.textContent = "";
  $("title").textContent = data.title; $("facts").textContent = data.facts;
  $("listing").replaceChildren(); pairBox.replaceChildren();
  show("graphs");
  panes.forEach((svg, s) => {
    svg.querySelectorAll("g").forEach((g) => g.remove());
    $(`who${s}`).textContent = data.who[s];
  });
  begin();
}
const look = (s) => ({
  name: s ? "right-b" : "left-b",
  on: (i) => sel[s] === i || partners(1 - s, sel[1 - s]).includes(i),
  state: (i, k) => (hit >= 0 && hits[hit][0] === s && hits[hit][1] === i && hits[hit][2] === k
    ? " found" : ""),
  title: () => "", lit: () => false, is: () => false,
  kind: (i) => ` s-${K.data.kinds[s][i]}`,
  drawn: joined,
});
function partners(s, i) {
  if (i < 0 || !K) return [];
  const groups = K.of[s][i].map((n) => K.data.groups[n]);
  return groups.flatMap((g) => (s ? g.l : g.r));
}
function begin() {  // draws both, the first pair at the top
  unmeasured();
  const [, ...boxes] = [$("graphs"), ...panes].map(rectOf);  // while they are empty
  const zs = boxes.map((box, s) => box.width / (K.data.sides[s].width + 20));
  const z = Math.min(1, Math.max(0.5, Math.min(...zs)));
  K.data.sides.forEach((side_, s) => {
    const D = K.drawn[s] = drawing(panes[s], side_, look(s)), n = side_.nodes[0];
    if (n) {
      D.view.z = z;
      D.view.x = boxes[s].width / 2 - (n.x + n.w / 2) * z; D.view.y = 12;
    }
    D.move();
  });
}
function show(what) {
  mode = what;
  for (const name of ["overview", "graphs", "listing"]) $(name).hidden = name !== what;
  pairBox.hidden = what !== "graphs" || !pairBox.firstChild;
  document.body.dataset.mode = what;
  unmeasured();
  if (what === "listing" && !$("listing").firstChild) list();
  if (what === "overview") { $("title").textContent = document.title; $("facts").textContent = ""; }
  else if (K) { $("title").textContent = K.data.title; $("facts").textContent = K.data.facts; }
  if (what === "graphs") panes[side].focus({ preventScroll: true });
}

// --- joined blocks ----------------------------------------------------------------------------
const overlay = $("links");
function joined() {
  if (!K || K.drawn.length < 2) return;
  const frame = rectOf($("graphs"));
  const boxes = panes.map(rectOf);
  const place = (s, i) => {
    const { view: v, top, bottom } = K.drawn[s], n = K.data.sides[s].nodes[i], b = boxes[s];
    const x = (s ? n.x : n.x + n.w) * v.z + v.x, y0 = top(i) * v.z + v.y, y1 = bottom(i) * v.z + v.y;
    const seen = y1 > 0 && y0 < b.height && (n.x + n.w) * v.z + v.x > 0 && n.x * v.z + v.x < b.width;
    const y = Math.min(Math.max((y0 + Math.min(y1, y0 + 44)) / 2, 2), b.height - 2);
    return [Math.min(Math.max(x, 0), b.width) + b.left - frame.left, y + b.top - frame.top, seen];
  };
  const few = K.drawn[0].view.z > 0.12, out = [];
  K.data.groups.forEach((g) => {
    for (const i of g.l) for (const j of g.r) {
      const on = sel[0] === i && sel[1] === j || sel[side] === (side ? j : i);
      if (!few && !on) continue;
      const a = place(0, i), b = place(1, j);
      if (!on && !(a[2] && b[2])) continue;
      const bend = Math.max(20, (b[0] - a[0]) / 2);
      out.push([on, `link s-${g.s}${g.m ? " moved" : ""}${on ? " on" : ""}`,
        `M${a[0]} ${a[1]}C${a[0] + bend} ${a[1]} ${b[0] - bend} ${b[1]} ${b[0]} ${b[1]}`]);
    }
  });
  out.sort((a, b) => a[0] - b[0]);
  overlay.replaceChildren(...out.slice(-120).map(([, name, d]) => make("path", { class: name, d })));
}

// --- a pair's instructions --------------------------------------------------------------------
function cell(row, ref, s, mark) {
  const td = row.insertCell();
  if (!ref) return td;
  const [offset, text] = K.data.sides[s].nodes[ref[0]].L[ref[1]];
  td.className = mark;
  const sign = { gone: "- ", new: "+ " }[mark] || "";
  const o = document.createElement("span");
  o.className = "o"; o.textContent = offset.toString(16).padStart(4, "0");
  td.append(sign, o, `  ${text}`);
  return td;
}
function rowsOf(g) {  // [left, right, why]: a line is (block, number)
  if (g.rows) return g.rows;
  const lines = (s, some) => some.flatMap((i) => K.data.sides[s].nodes[i].L.map((_, k) => [i, k]));
  const a = lines(0, g.l), b = lines(1, g.r), out = [];
  for (let k = 0; k < Math.max(a.length, b.length); k++) out.push([a[k], b[k]]);
  return out;
}
function table(g) {
  const t = document.createElement("table");
  for (const [a, b, why] of rowsOf(g)) {
    const row = t.insertRow();
    const text = (s, r) => K.data.sides[s].nodes[r[0]].L[r[1]][1];
    let marks = ["", ""];
    if (K.data.exact) marks = ["", a || !b ? "" : "add"];
    else if (a && b) marks = text(0, a) === text(1, b) ? ["", ""] : ["ren", "ren"];
    else marks = ["gone", "new"];
    const cells = [cell(row, a, 0, marks[0]), cell(row, b, 1, marks[1])];
    if (!why) continue;
    const note = document.createElement("span");
    note.className = "k"; note.textContent = why;
    cells[b || !a ? 1 : 0].prepend(note);
  }
  return t;
}
function panel(s, i) {
  const groups = K.of[s][i].map((n) => K.data.groups[n]);
  pairBox.replaceChildren(...groups.flatMap((g) => {
    const head = document.createElement("h2");
    head.textContent = g.h;
    return [head, table(g)];
  }));
  pairBox.hidden = !groups.length;
  pairBox.scrollTop = 0;
  unmeasured();
}

// --- selecting, moving ------------------------------------------------------------------------
function select(s, i) {
  const before = [0, 1].map((t) => [sel[t], ...partners(1 - t, sel[1 - t])]);
  side = s;
  const others = partners(s, i);
  sel[s] = i; sel[1 - s] = others[0] ?? -1;
  panel(s, i);
  before.forEach((some, t) => {
    const D = K.drawn[t];
    for (const j of new Set([...some, sel[t], ...(t === s ? [] : others)])) {
      if (j >= 0 && D.shapes[j].drawn) D.write(j);
    }
  });
  K.drawn[s].see(i);
  if (together && sel[1 - s] >= 0) align(s);
  const n = K.data.sides[s].nodes[i];
  said.textContent = K.of[s][i].map((g) => K.data.groups[g].h).join("; ") || n.h;
  stop = K.stops.findIndex((g) => K.of[s][i].includes(g));
  count.textContent = stop >= 0 ? `${stop + 1} of ${K.stops.length}` : "";
  panes[s].focus({ preventScroll: true });
}
function align(s) {  // the partner at the height of the selected block
  const [from, to] = [K.drawn[s], K.drawn[1 - s]], j = sel[1 - s];
  const n = K.data.sides[1 - s].nodes[j], { width } = rectOf(panes[1 - s]);
  to.view.z = from.view.z;
  to.view.y = from.view.y + (from.top(sel[s]) - to.top(j)) * from.view.z;
  to.view.x = width / 2 - (n.x + n.w / 2) * to.view.z;
  to.later();
}
const both = (s, f) => [s, ...(together ? [1 - s] : [])].forEach((t) => f(K.drawn[t]));
const zoom = (by) => both(side, (D) => D.zoom(by));
panes.forEach((svg, s) => svg.addEventListener("focus", () => { side = s; }));
function listen() {  // once: a kernel's drawings come and go, the elements stay
  const on = (s) => ({
    click: (i) => { if (i >= 0) select(s, i); },
    drag: (dx, dy) => both(s, (D) => D.pan(dx, dy)),
    wheel: (by, x, y) => both(s, (D) => D.zoom(by, x, y)),
  });
  panes.forEach((svg, s) => mouse(svg, on(s)));
}
function fit() {
  K.drawn.forEach((D) => D.fit());
  const z = Math.min(...K.drawn.map((D) => D.view.z));
  K.drawn.forEach((D) => D.zoom(z / D.view.z, undefined, 10));
}
function step(by) {
  const stops = K.stops.length;
  if (!stops) { said.textContent = "nothing differs"; return; }
  stop = stop < 0 ? (by > 0 ? 0 : stops - 1) : (stop + by + stops) % stops;
  const at = K.stops[stop], g = K.data.groups[at];
  if (mode === "graphs") select(g.l.length ? 0 : 1, g.l.length ? g.l[0] : g.r[0]);
  count.textContent = `${stop + 1} of ${stops}`;
  if (mode !== "listing") return;
  const part = document.querySelectorAll("#listing [data-differs]")[stop];
  if (part.tagName === "DETAILS") { fill(part); part.open = true; }
  part.scrollIntoView({ block: "start" });
  part.querySelector("summary,h2").focus({ preventScroll: true });
}
function neighbour(key) {
  const D = K.drawn[side], G = K.data.sides[side];
  if (!G.nodes.length) return;
  const i = sel[side];
  if (i < 0) { select(side, 0); return; }
  if (key === "ArrowDown") { if (D.outs[i].length) select(side, D.outs[i][0].t); return; }
  if (key === "ArrowUp") {
    const from = D.ins[i].find((a) => !a.b) || D.ins[i][0];
    if (from) select(side, from.s);
    return;
  }
  const row = D.byRow[G.nodes[i].r].slice().sort((a, b) => G.nodes[a].x - G.nodes[b].x);
  const next = row[row.indexOf(i) + (key === "ArrowLeft" ? -1 : 1)];
  if (next !== undefined) select(side, next);
}
function across() {  // to the partner, and to the next of several
  const others = partners(side, sel[side]);
  if (others.length) select(1 - side, others[0]);
  else panes[1 - side].focus();
}

// --- search -----------------------------------------------------------------------------------
function search(text) {
  const low = text.toLowerCase();
  if (mode === "overview") { filter(low); return; }
  hits = []; hit = -1;
  if (low) K.data.sides.forEach((g, s) => g.nodes.forEach((n, i) => n.L.forEach((l, k) => {
    const where = l[0].toString(16).padStart(4, "0");
    if (l[1].toLowerCase().includes(low) || where === low) hits.push([s, i, k]);
  })));
  if (hits.length) nextHit(1); else count.textContent = low ? "0 found" : "";
}
function nextHit(by) {
  if (!hits.length) return;
  const old = hit >= 0 ? hits[hit] : null;
  hit = (hit + by + hits.length) % hits.length;
  if (old && K.drawn[old[0]].shapes[old[1]].drawn) K.drawn[old[0]].write(old[1]);
  const [s, i, k] = hits[hit];
  if (mode !== "graphs") show("graphs");
  select(s, i);
  K.drawn[s].see(i, k);
  if (sel[1 - s] >= 0 && together) align(s);
  if (K.drawn[s].shapes[i].drawn) K.drawn[s].write(i);
  count.textContent = `${hit + 1} of ${hits.length} found`;
}

// --- the listing ------------------------------------------------------------------------------
function fill(part) {
  if (!part.querySelector("table")) part.append(table(K.data.groups[+part.dataset.g]));
}
function list() {
  $("listing").replaceChildren(...K.data.groups.map((g, n) => {
    const alone = !g.l.length || !g.r.length;
    const part = document.createElement(alone ? "section" : "details");
    const head = document.createElement(alone ? "h2" : "summary");
    head.textContent = g.h;
    if (alone) head.tabIndex = 0;
    part.append(head);
    part.dataset.g = n;
    if (g.d) part.dataset.differs = "";
    if (g.d || alone) fill(part);
    if (!alone) {
      part.open = Boolean(g.d);
      part.addEventListener("toggle", () => { if (part.open) fill(part); });
    }
    return part;
  }));
}
function unfold() {
  const folded = [...document.querySelectorAll("#listing details")];
  const open = folded.some((d) => !d.open);
  folded.forEach((d) => { if (open) fill(d); d.open = open; });
}

// --- the overview -----------------------------------------------------------------------------
const rows = [...document.querySelectorAll("#overview tbody tr")];
rows.forEach((r) => r.addEventListener("click", () => open_(+r.dataset.k)));
function filter(low) {
  let shown = 0;
  rows.forEach((r) => { shown += !(r.hidden = !r.textContent.toLowerCase().includes(low)); });
  count.textContent = low ? `${shown} of ${rows.length}` : "";
}
function rowBy(key) {
  const some = rows.filter((r) => !r.hidden), at = some.indexOf(document.activeElement);
  const to = { ArrowDown: at + 1, ArrowUp: Math.max(at - 1, 0), Home: 0, End: some.length - 1 }[key];
  const row = some[Math.min(to, some.length - 1)];
  if (row) { row.focus(); row.scrollIntoView({ block: "nearest" }); }
}

// --- keys -------------------------------------------------------------------------------------
const far = { ArrowDown: [0, -80], ArrowUp: [0, 80], ArrowLeft: [80, 0], ArrowRight: [-80, 0] };
const sync = () => {
  together = !together;
  said.textContent = together ? "both sides move together" : "each side moves by itself";
};
const toOverview = () => { if (rows.length) { opening++; show("overview"); rowBy("Home"); } };
const toListing = () => { if (K) show(mode === "listing" ? "graphs" : "listing"); };
const always = {
  t: theme, "?": () => help.showModal(), o: toOverview, l: toListing,
  "/": () => { find.focus(); find.select(); },
};
const inBoth = { n: () => step(1), p: () => step(-1) };
const inListing = { a: unfold };
const inGraphs = {
  "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), 0: fit, s: sync,
  Enter: across, N: () => nextHit(1),
  Home: () => select(side, 0), End: () => select(side, K.data.sides[side].nodes.length - 1),
  " ": () => { pairBox.scrollTop += pairBox.clientHeight - 20; },
};
document.addEventListener("keydown", (e) => {
  const on = (what) => e.target instanceof Element && e.target.matches(what);
  if (help.open || on("input") || e.ctrlKey || e.metaKey || e.altKey) return;
  if (on("button,summary") && (e.key === "Enter" || e.key === " ")) return;
  const graphs = mode === "graphs" && K;
  const reading = on("#pair") && (far[e.key] || e.key === " ");  // it scrolls by itself
  if (reading) return;
  if (always[e.key]) always[e.key]();
  else if (mode !== "overview" && K && inBoth[e.key]) inBoth[e.key]();
  else if (mode === "listing" && inListing[e.key]) inListing[e.key]();
  else if (graphs && e.shiftKey && far[e.key]) both(side, (D) => D.pan(...far[e.key]));
  else if (graphs && far[e.key]) neighbour(e.key);
  else if (graphs && inGraphs[e.key]) inGraphs[e.key]();
  else if (mode === "overview" && (far[e.key] || e.key === "Home" || e.key === "End")) rowBy(e.key);
  else if (mode === "overview" && e.key === "Enter" && on("tr")) open_(+e.target.dataset.k);
  else return;
  e.preventDefault();
});
find.addEventListener("input", () => search(find.value));
find.addEventListener("keydown", (e) => {
  if (e.key === "Enter") {
    if (mode === "overview") rowBy("Home"); else nextHit(e.shiftKey ? -1 : 1);
    if (mode !== "overview") find.focus();
    e.preventDefault();
  }
  if (e.key === "Escape") { find.value = ""; search(""); document.activeElement.blur(); }
  e.stopPropagation();
});
const actions = { next: () => K && step(1), last: () => K && step(-1), in: () => K && zoom(1.25),
  out: () => K && zoom(0.8), fit: () => K && fit(), all: unfold, theme, overview: toOverview,
  listing: toListing, sync, help: () => help.showModal() };
document.querySelectorAll("button[data-do]").forEach((b) =>
  b.addEventListener("click", () => actions[b.dataset.do]()));
addEventListener("resize", () => K && mode === "graphs" && K.drawn.forEach((D) => D.later()));
listen();
const ready = () => { document.documentElement.dataset.ready = "1"; };
if (KERNELS.length) { show("overview"); ready(); } else open_(0).then(ready);
})();
