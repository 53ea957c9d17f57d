"use strict";
// Steps through what differs, opens and closes what does not, chooses light or dark.
(() => {
const all = (s) => [...document.querySelectorAll(s)];
const stops = all("[data-differs]");
const count = document.getElementById("count");
let at = -1;
function go(by) {
  if (!stops.length) return;
  at = (at + by + stops.length) % stops.length;
  const stop = stops[at];
  if (stop.tagName === "DETAILS") stop.open = true;
  stop.scrollIntoView({ block: "start" });
  scrollBy(0, -document.querySelector("header").offsetHeight);
  stop.querySelector("summary,h2").focus({ preventScroll: true });
  count.textContent = `${at + 1} of ${stops.length}`;
}
function toggle() {
  const folded = all("details"), open = folded.some((d) => !d.open);
  folded.forEach((d) => { d.open = open; });
}
function theme() {
  const dark = matchMedia("(prefers-color-scheme:dark)").matches;
  const now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
  document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
}
const keys = { n: () => go(1), p: () => go(-1), a: toggle, t: theme };
document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || !keys[e.key]) return;
  keys[e.key](); e.preventDefault();
});
const actions = { next: keys.n, last: keys.p, all: toggle, theme };
all("button[data-do]").forEach((b) => b.addEventListener("click", () => actions[b.dataset.do]()));
document.documentElement.dataset.ready = "1";
})();
