"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const rows = data.rows;
const names = [...new Set(rows.map(r => r.algorithm))];
// Ten colours of the style sheet, for the theme of the reader, and five shapes.
const style = new Map(names.map((n, i) => [n, { colour: `var(--s${i % 10})`, shape: i % 5 }]));
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
  const paint = `style="fill:${fill};stroke:${stroke};stroke-width:1.6"`;
  const path = d => `<path d="${d}" ${paint}/>`;
  switch (shape) {
    case 1: return `<rect x="${x - r * .9}" y="${y - r * .9}" width="${r * 1.8}" height="${r * 1.8}" ${paint}/>`;
    case 2: return path(`M${x} ${y - r * 1.2}L${x + r * 1.15} ${y + r * .9}H${x - r * 1.15}Z`);
    case 3: return path(`M${x} ${y - r * 1.3}L${x + r * 1.3} ${y}L${x} ${y + r * 1.3}L${x - r * 1.3} ${y}Z`);
    case 4: return path(`M${x} ${y + r * 1.2}L${x + r * 1.15} ${y - r * .9}H${x - r * 1.15}Z`);
    default: return `<circle cx="${x}" cy="${y}" r="${r}" ${paint}/>`;
  }
};

// Ticks of a logarithmic axis, approximately `room` of them at most. `thinned` keeps every n-th.
const thinned = (ticks, room) => ticks.filter((_, i) => i % Math.ceil(ticks.length / Math.max(2, room)) === 0);
// Powers of two; the values themselves if the range has too few.
const powersOfTwo = (low, high, room, values) => {
  const from = Math.ceil(Math.log2(low) - 1e-9), to = Math.floor(Math.log2(high) + 1e-9);
  const ticks = [];
  for (let e = from; e <= to; e++) ticks.push(2 ** e);
  return thinned(ticks.length > 1 ? ticks : [...new Set(values)].sort((a, b) => a - b), room);
};
// Round numbers of every power of ten; in a narrow range, round numbers at equal distances.
const decimals = (low, high, room) => {
  let ticks = [];
  for (const digits of [[1, 2, 3, 4, 5, 7], [1, 2, 5], [1]]) {
    const coarser = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e++) {
      coarser.push(...digits.map(d => d * 10 ** e).filter(t => t >= low * .999 && t <= high * 1.001));
    }
    if (coarser.length < 3) break;
    ticks = coarser;
    if (ticks.length <= room) break;
  }
  if (ticks.length) return thinned(ticks, room);
  const raw = (high - low) / Math.max(3, room), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(d => d * power).find(s => s >= raw);
  ticks = [];
  for (let k = Math.ceil(low / step); k * step <= high; k++) ticks.push(k * step);
  return ticks;
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
  svg += `<rect x="${edge.left}" y="${edge.top}" width="${right - edge.left}" height="${bottom - edge.top}" class="plot"/>`;
  const ticksX = axes.bytes ? powersOfTwo(x0, x1, (right - edge.left) / 66, points.map(p => p.x)) : decimals(x0, x1, (right - edge.left) / 66);
  for (const t of ticksX) {
    const x = px(sx(t)), text = axes.bytes ? bytesText(t) : timeText(t, 6);
    // Keep the outermost labels inside the picture.
    const half = text.length * 3.4, at = Math.min(Math.max(x, half + 2), width - half - 2);
    svg += `<path d="M${x} ${edge.top}V${bottom}" class="grid"/><text x="${px(at)}" y="${bottom + 17}" text-anchor="middle">${text}</text>`;
  }
  for (const t of decimals(y0, y1, (bottom - edge.top) / 34)) {
    const y = px(sy(t));
    svg += `<path d="M${edge.left} ${y}H${right}" class="grid"/><text x="${edge.left - 7}" y="${y + 4}" text-anchor="end">${timeText(t, 6)}</text>`;
  }
  svg += `<text x="${edge.left}" y="14">${escape(axes.y)}</text>`;
  svg += `<text x="${(edge.left + right) / 2}" y="${height - 8}" text-anchor="middle">${escape(axes.x)}</text>`;
  if (axes.square) svg += `<path d="M${px(sx(x0))} ${px(sy(x0))}L${px(sx(x1))} ${px(sy(x1))}" class="agree"/>`;
  // Where the model is at its best.
  for (const s of axes.optimum ? series.filter(s => s.model && s.points.length > 1) : []) {
    const best = s.points.reduce((a, b) => b.y < a.y ? b : a), x = px(sx(best.x));
    svg += `<path d="M${x} ${edge.top}V${bottom}" class="optimum" style="stroke:${style.get(s.name).colour}"/>`;
  }
  const hits = [];
  let labels = "";
  for (const s of series) {
    const { colour, shape } = style.get(s.name);
    const at = s.points.map(p => [px(sx(p.x)), px(sy(p.y))]);
    if (s.line && at.length > 1) {
      const look = s.model ? `stroke-width="7" stroke-linecap="round" stroke-linejoin="round" opacity=".3"` : `stroke-width="2"`;
      svg += `<path d="M${at.map(a => a.join(" ")).join("L")}" fill="none" style="stroke:${colour}" ${look}/>`;
    }
    if (!s.model) {
      at.forEach(([x, y], i) => {
        const row = s.points[i].row;
        svg += marker(shape, x, y, row.best ? 5.5 : 4, row.settled ? colour : "var(--plot)", colour);
        hits.push({ x, y, row });
        if (row.best && axes.best) {
          const text = axes.best(row), half = text.length * 3.6;
          labels += `<text class="best" x="${px(Math.min(Math.max(x, edge.left + half), right - half))}" y="${y > edge.top + 26 ? y - 11 : y + 20}" text-anchor="middle">${escape(text)}</text>`;
        }
      });
    }
  }
  svg += labels + `<circle class="halo" r="9" visibility="hidden"/></svg>`;
  box.innerHTML = svg + `<div class="tip" role="status"></div>`;
  hover(box, hits);
};

