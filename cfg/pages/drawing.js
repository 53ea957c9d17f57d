"use strict";
// A kernel's graph in an SVG element: where blocks and arcs are, what is in view, the camera.
// Places come from the layout in Python: a point's height is (gap, offset), so folding a block
// only moves rows.
const NAME = new RegExp("\\b(?:UR|UP|R|P|B)\\d+\\b|\\b[vs]\\[\\d+:\\d+\\]|\\b[vs]\\d+\\b" +
  "|\\b(?:vcc|exec)(?:_lo|_hi)?\\b|\\bm0\\b|\\bscc\\b", "g");
function names(token) {  // the registers that an operand's text stands for
  const range = /^([vs])\[(\d+):(\d+)\]$/.exec(token);
  if (!range) return token === "vcc" || token === "exec" ? [token + "_lo", token + "_hi"] : [token];
  const out = [];
  for (let k = +range[2]; k <= +range[3]; k++) out.push(range[1] + k);
  return out;
}
function make(name, attributes, parent) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const k in attributes) e.setAttribute(k, attributes[k]);
  if (parent) parent.appendChild(e);
  return e;
}
// Where an element is.  Asking makes the browser lay out all that has changed, so the answer is kept
// until the running script ends, or until unmeasured() says that sizes have changed.
const rects = new Map();
const unmeasured = () => rects.clear();
function rectOf(e) {
  if (!rects.size) queueMicrotask(unmeasured);
  if (!rects.has(e)) rects.set(e, e.getBoundingClientRect());
  return rects.get(e);
}
function theme() {
  const dark = matchMedia("(prefers-color-scheme:dark)").matches;
  const now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
  document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
}
// look: what the page knows of a block.  on(i): it is selected; state(i, k): the class of a line
// that is marked; title(i): what its head says besides; lit(names): the followed register is among
// them; is(token): the token names it; kind(i): a class of the block; name: what its id begins
// with; drawn(): after each frame.
function drawing(svg, G, look) {
const { char: CHAR, line: LINE, pad: PAD, head: HEAD } = G.text;
const camera = make("g", {}, svg);
const layers = ["halos", "arcs", "blocks"].map(() => make("g", {}, camera));
const view = { x: 0, y: 0, z: 1 };
const folded = new Set();
let rowY = [], gapY = [], height = 0, queued = false;

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
  const named = { class: `b${n.lost ? " lost" : ""}${look.kind(i)}`, id: look.name + i };
  const g = make("g", { ...named, "data-b": i }, layers[2]);
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
function write(i) {  // a block's text, when it comes into view
  const n = G.nodes[i], s = shapes[i], left = PAD + 2;
  if (s.drawn) frame(i);
  s.drawn = true;
  const head = make("text", { class: n.warm >= 0 ? "h ran" : "h", x: left, y: PAD + 11 }, s.g);
  head.textContent = n.h + (folded.has(i) ? "  …" : "") + look.title(i);
  let defines = false, uses = false;
  n.L.forEach(([offset, text, w, r], k) => {
    const d = look.lit(w), u = look.lit(r);
    defines ||= d; uses ||= u;
    if (folded.has(i)) return;
    const y = PAD + 11 + LINE * (k + 1);
    const state = d ? " def" : u ? " use" : look.state(i, k);
    if (state) make("rect", { class: "line" + state, x: 5, y: y - 11.5, width: n.w - 11,
      height: LINE }, s.g);
    const t = make("text", { x: left, y }, s.g);
    make("tspan", { class: "o" }, t).textContent = offset.toString(16).padStart(4, "0") + "  ";
    let at = 0;
    const shown = text.length > G.text.widest ? text.slice(0, G.text.widest - 1) + "…" : text;
    for (const m of shown.matchAll(NAME)) {
      t.append(shown.slice(at, m.index));
      const e = make("tspan", { class: "reg" + (look.is(m[0]) ? " lit" : ""), "data-r": m[0] }, t);
      e.textContent = m[0];
      at = m.index + m[0].length;
    }
    t.append(shown.slice(at));
  });
  if (defines || uses) {
    make("text", { class: "mark", x: n.w - 34, y: PAD + 10 }, s.g).textContent =
      (defines ? "DEF " : "") + (uses ? "USE" : "");
  }
  s.g.classList.toggle("on", look.on(i));
}
const byRow = [];
G.nodes.forEach((n, i) => (byRow[n.r] ||= []).push(i));
function draw(again) {
  camera.setAttribute("transform", `translate(${view.x},${view.y}) scale(${view.z})`);
  const { width: W, height: H } = rectOf(svg);
  const x0 = -view.x / view.z, y0 = -view.y / view.z, x1 = x0 + W / view.z, y1 = y0 + H / view.z;
  if (again) shapes.forEach((s, i) => { if (s.drawn) frame(i); });
  const readable = view.z > 0.28;  // smaller text is only grey
  byRow.forEach((some, r) => {
    if (rowY[r] > y1 || gapY[r + 1] < y0) return;
    for (const i of some) {
      const n = G.nodes[i];
      if (n.x < x1 && n.x + n.w > x0 && (readable || look.on(i)) && !shapes[i].drawn) write(i);
    }
  });
  look.drawn();
}
const later = () => {
  if (!queued) { queued = true; requestAnimationFrame(() => { queued = false; draw(); }); }
};

// --- the camera -------------------------------------------------------------------------------
function zoom(by, cx, cy) {
  const z = Math.min(6, Math.max(0.004, view.z * by));
  const { width, height: h } = rectOf(svg);
  cx ??= width / 2; cy ??= h / 2;
  view.x = cx - (cx - view.x) * z / view.z;
  view.y = cy - (cy - view.y) * z / view.z;
  view.z = z;
  later();
}
function fit() {
  const { width, height: h } = rectOf(svg);
  view.z = Math.min(1, width / (G.width + 20), h / (height + 20));
  view.x = (width - G.width * view.z) / 2; view.y = 10;
  later();
}
function see(i, k = -1) {
  const { width, height: h } = rectOf(svg);
  if (view.z < 0.35) view.z = 0.9;
  const n = G.nodes[i], y = top_(i) + (k >= 0 && !folded.has(i) ? LINE * (k + 1) : 0);
  const sx = (n.x + n.w / 2) * view.z + view.x, sy = y * view.z + view.y;
  if (sx < 60 || sx > width - 60) view.x = width / 2 - (n.x + n.w / 2) * view.z;
  if (sy < 30 || sy > h - 80) view.y = h / 3 - y * view.z;
  later();
}

const pan = (dx, dy) => { view.x += dx; view.y += dy; later(); };
const tallest = () => height;
const outs = G.nodes.map(() => []), ins = G.nodes.map(() => []);
for (const a of G.arcs) { outs[a.s].push(a); ins[a.t].push(a); }
return { bottom, byRow, camera, draw, fit, folded, ins, later, move, outs, pan, see, shapes, tallest,
  top: top_, view, write, zoom };
}
const blockAt = (e) => { const b = e.target.closest(".b"); return b ? +b.dataset.b : -1; };
// act: click(block or -1, event), drag(dx, dy), wheel(factor, x, y).  Returns whether it is dragged.
function mouse(svg, act) {
  let drag = null;
  svg.addEventListener("pointerdown", (e) => { drag = [e.clientX, e.clientY]; });
  svg.addEventListener("pointermove", (e) => {
    if (!drag) return;
    if (!svg.classList.contains("moving")) {
      if (Math.hypot(e.clientX - drag[0], e.clientY - drag[1]) < 3) return;
      svg.classList.add("moving"); svg.setPointerCapture(e.pointerId);
    }
    act.drag(e.clientX - drag[0], e.clientY - drag[1]);
    drag = [e.clientX, e.clientY];
  });
  svg.addEventListener("pointerup", (e) => {
    const moved = svg.classList.contains("moving");
    drag = null; svg.classList.remove("moving");
    if (!moved) act.click(blockAt(e), e);
  });
  svg.addEventListener("pointercancel", () => { drag = null; svg.classList.remove("moving"); });
  svg.addEventListener("wheel", (e) => {
    e.preventDefault();
    const box = rectOf(svg);
    if (e.shiftKey) act.drag(-e.deltaY, 0);
    else act.wheel(Math.exp(-e.deltaY * 0.0015), e.clientX - box.left, e.clientY - box.top);
  }, { passive: false });
  return () => drag !== null;
}
