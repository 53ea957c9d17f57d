"use strict";
// One kernel's graph: folds blocks, follows registers, searches; drawing.js draws what is in view.
(() => {
const G = JSON.parse(document.getElementById("data").textContent);
const svg = document.getElementById("graph"), said = document.getElementById("said");
const find = document.getElementById("find"), count = document.getElementById("count");
const room = rectOf(svg);  // while it is empty
const chainOf = new Map();
let focus = -1, line = -1, register = "", pinned = false, hits = [], hit = -1;
const lit = (list) => register && names(register).some((r) => list.includes(r));
const D = drawing(svg, G, {
  on: (i) => focus === i,
  state: (i, k) => {
    const found = hits.length && hits[hit] && hits[hit][0] === i && hits[hit][1] === k;
    return found ? " found" : focus === i && line === k ? " at" : "";
  },
  title: (i) => {
    const chain = chainOf.get(i);
    return chain && chain[0] === i && D.folded.has(i) ? `  chain of ${chain.length} blocks` : "";
  },
  lit, is: (token) => register && names(register).some((x) => names(token).includes(x)),
  kind: () => "", name: "b", drawn: () => {},
});
const { draw, fit, folded, ins, later, move, outs, pan, see, shapes, view, write, zoom } = D;
const top_ = D.top;

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
const dragging = mouse(svg, {
  click: (i, e) => {
    const reg = e.target.closest(".reg");
    if (reg) {
      pinned = register !== reg.dataset.r || !pinned;
      follow(pinned ? reg.dataset.r : "");
    } else if (i >= 0) select(i);
  },
  drag: pan, wheel: zoom,
});
svg.addEventListener("dblclick", (e) => {
  const i = blockAt(e);
  if (i >= 0) fold(i);
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
  if (pinned || dragging()) return;
  const name = reg ? reg.dataset.r : "";
  if (name !== register) follow(name);
});
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
  const row = D.byRow[G.nodes[focus].r].slice().sort((a, b) => G.nodes[a].x - G.nodes[b].x);
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
const help = document.getElementById("help");
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
  svg.setAttribute("viewBox", `0 0 ${G.width} ${D.tallest()}`);
  D.camera.removeAttribute("transform");
});
addEventListener("afterprint", () => { svg.removeAttribute("viewBox"); draw(); });
if (G.nodes.length) {
  view.z = Math.min(1, Math.max(0.5, room.width / (G.width + 20)));
  view.x = room.width / 2 - (G.nodes[0].x + G.nodes[0].w / 2) * view.z; view.y = 12;
}
move();
document.documentElement.dataset.ready = "1";
})();
