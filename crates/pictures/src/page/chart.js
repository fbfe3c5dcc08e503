// The Gantt charts: a row for each rank, a lane for each port, and a line at the present. Names of
// ranks and times stay in view while a chart scrolls.
const namesWidth = 30, axisHeight = 22;
// One scale for all: wide enough that most transfers can be told apart; the charts scroll together.
let shownTime = 0, chartWidth = 0;
const scaleCharts = () => {
  const lengths = schedules.flatMap(s => s.nodes.start.map((start, i) => s.times[s.nodes.sent[i]] - s.times[start])).filter(d => d > 0).sort((a, b) => a - b);
  shownTime = Math.max(...schedules.map(s => s.shown));
  const typical = lengths[Math.floor(lengths.length / 8)] || 1;
  chartWidth = Math.min(3200, Math.max(element("chart").clientWidth - namesWidth - 12, shownTime / typical * 24));
};
const xOf = t => shownTime > 0 ? t / shownTime * chartWidth : 0;
const round = v => Math.round(v * 10) / 10;

const makeChart = s => {
  const { nodes, times, endsOf, critical } = s, chart = s.part("chart"), lanes = s.lanes.length + s.computeLanes, end = times.at(-1);
  const laneHeight = s.ranks > 24 ? 9 : lanes > 1 ? 13 : 18, gap = 4, rowHeight = lanes * laneHeight + gap;
  const chartHeight = s.ranks * rowHeight;

  // The box of one end of a node.
  const boxOf = (i, at) => {
    const x = xOf(times[at.start]), width = Math.max(.3, xOf(times[at.end]) - x - .4);
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
  // What waits for ever, from when its lane is idle to the right edge.
  const drawWait = wait => {
    const x = round(xOf(wait.since)), width = round(chartWidth - x), lane = Math.max(wait.lane, 0);
    const y = wait.rank * rowHeight + gap / 2 + lane * laneHeight, height = (wait.lane < 0 ? lanes * laneHeight : laneHeight) - 1;
    const peer = wait.peer < 0 ? "" : (wait.sends ? "→" : "←") + wait.peer + " ";
    return `<rect class="waits${waitClass(wait)}" data-rank="${wait.rank}" x="${x}" y="${y}" width="${width}" height="${height}"/>` +
      (height < 8 ? "" : `<text x="${round(x + width / 2)}" y="${y + height / 2 + 3}">${peer}${wait.alone ? "no partner" : "waits"}</text>`);
  };
  {
    let plot = "", names = "", axis = "";
    for (let rank = 0; rank < s.ranks; rank++) {
      const y = rank * rowHeight, band = `<rect class="band${rank % 2 ? " odd" : ""}" y="${y}" width="100%" height="${rowHeight}"/>`;
      plot += band;
      names += `${band}<text data-rank="${rank}" x="${namesWidth - 5}" y="${y + rowHeight / 2 + 4}">${rank}</text>`;
    }
    // Ticks at whole steps, and always at the end.
    const step = 10 ** Math.floor(Math.log10(shownTime / data.divisor || 1)) * data.divisor;
    const unit = [1, 2, 5, 10, 20, 50, 100].map(parts => step / parts).find(part => shownTime / part >= chartWidth / 160) ?? step;
    const ticks = [];
    for (let k = 0; end > 0 && xOf(end) - xOf(k * unit) > 64; k++) ticks.push(k * unit);
    for (const t of [...ticks, end]) {
      const anchor = t === end && t > 0 ? "end" : t === 0 ? "start" : "middle";
      plot += `<path class="tick" d="M${round(xOf(t))} 0v${chartHeight}"/>`;
      axis += `<path class="tick" d="M${round(xOf(t))} ${axisHeight - 5}v5"/>` +
        `<text x="${round(xOf(t))}" y="${axisHeight - 8}" style="text-anchor:${anchor}">${numberText(t)}${t === end ? ` ${data.unit}` : ""}</text>`;
    }
    for (let i = 0; i < s.count; i++) {
      plot += endsOf(i).filter(at => at.start !== at.end).map(at => drawNode(i, at)).join("");
    }
    for (const wait of s.waits) plot += drawWait(wait);
    plot += `<path class="cursor" id="${s.idOf("cursor")}" d="M0 0v${chartHeight}"/>`;
    const picture = (name, width, height, inner) => `<svg class="${name}" width="${width}" height="${height}">${inner}</svg>`;
    chart.innerHTML = `<div class="corner"></div>` + picture("axis", chartWidth + 2, axisHeight, axis) +
      picture("names", namesWidth, chartHeight, names) + picture("plot", chartWidth + 2, chartHeight, plot);
    const { title, entries } = s.legend;
    if (entries.length > 0 && entries.length <= 32) {
      const named = entries.map(([colour, name]) => `<li><i style="background:${data.colors[colour]}"></i>${escaped(name)}</li>`);
      chart.insertAdjacentHTML("afterend", `<ul class="legend" aria-label="Colours"><li>${title}</li>${named.join("")}</ul>`);
    }
    const computes = nodes.kind.some(kind => kind !== TRANSFER) ? ", dark boxes compute" : "";
    const isTimed = at => at.start !== at.end, untimed = nodes.start.filter((_, i) => !endsOf(i).some(isTimed)).length;
    s.part("chart-note").textContent = `Rows are ranks (lanes: ${s.lanes.join(", ")}), filled boxes receive, outlined boxes send${computes}.` + ` Times are in ${unitText()}.` +
      (s.waits.length ? " Dashed boxes wait for ever, red ones in a cycle or without a partner." : "") + (untimed ? ` Not drawn, since they take no time: ${untimed} of ${s.count} transfers and computations.` : "");
  }
  const cursor = s.part("cursor"), nameOf = [...chart.querySelectorAll(".names text")];
  let marked = [];

  // Moves the line to time `t`, marks the chosen node, and keeps the line in view.
  const show = (t, chosenNode) => {
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
  return { show, showRow, nameOf, chart };
};
