// The table of the ranks: what their ports do, and what their buffers hold.
const makeRanks = s => {
  const { cells, entries, contributions, nodes, endsOf } = s, table = s.part("ranks");
  const widest = Math.max(...cells.map(borders => borders.length - 1));
  const longest = Math.max(1, ...cells.map(borders => borders.at(-1)));
  const contributors = Math.max(1, ...s.counts);
  // Boxes with text while they have room; more cells are the columns of a picture.
  const inBoxes = widest <= 256;
  const isNarrow = matchMedia("(max-width: 480px)").matches;
  const bufferWidth = isNarrow ? s.part("ranks-box").clientWidth - 6 : Math.max(480, inBoxes ? Math.min(1000, widest * (contributors > 1 ? 64 : 30)) : 1000);
  // Whether cells belong to the output.
  const isOutput = cells.map((borders, rank) => {
    const output = new Uint8Array(borders.length - 1);
    for (const [first, number] of s.buffers.outputs[rank]) output.fill(1, first, first + number);
    return output;
  });
  const isWrong = cells.map((_, rank) => new Set(s.buffers.wrong[rank]));
  {
    const head = [...s.lanes, "computes"].map(name => `<th scope="col">${name}</th>`).join("");
    const body = cells.map((borders, rank) => {
      const boxes = borders.slice(1).map((next, cell) =>
        `<i${isOutput[rank][cell] ? ` class="output${isWrong[rank].has(cell) ? " ends-wrong" : ""}"` : ""} style="flex-grow:${next - borders[cell]}"></i>`);
      const inner = inBoxes ? boxes.join("") : `<canvas width="${Math.min(widest, 4096)}" height="16"></canvas>`;
      return `<tr data-rank="${rank}"><th scope="row">${rank}</th>${"<td></td>".repeat(s.lanes.length + 1)}` +
        `<td class="buffer"><div style="width:${100 * borders.at(-1) / longest}%">${inner}</div></td></tr>`;
    });
    table.innerHTML = `<thead><tr><th scope="col">rank</th>${head}<th scope="col" class="buffer">buffer</th></tr></thead><tbody>${body.join("")}</tbody>`;
    table.style.setProperty("--width", isNarrow ? 0 : bufferWidth + "px");
    table.style.setProperty("--lanes", s.lanes.length + 1);
    table.classList.toggle("combining", contributors > 1);
    s.part("ranks-note").textContent = (inBoxes
      ? "A cell of a buffer names the inputs it holds: x3 [0-7] are elements 0 to 7 of rank 3's, x0..x3 are those of ranks 0 to 3 combined. "
      : `A buffer has up to ${widest} cells, too many for names: point at one, or choose its rank. `) +
      (contributors > 1 ? `${inBoxes ? "The bar at its foot" : "The height of a cell"} shows how many of the ${contributors} contributions it has. ` : "") +
      (inBoxes ? "Output cells have a thick border" : "A line marks the output") +
      (isWrong.some(wrong => wrong.size > 0) ? ", a red one where they end wrong." : ".");
  }
  const rowOf = [...table.tBodies[0].rows];
  const boxesOf = rowOf.map(row => [...row.querySelectorAll("i")]);
  const shown = cells.map(borders => new Int32Array(borders.length - 1).fill(-2));

  const showBox = (rank, cell, entry) => {
    const box = boxesOf[rank][cell], held = contributions(entry) > 0, colour = entries.color[entry];
    box.classList.toggle("held", held);
    box.style.background = held ? data.colors[colour] : "";
    box.style.color = held ? data.inks[colour] : "";
    const room = bufferWidth * (cells[rank][cell + 1] - cells[rank][cell]) / longest;
    const whole = s.heldText(rank, cell, cell + 1, entry);
    box.textContent = !held || room < 24 ? "" : room > 6.5 * whole.length ? whole : s.wordsOf(entry);
    // A bar below the text shows how many of the contributions are there.
    box.style.setProperty("--share", held ? contributions(entry) / contributors : 0);
  };
  const paintRow = (rank, held) => {
    const canvas = rowOf[rank].querySelector("canvas"), { width, height } = canvas, paint = canvas.getContext("2d");
    const borders = cells[rank];
    paint.clearRect(0, 0, width, height);
    for (let x = 0, cell = 0; x < width; x++) {
      while (borders[cell + 1] <= (x + .5) / width * borders.at(-1)) cell++;
      paint.fillStyle = isWrong[rank].has(cell) ? "#d22" : "#888";
      if (isOutput[rank][cell]) paint.fillRect(x, height - 1, 1, 1);
      if (!(contributions(held[cell]) > 0)) continue;
      const tall = Math.ceil((height - 2) * contributions(held[cell]) / contributors);
      paint.fillStyle = data.colors[entries.color[held[cell]]];
      paint.fillRect(x, height - 2 - tall, 1, tall);
    }
  };

  // Shows what is under way or waits for ever, and what the buffers hold at an instant.
  const show = (t, instant, active) => {
    const text = rowOf.map(() => Array(s.lanes.length + 1).fill(""));
    for (const i of active) {
      for (const end of endsOf(i).filter(end => s.isAt(end, t))) {
        const column = nodes.kind[i] === TRANSFER ? end.lane : s.lanes.length;
        const peer = end.sends ? "→ " + nodes.to[i] : nodes.kind[i] === TRANSFER ? "← " + nodes.from[i] : data.kinds[nodes.kind[i]];
        text[end.rank][column] += (text[end.rank][column] && ", ") + peer;
      }
    }
    for (const wait of s.waitsAt(t)) {
      text[wait.rank][wait.lane < 0 ? s.lanes.length : wait.lane] = (wait.peer < 0 ? "" : wait.sends ? `→ ${wait.peer} ` : `← ${wait.peer} `) + "waits";
    }
    rowOf.forEach((row, rank) => text[rank].forEach((words, column) => {
      const box = row.cells[column + 1];
      if (box.textContent !== words) box.textContent = words;
    }));
    s.buffersAt(instant).forEach((held, rank) => {
      let changed = false;
      held.forEach((entry, cell) => {
        if (shown[rank][cell] === entry) return;
        shown[rank][cell] = entry;
        changed = true;
        if (inBoxes) showBox(rank, cell, entry);
      });
      if (changed && !inBoxes) paintRow(rank, held);
    });
  };

  // What the cell of a rank under the pointer holds; `null` beside the cells.
  const pointedCell = (row, event) => {
    const box = row.querySelector("td.buffer div")?.getBoundingClientRect(), rank = +row.dataset.rank;
    const at = box ? Math.floor((event.clientX - box.left) / box.width * cells[rank].at(-1)) : -1;
    const cell = cells[rank].findIndex(border => border > at) - 1;
    return cell < 0 ? null : `${s.placeText(rank, cell, cell + 1)}: ${s.heldText(rank, cell, cell + 1, shown[rank][cell])}`;
  };
  return { show, pointedCell, rowOf };
};

