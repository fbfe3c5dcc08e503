// The chart kit: points and lines on logarithmic axes, a legend that shows and hides series, and the
// numbers of the point nearest to the pointer, or chosen by the arrow keys.

// The looks of series by name: ten colours of the style sheet, for the theme of the reader, and five
// shapes. Each ten have other shapes than the ten before.
const looksOf = names => new Map(names.map((n, i) => [n, { colour: `var(--s${i % 10})`, shape: (i + Math.floor(i / 10)) % 5 }]));

const bytesText = b => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (b >= 1024 && i < 4) { b /= 1024; i++; }
  return +b.toPrecision(4) + " " + units[i];
};
const timeText = (t, digits = 4) => {
  for (const [unit, name] of [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]]) {
    if (t >= unit) return +(t / unit).toPrecision(digits) + " " + name;
  }
  return +t.toPrecision(digits) + " ns";
};
const escaped = s => s.replace(/[&<>"]/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

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
  return ticks.length ? thinned(ticks, room) : evenly(low, high, room);
};
// Round numbers at equal distances.
const evenly = (low, high, room) => {
  const raw = (high - low) / Math.max(3, room), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(d => d * power).find(s => s >= raw);
  const ticks = [];
  for (let k = Math.ceil(low / step); k * step <= high; k++) ticks.push(k * step);
  return ticks;
};

// Draws lines and points on log-log axes, or with x from 0 on if `axes.linear`. A series is {look, model, line, points}, a point
// {x, y, low, high, best, hollow, row}, with a bar from low to high if there are such. With `axes.rows`, the names of rows, y is a place among them: 0.5 is
// the middle of the first. `axes.describe` gives the numbers of a row, `axes.best` the label of the
// best, `axes.text` that of a tick.
const draw = (box, series, axes) => {
  const rowHeight = 34, width = Math.max(260, box.clientWidth);
  const edge = { left: axes.rows ? 110 : 58, right: 14, top: 24, bottom: 46 };
  const height = axes.rows ? edge.top + axes.rows.length * rowHeight + edge.bottom : Math.round(Math.min(430, Math.max(280, width * .62)));
  const points = series.flatMap(s => s.points);
  if (!points.length) {
    box.innerHTML = `<svg height="60"><text x="8" y="30">Nothing is selected.</text></svg>`;
    return;
  }
  const range = (values, linear) => {
    if (linear) return [0, Math.max(...values, Number.MIN_VALUE)];
    const low = Math.min(...values), high = Math.max(...values);
    const pad = high / low < 1.3 ? 1.15 : (high / low) ** .04;
    return [low / pad, high * pad];
  };
  let [x0, x1] = range([...points.map(p => p.x), ...axes.values ?? []], axes.linear), [y0, y1] = range(points.flatMap(p => [p.y, p.low ?? p.y, p.high ?? p.y]));
  if (axes.square) { x0 = y0 = Math.min(x0, y0); x1 = y1 = Math.max(x1, y1); }
  const right = width - edge.right, bottom = height - edge.bottom;
  const sx = x => edge.left + (axes.linear ? x / x1 : Math.log(x / x0) / Math.log(x1 / x0)) * (right - edge.left);
  const sy = y => axes.rows ? edge.top + y * rowHeight : bottom - (Math.log(y / y0) / Math.log(y1 / y0)) * (bottom - edge.top);
  const px = v => Math.round(v * 10) / 10, tickText = axes.text ?? (t => timeText(t, 6));
  let svg = `<svg viewBox="0 0 ${width} ${height}" height="${height}" role="img" aria-label="${escaped(axes.label)}">`;
  svg += `<rect x="${edge.left}" y="${edge.top}" width="${right - edge.left}" height="${bottom - edge.top}" class="plot"/>`;
  const ticksX = axes.bytes || axes.doubling ? powersOfTwo(x0, x1, (right - edge.left) / 66, points.map(p => p.x)) : (axes.linear ? evenly : decimals)(x0, x1, (right - edge.left) / 66);
  for (const t of ticksX) {
    const x = px(sx(t)), text = axes.bytes ? bytesText(t) : (axes.textX ?? tickText)(t);
    // Keep the outermost labels inside the picture.
    const half = text.length * 3.4, at = Math.min(Math.max(x, half + 2), width - half - 2);
    svg += `<path d="M${x} ${edge.top}V${bottom}" class="grid"/><text x="${px(at)}" y="${bottom + 17}" text-anchor="middle">${text}</text>`;
  }
  (axes.rows ?? []).forEach((name, i) => {
    svg += `<text x="${edge.left - 7}" y="${px(sy(i + .5)) + 4}" text-anchor="end">${escaped(name)}</text>`;
  });
  for (const t of axes.rows ? [] : decimals(y0, y1, (bottom - edge.top) / 34)) {
    const y = px(sy(t));
    svg += `<path d="M${edge.left} ${y}H${right}" class="grid"/><text x="${edge.left - 7}" y="${y + 4}" text-anchor="end">${tickText(t)}</text>`;
  }
  svg += `<text x="${edge.left}" y="14">${escaped(axes.y)}</text>`;
  svg += `<text x="${(edge.left + right) / 2}" y="${height - 8}" text-anchor="middle">${escaped(axes.x)}</text>`;
  if (axes.square) svg += `<path d="M${px(sx(x0))} ${px(sy(x0))}L${px(sx(x1))} ${px(sy(x1))}" class="agree"/>`;
  for (const at of axes.marks ?? []) svg += `<path d="M${px(sx(at))} ${edge.top}V${bottom}" class="agree"/>`;
  if (axes.agree) svg += `<path d="M${px(sx(axes.agree))} ${edge.top}V${bottom}" class="agree"/>`;
  // Where the model is at its best.
  for (const s of axes.optimum ? series.filter(s => s.model && s.points.length > 1) : []) {
    const best = s.points.reduce((a, b) => b.y < a.y ? b : a), x = px(sx(best.x));
    svg += `<path d="M${x} ${edge.top}V${bottom}" class="optimum" style="stroke:${s.look.colour}"/>`;
  }
  const hits = [], bests = [];
  for (const s of series) {
    const { colour, shape } = s.look;
    const at = s.points.map(p => [px(sx(p.x)), px(sy(p.y))]);
    if (s.line && at.length > 1) {
      const look = s.model ? `stroke-width="7" stroke-linecap="round" stroke-linejoin="round" opacity=".3"` : `stroke-width="2"`;
      svg += `<path d="M${at.map(a => a.join(" ")).join("L")}" fill="none" style="stroke:${colour}" ${look}/>`;
    }
    if (!s.model) {
      at.forEach(([x, y], i) => {
        const { row, best, hollow, low, high } = s.points[i];
        if (low > 0) svg += `<path d="M${x} ${px(sy(low))}V${px(sy(high))}M${x - 3} ${px(sy(low))}h6M${x - 3} ${px(sy(high))}h6" class="interval" style="stroke:${colour}"/>`;
        svg += marker(shape, x, y, best ? 5.5 : 4, hollow ? "var(--plot)" : colour, colour);
        hits.push({ x, y, row });
        if (best && axes.best) bests.push({ x, y, text: axes.best(row) });
      });
    }
  }
  // Labels from left to right: one that is the same as before, or finds no room, is left to the tip.
  const taken = [];
  let before = "";
  for (const { x, y, text } of bests.sort((a, b) => a.x - b.x)) {
    const half = text.length * 3.6, at = px(Math.min(Math.max(x, edge.left + half), right - half));
    const isFree = base => base > edge.top + 12 && base < bottom - 4 && !taken.some(t => Math.abs(t.at - at) < t.half + half + 4 && Math.abs(t.base - base) < 15);
    const base = text === before ? undefined : [y - 11, y + 20, y - 26, y + 35].find(isFree);
    before = text;
    if (base === undefined) continue;
    taken.push({ at, half, base });
    svg += `<text class="best" x="${at}" y="${base}" text-anchor="middle">${escaped(text)}</text>`;
  }
  svg += `<circle class="halo" r="9" visibility="hidden"/></svg>`;
  box.innerHTML = svg + `<div class="tip" role="status"></div>`;
  hover(box, hits, axes.describe);
};

// Shows the numbers of the point nearest to the pointer, or of the point chosen by the arrow keys.
const hover = (box, hits, describe) => {
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

// Fills the legend: a box for each series, which `redraw` obeys, buttons for all and none where there
// are many, and keys, each a picture and words.
const fillLegend = (looks, shown, keys, redraw) => {
  const legend = document.getElementById("legend");
  for (const [name, { colour, shape }] of looks) {
    const label = document.createElement("label");
    label.innerHTML = `<input type="checkbox" checked><svg width="16" height="16">${marker(shape, 8, 8, 4.5, colour, colour)}</svg>${escaped(name)}`;
    label.firstChild.onchange = event => { event.target.checked ? shown.add(name) : shown.delete(name); redraw(); };
    legend.append(label);
  }
  for (const [text, on] of looks.size > 4 ? [["all", true], ["none", false]] : []) {
    const button = document.createElement("button");
    button.textContent = text;
    button.onclick = () => {
      for (const name of looks.keys()) on ? shown.add(name) : shown.delete(name);
      for (const box of legend.querySelectorAll("input")) box.checked = on && !box.disabled;
      redraw();
    };
    legend.append(button);
  }
  for (const [svg, text] of keys) {
    const item = document.createElement("span");
    item.className = "key";
    item.innerHTML = `<svg width="26" height="16">${svg}</svg>${text}`;
    legend.append(item);
  }
  // A table that has no room beside a chart gets the whole row.
  const layout = () => {
    const boxes = [...document.querySelectorAll(".charts .scroll")], figure = box => box.closest("figure").classList;
    for (const box of boxes) figure(box).remove("wide");
    for (const box of boxes.filter(box => box.scrollWidth > box.clientWidth)) figure(box).add("wide");
    redraw();
  };
  let wait = 0;
  window.onresize = () => { cancelAnimationFrame(wait); wait = requestAnimationFrame(layout); };
  layout();
};
