"""The style and the script of the page: plain CSS and JavaScript, no library."""

STYLE = """
:root { color-scheme: light dark; --line: #c8ccd0; --back: #fff; --text: #1c1e21; --mark: #0969da; }
@media (prefers-color-scheme: dark) { :root { --line: #444b53; --back: #15181c; --text: #e6e8ea; --mark: #58a6ff; } }
* { box-sizing: border-box; }
body { margin: 0; height: 100vh; display: grid; grid: auto minmax(0, 1fr) / minmax(0, 1fr) 22rem;
  font: 15px/1.45 system-ui, sans-serif; background: var(--back); color: var(--text); }
header { grid-column: 1 / 3; display: flex; flex-wrap: wrap; gap: .6rem; align-items: center; padding: .5rem .8rem;
  border-bottom: 1px solid var(--line); }
h1 { font-size: 1rem; margin: 0 auto 0 0; }
h2 { font-size: .95rem; margin: 1rem 0 .2rem; }
button, input { font: inherit; }
main { overflow: hidden; touch-action: none; user-select: none; cursor: grab; }
main svg { width: 100%; height: 100%; display: block; }
aside { overflow: auto; padding: .2rem .9rem 1rem; border-left: 1px solid var(--line); overflow-wrap: anywhere; }
aside code { font-family: ui-monospace, Menlo, Consolas, monospace; }
aside ul { padding-left: 1.1rem; margin: 0; }
aside dl { display: grid; grid-template-columns: auto 1fr; gap: .1rem .7rem; margin: 0; }
aside dd { margin: 0; }
aside button { border: 0; background: none; color: var(--mark); padding: 0; text-align: left; cursor: pointer; }
.plan .node { cursor: pointer; outline: none; }
.plan .node.found rect { stroke: var(--mark); stroke-width: 2; }
.plan .node:focus-visible rect, .plan .node.chosen rect { stroke: var(--mark); stroke-width: 4; }
.plan .edge.near path { stroke: var(--mark); stroke-width: 2.5; }
@media (max-width: 45rem) { body { grid: auto minmax(0, 1fr) 40vh / 1fr; } header { grid-column: 1; } }
"""

