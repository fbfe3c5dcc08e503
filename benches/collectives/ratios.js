// The chart of the collectives benchmark: measured over model time, a row for each collective.
const { rows } = JSON.parse(document.getElementById("data").textContent);
const ranks = [...new Set(rows.map(r => r.ranks))].sort((a, b) => a - b);
const collectives = [...new Set(rows.map(r => r.collective))];
const nameOf = count => `${count} ranks`;
const looks = looksOf(ranks.map(nameOf)), shown = new Set(looks.keys());

const describe = r => `<b>${escaped(r.name)}</b><br>measured/model ${r.ratio.toPrecision(3)}` + (r.flags ? `<br>${r.flags}` : "");
const redraw = () => {
  const series = ranks.filter(count => shown.has(nameOf(count))).map(count => ({
    look: looks.get(nameOf(count)),
    points: rows.filter(r => r.ranks === count && r.ratio > 0).map(row => (
      { x: row.ratio, y: collectives.indexOf(row.collective) + .15 + .7 * (ranks.indexOf(count) + .5) / ranks.length, hollow: row.flags !== "", row })),
  }));
  draw(document.getElementById("by-ratio"), series, { rows: collectives, agree: 1, values: [.5, 2], x: "measured over model", y: "",
    label: "ratios of measured to model time", text: t => `${+t.toPrecision(3)}`, describe });
};
fillLegend(looks, shown, [[marker(0, 13, 8, 4, "var(--plot)", "currentColor"), "disturbed or oversubscribed"]], redraw);
