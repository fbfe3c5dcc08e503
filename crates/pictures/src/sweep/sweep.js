// The charts of a sweep: what is asked for against size or ranks, and which algorithm leads where.
const { rows, leaders, plain, players } = JSON.parse(document.getElementById("data").textContent);
const names = [...new Set(rows.map(r => r.algorithm))];
const looks = looksOf(names), shown = new Set(names);
const unique = of => [...new Set(rows.map(of))].sort((a, b) => a - b);
const sizes = unique(r => r.bytes), ranks = unique(r => r.ranks), lates = unique(r => r.late ?? 0);
const dists = [...new Set(rows.map(r => r.dist))].sort();
const value = r => r.median ?? r.time;
const show = t => !plain ? timeText(t) : t < 1e6 ? +t.toPrecision(5) + "" : (+t.toPrecision(5)).toExponential().replace("+", "");
const placeOf = r => `${r.ranks} ${r.dist} ${r.bytes} ${r.late ?? 0}`;
const bests = new Map();
for (const r of rows) {
  const place = placeOf(r);
  if (!bests.has(place) || value(r) < value(bests.get(place))) bests.set(place, r);
}
const best = r => bests.get(placeOf(r));
// By place: who leads, and how many others are as fast.
const leading = new Map(leaders.map(([i, equals]) => [placeOf(rows[i]), { row: rows[i], equals }]));

const kinds = {
  "time": [value, show],
  "time over the best": [r => value(r) / value(best(r)), t => +t.toPrecision(4) + ""],
  "time over the bound": [r => r.bound > 0 ? r.time / r.bound : 0, t => +t.toPrecision(4) + ""],
  "size over time": [r => r.bytes / value(r), t => plain ? +t.toPrecision(4) + "" : +t.toPrecision(4) + " GB/s"],
};
const axes = { size: [r => r.bytes, sizes, bytesText], ranks: [r => r.ranks, ranks, n => n + " ranks"],
  delay: [r => r.late ?? 0, lates, t => "late by " + show(t)], blocks: [r => r.dist, dists, name => name] };
const fill = (id, list) => {
  const select = document.getElementById(id);
  select.replaceChildren(...list.map(text => new Option(text)));
  select.onchange = () => redraw();
  select.parentElement.hidden = list.length < 2;
  return select;
};
const what = fill("what", Object.keys(kinds).filter(kind => rows.some(r => kinds[kind][0](r) > 0)));
// Distributions of sizes have no order to draw a line along.
const varying = Object.keys(axes).filter(a => a !== "blocks" && axes[a][1].length > 1);
const against = fill("against", varying.length ? varying.reverse() : ["size"]);
// What the axis does not have: its values in words, and those of a row.
const others = () => Object.keys(axes).filter(a => a !== against.value).map(a => axes[a]).filter(a => a[1].length > 1);
const rest = r => others().map(([of, , text]) => text(of(r))).join(", ");
const at = document.getElementById("at");
const fillAt = () => {
  const places = [...rows].sort((a, b) => a.ranks - b.ranks || dists.indexOf(a.dist) - dists.indexOf(b.dist) || a.bytes - b.bytes || (a.late ?? 0) - (b.late ?? 0));
  const values = [...new Set(places.map(rest))];
  fill("at", values).selectedIndex = values.length - 1;
};
against.onchange = () => { fillAt(); redraw(); };

const ofRank = rank => rank === null ? "" : ` (rank ${rank})`;
const describe = r => `<b>${escaped(r.algorithm)}</b>, ${r.ranks} ranks, ${r.dist ? r.dist + " " : ""}${bytesText(r.bytes)}<br>` +
  (r.late === null ? "" : `one rank late by ${show(r.late)}: from ${show(r.least)}${ofRank(r.least_rank)} to `) +
  (r.median === null ? "" : `median ${timeText(r.median)}<br>`) + (r.time === null ? "" : `model ${show(r.time)}${ofRank(r.late_rank)}`) +
  (r.bound > 0 ? `, ${+(r.time / r.bound).toPrecision(4)} times the bound` : "") + `<br>` +
  `${+(value(r) / value(best(r))).toPrecision(4)} times the best, ${escaped(best(r).algorithm)}<br>` +
  `${r.rounds} rounds, ${r.messages} messages, ${bytesText(r.volume)}` + (r.segment ? `, segments of ${bytesText(r.segment)}` : "");

