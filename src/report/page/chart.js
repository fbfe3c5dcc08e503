// The Gantt chart: a row for each rank, a lane for each port, and a line at the present.
const chart = element("chart");
const lanes = data.lanes.length + data.computeLanes;
const laneHeight = data.ranks > 24 ? 9 : lanes > 1 ? 13 : 18, gap = 4, rowHeight = lanes * laneHeight + gap;
const left = 30, top_ = 20, end = times[lastInstant];
// Wide enough that most transfers can be told apart; the chart scrolls.
const shortest = [...nodes.start.keys()].map(i => times[nodes.end[i]] - times[nodes.start[i]]).filter(d => d > 0).sort((a, b) => a - b);
const typical = shortest[Math.floor(shortest.length / 8)] || 1;
const chartWidth = Math.min(3200, Math.max(chart.clientWidth - 40, end / typical * 24));
const chartHeight = data.ranks * rowHeight;
const xOf = t => left + (end > 0 ? t / end * chartWidth : 0);
const round = v => Math.round(v * 10) / 10;
const rowOfRank = rank => top_ + rank * rowHeight;

// The box of one end of a node.
const boxOf = (i, at) => {
  const x = xOf(times[nodes.start[i]]), width = Math.max(.3, xOf(times[nodes.end[i]]) - x - .4);
  const lane = at.lane < 0 ? 0 : at.lane, height = at.lane < 0 ? lanes * laneHeight : laneHeight;
  return { x: round(x), y: rowOfRank(at.rank) + gap / 2 + lane * laneHeight, width: round(width), height: height - 1 };
};
{
  let svg = "";
  for (let rank = 0; rank < data.ranks; rank++) {
    const y = rowOfRank(rank);
    svg += `<rect class="band${rank % 2 ? " odd" : ""}" x="${left}" y="${y}" width="${chartWidth}" height="${rowHeight}"/>`;
  }
  const drawn = [];
  for (let i = 0; i < count; i++) {
    if (nodes.start[i] === nodes.end[i]) continue;
    const colour = data.colors[nodes.color[i]], ink = data.inks[nodes.color[i]];
    for (const at of endsOf(i)) {
      const { x, y, width, height } = boxOf(i, at);
      const kind = nodes.kind[i] !== TRANSFER ? "computes" : at.sends ? "sends" : "receives";
      const paint = kind === "sends" ? `stroke="${colour}"` : `fill="${colour}"`;
      drawn.push(`<rect class="${kind}${critical.has(i) ? " critical" : ""}" data-node="${i}" data-rank="${at.rank}" x="${x}" y="${y}" width="${width}" height="${height}" ${paint}/>`);
      if (nodes.kind[i] === TRANSFER && width > 24 && height >= 9) {
        const text = at.sends ? "→" + nodes.to[i] : "←" + nodes.from[i];
        drawn.push(`<text data-node="${i}" data-rank="${at.rank}" x="${round(x + width / 2)}" y="${y + height / 2 + 3}"${at.sends ? "" : ` style="fill:${ink}"`}>${text}</text>`);
      }
    }
  }
  svg += drawn.join("");
  for (let rank = 0; rank < data.ranks; rank++) {
    svg += `<text class="name" x="${left - 5}" y="${rowOfRank(rank) + rowHeight / 2 + 4}">${rank}</text>`;
  }
  // Ticks at whole steps, and always at the end.
  const step = 10 ** Math.floor(Math.log10(end / data.divisor || 1)) * data.divisor;
  const unit = [step, step / 2, step / 5, step / 10].find(s => end / s >= chartWidth / 160) || step;
  const ticks = [];
  for (let k = 0; end > 0 && k * unit < end - unit * .4; k++) ticks.push(k * unit);
  for (const t of [...ticks, end]) {
    svg += `<path class="tick" d="M${round(xOf(t))} ${top_ - 3}v${chartHeight + 6}"/>` +
      `<text class="time${t === end ? " last" : ""}" x="${round(xOf(t))}" y="${top_ - 7}">${timeText(t)}</text>`;
  }
  svg += `<path id="cursor" d="M0 ${top_ - 4}v${chartHeight + 8}"/>`;
  chart.innerHTML = `<svg width="${left + chartWidth + 8}" height="${top_ + chartHeight + 8}" role="group" aria-label="Gantt chart">${svg}</svg>`;
  const colourOf = new Map([...nodes.part.keys()].filter(i => nodes.part[i] >= 0).map(i => [nodes.part[i], nodes.color[i]]));
  if (colourOf.size <= 32) {
    const entries = [...colourOf].sort((a, b) => a[0] - b[0]).map(([part, colour]) =>
      `<li><i style="background:${data.colors[colour]}"></i>${escaped(data.parts[part])}</li>`);
    chart.insertAdjacentHTML("afterend", `<ul class="legend" aria-label="Colours">${entries.join("")}</ul>`);
  }
  const untimed = [...nodes.start.keys()].filter(i => nodes.start[i] === nodes.end[i]).length;
  element("chart-note").textContent = `Rows are ranks (lanes: ${data.lanes.join(", ")}), filled boxes receive, outlined boxes send, striped boxes compute.` +
    (untimed ? ` Not drawn, since they take no time: ${untimed} of ${count} transfers and computations.` : "");
}
const cursor = element("cursor");
let marked = [];

// Moves the line to time `t`, marks what is under way, and keeps the line in view.
const showChart = (t, chosenNode) => {
  const x = xOf(t);
  cursor.setAttribute("transform", `translate(${round(x)} 0)`);
  for (const box of marked) box.classList.remove("chosen");
  marked = chosenNode === null ? [] : [...chart.querySelectorAll(`[data-node="${chosenNode}"]`)];
  for (const box of marked) box.classList.add("chosen");
  const { scrollLeft, clientWidth } = chart;
  if (x < scrollLeft + 40 || x > scrollLeft + clientWidth - 40) chart.scrollLeft = x - clientWidth / 2;
};
