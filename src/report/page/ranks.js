// The table of the ranks: what their ports do, and what their buffers hold.
const table = element("ranks");
const widest = Math.max(...data.cells.map(cells => cells.length - 1));
const longest = Math.max(1, ...data.cells.map(cells => cells.at(-1)));
const contributors = Math.max(1, ...data.counts);
const bufferWidth = Math.min(1000, Math.max(480, widest * (contributors > 1 ? 64 : 30)));
{
  const head = [...data.lanes, "computes"].map(name => `<th scope="col">${name}</th>`).join("");
  const body = data.cells.map((cells, rank) => {
    const outputs = new Set(data.outputs[rank]);
    const row = cells.slice(1).map((next, cell) =>
      `<i${outputs.has(cell) ? ' class="output"' : ""} style="flex-grow:${next - cells[cell]}"></i>`);
    return `<tr data-rank="${rank}"><th scope="row">${rank}</th>${"<td></td>".repeat(data.lanes.length + 1)}<td class="buffer"><div style="width:${100 * cells.at(-1) / longest}%">${row.join("")}</div></td></tr>`;
  });
  table.innerHTML = `<thead><tr><th scope="col">rank</th>${head}<th scope="col" class="buffer">buffer</th></tr></thead><tbody>${body.join("")}</tbody>`;
  table.style.setProperty("--width", bufferWidth + "px");
  table.classList.toggle("combining", contributors > 1);
}
const rowOf = [...table.tBodies[0].rows];
const cellsOf = rowOf.map(row => [...row.querySelectorAll("i")]);
const shownContent = cellsOf.map(cells => new Int32Array(cells.length).fill(-2));

const showCell = (rank, cell, content) => {
  const box = cellsOf[rank][cell];
  box.title = `${cellElements(rank, cell)}: ${cellText(rank, cell, content)}`;
  const [list, , colour] = content < 0 ? [] : data.contents[content];
  const held = list !== undefined && data.counts[list] > 0;
  box.classList.toggle("held", held);
  box.style.background = held ? data.colors[colour] : "";
  box.style.color = held ? data.inks[colour] : "";
  const room = bufferWidth * (data.cells[rank][cell + 1] - data.cells[rank][cell]) / longest;
  const whole = cellText(rank, cell, content);
  box.textContent = !held || room < 24 ? "" : room > 6.5 * whole.length ? whole : data.lists[list];
  // A bar below the text shows how many of the contributions are there.
  box.style.setProperty("--share", held ? data.counts[list] / contributors : 0);
};

// Shows what is under way, and what the buffers hold at an instant.
const showRanks = (instant, active) => {
  const text = rowOf.map(() => Array(data.lanes.length + 1).fill(""));
  for (const i of active) {
    for (const end of endsOf(i)) {
      const column = nodes.kind[i] === TRANSFER ? end.lane : data.lanes.length;
      const peer = end.sends ? "→ " + nodes.to[i] : nodes.kind[i] === TRANSFER ? "← " + nodes.from[i] : data.kinds[nodes.kind[i]];
      text[end.rank][column] += (text[end.rank][column] && ", ") + peer;
    }
  }
  rowOf.forEach((row, rank) => text[rank].forEach((words, column) => {
    const box = row.cells[column + 1];
    if (box.textContent !== words) box.textContent = words;
  }));
  buffersAt(instant).forEach((held, rank) => held.forEach((content, cell) => {
    if (shownContent[rank][cell] === content) return;
    shownContent[rank][cell] = content;
    showCell(rank, cell, content);
  }));
};

// The details of the chosen rank at an instant: what it does, or what it waits for, and what it holds.
const showDetails = (rank, chosenNode, instant, active) => {
  element("chosen").textContent = rank;
  const now = active.filter(i => endsOf(i).some(end => end.rank === rank));
  const next = ofRank[rank].find(i => nodes.start[i] > instant);
  const lines = now.filter(i => i !== chosenNode).map(i => `<li>${escaped(describe(i, rank))}</li>`);
  if (!now.length && chosenNode === null) lines.push("<li>idle" + (next === undefined ? ": it has finished" : "") + "</li>");
  if (next !== undefined) lines.push(`<li class="next">next: ${escaped(describe(next, rank))}</li>`);
  if (chosenNode !== null) lines.unshift(`<li class="chosen">${escaped(describe(chosenNode, rank))}</li>`);
  const runs = [], held = buffersAt(instant)[rank];
  held.forEach((content, cell) => {
    if (content >= 0) runs.push(`<li>${cellElements(rank, cell)}: ${escaped(cellText(rank, cell, content))}</li>`);
  });
  element("details").innerHTML = `<ul>${lines.join("")}</ul><p>Its buffer of ${data.cells[rank].at(-1)} elements holds</p>` +
    `<ul class="held" tabindex="0">${runs.join("") || "<li>nothing</li>"}</ul>`;
};
