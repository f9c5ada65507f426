// The workflow's graph: each stage with what is there, and the queues between them; for a block, with its state at each stage.

import { draw, shortened } from "../drawing.js";
import { make, table } from "../elements.js";
import { folded } from "../folded.js";

const [WIDTH, HEIGHT, GAP_X, GAP_Y] = [170, 52, 56, 18];
// The gap that has room for a text.
const LABELLED_GAP_X = 150;
// What ended a task well, in the block's history.
const ENDS = ["completed", "grouped", "passed_on", "skipped", "emitted"];
// The states of a stage, the one that matters most first.
const STATES = ["dead", "running", "waiting", "done", "nothing"];
const wordOf = (state) => (state === "running" ? "in work" : state);

const stageOf = (task) => task.split("/")[0];

/** The graph of a block, with a table of the same for those who do not see it. */
export function blockGraph(stages, status) {
  const seen = stages.map((stage) => ({ ...stage, ...stateAt(stage.stage, status) }));
  return [
    make("h2", {}, "Where it is"),
    drawnGraph(seen, "The workflow with the state of this block; the table below has the same"),
    folded("graph", "The same as a table", table("Stages of this block", [
      ["Stage", (it) => it.stage],
      ["Reads", (it) => it.reads.join(", ")],
      ["Writes", (it) => it.writes.join(", ") || "-"],
      ["State", (it) => wordOf(it.state)],
      ["Tasks", (it) => it.text],
    ], seen)),
  ];
}

/** The workflow's graph. Of each node: stage, text, state, the queues that it reads and writes, and the lines of text on the edges that
 * lead to it. */
export function drawnGraph(nodes, label) {
  const places = layOut(nodes);
  const columns = 1 + Math.max(0, ...places.map(([column]) => column));
  const rows = 1 + Math.max(0, ...places.map(([, row]) => row));
  const gap = nodes.some((it) => it.onEdges) ? LABELLED_GAP_X : GAP_X;
  const corner = ([column, row]) => [column * (WIDTH + gap), row * (HEIGHT + GAP_Y)];
  const corners = places.map(corner);
  const [width, height] = [columns * (WIDTH + gap) - gap, rows * (HEIGHT + GAP_Y) - GAP_Y];
  const frame = { viewBox: `-2 -2 ${width + 4} ${height + 4}`, width: width + 4, height: height + 4, class: "graph", role: "img",
    "aria-label": label };
  const picture = draw("svg", frame, edges(nodes, corners), nodes.map((it, at) => node(it, corners[at])));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Graph" }, picture);
}

function stateAt(stage, status) {
  const here = (it) => stageOf(it.task) === stage;
  const live = status.tasks.filter(here);
  const running = live.filter((it) => it.phase === "leased").length;
  const count = {
    dead: status.dead_letters.filter(here).length,
    running,
    waiting: live.length - running,
    done: status.history.filter((it) => it.step && here(it.step) && ENDS.includes(it.what)).length,
  };
  const state = STATES.find((name) => count[name]) ?? "nothing";
  const words = STATES.filter((name) => count[name]).map((name) => `${count[name]} ${wordOf(name)}`);
  return { state, text: words.join(", ") || "no task" };
}

/** The column and the row of each stage: a stage is right of all that write what it reads. */
function layOut(stages) {
  const columns = stages.map(() => 0);
  const before = stages.map((stage) => stages.flatMap((it, at) =>
    (it.writes.some((queue) => stage.reads.includes(queue)) ? [at] : [])));
  // A path has at most as many stages as there are.
  for (let round = 0; round < stages.length; round += 1) {
    before.forEach((writers, at) => {
      columns[at] = Math.min(stages.length, Math.max(0, ...writers.map((writer) => columns[writer] + 1)));
    });
  }
  const used = new Map();
  return columns.map((column) => {
    const row = used.get(column) ?? 0;
    used.set(column, row + 1);
    return [column, row];
  });
}

function edges(stages, corners) {
  const drawn = stages.flatMap((writer, from) => stages.flatMap((reader, to) => {
    const queues = writer.writes.filter((queue) => reader.reads.includes(queue));
    if (!queues.length) return [];
    const [[x1, y1], [x2, y2]] = [corners[from], corners[to]];
    const [start, end, bend] = [x1 + WIDTH, x2 - 6, (x1 + WIDTH + x2) / 2];
    const [top, bottom] = [y1 + HEIGHT / 2, y2 + HEIGHT / 2];
    return [
      draw("path", { class: "edge", d: `M${start} ${top} C${bend} ${top} ${bend} ${bottom} ${end} ${bottom}` },
        draw("title", {}, queues.join(", "))),
      draw("path", { class: "arrow", d: `M${end} ${bottom - 4} l6 4 l-6 4 z` }),
      ...(reader.onEdges ?? []).map((text, line) =>
        draw("text", { x: end - 4, y: bottom - 6 + 18 * line, "text-anchor": "end", class: "flow" }, text)),
    ];
  }));
  // Texts lie over all lines.
  const isText = (element) => element.tagName === "text";
  return [...drawn.filter((it) => !isText(it)), ...drawn.filter(isText)];
}

function node(it, [x, y]) {
  return draw("g", { class: `node ${it.state}` },
    draw("title", {}, `${it.stage}: ${it.text}`),
    draw("rect", { x, y, width: WIDTH, height: HEIGHT, rx: 6 }),
    draw("text", { x: x + 12, y: y + 22, class: "name" }, shortened(it.stage, 20)),
    draw("text", { x: x + 12, y: y + 41 }, shortened(it.text, 26)));
}