const describe = r => `<b>${escape(r.algorithm)}</b>, ${bytesText(r.bytes)}${r.best ? ", the best" : ""}<br>` +
  `segment ${bytesText(r.segment)} (${r.segments} segment${r.segments === 1 ? "" : "s"})<br>` +
  `median ${timeText(r.wall)}, 95% sure ${timeText(r.low)} to ${timeText(r.high)}<br>` +
  `min ${timeText(r.min)}, p99 ${timeText(r.p99)}, ${r.repetitions} repetitions<br>` +
  (r.model_time === null ? "the library's own function" : `model ${timeText(r.model_time)}`) + (r.model_time > 0 ? `, measured/model ${(r.wall / r.model_time).toPrecision(4)}` : "") +
  (r.settled ? "" : "<br>not settled: more repetitions may change whether it is the best");

// Shows the numbers of the point nearest to the pointer, or of the point chosen by the arrow keys.
const hover = (box, hits) => {
  const tip = box.querySelector(".tip"), halo = box.querySelector(".halo");
  const hide = () => { tip.style.display = "none"; halo.setAttribute("visibility", "hidden"); };
  const show = hit => {
    tip.innerHTML = describe(hit.row);
    tip.style.display = "block";
    const w = tip.offsetWidth, h = tip.offsetHeight, width = box.clientWidth;
    const left = hit.x + 14 + w <= width ? hit.x + 14 : hit.x - 14 - w;
    tip.style.left = Math.max(0, Math.min(left, width - w)) + "px";
    tip.style.top = Math.max(0, hit.y - h - 12) + "px";
    halo.setAttribute("cx", hit.x);
    halo.setAttribute("cy", hit.y);
    halo.setAttribute("visibility", "visible");
  };
  box.onpointerleave = box.onblur = hide;
  box.onpointermove = box.onpointerdown = event => {
    const frame = box.getBoundingClientRect();
    const x = event.clientX - frame.left, y = event.clientY - frame.top;
    let best = null, nearest = 40 * 40;
    for (const h of hits) {
      const d = (h.x - x) ** 2 + (h.y - y) ** 2;
      if (d < nearest) { nearest = d; best = h; }
    }
    if (best) show(best); else hide();
  };
  const ordered = [...hits].sort((a, b) => a.x - b.x || a.y - b.y);
  let chosen = -1;
  box.onkeydown = event => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") hide();
    if (!by || !ordered.length) return;
    event.preventDefault();
    chosen = chosen < 0 && by < 0 ? ordered.length - 1 : (chosen + by + ordered.length) % ordered.length;
    show(ordered[chosen]);
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
const sizes = [...new Set(rows.map(r => r.bytes))].sort((a, b) => a - b);
for (const bytes of sizes) {
  select.add(new Option(bytesText(bytes), bytes, false, false));
}
select.selectedIndex = select.options.length - 1;

const distinct = (of, value) => new Set(of.map(value)).size;
// Draws a chart, or hides it where it would have one point only.
const chart = (id, worthwhile, series, axes) => {
  const box = document.getElementById(id);
  box.closest("figure").hidden = !worthwhile;
  if (worthwhile) draw(box, series, axes);
};

const redraw = () => {
  const visible = names.filter(n => shown.has(n));
  const of = (name, keep) => rows.filter(r => r.algorithm === name && keep(r));
  // Draw all model series first, below the measured ones.
  const layered = series => series.filter(s => s.model).concat(series.filter(s => !s.model));
  chart("by-size", distinct(rows, r => r.bytes) > 1, layered(visible.flatMap(n => both(n, of(n, r => r.best_segment), r => r.bytes))),
    { bytes: true, x: "size of the vector", y: "time", label: "time over size", best: r => r.algorithm });
  chart("by-segment", names.some(n => sizes.some(b => distinct(of(n, r => r.bytes === b), r => r.segment) > 1)), layered(visible.flatMap(n => both(n, of(n, r => r.bytes === +select.value), r => r.segment))),
    { bytes: true, x: "size of a segment", y: "time", label: "time over segment size", optimum: true, best: () => "best" });
  chart("by-model", rows.filter(r => r.model_time > 0).length > 1, visible.map(name => ({
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
key(`<path d="M1 8H25" stroke="currentColor" stroke-width="2"/>`, "measured (median)");
key(`<path d="M4 8H22" stroke="currentColor" stroke-width="7" stroke-linecap="round" opacity=".35"/>`, "model");
key(`<path d="M13 0V16" stroke="currentColor" stroke-width="1.5" stroke-dasharray="4 4"/>`, "best segment in the model");
key(marker(0, 13, 8, 4, "var(--plot)", "currentColor"), "not settled");

select.onchange = redraw;
let wait = 0;
window.onresize = () => { cancelAnimationFrame(wait); wait = requestAnimationFrame(redraw); };
redraw();
