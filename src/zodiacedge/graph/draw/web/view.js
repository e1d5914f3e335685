// Draws the boxes and arrows of `model.js`, and reacts to mouse and keys.
"use strict";

const byId = (id) => document.getElementById(id);
const graph = readGraph(JSON.parse(byId("data").textContent));
const SVG = "http://www.w3.org/2000/svg";
const LINE = 18, PADDING = 8, LONGEST = 76, MOST_RULES = 12, MANY_NODES = 24;
const many = (count, noun, plural = `${noun}s`) => `${count.toLocaleString("en")} ${count === 1 ? noun : plural}`;

const state = {
  stacked: graph.nodes.size > MANY_NODES,
  unstacked: new Set(),     // stacks that are shown node by node
  texts: graph.nodes.size <= MANY_NODES,
  turned: new Set(),        // boxes that differ from `texts`
  foldedBefore: new Set(),  // nodes whose ancestors are hidden
  foldedAfter: new Set(),   // nodes whose descendants are hidden
  only: null,               // {nodes, directions}: hide all but these nodes and what they reach
  chosen: new Set(),        // ids of the nodes of the chosen box
  found: new Set(),         // ids of the nodes that the search found
  match: -1,
};
const view = { x: 0, y: 0, scale: 1 };
let boxes = [], arrows = [];

