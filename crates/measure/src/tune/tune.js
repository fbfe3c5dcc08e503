// The charts of a sweep: time over size, over segment size, and against the model.
const { rows } = JSON.parse(document.getElementById("data").textContent);
const names = [...new Set(rows.map(r => r.algorithm))];
const looks = looksOf(names), shown = new Set(names);

const describe = r => `<b>${escaped(r.algorithm)}</b>, ${bytesText(r.bytes)}${r.best ? ", the best" : ""}<br>` +
  `segment ${bytesText(r.segment)} (${r.segments} segment${r.segments === 1 ? "" : "s"})<br>` +
  `median ${timeText(r.wall)}, 95% sure ${timeText(r.low)} to ${timeText(r.high)}<br>` +
  `min ${timeText(r.min)}, p99 ${timeText(r.p99)}, ${r.repetitions} repetitions<br>` +
  (r.model_time === null ? "the library's own function" : `model ${timeText(r.model_time)}`) + (r.model_time > 0 ? `, measured/model ${(r.wall / r.model_time).toPrecision(4)}` : "") +
  (r.settled ? "" : "<br>not settled: more repetitions may change whether it is the best");

// A point at a measured time.
const measured = (x, row) => ({ x, y: row.wall, low: row.low, high: row.high, best: row.best, hollow: !row.settled, row });
const both = (name, of, x) => {
  const sorted = [...of].sort((a, b) => x(a) - x(b)).filter(r => x(r) > 0 && r.wall > 0), look = looks.get(name);
  return [
    { look, line: true, model: true, points: sorted.filter(r => r.model_time > 0).map(row => ({ x: x(row), y: row.model_time, row })) },
    { look, line: true, points: sorted.map(row => measured(x(row), row)) },
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
  if (worthwhile) draw(box, series, { ...axes, describe });
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
    look: looks.get(name), points: of(name, r => r.model_time > 0 && r.wall > 0).map(row => measured(row.model_time, row)),
  })), { square: true, x: "time in the model", y: "time measured", label: "measured against model" });
};

select.onchange = redraw;
fillLegend(looks, shown, [
  [`<path d="M1 8H25" stroke="currentColor" stroke-width="2"/>`, "measured (median)"],
  [`<path d="M13 1V15M10 1H16M10 15H16" fill="none" stroke="currentColor" stroke-width="1.4"/>`, "95% interval of the median"],
  [`<path d="M4 8H22" stroke="currentColor" stroke-width="7" stroke-linecap="round" opacity=".35"/>`, "model"],
  [`<path d="M13 0V16" stroke="currentColor" stroke-width="1.5" stroke-dasharray="4 4"/>`, "best segment in the model"],
  [marker(0, 13, 8, 4, "var(--plot)", "currentColor"), "not settled"],
], redraw);
