"use strict";
// One kernel's graph: draws what is in view, folds blocks, follows registers, searches.
// Places come from the layout in Python: a point's height is (gap, offset), so folding a block
// only moves rows.
(() => {
const G = JSON.parse(document.getElementById("data").textContent);
const NS = "http://www.w3.org/2000/svg";
const svg = document.getElementById("graph"), said = document.getElementById("said");
const find = document.getElementById("find"), count = document.getElementById("count");
const { char: CHAR, line: LINE, pad: PAD, head: HEAD } = G.text;
const make = (name, attributes, parent) => {
  const e = document.createElementNS(NS, name);
  for (const k in attributes) e.setAttribute(k, attributes[k]);
  if (parent) parent.appendChild(e);
  return e;
};
const camera = make("g", {}, svg);
const layers = ["halos", "arcs", "blocks"].map(() => make("g", {}, camera));
const view = { x: 0, y: 0, z: 1 };
const folded = new Set(), chainOf = new Map();
let rowY = [], gapY = [], height = 0, focus = -1, line = -1, register = "", pinned = false;
let hits = [], hit = -1, queued = false;

// --- places -----------------------------------------------------------------------------------
const full = (n) => 2 * PAD + LINE * (HEAD + n.L.length);
const tall = (i) => (folded.has(i) ? 2 * PAD + LINE * HEAD : full(G.nodes[i]));
function places() {
  const heights = new Array(G.gaps.length - 1).fill(0);
  G.nodes.forEach((n, i) => { heights[n.r] = Math.max(heights[n.r], tall(i)); });
  let y = 0;
  gapY = []; rowY = [];
  G.gaps.forEach((gap, g) => {
    gapY.push(y); y += gap;
    if (g < heights.length) { rowY.push(y); y += heights[g]; }
  });
  height = y;
}
const top_ = (i) => rowY[G.nodes[i].r];
const bottom = (i) => top_(i) + tall(i);
function points(arc) {
  const p = arc.p, last = p.length - 1;
  return p.map(([x, g, o], k) =>
    `${x},${k === 0 ? bottom(arc.s) : k === last ? top_(arc.t) : gapY[g] + o}`).join(" ");
}

// --- drawing ----------------------------------------------------------------------------------
const shapes = G.nodes.map((n, i) => {
  const halos = n.lp.map((_, d) => make("rect", { class: "halo" }, layers[0]));
  const g = make("g", { class: "b" + (n.lost ? " lost" : ""), id: "b" + i }, layers[2]);
  return { g, halos, drawn: false };
});
const lines = G.arcs.map((a) => {
  const e = make("polyline", {
    class: `e ${a.k}${a.b ? " back" : ""}`, "marker-end": `url(#m-${a.k})`,
  }, layers[1]);
  const letter = { taken: "T", fall: "F" }[a.k];
  const t = letter ? make("text", { class: `l ${a.k}` }, layers[1]) : null;
  if (t) t.textContent = letter;
  return { e, t };
});
function move() {
  places();
  G.arcs.forEach((a, k) => {
    const { e, t } = lines[k];
    e.setAttribute("points", points(a));
    if (t) { t.setAttribute("x", a.p[0][0] + 3); t.setAttribute("y", bottom(a.s) + 9); }
  });
  shapes.forEach((s, i) => {
    const n = G.nodes[i];
    s.g.setAttribute("transform", `translate(${n.x},${top_(i)})`);
    s.halos.forEach((h, d) => {
      const wider = 6 * (n.lp.length - d);
      h.setAttribute("x", n.x - wider); h.setAttribute("y", top_(i) - 5);
      h.setAttribute("width", n.w + 2 * wider); h.setAttribute("height", tall(i) + 10);
    });
    frame(i);
  });
  draw();
}
function frame(i) {  // what is there of a block before its text is
  const n = G.nodes[i], g = shapes[i].g;
  g.replaceChildren();
  shapes[i].drawn = false;
  make("rect", { class: "r", width: n.w, height: tall(i) }, g);
  if (n.d) make("rect", { class: "bar", width: 4, height: tall(i) }, g);
  if (n.j.length) make("path", { class: "join", d: `M0 -3h${n.w}` }, g);
  if (n.warm > 0) {
    make("rect", { class: "warm", x: 0.5, y: 0.5, width: n.w - 1, height: LINE + PAD,
      "fill-opacity": n.warm }, g);
  }
  if (n.heat) {
    const part = (tall(i) - 2) * n.heat;
    make("rect", { class: "heat", x: n.w - 5, y: tall(i) - 1 - part, width: 4, height: part }, g);
  }
}
const NAME = new RegExp("\\b(?:UR|UP|R|P|B)\\d+\\b|\\b[vs]\\[\\d+:\\d+\\]|\\b[vs]\\d+\\b" +
  "|\\b(?:vcc|exec)(?:_lo|_hi)?\\b|\\bm0\\b|\\bscc\\b", "g");
function names(token) {  // the registers that an operand's text stands for
  const range = /^([vs])\[(\d+):(\d+)\]$/.exec(token);
  if (!range) return token === "vcc" || token === "exec" ? [token + "_lo", token + "_hi"] : [token];
  const out = [];
  for (let k = +range[2]; k <= +range[3]; k++) out.push(range[1] + k);
  return out;
}
const lit = (list) => register && names(register).some((r) => list.includes(r));
function write(i) {  // a block's text, when it comes into view
  const n = G.nodes[i], s = shapes[i], left = PAD + 2;
  if (s.drawn) frame(i);
  s.drawn = true;
  const head = make("text", { class: n.warm >= 0 ? "h ran" : "h", x: left, y: PAD + 11 }, s.g);
  const chain = chainOf.get(i);
  head.textContent = n.h + (folded.has(i) ? "  …" : "") +
    (chain && chain[0] === i && folded.has(i) ? `  chain of ${chain.length} blocks` : "");
  let defines = false, uses = false;
  n.L.forEach(([offset, text, w, r], k) => {
    const d = lit(w), u = lit(r);
    defines ||= d; uses ||= u;
    if (folded.has(i)) return;
    const y = PAD + 11 + LINE * (k + 1);
    const found = hits.length && hits[hit] && hits[hit][0] === i && hits[hit][1] === k;
    const state = d ? " def" : u ? " use" : found ? " found" : focus === i && line === k ? " at" : "";
    if (state) make("rect", { class: "line" + state, x: 5, y: y - 11.5, width: n.w - 11,
      height: LINE }, s.g);
    const t = make("text", { x: left, y }, s.g);
    make("tspan", { class: "o" }, t).textContent = offset.toString(16).padStart(4, "0") + "  ";
    let at = 0;
    const shown = text.length > G.text.widest ? text.slice(0, G.text.widest - 1) + "…" : text;
    for (const m of shown.matchAll(NAME)) {
      t.append(shown.slice(at, m.index));
      const same = register && names(register).some((x) => names(m[0]).includes(x));
      const e = make("tspan", { class: "reg" + (same ? " lit" : ""), "data-r": m[0] }, t);
      e.textContent = m[0];
      at = m.index + m[0].length;
    }
    t.append(shown.slice(at));
  });
  if (defines || uses) {
    make("text", { class: "mark", x: n.w - 34, y: PAD + 10 }, s.g).textContent =
      (defines ? "DEF " : "") + (uses ? "USE" : "");
  }
  s.g.classList.toggle("on", focus === i);
}
const byRow = [];
G.nodes.forEach((n, i) => (byRow[n.r] ||= []).push(i));
function draw(again) {
  camera.setAttribute("transform", `translate(${view.x},${view.y}) scale(${view.z})`);
  const { width: W, height: H } = svg.getBoundingClientRect();
  const x0 = -view.x / view.z, y0 = -view.y / view.z, x1 = x0 + W / view.z, y1 = y0 + H / view.z;
  if (again) shapes.forEach((s, i) => { if (s.drawn) frame(i); });
  const readable = view.z > 0.28;  // smaller text is only grey
  byRow.forEach((some, r) => {
    if (rowY[r] > y1 || gapY[r + 1] < y0) return;
    for (const i of some) {
      const n = G.nodes[i];
      if (n.x < x1 && n.x + n.w > x0 && (readable || focus === i) && !shapes[i].drawn) write(i);
    }
  });
}
const later = () => {
  if (!queued) { queued = true; requestAnimationFrame(() => { queued = false; draw(); }); }
};

// --- the camera -------------------------------------------------------------------------------
function zoom(by, cx, cy) {
  const z = Math.min(6, Math.max(0.004, view.z * by));
  const { width, height: h } = svg.getBoundingClientRect();
  cx ??= width / 2; cy ??= h / 2;
  view.x = cx - (cx - view.x) * z / view.z;
  view.y = cy - (cy - view.y) * z / view.z;
  view.z = z;
  later();
}
function fit() {
  const { width, height: h } = svg.getBoundingClientRect();
  view.z = Math.min(1, width / (G.width + 20), h / (height + 20));
  view.x = (width - G.width * view.z) / 2; view.y = 10;
  later();
}
function see(i, k = -1) {
  const { width, height: h } = svg.getBoundingClientRect();
  if (view.z < 0.35) view.z = 0.9;
  const n = G.nodes[i], y = top_(i) + (k >= 0 && !folded.has(i) ? LINE * (k + 1) : 0);
  const sx = (n.x + n.w / 2) * view.z + view.x, sy = y * view.z + view.y;
  if (sx < 60 || sx > width - 60) view.x = width / 2 - (n.x + n.w / 2) * view.z;
  if (sy < 30 || sy > h - 80) view.y = h / 3 - y * view.z;
  later();
}
function select(i, k = -1) {
  const before = focus;
  focus = i; line = k;
  for (const j of [before, i]) if (j >= 0 && shapes[j].drawn) write(j);
  if (i < 0) return;
  see(i, k);
  const n = G.nodes[i];
  const out = G.arcs.filter((a) => a.s === i).map((a) => `${a.k} ${G.nodes[a.t].n}`).join(", ");
  const one = k >= 0 ? n.L[k] : null;
  said.textContent = one
    ? `${one[1]}   writes ${one[2].join(" ") || "-"}   reads ${one[3].join(" ") || "-"}`
    : `block ${n.h}${n.d ? ", divergent" : ""}${n.lp.length ? `, loop depth ${n.lp.length}` : ""}` +
      (out ? `; to ${out}` : "; ends here");
  later();
}
let drag = null;
svg.addEventListener("pointerdown", (e) => { drag = [e.clientX, e.clientY]; });
svg.addEventListener("pointermove", (e) => {
  if (!drag) return;
  if (!svg.classList.contains("moving")) {
    if (Math.hypot(e.clientX - drag[0], e.clientY - drag[1]) < 3) return;
    svg.classList.add("moving"); svg.setPointerCapture(e.pointerId);
  }
  view.x += e.clientX - drag[0]; view.y += e.clientY - drag[1];
  drag = [e.clientX, e.clientY];
  later();
});
svg.addEventListener("pointerup", (e) => {
  const moved = svg.classList.contains("moving");
  drag = null; svg.classList.remove("moving");
  if (moved) return;
  const reg = e.target.closest(".reg"), block = e.target.closest(".b");
  if (reg) { pinned = register !== reg.dataset.r || !pinned; follow(pinned ? reg.dataset.r : ""); }
  else if (block) select(+block.id.slice(1));
});
svg.addEventListener("pointercancel", () => { drag = null; svg.classList.remove("moving"); });
svg.addEventListener("wheel", (e) => {
  e.preventDefault();
  const box = svg.getBoundingClientRect();
  if (e.shiftKey) { view.x -= e.deltaY; later(); }
  else zoom(Math.exp(-e.deltaY * 0.0015), e.clientX - box.left, e.clientY - box.top);
}, { passive: false });
svg.addEventListener("dblclick", (e) => {
  const block = e.target.closest(".b");
  if (block) fold(+block.id.slice(1));
});

// --- registers, folding, search ---------------------------------------------------------------
function follow(name) {
  register = name;
  draw(true);
  if (!name) return;
  const sum = [0, 0];
  for (const n of G.nodes) for (const l of n.L) { sum[0] += lit(l[2]); sum[1] += lit(l[3]); }
  said.textContent = `${name}: written by ${sum[0]} instructions, read by ${sum[1]}` +
    (pinned ? " (Esc lets go)" : "");
}
svg.addEventListener("pointerover", (e) => {
  const reg = e.target.closest && e.target.closest(".reg");
  if (pinned || drag) return;
  const name = reg ? reg.dataset.r : "";
  if (name !== register) follow(name);
});
const outs = G.nodes.map(() => []), ins = G.nodes.map(() => []);
for (const a of G.arcs) { outs[a.s].push(a); ins[a.t].push(a); }
G.nodes.forEach((_, i) => {  // straight chains: one way on, and nobody else comes there
  const begins = !(ins[i].length === 1 && outs[ins[i][0].s].length === 1);
  if (!begins) return;
  const chain = [i];
  for (let at = i; outs[at].length === 1; ) {
    const next = outs[at][0].t;
    if (ins[next].length !== 1 || chain.includes(next)) break;
    chain.push(next); at = next;
  }
  if (chain.length > 1) chain.forEach((n) => chainOf.set(n, chain));
});
function keep(change) {  // the focused block stays where it is on the screen
  const i = focus >= 0 ? focus : 0, before = G.nodes.length ? top_(i) : 0;
  change();
  move();
  if (G.nodes.length) view.y += (before - top_(i)) * view.z;
  later();
}
const fold = (i) => keep(() => { folded.has(i) ? folded.delete(i) : folded.add(i); });
function chains() {
  const all = [...chainOf.keys()];
  const off = all.length && all.every((i) => folded.has(i));
  keep(() => all.forEach((i) => (off ? folded.delete(i) : folded.add(i))));
  said.textContent = all.length
    ? `${new Set(chainOf.values()).size} straight chains ${off ? "unfolded" : "folded"}`
    : "no straight chains";
}
function search(text) {
  const low = text.toLowerCase();
  hits = []; hit = -1;
  if (low) G.nodes.forEach((n, i) => {
    if (n.h.toLowerCase().startsWith(low)) hits.push([i, -1]);
    n.L.forEach((l, k) => {
      const where = l[0].toString(16).padStart(4, "0");
      if (l[1].toLowerCase().includes(low) || where === low) hits.push([i, k]);
    });
  });
  count.textContent = low ? `${hits.length} found` : "";
  if (hits.length) step(1); else draw(true);
}
function step(by) {
  if (!hits.length) return;
  hit = (hit + by + hits.length) % hits.length;
  count.textContent = `${hit + 1} of ${hits.length}`;
  const [i, k] = hits[hit];
  if (folded.has(i)) { folded.delete(i); move(); }
  draw(true);
  select(i, k);
}
find.addEventListener("input", () => search(find.value));
find.addEventListener("keydown", (e) => {
  if (e.key === "Enter") { step(e.shiftKey ? -1 : 1); e.preventDefault(); }
  if (e.key === "Escape") { find.value = ""; search(""); svg.focus(); }
  e.stopPropagation();
});

// --- keys -------------------------------------------------------------------------------------
function beside(by) {
  const row = byRow[G.nodes[focus].r].slice().sort((a, b) => G.nodes[a].x - G.nodes[b].x);
  const next = row[row.indexOf(focus) + by];
  if (next !== undefined) select(next);
}
function lineBy(by) {
  const n = G.nodes[focus], k = line + by;
  if (folded.has(focus)) return;
  if (k >= 0 && k < n.L.length) select(focus, k);
}
function nextRegister() {
  if (focus < 0 || line < 0) return;
  const tokens = [...G.nodes[focus].L[line][1].matchAll(NAME)].map((m) => m[0]);
  const at = tokens.indexOf(register);
  pinned = at + 1 < tokens.length;
  follow(pinned ? tokens[at + 1] : "");
}
function theme() {
  const dark = matchMedia("(prefers-color-scheme:dark)").matches;
  const now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
  document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
}
const help = document.getElementById("help");
const pan = (dx, dy) => { view.x += dx; view.y += dy; later(); };
const keys = {
  ArrowDown: () => outs[focus].length && select(outs[focus][0].t),
  ArrowUp: () => ins[focus].length && select((ins[focus].find((a) => !a.b) || ins[focus][0]).s),
  ArrowLeft: () => beside(-1), ArrowRight: () => beside(1),
  j: () => lineBy(1), k: () => lineBy(-1), r: nextRegister,
  Enter: () => fold(focus), " ": () => fold(focus),
};
const always = {
  "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), 0: fit, c: chains,
  n: () => step(1), N: () => step(-1), t: theme, "?": () => help.showModal(),
  "/": () => { find.focus(); find.select(); },
  Escape: () => { pinned = false; follow(""); said.textContent = ""; },
  Home: () => select(0), End: () => select(G.nodes.length - 1),
};
document.addEventListener("keydown", (e) => {
  const on = (what) => e.target instanceof Element && e.target.matches(what);
  if (help.open || on("input") || e.ctrlKey || e.metaKey || e.altKey) return;
  if (on("button") && (e.key === "Enter" || e.key === " ")) return;
  const far = { ArrowDown: [0, -80], ArrowUp: [0, 80], ArrowLeft: [80, 0], ArrowRight: [-80, 0] };
  if (e.shiftKey && far[e.key]) pan(...far[e.key]);
  else if (always[e.key]) always[e.key]();
  else if (keys[e.key] && G.nodes.length) { if (focus < 0) select(0); else keys[e.key](); }
  else return;
  e.preventDefault();
});
const actions = { in: () => zoom(1.25), out: () => zoom(0.8), fit, chains, theme,
  help: () => help.showModal(), next: () => step(1), last: () => step(-1) };
for (const b of document.querySelectorAll("button[data-do]")) {
  b.addEventListener("click", () => actions[b.dataset.do]());
}
addEventListener("resize", later);
addEventListener("beforeprint", () => {
  shapes.forEach((s, i) => { if (!s.drawn) write(i); });
  svg.setAttribute("viewBox", `0 0 ${G.width} ${height}`);
  camera.removeAttribute("transform");
});
addEventListener("afterprint", () => { svg.removeAttribute("viewBox"); draw(); });
move();
if (G.nodes.length) {
  const { width } = svg.getBoundingClientRect();
  view.z = Math.min(1, Math.max(0.5, width / (G.width + 20)));
  view.x = width / 2 - (G.nodes[0].x + G.nodes[0].w / 2) * view.z; view.y = 12;
  draw();
}
document.documentElement.dataset.ready = "1";
})();