function element(name, attributes = {}, ...children) {
  const made = name.startsWith("svg:") ? document.createElementNS(SVG, name.slice(4)) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

const ruler = document.createElement("canvas").getContext("2d");
function widthOf(text, className) {
  ruler.font = { name: "600 13px system-ui, sans-serif", rule: "12px monospace", quiet: "11px system-ui, sans-serif" }[className];
  return ruler.measureText(text).width;
}
const clipped = (text, longest = LONGEST) => (text.length > longest ? `${text.slice(0, longest - 1)}…` : text);

// --- Boxes ---

const isOpen = (box) => state.texts !== state.turned.has(box.key);
const rulesOf = (box) => box.nodes.flatMap((node) => node.rules)
  .sort((a, b) => (a.label ?? "").localeCompare(b.label ?? "", "en", { numeric: true }));
const sizeOf = (box) => (box.nodes.every((node) => node.size !== null) ? box.nodes.reduce((sum, node) => sum + node.size, 0) : null);
// Two hyper-nodes of a stack may derive the same fact.
const factsOf = (box) => `${box.nodes.length > 1 ? "≤ " : ""}${many(sizeOf(box), "fact")}`;
const isChosen = (box) => box.nodes.some((node) => state.chosen.has(node.id));

/** The lines of a box, each with its class, and its size. */
function measure(box) {
  const [first] = box.nodes;
  const rules = rulesOf(box);
  const names = rules.map((rule) => rule.label ?? "").filter(Boolean);
  const title = clipped(first.titles.join(", "), 34) + (first.recursive && box.nodes.length === 1 ? " ↻" : "");
  const labels = names.length > 3 ? `${names.slice(0, 2).join(", ")} … ${names.at(-1)}` : names.join(", ");
  box.title = (box.nodes.length > 1 ? "▤ " : "") + title;
  box.note = [clipped(labels, 24), sizeOf(box) === null ? "" : factsOf(box)].filter(Boolean).join(" · ");
  box.lines = isOpen(box) ? rules.slice(0, MOST_RULES).map((rule) => clipped(rule.text)) : [];
  if (isOpen(box) && rules.length > MOST_RULES) box.lines.push(`… and ${rules.length - MOST_RULES} more`);
  const heading = widthOf(box.title, "name") + 10 + widthOf(box.note, "quiet");
  box.width = Math.max(heading, ...box.lines.map((line) => widthOf(line, "rule"))) + 2 * PADDING;
  box.height = (1 + box.lines.length) * LINE + PADDING;
}

function drawBox(box) {
  const stub = (folded, direction) => (box.nodes.some((node) => folded.has(node.id))
    ? reached(graph, box.nodes.map((node) => node.id), direction).size : 0);
  const before = stub(state.foldedBefore, "before"), after = stub(state.foldedAfter, "after");
  const classes = ["box"];
  if (box.nodes.some((node) => node.recursive)) classes.push("recursive");
  if (box.nodes.some((node) => node.highlighted)) classes.push("marked");
  if (box.nodes.some((node) => state.found.has(node.id))) classes.push("found");
  if (isChosen(box)) classes.push("chosen");
  const group = element("svg:g", {
    class: classes.join(" "), transform: `translate(${box.x} ${box.y})`, role: "button", tabindex: "-1",
    "aria-label": `${box.title}, ${many(rulesOf(box).length, "rule")}`, "aria-expanded": String(isOpen(box)),
    "data-nodes": box.nodes.map((node) => node.name).join(" "),
    onclick: () => choose(box), ondblclick: () => toggle(box),
  });
  const size = { width: box.width, height: box.height, rx: 6 };
  if (box.nodes.length > 1) group.append(element("svg:rect", { ...size, class: "back", x: 4, y: 4 }));
  group.append(
    element("svg:title", {}, box.nodes.map((node) => node.name).join(", ")),
    element("svg:rect", size),
    element("svg:text", { class: "name", x: PADDING, y: LINE }, box.title),
    element("svg:text", { class: "quiet", x: box.width - PADDING, y: LINE, "text-anchor": "end" }, box.note),
    ...box.lines.map((line, at) => element("svg:text", { class: "rule", x: PADDING, y: (at + 2) * LINE }, line)),
  );
  if (before) group.append(stubText(`◂ ${before}`, -6, "end", () => foldBefore(box)));
  if (after) group.append(stubText(`${after} ▸`, box.width + 6, "start", () => foldAfter(box)));
  box.group = group;
  return group;

  function stubText(text, x, anchor, action) {
    const react = (event) => { event.stopPropagation(); action(); };
    return element("svg:text", { class: "stub", x, y: LINE, "text-anchor": anchor, onclick: react }, text);
  }
}

function drawArrow(arrow) {
  const steps = [arrow.source, ...arrow.lanes, arrow.target];
  const middle = (place) => place.y + place.height / 2;
  let path = `M${arrow.source.right} ${middle(arrow.source)}`;
  for (let at = 1; at < steps.length; at++) {
    const from = steps[at - 1], to = steps[at];
    const bend = Math.min(110, (to.x - from.right) / 2);
    path += `C${from.right + bend} ${middle(from)} ${to.x - bend} ${middle(to)} ${to.x} ${middle(to)}`;
    if (to !== arrow.target) path += `H${to.right}`;
  }
  arrow.path = element("svg:path", { class: arrow.negative ? "negative" : "", d: path },
    element("svg:title", {}, `${arrow.negative ? "not or aggregate: " : ""}${[...arrow.via].join(", ")}`));
  return arrow.path;
}

/** Compute and draw everything; the box of `anchor` stays where it is on the screen. */
function draw(anchor = null) {
  const old = anchor && boxes.find((box) => box.nodes.some((node) => anchor.has(node.id)));
  boxes = boxesOf(graph, state);
  boxes.forEach(measure);
  arrows = arrowsOf(graph, boxes);
  if (boxes.length) placeBoxes(boxes, arrows);
  byId("boxes").replaceChildren(...boxes.map(drawBox));
  byId("arrows").replaceChildren(...arrows.map(drawArrow));
  const now = old && boxes.find((box) => box.nodes.some((node) => anchor.has(node.id)));
  if (now) {
    view.x += (old.x - now.x) * view.scale;
    view.y += (old.y - now.y) * view.scale;
  }
  move();
  emphasise();
  const shown = boxes.reduce((sum, box) => sum + box.nodes.length, 0);
  byId("hidden").textContent = [
    shown < graph.nodes.size ? `${shown} of ${many(graph.nodes.size, "hyper-node")} shown` : "",
    graph.complete ? "" : `only ${many(graph.edges.length, "edge")} of the graph`,
  ].filter(Boolean).join("; ");
  byId("stacks").setAttribute("aria-pressed", state.stacked);
  byId("texts").setAttribute("aria-pressed", state.texts);
}

/** Dim what is neither chosen nor found nor next to it, and let Tab reach the chosen box. */
function emphasise() {
  const chosen = boxes.filter(isChosen);
  const near = new Set(chosen);
  for (const arrow of arrows) {
    const touches = isChosen(arrow.source) || isChosen(arrow.target);
    arrow.path.classList.toggle("near", touches);
    arrow.path.classList.toggle("dim", chosen.length > 0 && !touches);
    if (touches) {
      near.add(arrow.source).add(arrow.target);
      byId("arrows").append(arrow.path); // above the others
    }
  }
  for (const box of boxes) {
    const found = box.nodes.some((node) => state.found.has(node.id));
    const dim = chosen.length ? !near.has(box) && !found : state.found.size > 0 && !found;
    box.group.classList.toggle("dim", dim);
    box.group.classList.toggle("chosen", isChosen(box));
    box.group.setAttribute("tabindex", box === (chosen[0] ?? boxes[0]) ? "0" : "-1");
  }
}

// --- Pan and zoom ---

const move = () => byId("scene").setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);

