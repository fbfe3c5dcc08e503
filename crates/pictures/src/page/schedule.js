// The schedules: says which transfers and computations of a schedule are under
// way at an instant, and describes them in words. A node is a transfer or a computation; instants
// are numbers of entries of `times`. Everything here was computed by the simulator and the checker.
// What is shown: some schedules on one clock, which has every instant of any.
let data, schedules = [], times = [0], lastInstant = 0;

// The values of a column that holds differences.
const summed = differences => {
  let sum = 0;
  return differences.map(by => sum += by);
};
const TRANSFER = 0, COMBINE = 1;
const escaped = text => text.replace(/[&<>"]/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const unitText = () => data.unit || "time units";
const numberText = t => `${+(t / data.divisor).toPrecision(7)}`;
const timeText = t => `${numberText(t)} ${unitText()}`;
const rangeOfTimes = (start, end) => `${numberText(start)} to ${timeText(end)}`;
// The last of some sorted times that is not after time `t`.
const instantIn = (times, t) => {
  let low = 0, high = times.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (times[middle] <= t) low = middle; else high = middle - 1;
  }
  return low;
};
// `first-last`, or one number.
const rangeText = (first, length) => length > 1 ? `${first}-${first + length - 1}` : `${first}`;
const bytesText = bytes => {
  const power = [3, 2, 1].find(power => bytes > 0 && bytes % 1024 ** power === 0);
  return power ? `${bytes / 1024 ** power} ${["KiB", "MiB", "GiB"][power - 1]}` : `${bytes} byte${bytes === 1 ? "" : "s"}`;
};

// What one schedule of the data consists of, with what tells of it. Its elements on the page have
// its suffix behind their identifiers.
const unpacked = (own, number) => {
  const { times, nodes } = own;
  nodes.start ??= summed(nodes.wait);
  nodes.end ??= nodes.start.map((start, i) => start + nodes.lasts[i]);
  const count = nodes.start.length;
  const critical = new Set(nodes.critical);

  // A node's ends: the rank, its step there and its lane. A computation has one end.
  const endsOf = i => nodes.kind[i] === TRANSFER
    ? [{ rank: nodes.from[i], step: nodes.sendStep[i], lane: nodes.outLane[i], sends: true },
       { rank: nodes.to[i], step: nodes.step[i], lane: nodes.lane[i], sends: false }]
    : [{ rank: nodes.to[i], step: nodes.step[i], lane: nodes.lane[i], sends: false }];

  // The nodes of every rank in the order in which they start.
  const ofRank = Array.from({ length: own.ranks }, () => []);
  for (let i = 0; i < count; i++) for (const end of endsOf(i)) ofRank[end.rank].push(i);

  // The nodes that have started by time `t` and have not ended. They are sorted by their start.
  const underWay = t => {
    const found = [];
    for (let i = 0; i < count && times[nodes.start[i]] <= t; i++) if (t < times[nodes.end[i]]) found.push(i);
    return found;
  };
  // The entries: what a cell of a buffer holds from the end of a node on. Those of a rank follow each
  // other: of its input, and then of each of its steps.
  const cells = own.buffers.cells.map(lengths => [0, ...summed(lengths)]);
  const entries = { cell: summed(own.buffers.cell), shift: summed(own.buffers.shift), list: own.buffers.list, color: own.buffers.color };
  const firstInitial = [], firstWritten = [];
  {
    const writers = [...nodes.writes.keys()].filter(i => nodes.writes[i] > 0);
    writers.sort((a, b) => nodes.to[a] - nodes.to[b] || nodes.step[a] - nodes.step[b]);
    let entry = 0, next = 0;
    for (let rank = 0; rank < own.ranks; rank++) {
      firstInitial[rank] = entry;
      entry += own.buffers.initial[rank];
      for (; next < writers.length && nodes.to[writers[next]] === rank; next++) {
        firstWritten[writers[next]] = entry;
        entry += nodes.writes[writers[next]];
      }
    }
  }
  // What every cell of every buffer holds at an instant: numbers of entries, or -1. Time mostly goes
  // forward, so what was applied is kept.
  const inOrderOfEnd = [...nodes.end.keys()].sort((a, b) => nodes.end[a] - nodes.end[b] || a - b);
  const write = (held, first, number) => {
    for (let entry = first; entry < first + number; entry++) held[entries.cell[entry]] = entry;
  };
  const emptyBuffers = () => cells.map((borders, rank) => {
    const held = new Int32Array(borders.length - 1).fill(-1);
    write(held, firstInitial[rank], own.buffers.initial[rank]);
    return held;
  });
  let buffers = emptyBuffers(), applied = 0;
  const buffersAt = instant => {
    if (applied > 0 && nodes.end[inOrderOfEnd[applied - 1]] > instant) [buffers, applied] = [emptyBuffers(), 0];
    while (applied < count && nodes.end[inOrderOfEnd[applied]] <= instant) {
      const i = inOrderOfEnd[applied++];
      write(buffers[nodes.to[i]], firstWritten[i], nodes.writes[i]);
    }
    return buffers;
  };
  // The number of contributions in an entry, and them in words.
  const contributions = entry => own.counts[entries.list[entry]] ?? 0;
  const wordsOf = entry => own.lists[entries.list[entry]];
  // Some cells, and what they hold from the first on: `elements 0-3: x0..x3 [4-7]`, the elements 4 to
  // 7 of these contributions.
  const placeText = (rank, first, next) => {
    const start = cells[rank][first], length = cells[rank][next] - start;
    return (length > 1 ? "elements " : "element ") + rangeText(start, length);
  };
  const heldText = (rank, first, next, entry) => {
    const start = cells[rank][first], length = cells[rank][next] - start;
    return contributions(entry) > 0 ? `${wordsOf(entry)} [${rangeText(start + entries.shift[entry], length)}]` : "nothing";
  };
  // What a rank holds, with adjacent cells joined where one goes on what the other begins.
  const heldTexts = (rank, held) => {
    const texts = [];
    for (let first = 0, next; first < held.length; first = next) {
      const entry = held[first];
      const goesOn = other => other >= 0 && entries.list[other] === entries.list[entry] && entries.shift[other] === entries.shift[entry];
      for (next = first + 1; next < held.length && entry >= 0 && goesOn(held[next]);) next++;
      if (entry >= 0) texts.push(`${placeText(rank, first, next)}: ${heldText(rank, first, next, entry)}`);
    }
    return texts;
  };

  // Words for a node as one of its ranks sees it: `sends segment 2 (elements 4-7) to rank 3`.
  const partText = i => nodes.part[i] < 0 ? "an empty message" : own.parts[nodes.part[i]];
  const doing = (i, rank) => {
    if (nodes.kind[i] !== TRANSFER) return (nodes.kind[i] === COMBINE ? "combines " : "copies ") + partText(i);
    return rank === nodes.from[i] ? `sends ${partText(i)} to rank ${nodes.to[i]}` : `receives ${partText(i)} from rank ${nodes.from[i]}`;
  };
  const stepOf = (i, rank) => nodes.kind[i] === TRANSFER && rank === nodes.from[i] ? nodes.sendStep[i] : nodes.step[i];
  // The name of another node: without the elements.
  const nodeName = i => {
    const part = partText(i).split(" (")[0];
    return nodes.kind[i] === TRANSFER ? `the message from rank ${nodes.from[i]} to rank ${nodes.to[i]} (${part})`
      : `rank ${nodes.to[i]} ${nodes.kind[i] === COMBINE ? "combining" : "copying"} ${part}`;
  };
  // What a node waited for: what ended when it started. `after` counts back from the node.
  const reasonText = i => nodes.start[i] === 0 ? "starts at once"
    : "waits for " + nodes.after[i].map(back => nodeName(i - back)).join(", and for ");
  const timesText = i => rangeOfTimes(times[nodes.start[i]], times[nodes.end[i]]);
  const factsText = i => `${bytesText(nodes.sizes[nodes.size[i]])}, ${timesText(i)}; ` +
    reasonText(i) + (critical.has(i) ? "; on the critical path" : "");
  const describe = (i, rank) => `rank ${rank}, step ${stepOf(i, rank)}: ${doing(i, rank)}, ${factsText(i)}`;
  // What waits for ever, and is under way then.
  const waitsAt = t => own.waits.filter(wait => wait.since <= t);
  const waitText = wait => `step ${wait.step}: ${wait.words} waits for ever` + (wait.cycle ? ", in a cycle" : "");
  const idOf = name => name + (number ? `-${number}` : ""), part = name => element(idOf(name));
  return { ...own, number, idOf, part, nodes, times, count, critical, endsOf, ofRank, underWay, waitsAt, cells, entries, buffersAt,
    contributions, wordsOf, placeText, heldText, heldTexts, doing, stepOf, timesText, factsText, describe, waitText };
};
// Fills the sections of the page: what stands between the marks is there for each schedule.
const fillSections = () => {
  const one = schedules.length === 1, main = document.querySelector("main");
  const filled = (text, values) => text.replace(/\{(\w+)\}/g, (name, key) => values[key] ?? name);
  const of = s => {
    const name = escaped(s.name), own = one ? { of: "", name: "Messages on their way", facts: "" } : { of: ": " + name, name, facts: s.facts };
    return { number: s.number, suffix: s.number ? `-${s.number}` : "", ...own };
  };
  const keys = one ? "" : "<dt><kbd>s</kbd></dt><dd>choose the next schedule</dd>";
  main.innerHTML = element("sections").innerHTML.split("<!-- end -->").map(part => {
    const [before, each] = part.split("<!-- each -->");
    return filled(before, { keys }) + (each ? schedules.map(s => filled(each, of(s))).join("") : "");
  }).join("");
  main.className = one ? "one" : "several";
  main.style.setProperty("--columns", Math.min(4, schedules.length));
  element("summary").innerHTML = one ? schedules[0].facts : "";
};
