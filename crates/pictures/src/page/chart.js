// The Gantt chart: a row for each rank, a lane for each port, and a line at the present. Names of
// ranks and times stay in view while the chart scrolls.
const chart = element("chart");
const lanes = data.lanes.length + data.computeLanes;
const laneHeight = data.ranks > 24 ? 9 : lanes > 1 ? 13 : 18, gap = 4, rowHeight = lanes * laneHeight + gap;
const namesWidth = 30, axisHeight = 22, end = times[lastInstant];
// Wide enough that most transfers can be told apart; the chart scrolls.
const lengths = nodes.start.map((start, i) => times[nodes.end[i]] - times[start]).filter(d => d > 0).sort((a, b) => a - b);
const typical = lengths[Math.floor(lengths.length / 8)] || 1;
const chartWidth = Math.min(3200, Math.max(chart.clientWidth - namesWidth - 12, end / typical * 24));
const chartHeight = data.ranks * rowHeight;
const xOf = t => end > 0 ? t / end * chartWidth : 0;
const round = v => Math.round(v * 10) / 10;

// The box of one end of a node.
const boxOf = (i, at) => {
  const x = xOf(times[nodes.start[i]]), width = Math.max(.3, xOf(times[nodes.end[i]]) - x - .4);
  const lane = at.lane < 0 ? 0 : at.lane, height = at.lane < 0 ? lanes * laneHeight : laneHeight;
  return { x: round(x), y: at.rank * rowHeight + gap / 2 + lane * laneHeight, width: round(width), height: height - 1 };
};
const drawNode = (i, at) => {
  const { x, y, width, height } = boxOf(i, at);
  const colour = data.colors[nodes.color[i]], ink = data.inks[nodes.color[i]];
  const kind = nodes.kind[i] !== TRANSFER ? "computes" : at.sends ? "sends" : "receives";
  const box = `<rect class="${kind}${critical.has(i) ? " critical" : ""}" data-node="${i}" data-rank="${at.rank}" style="--colour:${colour}" x="${x}" y="${y}" width="${width}" height="${height}"/>`;
  if (nodes.kind[i] !== TRANSFER || width <= 24 || height < 8) return box;
  const text = at.sends ? "→" + nodes.to[i] : "←" + nodes.from[i];
  return box + `<text data-node="${i}" data-rank="${at.rank}" x="${round(x + width / 2)}" y="${y + height / 2 + 3}"${at.sends ? "" : ` style="fill:${ink}"`}>${text}</text>`;
};
{
  let plot = "", names = "", axis = "";
  for (let rank = 0; rank < data.ranks; rank++) {
    const y = rank * rowHeight, band = `<rect class="band${rank % 2 ? " odd" : ""}" y="${y}" width="100%" height="${rowHeight}"/>`;
    plot += band;
    names += `${band}<text data-rank="${rank}" x="${namesWidth - 5}" y="${y + rowHeight / 2 + 4}">${rank}</text>`;
  }
  // Ticks at whole steps, and always at the end.
  const step = 10 ** Math.floor(Math.log10(end / data.divisor || 1)) * data.divisor;
  const unit = [1, 2, 5, 10, 20, 50, 100].map(parts => step / parts).find(s => end / s >= chartWidth / 160) ?? step;
  const ticks = [];
  for (let k = 0; end > 0 && k * unit < end - unit * .4; k++) ticks.push(k * unit);
  for (const t of [...ticks, end]) {
    const anchor = t === end ? "end" : t === 0 ? "start" : "middle";
    plot += `<path class="tick" d="M${round(xOf(t))} 0v${chartHeight}"/>`;
    axis += `<path class="tick" d="M${round(xOf(t))} ${axisHeight - 5}v5"/>` +
      `<text x="${round(xOf(t))}" y="${axisHeight - 8}" style="text-anchor:${anchor}">${timeText(t)}</text>`;
  }
  for (let i = 0; i < count; i++) {
    if (nodes.start[i] !== nodes.end[i]) plot += endsOf(i).map(at => drawNode(i, at)).join("");
  }
  plot += `<path id="cursor" d="M0 0v${chartHeight}"/>`;
  const picture = (name, width, height, inner) => `<svg class="${name}" width="${width}" height="${height}">${inner}</svg>`;
  chart.innerHTML = `<div class="corner"></div>` + picture("axis", chartWidth + 2, axisHeight, axis) +
    picture("names", namesWidth, chartHeight, names) + picture("plot", chartWidth + 2, chartHeight, plot);
  const { title, entries } = data.legend;
  if (entries.length > 0 && entries.length <= 32) {
    const named = entries.map(([colour, name]) => `<li><i style="background:${data.colors[colour]}"></i>${escaped(name)}</li>`);
    chart.insertAdjacentHTML("afterend", `<ul class="legend" aria-label="Colours"><li>${title}</li>${named.join("")}</ul>`);
  }
  const computes = nodes.kind.some(kind => kind !== TRANSFER) ? ", dark boxes compute" : "";
  const untimed = nodes.start.filter((start, i) => start === nodes.end[i]).length;
  element("chart-note").textContent = `Rows are ranks (lanes: ${data.lanes.join(", ")}), filled boxes receive, outlined boxes send${computes}.` +
    (untimed ? ` Not drawn, since they take no time: ${untimed} of ${count} transfers and computations.` : "");
}
const cursor = element("cursor"), nameOf = [...chart.querySelectorAll(".names text")];
let marked = [];

// Moves the line to time `t`, marks the chosen node, and keeps the line in view.
const showChart = (t, chosenNode) => {
  const x = xOf(t);
  cursor.setAttribute("transform", `translate(${round(x)} 0)`);
  for (const box of marked) box.classList.remove("chosen");
  marked = chosenNode === null ? [] : [...chart.querySelectorAll(`[data-node="${chosenNode}"]`)];
  for (const box of marked) box.classList.add("chosen");
  const width = chart.clientWidth - namesWidth;
  if (x < chart.scrollLeft + 20 || x > chart.scrollLeft + width - 20) chart.scrollLeft = x - width / 2;
};
// Keeps the row of a rank in view.
const showRow = rank => {
  const y = rank * rowHeight, height = chart.clientHeight - axisHeight - rowHeight;
  if (y < chart.scrollTop || y > chart.scrollTop + height) chart.scrollTop = y - height / 2;
};