function zoom(factor, x = byId("canvas").clientWidth / 2, y = byId("canvas").clientHeight / 2) {
  const scale = Math.min(4, Math.max(0.08, view.scale * factor));
  view.x = x - ((x - view.x) * scale) / view.scale;
  view.y = y - ((y - view.y) * scale) / view.scale;
  view.scale = scale;
  move();
}

/** Show the whole graph; not smaller than `least`, where it then starts at its left and top. */
function fit(least = 0.08) {
  if (!boxes.length) return;
  const width = Math.max(...boxes.map((box) => box.x + box.width)), height = Math.max(...boxes.map((box) => box.y + box.height));
  const room = { width: byId("canvas").clientWidth - 48, height: byId("canvas").clientHeight - 40 };
  const whole = Math.min(room.width / width, room.height / height, 1.25);
  view.scale = Math.max(whole, Math.min(least, 1.25));
  view.x = 24 + Math.max(0, (room.width - width * view.scale) / 2);
  view.y = 20 + Math.max(0, (room.height - height * view.scale) / 2);
  move();
}

/** Pan so that a box is on the screen. */
function reveal(box) {
  const canvas = byId("canvas");
  const inside = (at, low, high) => Math.min(Math.max(at, low), Math.max(low, high));
  const x = view.x + box.x * view.scale, y = view.y + box.y * view.scale;
  view.x += inside(x, 40, canvas.clientWidth - box.width * view.scale - 40) - x;
  view.y += inside(y, 30, canvas.clientHeight - box.height * view.scale - 30) - y;
  move();
}

// --- Actions ---

function choose(box, { focus = true } = {}) {
  state.chosen = new Set(box ? box.nodes.map((node) => node.id) : []);
  emphasise();
  if (!box) return showPanel();
  showPanel(...describe(box));
  reveal(box);
  if (focus) box.group.focus({ preventScroll: true });
  history.replaceState(null, "", `#${box.nodes[0].name}`);
}

const chosenBox = () => boxes.find(isChosen);
const redraw = (box) => { const kept = new Set(box.nodes.map((node) => node.id)); draw(kept); again(kept); };
const again = (kept) => { const box = boxes.find((other) => other.nodes.some((node) => kept.has(node.id))); if (box) choose(box); };

function toggle(box) {
  if (state.turned.has(box.key)) state.turned.delete(box.key); else state.turned.add(box.key);
  redraw(box);
}

function unstack(box) {
  if (state.unstacked.has(box.together)) state.unstacked.delete(box.together); else state.unstacked.add(box.together);
  redraw(box);
}

function foldInto(folded, box) {
  const on = !box.nodes.some((node) => folded.has(node.id));
  for (const node of box.nodes) if (on) folded.add(node.id); else folded.delete(node.id);
  redraw(box);
}
const foldBefore = (box) => foldInto(state.foldedBefore, box);
const foldAfter = (box) => foldInto(state.foldedAfter, box);

function showOnly(box, ...directions) {
  state.only = { nodes: box.nodes.map((node) => node.id), directions };
  redraw(box);
  fit(0.75);
  reveal(chosenBox());
}

function showAll() {
  state.only = null;
  state.foldedBefore.clear();
  state.foldedAfter.clear();
  const box = chosenBox();
  if (box) { redraw(box); reveal(chosenBox()); } else { draw(); }
}

function turnAll(which) {
  state[which] = !state[which];
  state.turned.clear();
  state.unstacked.clear();
  const box = chosenBox();
  if (box) redraw(box); else { draw(); fit(0.75); }
}

function goAlong(direction) {
  const from = chosenBox() ?? boxes[0];
  const ends = direction === "after"
    ? arrows.filter((arrow) => arrow.source === from).map((arrow) => arrow.target)
    : arrows.filter((arrow) => arrow.target === from).map((arrow) => arrow.source);
  const close = ends.sort((a, b) => Math.abs(a.y - from.y) - Math.abs(b.y - from.y))[0];
  if (close) choose(close);
}

