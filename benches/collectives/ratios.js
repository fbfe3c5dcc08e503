// The charts of the collectives benchmark: measured over model time, a row for each collective, and
// both times over the size, a panel for each collective.
const { rows } = JSON.parse(document.getElementById("data").textContent);
const ranks = [...new Set(rows.map(r => r.ranks))].sort((a, b) => a - b);
const collectives = [...new Set(rows.map(r => r.collective))];
const nameOf = count => `${count} ranks`;
const looks = looksOf(ranks.map(nameOf)), shown = new Set(looks.keys());

const describe = r => `<b>${escaped(r.name)}</b><br>measured/model ${r.ratio.toPrecision(3)}` + (r.flags ? `<br>${r.flags}` : "");
const visible = () => ranks.filter(count => shown.has(nameOf(count)));
const ratios = (id, of) => {
  const series = visible().map(count => ({
    look: looks.get(nameOf(count)),
    points: of.filter(r => r.ranks === count && r.ratio > 0).map(row => (
      { x: row.ratio, y: collectives.indexOf(row.collective) + .15 + .7 * (ranks.indexOf(count) + .5) / ranks.length, hollow: row.flags !== "", row })),
  }));
  draw(document.getElementById(id), series, { rows: collectives, agree: 1, values: [.5, 2], x: "measured over model", y: "",
    label: "ratios of measured to model time", text: t => `${+t.toPrecision(3)}`, describe });
};
// The row with the least model time of each size; of several measurements of it the last.
const chosen = of => [...of.reduce((least, r) => r.model > (least.get(r.bytes)?.model ?? Infinity) ? least : least.set(r.bytes, r), new Map()).values()]
  .sort((a, b) => a.bytes - b.bytes);
const redraw = () => {
  ratios("by-ratio", rows.filter(r => !r.crowded));
  ratios("by-ratio-crowded", rows.filter(r => r.crowded));
  for (const collective of collectives) {
    const of = count => chosen(rows.filter(r => r.collective === collective && r.ranks === count && !r.crowded && r.model > 0));
    const series = visible().map(count => [looks.get(nameOf(count)), of(count)]).filter(([, points]) => points.length);
    const box = document.getElementById(`time-${collective}`);
    box.closest("figure").hidden = !series.length;
    if (series.length) draw(box, [
      ...series.map(([look, points]) => ({ look, line: true, model: true, points: points.map(row => ({ x: row.bytes, y: row.model, row })) })),
      ...series.map(([look, points]) => ({ look, line: true, points: points.map(row => ({ x: row.bytes, y: row.wall, hollow: row.flags !== "", row })) })),
    ], { bytes: true, x: "size", y: "time", label: `time of ${collective} over size`, describe });
  }
};
fillLegend(looks, shown, [
  [marker(0, 13, 8, 4, "var(--plot)", "currentColor"), "disturbed or oversubscribed"],
  [`<path d="M4 8H22" stroke="currentColor" stroke-width="7" stroke-linecap="round" opacity=".35"/>`, "model"],
], redraw);
// A chart in a closed element has no width.
document.getElementById("crowded").ontoggle = redraw;
