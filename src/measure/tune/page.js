"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const rows = data.rows;
const names = [...new Set(rows.map(r => r.algorithm))];
const colours = ["#0b6bcb", "#d1495b", "#2a9d5c", "#8a4fc4", "#d97706", "#0f8b8d", "#7a5c3e", "#c2379b", "#4b5563", "#7a8b00"];
const style = new Map(names.map((n, i) => [n, { colour: colours[i % colours.length], shape: i % 5 }]));
const shown = new Set(names);

const bytesText = b => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (b >= 1024 && i < 4) { b /= 1024; i++; }
  return (b >= 100 ? Math.round(b) : +b.toPrecision(4)) + " " + units[i];
};
const timeText = (t, digits = 4) => {
  for (const [unit, name] of [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]]) {
    if (t >= unit) return +(t / unit).toPrecision(digits) + " " + name;
  }
  return +t.toPrecision(digits) + " ns";
};
const escape = s => s.replace(/[&<>"]/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

// Marker of an algorithm, centred at (x, y).
const marker = (shape, x, y, r, fill, stroke) => {
  const paint = `fill="${fill}" stroke="${stroke}" stroke-width="1.6"`;
  const path = d => `<path d="${d}" ${paint}/>`;
  switch (shape) {
    case 1: return `<rect x="${x - r * .9}" y="${y - r * .9}" width="${r * 1.8}" height="${r * 1.8}" ${paint}/>`;
    case 2: return path(`M${x} ${y - r * 1.2}L${x + r * 1.15} ${y + r * .9}H${x - r * 1.15}Z`);
    case 3: return path(`M${x} ${y - r * 1.3}L${x + r * 1.3} ${y}L${x} ${y + r * 1.3}L${x - r * 1.3} ${y}Z`);
    case 4: return path(`M${x} ${y + r * 1.2}L${x + r * 1.15} ${y - r * .9}H${x - r * 1.15}Z`);
    default: return `<circle cx="${x}" cy="${y}" r="${r}" ${paint}/>`;
  }
};

// Ticks of a logarithmic axis, approximately `room` of them at most.
const powersOfTwo = (low, high, room) => {
  const from = Math.ceil(Math.log2(low) - 1e-9), to = Math.floor(Math.log2(high) + 1e-9);
  const step = Math.max(1, Math.ceil((to - from + 1) / Math.max(2, room)));
  const ticks = [];
  for (let e = from; e <= to; e += step) ticks.push(2 ** e);
  return ticks.length ? ticks : [low];
};
const decimals = (low, high, room) => {
  for (const digits of [[1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9], [1, 2, 3, 4, 5, 7], [1, 2, 5], [1]]) {
    const ticks = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e++) {
      for (const d of digits) {
        const t = d * 10 ** e;
        if (t >= low * .999 && t <= high * 1.001) ticks.push(t);
      }
    }
    if (ticks.length <= room || digits.length === 1) {
      if (!ticks.length) return [low];
      const step = Math.ceil(ticks.length / Math.max(2, room));
      return ticks.filter((_, i) => i % step === 0);
    }
  }
};

// Draws lines and points on log-log axes. A series is
// {name, model, line, points: [{x, y, row}]}.
const draw = (box, series, axes) => {
  const width = Math.max(260, box.clientWidth), height = Math.round(Math.min(430, Math.max(280, width * .62)));
  const edge = { left: 58, right: 14, top: 24, bottom: 46 };
  const points = series.flatMap(s => s.points);
  if (!points.length) {
    box.innerHTML = `<svg height="60"><text x="8" y="30">Nothing is selected.</text></svg>`;
    return;
  }
  const range = values => {
    const low = Math.min(...values), high = Math.max(...values);
    const pad = high / low < 1.3 ? 1.15 : (high / low) ** .04;
    return [low / pad, high * pad];
  };
  let [x0, x1] = range(points.map(p => p.x)), [y0, y1] = range(points.map(p => p.y));
  if (axes.square) { x0 = y0 = Math.min(x0, y0); x1 = y1 = Math.max(x1, y1); }
  const right = width - edge.right, bottom = height - edge.bottom;
  const sx = x => edge.left + (Math.log(x / x0) / Math.log(x1 / x0)) * (right - edge.left);
  const sy = y => bottom - (Math.log(y / y0) / Math.log(y1 / y0)) * (bottom - edge.top);
  const px = v => Math.round(v * 10) / 10;
  let svg = `<svg viewBox="0 0 ${width} ${height}" height="${height}" role="img" aria-label="${escape(axes.label)}">`;
  svg += `<rect x="${edge.left}" y="${edge.top}" width="${right - edge.left}" height="${bottom - edge.top}" fill="#fff" stroke="#d8dee6"/>`;
  const ticksX = axes.bytes ? powersOfTwo(x0, x1, (right - edge.left) / 66) : decimals(x0, x1, (right - edge.left) / 66);
  for (const t of ticksX) {
    const x = px(sx(t)), text = axes.bytes ? bytesText(t) : timeText(t, 3);
    // Keep the outermost labels inside the picture.
    const half = text.length * 3.4, at = Math.min(Math.max(x, half + 2), width - half - 2);
    svg += `<path d="M${x} ${edge.top}V${bottom}" stroke="#e8ecf1"/><text x="${px(at)}" y="${bottom + 17}" text-anchor="middle">${text}</text>`;
  }
  for (const t of decimals(y0, y1, (bottom - edge.top) / 34)) {
    const y = px(sy(t));
    svg += `<path d="M${edge.left} ${y}H${right}" stroke="#e8ecf1"/><text x="${edge.left - 7}" y="${y + 4}" text-anchor="end">${timeText(t, 3)}</text>`;
  }
  svg += `<text x="${edge.left}" y="14">${escape(axes.y)}</text>`;
  svg += `<text x="${(edge.left + right) / 2}" y="${height - 8}" text-anchor="middle">${escape(axes.x)}</text>`;
  if (axes.square) svg += `<path d="M${px(sx(x0))} ${px(sy(x0))}L${px(sx(x1))} ${px(sy(x1))}" stroke="#8a94a2" stroke-dasharray="5 4"/>`;
  const hits = [];
  for (const s of series) {
    const { colour, shape } = style.get(s.name);
    const at = s.points.map(p => [px(sx(p.x)), px(sy(p.y))]);
    if (s.line && at.length > 1) {
      const look = s.model ? `stroke-width="7" stroke-linecap="round" stroke-linejoin="round" opacity=".25"` : `stroke-width="2"`;
      svg += `<path d="M${at.map(a => a.join(" ")).join("L")}" fill="none" stroke="${colour}" ${look}/>`;
    }
    if (!s.model) {
      at.forEach(([x, y], i) => {
        const row = s.points[i].row;
        svg += marker(shape, x, y, row.best ? 5.5 : 4, row.settled ? colour : "#fff", colour);
        hits.push({ x, y, row });
      });
    }
  }
  svg += `<circle class="halo" r="9" fill="none" stroke="#1c2430" stroke-width="1.5" visibility="hidden"/></svg>`;
  box.innerHTML = svg + `<div class="tip"></div>`;
  hover(box, hits);
};

const describe = r => `<b>${escape(r.algorithm)}</b>, ${bytesText(r.bytes)}${r.best ? ", the best" : ""}<br>` +
  `segment ${bytesText(r.segment)} (${r.segments} segment${r.segments === 1 ? "" : "s"})<br>` +
  `median ${timeText(r.wall)}, 95% sure ${timeText(r.low)} to ${timeText(r.high)}<br>` +
  `min ${timeText(r.min)}, p99 ${timeText(r.p99)}, ${r.repetitions} repetitions<br>` +
  `model ${timeText(r.model_time)}` + (r.model_time > 0 ? `, measured/model ${(r.wall / r.model_time).toPrecision(4)}` : "") +
  (r.settled ? "" : "<br>not settled yet");

// Shows the numbers of the point nearest to the pointer.
const hover = (box, hits) => {
  const tip = box.querySelector(".tip"), halo = box.querySelector(".halo");
  const hide = () => { tip.style.display = "none"; halo.setAttribute("visibility", "hidden"); };
  box.onpointerleave = hide;
  box.onpointermove = box.onpointerdown = event => {
    const frame = box.getBoundingClientRect();
    const x = event.clientX - frame.left, y = event.clientY - frame.top;
    let best = null, nearest = 40 * 40;
    for (const h of hits) {
      const d = (h.x - x) ** 2 + (h.y - y) ** 2;
      if (d < nearest) { nearest = d; best = h; }
    }
    if (!best) return hide();
    tip.innerHTML = describe(best.row);
    tip.style.display = "block";
    const w = tip.offsetWidth, h = tip.offsetHeight;
    const left = best.x + 14 + w <= frame.width ? best.x + 14 : best.x - 14 - w;
    tip.style.left = Math.max(0, Math.min(left, frame.width - w)) + "px";
    tip.style.top = Math.max(0, best.y - h - 12) + "px";
    halo.setAttribute("cx", best.x);
    halo.setAttribute("cy", best.y);
    halo.setAttribute("visibility", "visible");
  };
};

const both = (name, of, x) => {
  const sorted = [...of].sort((a, b) => x(a) - x(b)).filter(r => x(r) > 0 && r.wall > 0);
  return [
    { name, line: true, model: true, points: sorted.filter(r => r.model_time > 0).map(row => ({ x: x(row), y: row.model_time, row })) },
    { name, line: true, points: sorted.map(row => ({ x: x(row), y: row.wall, row })) },
  ];
};
const select = document.getElementById("size");
for (const bytes of [...new Set(rows.map(r => r.bytes))].sort((a, b) => a - b)) {
  select.add(new Option(bytesText(bytes), bytes, false, false));
}
select.selectedIndex = select.options.length - 1;

const redraw = () => {
  const visible = names.filter(n => shown.has(n));
  const of = (name, keep) => rows.filter(r => r.algorithm === name && keep(r));
  // Draw all model series first, below the measured ones.
  const layered = series => series.filter(s => s.model).concat(series.filter(s => !s.model));
  draw(document.getElementById("by-size"), layered(visible.flatMap(n => both(n, of(n, r => r.best_segment), r => r.bytes))),
    { bytes: true, x: "size of the vector", y: "time", label: "time over size" });
  draw(document.getElementById("by-segment"), layered(visible.flatMap(n => both(n, of(n, r => r.bytes === +select.value), r => r.segment))),
    { bytes: true, x: "size of a segment", y: "time", label: "time over segment size" });
  draw(document.getElementById("by-model"), visible.map(name => ({
    name, points: of(name, r => r.model_time > 0 && r.wall > 0).map(row => ({ x: row.model_time, y: row.wall, row })),
  })), { square: true, x: "time in the model", y: "time measured", label: "measured against model" });
};

const legend = document.getElementById("legend");
for (const name of names) {
  const { colour, shape } = style.get(name);
  const label = document.createElement("label");
  label.innerHTML = `<input type="checkbox" checked><svg width="16" height="16">${marker(shape, 8, 8, 4.5, colour, colour)}</svg>${escape(name)}`;
  label.firstChild.onchange = event => { event.target.checked ? shown.add(name) : shown.delete(name); redraw(); };
  legend.append(label);
}
const key = (svg, text) => {
  const item = document.createElement("span");
  item.className = "key";
  item.innerHTML = `<svg width="26" height="16">${svg}</svg>${text}`;
  legend.append(item);
};
key(`<path d="M1 8H25" stroke="#5a6675" stroke-width="2"/>`, "measured (median)");
key(`<path d="M4 8H22" stroke="#5a6675" stroke-width="7" stroke-linecap="round" opacity=".3"/>`, "model");
key(marker(0, 13, 8, 4, "#fff", "#5a6675"), "not settled");

select.onchange = redraw;
let wait = 0;
window.onresize = () => { cancelAnimationFrame(wait); wait = requestAnimationFrame(redraw); };
redraw();
