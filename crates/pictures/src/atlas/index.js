// The index of the atlas: what each algorithm takes on every number of ranks, for the chosen costs.
const given = JSON.parse(element("data").textContent), plates = await unpack(given.packed);
[costs.alpha, costs.beta] = given.cost;
const kinds = [...new Set(plates.map(plate => plate.kind))], models = given.models;
const time = row => worth(row.lines), short = t => `${+t.toPrecision(4)}`;
const whats = {
  "time": [time, short], "time over the bound": [row => time(row) / worth(row.bounds), t => t.toFixed(2)],
  "time over the best": [(row, best) => time(row) / best, t => t.toFixed(2)],
  "rounds": [row => row.rounds, short], "messages": [row => row.messages, short],
};
const choices = { kind: kinds, ports: Object.keys(models), what: Object.keys(whats) };
for (const [id, list] of Object.entries(choices)) {
  element(id).replaceChildren(...list.map(text => new Option(models[text]?.replace(" ports", "") ?? text, text)));
  element(id).onchange = () => { history.replaceState(null, "", addressOf([element("kind").value, element("ports").value])); showAll(id === "kind"); };
}
element("plot").before(element("legend"));
const shown = new Set();
let looks = new Map();

const showAll = anew => {
  const kind = element("kind").value, ports = element("ports").value, [value, text] = whats[element("what").value];
  const here = plates.filter(plate => plate.kind === kind).map(({ ranks, rows, missing }) => {
    rows = rows.filter(row => row.ports === ports);
    return { ranks, rows, missing: missing.filter(m => m[1] === ports), best: Math.min(...rows.map(time)) };
  });
  const names = [...new Set(here.flatMap(plate => plate.rows.map(row => row.name)))];
  const byTime = element("what").value.startsWith("time");
  element("title").textContent = `${kind}, ${models[ports]}`;
  element("note").textContent = `${element("what").value} by number of ranks; a number opens the player. ` +
    (byTime ? "The fastest are bold. " : "The fewest are bold. ");
  const cell = (name, { ranks, rows, best, missing }) => {
    const row = rows.find(row => row.name === name), least = Math.min(...rows.map(row => value(row, best)));
    if (!row) return `<td title="${escaped(missing.find(m => m[0] === name)?.[2] ?? "")}">-</td>`;
    const number = text(value(row, best)), full = +value(row, best).toPrecision(12), link = `player.html${addressOf([kind, ranks, ports, name])}`;
    return `<td${value(row, best) <= least * (1 + 1e-9) ? ' class="least"' : ""}><a href="${link}" title="${full}">${number}</a></td>`;
  };
  const bounds = byTime && value === time ? `<tr><th scope="row" class="name">lower bound</th>${here.map(({ rows }) => `<td${rows.length ? ` title="${+worth(rows[0].bounds).toPrecision(12)}">${short(worth(rows[0].bounds))}` : ">-"}</td>`).join("")}</tr>` : "";
  element("all").innerHTML = `<thead><tr><th class="name">ranks</th>${here.map(plate => `<th>${plate.ranks}</th>`).join("")}</tr></thead><tbody>` +
    names.map(name => `<tr><th scope="row" class="name">${escaped(name)}</th>${here.map(plate => cell(name, plate)).join("")}</tr>`).join("") + bounds + "</tbody>";
  // Why algorithms are not there, for whom the same holds together.
  const reasons = new Map();
  for (const { ranks, missing } of here) {
    for (const [name, , reason] of missing) {
      const of = reasons.get(reason) ?? new Map();
      reasons.set(reason, of.set(name, [...of.get(name) ?? [], ranks]));
    }
  }
  const all = here.length, onRanks = ranks => ranks.length === all ? "" : ` (${ranks.join(", ")} ranks)`;
  element("missing").innerHTML = reasons.size === 0 ? "" : "<p>Not here:</p><ul>" + [...reasons].map(([reason, of]) =>
    `<li>${[...of].map(([name, ranks]) => escaped(name) + onRanks(ranks)).join(", ")}: ${escaped(reason)}</li>`).join("") + "</ul>";
  if (anew) {
    looks = looksOf([...new Set(plates.filter(plate => plate.kind === kind).flatMap(plate => plate.rows.map(row => row.name)))]);
    shown.clear();
    for (const name of looks.keys()) shown.add(name);
    element("legend").replaceChildren();
    fillLegend(looks, shown, [], showPlot);
  }
  for (const label of element("legend").querySelectorAll("label")) {
    const box = label.querySelector("input"), name = label.textContent;
    box.disabled = !names.includes(name);
    box.checked = shown.has(name) && !box.disabled;
  }
  showPlot();
  const table = element("all");
  table.parentElement.style.scrollPaddingLeft = table.querySelector("th").offsetWidth + 8 + "px";
};
const showPlot = () => {
  const kind = element("kind").value, ports = element("ports").value, what = element("what").value, [value, text] = whats[what];
  const here = plates.filter(plate => plate.kind === kind).map(plate => ({ ...plate, rows: plate.rows.filter(row => row.ports === ports) }));
  const series = [...shown].map(name => ({
    look: looks.get(name), line: true,
    points: here.flatMap(({ ranks, rows }) => {
      const best = Math.min(...rows.map(time)), row = rows.find(row => row.name === name), y = row && value(row, best);
      return y > 0 ? [{ x: ranks, y, row: { ...row, ranks, y } }] : [];
    }),
  }));
  draw(element("plot"), series, {
    x: "ranks", doubling: true, y: what, label: `${what} against ranks`, text: t => short(t), textX: n => n + "",
    describe: row => `<b>${escaped(row.name)}</b>, ${row.ranks} ranks<br>${what} ${text(row.y)}<br>${row.rounds} rounds, ${row.messages} messages`,
  });
};
const showAddress = () => {
  const [kind, ports] = readAddress(2);
  element("kind").value = kinds.includes(kind) ? kind : kinds[0];
  element("ports").value = models[ports] ? ports : "bi";
  showAll(true);
  if (kind && !kinds.includes(kind)) element("note").prepend(`This atlas has no collective "${kind}". `);
};
onCosts(() => {
  history.replaceState(null, "", addressOf([element("kind").value, element("ports").value]));
  showAll(false);
});
window.onhashchange = showAddress;
showAddress();
// For scripts that drive the page.
globalThis.player = { plates, costs, time, worth };