SCRIPT = """
"use strict";
const plan = JSON.parse(document.getElementById("plan").textContent);
const svg = document.querySelector("svg.plan");
const view = svg.querySelector(".view");
const panel = document.getElementById("panel");
const search = document.getElementById("search");
const size = {width: Number(svg.getAttribute("width")), height: Number(svg.getAttribute("height"))};
const nodes = new Map(plan.nodes.map((node) => [node.id, {...node, consumers: []}]));
for (const node of nodes.values()) {
  for (const input of node.inputs) nodes.get(input.node).consumers.push({node: node.id, words: input.words});
  node.text = [node.id, node.words, ...node.rules.map((rule) => plan.rules[rule])].join("\\n").toLowerCase();
}
for (const shape of svg.querySelectorAll(".node")) nodes.get(shape.dataset.id).shape = shape;
const edges = [...svg.querySelectorAll(".edge")];

// The view: a picture's point p is drawn at x + k * p.
let at = {x: 0, y: 0, k: 1};
function place(x, y, k) {
  at = {x, y, k};
  view.setAttribute("transform", `translate(${x} ${y}) scale(${k})`);
}
function zoom(factor, x, y) {
  const k = Math.min(8, Math.max(0.005, at.k * factor));
  place(x - (x - at.x) * k / at.k, y - (y - at.y) * k / at.k, k);
}
function zoomMiddle(factor) {
  const box = svg.getBoundingClientRect();
  zoom(factor, box.width / 2, box.height / 2);
}
function whole() {
  const box = svg.getBoundingClientRect();
  const k = Math.min(1, box.width / size.width, box.height / size.height) || 1;
  place((box.width - size.width * k) / 2, (box.height - size.height * k) / 2, k);
}
function bring(shape) {
  const box = svg.getBoundingClientRect();
  const own = shape.getBoundingClientRect();
  const inside = own.left >= box.left && own.right <= box.right && own.top >= box.top && own.bottom <= box.bottom;
  if (inside && at.k > 0.5) return;
  const k = Math.max(at.k, 0.8);
  const x = (own.left + own.width / 2 - box.left - at.x) / at.k;
  const y = (own.top + own.height / 2 - box.top - at.y) / at.k;
  place(box.width / 2 - x * k, box.height / 2 - y * k, k);
}
svg.removeAttribute("viewBox");
whole();
svg.addEventListener("wheel", (event) => {
  event.preventDefault();
  const box = svg.getBoundingClientRect();
  zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), event.clientX - box.left, event.clientY - box.top);
}, {passive: false});
let drag = null;
let moved = false;
svg.addEventListener("pointerdown", (event) => {
  if (event.button) return;
  drag = {x: event.clientX - at.x, y: event.clientY - at.y, startX: event.clientX, startY: event.clientY};
  moved = false;
});
window.addEventListener("pointermove", (event) => {
  if (!drag) return;
  moved = moved || Math.hypot(event.clientX - drag.startX, event.clientY - drag.startY) > 4;
  if (moved) place(event.clientX - drag.x, event.clientY - drag.y, at.k);
});
for (const end of ["pointerup", "pointercancel"]) {
  window.addEventListener(end, () => {
    drag = null;
    setTimeout(() => { moved = false; });  // after the click that ends a drag
  });
}
document.getElementById("closer").addEventListener("click", () => zoomMiddle(1.4));
document.getElementById("farther").addEventListener("click", () => zoomMiddle(1 / 1.4));
document.getElementById("whole").addEventListener("click", whole);

// The panel. All text goes in as text, never as markup.
function element(name, text, ...children) {
  const made = document.createElement(name);
  if (text !== null) made.textContent = text;
  made.append(...children);
  return made;
}
function section(title, items) {
  const list = items.map((item) => element("li", null, item));
  return list.length ? [element("h2", title), element("ul", null, ...list)] : [];
}
function link(edge) {
  const button = element("button", edge.node);
  button.type = "button";
  button.addEventListener("click", () => choose(edge.node, true));
  return element("span", null, button, edge.words ? ` (${edge.words})` : "");
}
const titles = {estimated: "rows expected", rows: "rows out", state: "entries at the end", time: "time"};
function facts(node) {
  const list = element("dl", null, element("dt", "operator"), element("dd", node.kind));
  list.append(element("dt", "columns"), element("dd", String(node.columns)));
  for (const [name, words] of Object.entries(node.metrics)) {
    list.append(element("dt", titles[name]), element("dd", words));
  }
  return list;
}
function choose(id, focus) {
  const node = nodes.get(id);
  for (const shape of svg.querySelectorAll(".chosen")) shape.classList.remove("chosen");
  node.shape.classList.add("chosen");
  for (const edge of edges) edge.classList.toggle("near", edge.dataset.from === id || edge.dataset.to === id);
  panel.replaceChildren(
    element("h2", id), element("p", null, element("code", node.words)), facts(node),
    ...section("Reads", node.inputs.map(link)), ...section("Feeds", node.consumers.map(link)),
    ...section(`Rules (${node.rules.length})`, node.rules.map((rule) => plan.rules[rule])));
  current(node.shape);
  bring(node.shape);
  if (focus) node.shape.focus({preventScroll: true});
}

// The keyboard: one node is in the order of tabs; arrow keys lead to its neighbours.
function current(shape) {
  for (const other of svg.querySelectorAll('.node[tabindex="0"]')) other.setAttribute("tabindex", "-1");
  shape.setAttribute("tabindex", "0");
}
const order = plan.nodes.map((node) => node.id);
function neighbour(id, key) {
  const node = nodes.get(id);
  const index = order.indexOf(id);
  switch (key) {
    case "ArrowRight": return node.consumers[0] && node.consumers[0].node;
    case "ArrowLeft": return node.inputs[0] && node.inputs[0].node;
    case "ArrowDown": return order[index + 1];
    case "ArrowUp": return order[index - 1];
    case "Home": return order[0];
    case "End": return order[order.length - 1];
  }
}
for (const [id, node] of nodes) {
  node.shape.setAttribute("role", "button");
  node.shape.setAttribute("tabindex", "-1");
  node.shape.setAttribute("aria-label", `${id}: ${node.words}`);
  node.shape.addEventListener("click", () => { if (!moved) choose(id, true); });
  node.shape.addEventListener("keydown", (event) => {
    const target = event.key === "Enter" || event.key === " " ? id : neighbour(id, event.key);
    if (target === undefined) return;
    event.preventDefault();
    choose(target, true);
  });
}
svg.setAttribute("role", "group");
if (order.length) current(nodes.get(order[0]).shape);
document.addEventListener("keydown", (event) => {
  if (event.target === search || event.ctrlKey || event.metaKey || event.altKey) return;
  const keys = {"+": () => zoomMiddle(1.4), "-": () => zoomMiddle(1 / 1.4), "0": whole, "/": () => search.focus()};
  if (!(event.key in keys)) return;
  event.preventDefault();
  keys[event.key]();
});

// The search: marks what fits; Enter goes from one to the next.
let hits = [];
let next = 0;
search.addEventListener("input", () => {
  const wanted = search.value.trim().toLowerCase();
  hits = wanted ? order.filter((id) => nodes.get(id).text.includes(wanted)) : [];
  next = 0;
  for (const shape of svg.querySelectorAll(".found")) shape.classList.remove("found");
  for (const id of hits) nodes.get(id).shape.classList.add("found");
  document.getElementById("found").textContent = wanted ? `${hits.length} of ${order.length} nodes` : "";
});
search.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !hits.length) return;
  choose(hits[next % hits.length], false);
  next += 1;
});
"""
