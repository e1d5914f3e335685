// What the page shows of the graph: which hyper-nodes are visible, how they are stacked, and where boxes are.
// Nothing here touches the document; `view.js` draws.
"use strict";

function readGraph({ graph: document, titles }) {
  const nodes = new Map(document.nodes.map((node) => [node.id, { ...node, titles: titles[node.id], before: [], after: [] }]));
  for (const edge of document.edges) {
    nodes.get(edge.source).after.push(edge.target);
    nodes.get(edge.target).before.push(edge.source);
  }
  const facts = new Map(document.predicates.map((predicate) => [predicate.name, predicate]));
  return { nodes, edges: document.edges, facts, complete: document.complete };
}

/** All nodes that can be reached from some nodes along `before` or `after`, without these themselves. */
function reached(graph, starts, direction) {
  const seen = new Set(starts);
  const waiting = [...starts];
  while (waiting.length) {
    for (const near of graph.nodes.get(waiting.pop())[direction]) {
      if (!seen.has(near)) { seen.add(near); waiting.push(near); }
    }
  }
  for (const start of starts) seen.delete(start);
  return seen;
}

/** The ids of the nodes to draw: those of `state.only`, without what is folded away before or after a node. */
function visibleNodes(graph, state) {
  let visible = new Set(graph.nodes.keys());
  if (state.only) {
    visible = new Set(state.only.nodes);
    for (const direction of state.only.directions) {
      for (const node of reached(graph, state.only.nodes, direction)) visible.add(node);
    }
  }
  for (const [folded, direction] of [[state.foldedBefore, "before"], [state.foldedAfter, "after"]]) {
    for (const node of reached(graph, folded, direction)) visible.delete(node);
  }
  return visible;
}

/** The column of each visible node: its level, or just before its readers if it feeds more than it reads. */
function columnsOf(graph, visible) {
  const inside = (ids) => ids.filter((id) => visible.has(id));
  const nodes = [...visible].map((id) => graph.nodes.get(id)).sort((a, b) => b.level - a.level);
  const column = new Map(nodes.map((node) => [node.id, node.level]));
  for (const node of nodes) {
    const after = new Set(inside(node.after));
    if (after.size > new Set(inside(node.before)).size) {
      column.set(node.id, Math.min(...[...after].map((id) => column.get(id))) - 1);
    }
  }
  const used = [...new Set(column.values())].sort((a, b) => a - b);
  return new Map([...column].map(([id, level]) => [id, used.indexOf(level)]));
}

/** The boxes: a visible node each, or a stack of nodes of one column that derive the same predicates. */
function boxesOf(graph, state) {
  const visible = visibleNodes(graph, state);
  const column = columnsOf(graph, visible);
  const stacks = new Map();
  for (const id of visible) {
    const node = graph.nodes.get(id);
    const together = JSON.stringify([column.get(id), node.defines]);
    const key = state.stacked && !state.unstacked.has(together) ? together : String(id);
    if (!stacks.has(key)) stacks.set(key, { key, together, column: column.get(id), nodes: [] });
    stacks.get(key).nodes.push(node);
  }
  return [...stacks.values()];
}

/** The arrows between boxes, one for each kind, with the predicates that carry it. */
function arrowsOf(graph, boxes) {
  const home = new Map(boxes.flatMap((box) => box.nodes.map((node) => [node.id, box])));
  const arrows = new Map();
  for (const edge of graph.edges) {
    const source = home.get(edge.source), target = home.get(edge.target);
    if (!source || !target || source === target) continue;
    const key = [source.key, target.key, edge.negative].join("\n");
    if (!arrows.has(key)) arrows.set(key, { source, target, negative: edge.negative, via: new Set() });
    for (const name of edge.via) arrows.get(key).via.add(name);
  }
  return [...arrows.values()];
}

/** Give each arrow its lanes: places in the columns that it passes. Arrows of a kind to one box share them. */
function lanesOf(arrows) {
  const lanes = new Map();
  for (const arrow of arrows) {
    arrow.lanes = [];
    for (let column = arrow.source.column + 1; column < arrow.target.column; column++) {
      const key = [column, arrow.negative, arrow.target.key].join("\n");
      if (!lanes.has(key)) lanes.set(key, { column, width: 0, height: 4 });
      arrow.lanes.push(lanes.get(key));
    }
  }
  return [...lanes.values()];
}

/** Give each box and lane its `x` and `y`: columns from left to right, and in a column near its neighbours. */
function placeBoxes(boxes, arrows, gap = { x: 48, y: 9 }) {
  const places = [...boxes, ...lanesOf(arrows)];
  const columns = [];
  for (const place of places) (columns[place.column] ??= []).push(place);
  const near = new Map(places.map((place) => [place, new Set()]));
  for (const { source, lanes, target } of arrows) {
    const steps = [source, ...lanes, target];
    for (let at = 1; at < steps.length; at++) {
      near.get(steps[at - 1]).add(steps[at]);
      near.get(steps[at]).add(steps[at - 1]);
    }
  }
  let x = 0;
  for (const column of columns) {
    const width = Math.max(...column.map((place) => place.width));
    let y = 0;
    for (const place of column) {
      Object.assign(place, { x, y, right: x + (place.width || width) });
      y += place.height + gap.y;
    }
    x += width + gap.x;
  }
  const middle = (place) => place.y + place.height / 2;
  const pull = (others) => others.reduce((sum, other) => sum + middle(other), 0) / others.length;
  for (let round = 0; round < 24; round++) {
    for (const column of round % 2 ? columns : [...columns].reverse()) {
      const wanted = new Map(column.map((place) => [place, near.get(place).size ? pull([...near.get(place)]) : middle(place)]));
      column.sort((a, b) => wanted.get(a) - wanted.get(b));
      spread(column, wanted, gap.y);
    }
  }
  const top = Math.min(...places.map((place) => place.y));
  for (const place of places) place.y -= top;
}

/** Move the boxes of a column close to where they want to be, in order and without overlap. */
function spread(column, wanted, gap) {
  // Boxes that would overlap form a run, which is centred on the mean of what its boxes want.
  const runs = [];
  for (const box of column) {
    let run = { boxes: [box], height: box.height, start: wanted.get(box) - box.height / 2, sum: 0 };
    run.sum = run.start;
    for (let last = runs.at(-1); last && last.start + last.height + gap > run.start; last = runs.at(-1)) {
      runs.pop();
      const shifted = run.sum - run.boxes.length * (last.height + gap);
      run = {
        boxes: [...last.boxes, ...run.boxes],
        height: last.height + gap + run.height,
        sum: last.sum + shifted,
      };
      run.start = run.sum / run.boxes.length;
    }
    runs.push(run);
  }
  for (const run of runs) {
    let y = run.start;
    for (const box of run.boxes) { box.y = y; y += box.height + gap; }
  }
}

/** The ids of the nodes whose name, labels, predicates or rule texts contain a text. */
function matchingNodes(graph, text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return new Set();
  const exact = [...graph.nodes.values()].filter((node) =>
    [node.name, ...node.rules.map((rule) => rule.label ?? "")].some((name) => name.toLowerCase() === wanted));
  const words = (node) => [node.name, ...node.defines, ...node.reads, ...node.rules.map((rule) => rule.text)];
  const found = exact.length ? exact : [...graph.nodes.values()].filter((node) =>
    words(node).some((word) => word.toLowerCase().includes(wanted)));
  return new Set(found.map((node) => node.id));
}