// The details of the chosen rank at an instant: what it does, or what it waits for, what it holds,
// and its program.
const MAX_LISTED = 256;
let listed = "";
const showDetails = (s, rank, chosenNode, instant) => {
  const { stepOf } = s, { now, next, waits } = s.rankAt(rank, state.time), box = element("details");
  box.dataset.schedule = s.number;
  element("chosen").textContent = schedules.length > 1 ? `${rank} of ${s.name}` : rank;
  const item = (name, i, before = "") =>
    `<li class="${name}"><b>${before}step ${stepOf(i, rank)}: ${escaped(s.doing(i, rank))}</b><br>${escaped(s.factsText(i, rank))}</li>`;
  const lines = now.filter(i => i !== chosenNode).map(i => item("now", i));
  lines.push(...waits.map(wait => `<li class="waits${waitClass(wait)}"><b>${escaped(s.waitText(wait))}</b></li>`));
  if (!now.length && !waits.length && chosenNode === null) lines.push(next === undefined ? "<li>idle: it has finished</li>" : "<li>waits</li>");
  if (next !== undefined) lines.push(item("next", next, "next, "));
  if (chosenNode !== null) lines.unshift(item("chosen", chosenNode));
  const texts = s.heldTexts(rank, s.buffersAt(instant)[rank]);
  const held = texts.slice(0, MAX_LISTED).map(text => `<li>${escaped(text)}</li>`);
  if (texts.length > MAX_LISTED) held.push(`<li>and ${texts.length - MAX_LISTED} more pieces</li>`);
  element("doing").innerHTML = lines.join("");
  element("holds-title").textContent = `Its buffer of ${s.cells[rank].at(-1)} elements holds`;
  element("holds").innerHTML = held.join("") || "<li>nothing</li>";
  const steps = s.ofRank[rank].slice(0, MAX_LISTED), list = element("steps");
  if (listed !== `${s.number} ${rank}`) {
    listed = `${s.number} ${rank}`;
    element("steps-title").textContent = `What it does, ${s.ofRank[rank].length} transfers and computations` + (steps.length < s.ofRank[rank].length ? `, the first ${steps.length}` : "");
    list.innerHTML = steps.map(i => `<li data-node="${i}" data-rank="${rank}">step ${stepOf(i, rank)} ${escaped(s.doing(i, rank))}, ${s.timesText(i, rank)}</li>`).join("");
  }
  steps.forEach((i, place) => {
    const name = i === chosenNode ? "chosen" : now.includes(i) ? "now" : s.endAt(i, rank).end <= instant ? "done" : "";
    const line = list.children[place];
    if (line.className === name) return;
    line.className = name;
    // Of the list only: the page itself stays where it is.
    if (name === "now" || name === "chosen") list.scrollTop = line.offsetTop - list.offsetTop - 40;
  });
};
