// The player of the atlas: shows the schedules that the address names, such as
// `#broadcast/8/bi/binomial,chain/200/1`, in the times of the chosen alpha and beta.

// A schedule with its times: a node starts when all that it waits for have ended.
const timed = own => {
  const columns = own.nodes, { after, why, kind, sizes, size } = columns, start = [], end = [];
  const beta = own.startUpAlone ? 0 : costs.beta;
  after.forEach((backs, i) => {
    const bytes = sizes[size[i]];
    start[i] = backs.reduce((latest, back) => Math.max(latest, end[i - back]), 0);
    end[i] = start[i] + (kind[i] === TRANSFER && bytes > 0 ? costs.alpha + beta * bytes : 0);
  });
  const times = [...new Set([0, ...start, ...end])].sort((a, b) => a - b);
  const instant = new Map(times.map((t, i) => [t, i])), order = [...start.keys()].sort((a, b) => start[a] - start[b] || a - b);
  const place = [];
  order.forEach((old, now) => place[old] = now);
  // Which of all that a node waits for ends last: of equal times the last one, as in the simulator.
  const binding = backs => backs.reduce((at, back, i) => at < 0 || end[back] >= end[backs[at]] ? i : at, -1);
  const bound = after.map((backs, i) => binding(backs.map(back => i - back)));
  const critical = [];
  for (let i = end.indexOf(times.at(-1)); i >= 0; i = bound[i] < 0 ? -1 : i - after[i][bound[i]]) critical.push(place[i]);
  const nodes = {};
  for (const [name, column] of Object.entries(columns)) nodes[name] = name === "sizes" ? column : order.map(i => column[i]);
  nodes.start = order.map(i => instant.get(start[i]));
  nodes.end = order.map(i => instant.get(end[i]));
  nodes.after = order.map((i, now) => bound[i] < 0 ? [] : [now - place[i - after[i][bound[i]]]]);
  nodes.why = order.map(i => bound[i] < 0 ? [] : [why[i][bound[i]]]);
  nodes.critical = critical;
  return { ...own, times, shown: times.at(-1), nodes };
};

const loaded = new Map();
const load = name => {
  if (!loaded.has(name)) {
    loaded.set(name, new Promise((done, fail) => {
      const script = document.createElement("script");
      script.src = `data/${encodeURIComponent(name)}.js`;
      script.onload = () => { script.remove(); done(unpack(globalThis.packed)); };
      script.onerror = fail;
      document.head.append(script);
    }));
  }
  return loaded.get(name);
};

// What the address names: the data of its collective and ranks, and the schedules of these.
let atlas = { all: [], chosen: [] };
const place = () => [atlas.kind, atlas.ranks, atlas.ports, atlas.chosen.map(own => own.name).join(",")];
const showTimes = keeps => {
  const { rank, schedule, time } = state, share = views.length ? time / times[lastInstant] || 0 : 0;
  open({ ...atlas.data, schedules: atlas.chosen.map(timed) });
  if (schedules[schedule]) Object.assign(state, { rank: Math.min(rank, schedules[0].ranks - 1), schedule });
  state.time = keeps ? Math.min(time, times[lastInstant]) : times[Math.round(share * lastInstant)];
  const texts = schedules.length > 1 ? [...document.querySelectorAll("main .facts")] : [...document.querySelectorAll("#summary .facts")];
  schedules.forEach((s, i) => {
    const bound = worth(s.bounds), fact = name => texts[i].querySelector("." + name) ?? {};
    fact("time").textContent = `${numberText(s.shown)} ${unitText()}`;
    fact("bound").textContent = timeText(bound);
    fact("ratio").textContent = bound > 0 ? +(s.shown / bound).toPrecision(3) : "";
  });
  show();
};
const showAddress = async () => {
  const [kind, ranks, ports, names = ""] = readAddress(4), header = document.querySelector("h1");
  let all = [], dropped = [];
  try {
    const data = await load(`${kind}-${ranks}`);
    all = data.schedules.filter(own => own.ports === ports);
    const asked = names.split(","), chosen = asked.map(name => all.find(own => own.name === name)).filter(own => own).slice(0, 4);
    if (!chosen.length) throw new Error();
    dropped = asked.filter(name => !chosen.some(own => own.name === name));
    if (data !== atlas.data) state.time = 0;
    atlas = { kind, ranks, ports, data, all, chosen };
  } catch {
    header.textContent = "The address names no schedule of this atlas";
    element("beside").replaceChildren(new Option("choose", ""), ...all.map(own => new Option(own.name)));
    element("dropped").textContent = "";
    return;
  }
  element("index").href = `index.html${addressOf([kind, ports])}`;
  document.title = header.textContent = `${kind} by ${atlas.chosen.map(own => own.name).join(", ")}, ${ranks} ranks, ${atlas.chosen[0].portsInWords}`;
  element("beside").replaceChildren(new Option("choose", ""), ...all.filter(own => !atlas.chosen.includes(own)).map(own => new Option(own.name)));
  element("beside").disabled = atlas.chosen.length === 4;
  element("dropped").textContent = dropped.length ? `Not shown: ${dropped.join(", ")} (${atlas.chosen.length === 4 ? "a page shows four" : "not in this atlas"}).` : "";
  showTimes(true);
};
element("beside").onchange = event => {
  const [kind, ranks, ports, names] = address();
  location.hash = addressOf([kind, ranks, ports, (names ? names + "," : "") + event.target.value]);
};
onCosts(() => {
  history.replaceState(null, "", addressOf(place()));
  element("index").href = `index.html${addressOf([atlas.kind, atlas.ports])}`;
  showTimes();
});
window.onhashchange = showAddress;
await showAddress();
// For scripts that drive the page.
Object.assign(globalThis, { player: driver, atlas: { load, timed, costs } });