function goInColumn(step) {
  const from = chosenBox() ?? boxes[0];
  const column = boxes.filter((box) => box.column === from.column).sort((a, b) => a.y - b.y);
  choose(column[(column.indexOf(from) + step + column.length) % column.length]);
}

function search(text) {
  state.found = matchingNodes(graph, text);
  state.match = -1;
  byId("matches").textContent = text.trim() ? many(state.found.size, "match", "matches") : "";
  for (const box of boxes) box.group.classList.toggle("found", box.nodes.some((node) => state.found.has(node.id)));
  emphasise();
}

function nextMatch(focus) {
  if (!state.found.size) return;
  if (![...state.found].some((id) => boxes.some((box) => box.nodes.some((node) => node.id === id)))) showAll();
  const matches = boxes.filter((box) => box.nodes.some((node) => state.found.has(node.id)))
    .sort((a, b) => a.column - b.column || a.y - b.y);
  state.match = (state.match + 1) % matches.length;
  byId("matches").textContent = `${state.match + 1} of ${many(matches.length, "box", "boxes")}`;
  choose(matches[state.match], { focus });
}

// --- The panel ---

function showPanel(...children) {
  const panel = byId("panel");
  panel.replaceChildren(...(children.length ? [element("button", { class: "close", "aria-label": "Close", onclick: close }, "✕"), ...children] : []));
  panel.hidden = !children.length;
  panel.scrollTop = 0;
}

function close() {
  state.chosen = new Set();
  emphasise();
  showPanel();
}

function describe(box) {
  const ids = new Set(box.nodes.map((node) => node.id));
  const union = (lists) => [...new Set(lists.flat())];
  const writers = (name) => [...graph.nodes.values()].filter((node) => node.defines.includes(name));
  const facts = (name) => {
    const known = graph.facts.get(name);
    if (!known || known.explicit === null) return "";
    return `  ${many(known.explicit, "explicit fact")}, ${known.derived.toLocaleString("en")} derived`;
  };
  const predicate = (name) => element("li", {},
    element("button", { class: "link", title: "Search this predicate", onclick: () => { byId("query").value = name; search(name); } }, name),
    element("span", { class: "facts" }, facts(name)));
  const neighbours = (direction) => union(box.nodes.map((node) => node[direction])).filter((id) => !ids.has(id))
    .map((id) => graph.nodes.get(id));
  const link = (node) => element("li", {},
    element("button", { class: "link", onclick: () => goTo(node.id) }, `${node.titles.join(", ")} (${node.rules.map((rule) => rule.label ?? node.name).slice(0, 3).join(", ")}${node.rules.length > 3 ? ", …" : ""})`));
  const list = (title, items) => (items.length ? [element("h3", {}, `${title} (${items.length})`), element("ul", {}, ...items)] : []);
  const action = (text, title, onclick, pressed = false) => element("button", { title, onclick, "aria-pressed": String(pressed) }, text);
  const reads = union(box.nodes.map((node) => node.reads));
  const about = [
    box.nodes.length > 1 ? `a stack of ${many(box.nodes.length, "hyper-node")}` : box.nodes[0].name,
    `level ${[...new Set(box.nodes.map((node) => node.level))].join(", ")}`,
    ...(box.nodes.some((node) => node.recursive) ? ["recursive"] : []),
    ...(sizeOf(box) === null ? [] : [`derives ${factsOf(box)}`]),
  ].join(" · ");
  return [
    element("h2", {}, box.nodes[0].titles.join(", ")),
    element("p", { class: "facts" }, about),
    element("div", { class: "actions" },
      action(isOpen(box) ? "Fold rules" : "Unfold rules", "Enter", () => toggle(box)),
      ...(box.nodes.length > 1 || state.unstacked.has(box.together) ? [action(box.nodes.length > 1 ? "Unstack" : "Stack again", "u", () => unstack(box))] : []),
      action("Fold before", "[", () => foldBefore(box), box.nodes.some((node) => state.foldedBefore.has(node.id))),
      action("Fold after", "]", () => foldAfter(box), box.nodes.some((node) => state.foldedAfter.has(node.id))),
      action("Only ancestors", "a", () => showOnly(box, "before")),
      action("Only descendants", "d", () => showOnly(box, "after")),
      action("Only both", "b", () => showOnly(box, "before", "after")),
    ),
    ...list("Rules", rulesOf(box).map((rule) => element("li", { class: "code" }, rule.text))),
    ...list("Derives", union(box.nodes.map((node) => node.defines)).map(predicate)),
    ...list("Reads", reads.map((name) => { const item = predicate(name); if (!writers(name).length) item.append(element("span", { class: "facts" }, "  no rule derives it")); return item; })),
    ...list("Fed by", neighbours("before").map(link)),
    ...list("Feeds", neighbours("after").map(link)),
  ];
}

