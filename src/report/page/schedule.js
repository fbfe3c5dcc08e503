// The schedule: reads the data, says which transfers and computations are under way at an instant,
// and describes them in words. A node is a transfer or a computation; instants are numbers of
// entries of `times`. Everything here was computed by the simulator and by the checker.
const data = JSON.parse(document.getElementById("data").textContent);
const { times, nodes } = data;
let started = 0;
nodes.start = nodes.wait.map(wait => started += wait);
nodes.end = nodes.start.map((start, i) => start + nodes.lasts[i]);
const count = nodes.start.length, lastInstant = times.length - 1;
const critical = new Set(nodes.critical);
const TRANSFER = 0, COMBINE = 1;

const element = id => document.getElementById(id);
const escaped = text => text.replace(/[&<>"]/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const timeText = t => +(t / data.divisor).toPrecision(7) + (data.unit && " " + data.unit);
const instantText = i => timeText(times[i]);

// A node's ends: the rank, its step there and its lane. A computation has one end.
const endsOf = i => nodes.kind[i] === TRANSFER
  ? [{ rank: nodes.from[i], step: nodes.sendStep[i], lane: nodes.outLane[i], sends: true },
     { rank: nodes.to[i], step: nodes.step[i], lane: nodes.lane[i], sends: false }]
  : [{ rank: nodes.to[i], step: nodes.step[i], lane: nodes.lane[i], sends: false }];

// The nodes of every rank in the order in which they start.
const ofRank = Array.from({ length: data.ranks }, () => []);
for (let i = 0; i < count; i++) for (const end of endsOf(i)) ofRank[end.rank].push(i);

// The nodes that have started by time `t` and have not ended. They are sorted by their start.
const underWay = t => {
  const found = [];
  for (let i = 0; i < count && times[nodes.start[i]] <= t; i++) if (t < times[nodes.end[i]]) found.push(i);
  return found;
};
// The last instant that is not after time `t`.
const instantAt = t => {
  let low = 0, high = lastInstant;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (times[middle] <= t) low = middle; else high = middle - 1;
  }
  return low;
};

// What every cell of every buffer holds at an instant: numbers of `data.contents`, or -1. Time
// mostly goes forward, so what was applied is kept.
const inOrderOfEnd = [...nodes.end.keys()].sort((a, b) => nodes.end[a] - nodes.end[b] || a - b);
const emptyBuffers = () => data.cells.map((cells, rank) => {
  const held = new Int32Array(cells.length - 1).fill(-1);
  write(held, data.initial[rank]);
  return held;
});
const write = (held, pairs) => {
  for (let k = 0; k < pairs.length; k += 2) held[pairs[k]] = pairs[k + 1];
};
let buffers = emptyBuffers(), applied = 0;
const buffersAt = instant => {
  if (applied > 0 && nodes.end[inOrderOfEnd[applied - 1]] > instant) [buffers, applied] = [emptyBuffers(), 0];
  while (applied < count && nodes.end[inOrderOfEnd[applied]] <= instant) {
    const i = inOrderOfEnd[applied++];
    write(buffers[nodes.to[i]], nodes.writes[i]);
  }
  return buffers;
};
// `first-last`, or one number.
const rangeText = (first, length) => length > 1 ? `${first}-${first + length - 1}` : `${first}`;
// What a cell holds: `x0..x3 [4-7]`, the elements 4 to 7 of these contributions.
const cellText = (rank, cell, content) => {
  const [list, place] = data.contents[content] ?? [];
  if (!(data.counts[list] > 0)) return "nothing";
  const length = data.cells[rank][cell + 1] - data.cells[rank][cell];
  return `${data.lists[list]} [${rangeText(data.indices[place], length)}]`;
};
const cellElements = (rank, cell) => {
  const [first, next] = data.cells[rank].slice(cell, cell + 2);
  return (next - first > 1 ? "elements " : "element ") + rangeText(first, next - first);
};
const counted = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;

// Words for a node as one of its ranks sees it: `sends segment 2 (elements 4-7) to rank 3`.
const partText = i => nodes.part[i] < 0 ? "an empty message" : data.parts[nodes.part[i]];
const doing = (i, rank) => {
  if (nodes.kind[i] !== TRANSFER) return (nodes.kind[i] === COMBINE ? "combines " : "copies ") + partText(i);
  return rank === nodes.from[i] ? `sends ${partText(i)} to rank ${nodes.to[i]}` : `receives ${partText(i)} from rank ${nodes.from[i]}`;
};
const stepOf = (i, rank) => nodes.kind[i] === TRANSFER && rank === nodes.from[i] ? nodes.sendStep[i] : nodes.step[i];
const nodeName = i => nodes.kind[i] === TRANSFER
  ? `the message from rank ${nodes.from[i]} to rank ${nodes.to[i]} (${partText(i)})`
  : `rank ${nodes.to[i]} ${nodes.kind[i] === COMBINE ? "combining" : "copying"} ${partText(i)}`;
const spanText = i => `${instantText(nodes.start[i])} to ${instantText(nodes.end[i])}`;
// What a node waited for: what ended when it started. `after` counts back from the node.
const waitText = i => nodes.start[i] === 0 ? "starts at once"
  : "waits for " + nodes.after[i].map(back => nodeName(i - back)).join(", and for ");
const describe = (i, rank) => `rank ${rank}, step ${stepOf(i, rank)}: ${doing(i, rank)}, ${counted(nodes.sizes[nodes.size[i]], "byte")}, ` +
  `${spanText(i)}; ${waitText(i)}${critical.has(i) ? "; on the critical path" : ""}`;
