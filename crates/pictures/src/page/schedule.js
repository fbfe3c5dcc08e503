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
// The facts and the charts name plain units: other texts need not.
const timeText = t => data.unit ? `${numberText(t)} ${data.unit}` : numberText(t);
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
  // When a message ends at its sender, and starts at its receiver.
  nodes.sent = nodes.sent?.map((sent, i) => nodes.start[i] + sent) ?? nodes.end;
  nodes.comes = nodes.comes?.map((comes, i) => nodes.start[i] + comes) ?? nodes.start;
  const count = nodes.start.length;
  const critical = new Set(nodes.critical);

  // A node's ends: the rank, its step there, its lane, and when it starts and ends there. A
  // computation has one end.
  const endsOf = i => {
    const last = { rank: nodes.to[i], step: nodes.step[i], lane: nodes.lane[i], sends: false, start: nodes.comes[i], end: nodes.end[i] };
    return nodes.kind[i] !== TRANSFER ? [last]
      : [{ rank: nodes.from[i], step: nodes.sendStep[i], lane: nodes.outLane[i], sends: true, start: nodes.start[i], end: nodes.sent[i] }, last];
  };
  const endAt = (i, rank) => endsOf(i).find(end => end.rank === rank);

  // The nodes of every rank in the order in which they start there.
  const ofRank = Array.from({ length: own.ranks }, () => []);
  for (let i = 0; i < count; i++) for (const end of endsOf(i)) ofRank[end.rank].push(i);
  if (nodes.comes !== nodes.start) ofRank.forEach((list, rank) => list.sort((a, b) => endAt(a, rank).start - endAt(b, rank).start));

  // The nodes that have started by time `t` and have not ended. They are sorted by their start.
  const underWay = t => {
    const found = [];
    for (let i = 0; i < count && times[nodes.start[i]] <= t; i++) if (t < times[nodes.end[i]]) found.push(i);
    return found;
  };
  const isAt = (end, t) => times[end.start] <= t && t < times[end.end];
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
  const stepOf = (i, rank) => endAt(i, rank).step;
  // Why an end of a node starts no earlier, as the simulator says it: the reason, the end that it
  // is about, and the end that this waits for. `after` counts back from the node.
  const whyOf = (i, end) => {
    const at = Math.min(end, nodes.why[i].length - 1), code = nodes.why[i][at], other = i - (nodes.after[i][at] ?? 0);
    const endOf = (i, end) => endsOf(i).at(end || nodes.kind[i] !== TRANSFER ? -1 : 0);
    const side = endOf(i, code === undefined ? end : code >> 1 & 1), awaited = endOf(other, code & 1);
    const reason = code === undefined ? "arrival" : own.reasons[code >> 2];
    const ready = reason === "arrival" ? own.arrivals[side.rank] ?? 0 : times[awaited.end];
    return { reason, own: endOf(i, end), side, other, awaited, ready };
  };
  const sentences = {
    arrival: ({ side }) => own.arrivals[side.rank] > 0 ? `rank ${side.rank} arrives at ${timeText(own.arrivals[side.rank])}` : "waits for latency alone",
    data: (_, by, until) => `it needs the result of ${by}, there at ${until}`,
    overwrites: (_, by, until) => `it overwrites what ${by} uses until ${until}`,
    port: (_, by, until) => `its port is kept until ${until} by ${by}`,
    sharedport: ({ side, awaited }, by, until) => side.rank === awaited.rank ? `a port that ranks share is kept until ${until} by ${by}`
      : `a port shared with rank ${awaited.rank} is kept until ${until} by its ${by}`,
    computation: (_, by, until) => `a rank computes alone, and ${by} ends at ${until}`,
  };
  const reasonText = (i, rank) => {
    const why = whyOf(i, rank === nodes.to[i] ? 1 : 0), { reason, own, side, other, awaited, ready } = why;
    const part = partText(other).split(" (")[0], later = times[own.start] - times[side.start], gap = times[own.start] - ready;
    const does = nodes.kind[other] !== TRANSFER ? doing(other, awaited.rank).split(" (")[0]
      : awaited.sends ? `send ${part} to rank ${nodes.to[other]}` : `receive ${part} from rank ${nodes.from[other]}`;
    const text = sentences[reason](why, `step ${awaited.step} (${does})`, timeText(times[awaited.end]));
    if (times[own.start] === 0) return "starts at once";
    if (own.rank === side.rank) return gap > 0 && !text.startsWith("waits") ? `${text}; word of it and the message are on their way for ${timeText(gap)}` : text;
    const first = later > 0 ? `the message of rank ${side.rank} is on its way for ${timeText(later)}`
      : `rank ${side.rank} is ready no earlier` + (gap > 0 ? `, and heard of ${timeText(gap)} later` : "");
    return text.startsWith("waits") ? first : `${first}: ${text.replace(/^it(s?) /, (_, s) => `rank ${side.rank}${s && "'s"} `)}`;
  };
  const timesText = (i, rank) => rangeOfTimes(times[endAt(i, rank).start], times[endAt(i, rank).end]);
  const factsText = (i, rank) => `${bytesText(nodes.sizes[nodes.size[i]])}, ${timesText(i, rank)}; ` +
    reasonText(i, rank) + (critical.has(i) ? "; on the critical path" : "");
  const describe = (i, rank) => `rank ${rank}, step ${stepOf(i, rank)}: ${doing(i, rank)}, ${factsText(i, rank)}`;
  // What waits for ever, and is under way then.
  const waitsAt = t => own.waits.filter(wait => wait.since <= t);
  const whyForEver = ({ rank, peer, alone, behind }) => {
    if (!behind) return alone ? `no step of rank ${peer} meets it` : `rank ${peer} never gets ready`;
    const [step, reason] = behind, words = own.waits.find(wait => wait.rank === rank && wait.step === step)?.words;
    const by = `step ${step}` + (words ? ` (${words})` : "");
    return { data: `it needs the result of ${by}`, overwrites: `it overwrites what ${by} uses` }[reason] ?? `${by} comes first`;
  };
  const waitText = wait => `step ${wait.step}: ${wait.words} waits for ever` + (wait.cycle ? ", in a cycle" : "") + `: ${whyForEver(wait)}`;
  // What a rank does at time `t`, what it does next, and what waits there for ever.
  const rankAt = (rank, t) => ({
    now: ofRank[rank].filter(i => isAt(endAt(i, rank), t)),
    next: ofRank[rank].find(i => times[endAt(i, rank).start] > t),
    waits: waitsAt(t).filter(wait => wait.rank === rank),
  });
  const rankText = (rank, t) => {
    const { now, next, waits } = rankAt(rank, t);
    const texts = [...now.map(i => `step ${stepOf(i, rank)}: ${doing(i, rank)}, ${timesText(i, rank)}`), ...waits.map(waitText)];
    if (texts.length) return `rank ${rank}, ${texts.join("; ")}`;
    return `rank ${rank} ` + (next === undefined ? "has finished"
      : `waits until ${timeText(times[endAt(next, rank).start])} for its step ${stepOf(next, rank)}: ${doing(next, rank)}; ${reasonText(next, rank)}`);
  };
  const idOf = name => name + (number ? `-${number}` : ""), part = name => element(idOf(name));
  return { ...own, number, idOf, part, nodes, times, count, critical, endsOf, endAt, isAt, ofRank, underWay, waitsAt, rankAt, rankText, cells, entries, buffersAt,
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