const redraw = () => {
  const [y, text] = kinds[what.value], [x] = axes[against.value];
  const here = rows.filter(r => rest(r) === at.value), linear = against.value === "delay";
  const series = names.filter(n => shown.has(n)).map(name => ({
    look: looks.get(name), line: true,
    points: here.filter(r => r.algorithm === name && (linear || x(r) > 0) && y(r) > 0).sort((a, b) => x(a) - x(b))
      .map(row => ({ x: x(row), y: y(row), best: best(row) === row, row })),
  }));
  // If the rank is late whose delay costs least.
  if (linear && what.value === "time") series.unshift(...series.map(s => ({ look: s.look, line: true, model: true,
    points: s.points.filter(p => p.row.least !== null).map(p => ({ ...p, y: p.row.least })) })));
  // Halfway between two neighbours with different leaders.
  const first = [...new Set(here.map(r => leading.get(placeOf(r)).row))].sort((a, b) => x(a) - x(b));
  const marks = first.slice(1).flatMap((r, i) => r.algorithm === first[i].algorithm ? [] : [linear ? (x(r) + x(first[i])) / 2 : Math.sqrt(x(r) * x(first[i]))]);
  draw(document.getElementById("plot"), series, {
    bytes: against.value === "size", doubling: against.value === "ranks", linear, x: linear ? "one rank is late by" : against.value, y: what.value, label: `${what.value} against ${against.value}`,
    text, textX: linear ? show : n => n + "", marks, describe,
  });
};

const leads = document.getElementById("leads");
const second = r => rows.filter(s => placeOf(s) === placeOf(r) && s !== r)
  .reduce((least, s) => Math.min(least, value(s)), Infinity) / value(r);
const behind = ({ row, equals }) => {
  const by = second(row);
  return equals ? ` <small title="${equals} more ${equals > 1 ? "are" : "is"} as fast">= ${equals}</small>` : isFinite(by) ? ` <small>${+by.toPrecision(3)}</small>` : "";
};
const heads = dists.flatMap(dist => sizes.flatMap(m => lates.map(late => [m, late, dist])));
leads.innerHTML = `<thead><tr><th>${[...dists.length > 1 ? ["blocks"] : [], lates.length > 1 ? "late by" : "size"].join(", ")}</th>${ranks.map(p => `<th class="name">${p} ranks</th>`).join("")}</tr></thead><tbody>` +
  heads.map(([m, late, dist]) => `<tr><td>${[...dists.length > 1 ? [dist] : [], ...lates.length > 1 ? [show(late)] : [], ...lates.length < 2 || sizes.length > 1 ? [bytesText(m)] : []].join(", ")}</td>${ranks.map(p => {
    const lead = leading.get(`${p} ${dist} ${m} ${late}`), r = lead?.row;
    if (!r) return "<td></td>";
    const { colour, shape } = looks.get(r.algorithm);
    return `<td class="name" style="background:color-mix(in srgb, ${colour} 22%, transparent)"><svg width="16" height="12">${marker(shape, 8, 6, 4, colour, colour)}</svg>` +
      `${escaped(r.algorithm)}${behind(lead)}</td>`;
  }).join("")}</tr>`).join("") + "</tbody>";

fillAt();
fillLegend(looks, shown, [
  [`<path d="M13 0V16" stroke="currentColor" stroke-width="1.5" stroke-dasharray="4 4"/>`, "another leads"],
  ...lates.length > 1 ? [[`<path d="M2 8H24" stroke="currentColor" stroke-width="7" opacity=".3"/>`, "the rank is late that costs least"]] : [],
], redraw);

linkPlayers(document.querySelectorAll("#all td.name"), players);