/** Choose the box of a node, and show it if it is hidden. */
function goTo(id) {
  const home = () => boxes.find((box) => box.nodes.some((node) => node.id === id));
  if (!home()) showAll();
  choose(home());
}

// --- Events ---

const KEYS = {
  ArrowLeft: () => goAlong("before"), ArrowRight: () => goAlong("after"),
  ArrowUp: () => goInColumn(-1), ArrowDown: () => goInColumn(1),
  "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), "0": () => fit(),
  "/": () => byId("query").select(), n: () => nextMatch(true),
  s: () => turnAll("stacked"), t: () => turnAll("texts"), l: switchTheme, "?": help,
};
const BOX_KEYS = {
  Enter: toggle, " ": toggle, u: unstack, "[": foldBefore, "]": foldAfter,
  a: (box) => showOnly(box, "before"), d: (box) => showOnly(box, "after"), b: (box) => showOnly(box, "before", "after"),
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target === byId("query");
  if (event.key === "Escape") {
    if (typing && byId("query").value) { byId("query").value = ""; search(""); }
    else if (!byId("panel").hidden) close();
    else showAll();
    return;
  }
  if (typing || !boxes.length) return;
  const onButton = event.target instanceof HTMLButtonElement && (event.key === "Enter" || event.key === " ");
  const action = KEYS[event.key] ?? (chosenBox() && !onButton && BOX_KEYS[event.key] && (() => BOX_KEYS[event.key](chosenBox())));
  if (action) { event.preventDefault(); action(); }
}

function help() {
  state.chosen = new Set();
  emphasise();
  showPanel(byId("keys").content.cloneNode(true));
}

function switchTheme() {
  const root = document.documentElement;
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
}

function listen() {
  const canvas = byId("canvas"), pointers = new Map();
  let dragged = 0;
  const distance = () => { const [a, b] = pointers.values(); return Math.hypot(a.x - b.x, a.y - b.y); };
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const place = canvas.getBoundingClientRect();
    if (event.ctrlKey || event.metaKey) return zoom(Math.exp(-event.deltaY / 300), event.clientX - place.left, event.clientY - place.top);
    const sideways = event.shiftKey && !event.deltaX;
    view.x -= sideways ? event.deltaY : event.deltaX;
    view.y -= sideways ? 0 : event.deltaY;
    move();
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    dragged = 0;
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  });
  window.addEventListener("pointermove", (event) => {
    const last = pointers.get(event.pointerId);
    if (!last) return;
    const apart = pointers.size === 2 ? distance() : 0;
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (apart) return zoom(distance() / apart);
    dragged += Math.abs(event.clientX - last.x) + Math.abs(event.clientY - last.y);
    view.x += event.clientX - last.x;
    view.y += event.clientY - last.y;
    move();
  });
  // The end of a drag is no click.
  canvas.addEventListener("click", (event) => { if (dragged > 4) event.stopPropagation(); }, { capture: true });
  for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, (event) => pointers.delete(event.pointerId));
  canvas.addEventListener("click", (event) => { if (event.target === canvas) close(); });
  document.addEventListener("keydown", onKey);
  byId("query").addEventListener("input", (event) => search(event.target.value));
  byId("search").addEventListener("submit", (event) => { event.preventDefault(); nextMatch(false); });
  const actions = {
    stacks: () => turnAll("stacked"), texts: () => turnAll("texts"), everything: showAll, fit: () => fit(),
    nearer: () => zoom(1.25), farther: () => zoom(0.8), theme: switchTheme, help,
  };
  for (const [id, action] of Object.entries(actions)) byId(id).addEventListener("click", action);
}

if (matchMedia("(prefers-color-scheme: dark)").matches) document.documentElement.dataset.theme = "dark";
listen();
draw();
fit(0.75);
const wanted = [...graph.nodes.values()].find((node) => `#${node.name}` === location.hash);
if (wanted) goTo(wanted.id);
