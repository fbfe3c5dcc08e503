// The player: the present time, the chosen rank, and what changes them.
let views = [];
const state = { time: 0, schedule: 0, rank: 0, node: null, playing: false };
const slider = element("slider"), clock = element("clock"), playButton = element("play");
const instantAt = t => instantIn(times, t), chosenView = () => views[state.schedule];

const show = () => {
  const now = instantAt(state.time);
  for (const { s, picture, ranks, chart } of views) {
    const instant = instantIn(s.times, state.time), active = s.underWay(state.time);
    const chosen = s.number === state.schedule;
    picture.show(state.time, active);
    ranks.show(state.time, instant, active);
    chart.show(state.time, chosen ? state.node : null);
    if (chosen) showDetails(s, state.rank, state.node, instant);
    for (const box of [...ranks.rowOf, ...picture.circles, ...chart.nameOf]) box.classList.toggle("chosen", +box.dataset.rank === state.rank);
  }
  slider.value = now;
  slider.setAttribute("aria-valuetext", `${timeText(times[now])}, event ${now} of ${lastInstant}`);
  // Screen readers say where one has stepped to and what the rank does, but not while it plays.
  for (const box of [clock, element("doing")]) box.setAttribute("aria-live", state.playing ? "off" : "polite");
  clock.textContent = `time ${numberText(state.time)} of ${timeText(times[lastInstant])}, event ${now} of ${lastInstant}`;
};
const goTo = instant => {
  pause();
  state.time = times[Math.min(Math.max(instant, 0), lastInstant)];
  show();
};
const move = by => {
  const instant = instantAt(state.time);
  // Between two instants, one back is the instant before.
  goTo(by < 0 && state.time > times[instant] ? instant + by + 1 : instant + by);
};
const choose = (rank, node = null, schedule = state.schedule) => {
  state.schedule = schedule;
  const { s, picture, ranks, chart } = chosenView();
  state.rank = (rank + s.ranks) % s.ranks;
  state.node = node;
  show();
  chart.showRow(state.rank);
  picture.showPlace(state.rank);
  // Of the table only: the page itself stays where it is.
  const row = ranks.rowOf[state.rank], box = s.part("ranks-box");
  const top = row.offsetTop - 2 * row.offsetHeight, bottom = row.offsetTop + 2 * row.offsetHeight - box.clientHeight;
  box.scrollTop = Math.max(bottom, Math.min(top, box.scrollTop));
};
// The step of the chosen rank before (-1) or after (1) the chosen one, or the present.
const chooseStep = by => {
  const { s } = chosenView(), steps = s.ofRank[state.rank], start = i => s.times[s.endAt(i, state.rank).start];
  if (!steps.length) return;
  const at = steps.indexOf(state.node);
  const later = steps.findIndex(i => start(i) >= state.time);
  const from = at >= 0 ? at + by : by > 0 ? (later < 0 ? steps.length - 1 : later) : (later < 0 ? steps.length : later) - 1;
  const node = steps[Math.min(Math.max(from, 0), steps.length - 1)];
  goTo(instantAt(start(node)));
  choose(state.rank, node);
};

// Plays a schedule in half a second an event, but in 6 to 60 seconds in all. Whoever wants less
// motion sees it go from event to event.
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const pause = () => {
  state.playing = false;
  playButton.textContent = "▶ play";
  playButton.setAttribute("aria-label", "Play");
};
const play = () => {
  if (state.time >= times[lastInstant]) state.time = 0;
  state.playing = true;
  playButton.textContent = "❚❚ pause";
  playButton.setAttribute("aria-label", "Pause");
  const seconds = Math.min(60, Math.max(6, lastInstant / 2));
  const began = { at: performance.now(), time: state.time };
  const frame = now => {
    if (!state.playing) return;
    const elapsed = Math.max(0, now - began.at) / 1000 * element("speed").value / seconds * times[lastInstant];
    const time = Math.min(began.time + elapsed, times[lastInstant]);
    state.time = calm.matches ? times[instantAt(time)] : time;
    show();
    if (time >= times[lastInstant]) pause(); else requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
};
const toggle = () => state.playing ? (pause(), show()) : play();
const showCritical = on => document.body.classList.toggle("lit", on);

element("first").onclick = () => goTo(0);
element("back").onclick = () => move(-1);
element("next").onclick = () => move(1);
element("last").onclick = () => goTo(lastInstant);
playButton.onclick = toggle;
slider.oninput = () => goTo(+slider.value);
element("critical").onchange = event => showCritical(event.target.checked);
element("speed").onchange = () => { if (state.playing) { pause(); play(); } };

const keys = {
  ArrowLeft: () => move(-1), ArrowRight: () => move(1), PageUp: () => move(-10), PageDown: () => move(10),
  Home: () => goTo(0), End: () => goTo(lastInstant), " ": toggle,
  ArrowUp: () => choose(state.rank - 1), ArrowDown: () => choose(state.rank + 1),
  ",": () => chooseStep(-1), ".": () => chooseStep(1), s: () => choose(state.rank, null, (state.schedule + 1) % schedules.length), c: () => element("critical").click(),
  p: () => element("panel").open = !element("panel").open,
};
// Keys that the focused element needs for itself.
const needs = (target, key) => target.matches("select") || (target.matches("button, summary, input[type=checkbox]") && key === " ") ||
  (target.matches("#holds, #steps") && ["ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End"].includes(key));
document.onkeydown = event => {
  if (!views.length || event.ctrlKey || event.altKey || event.metaKey || !keys[event.key] || needs(event.target, event.key)) return;
  event.preventDefault();
  keys[event.key]();
};

// Pointing at a box, a message or a cell explains it; a click chooses its rank and step.
const tip = element("tip");
const pointed = (target, event) => {
  const box = target.closest("[data-node]"), cell = target.closest("td.buffer"), row = target.closest("[data-rank]");
  const view = views[target.closest("[data-schedule]")?.dataset.schedule];
  if (!view) return null;
  if (box) return { view, node: +box.dataset.node, rank: +(box.dataset.rank ?? view.s.nodes.from[box.dataset.node]) };
  return row && { view, node: null, rank: +row.dataset.rank, cell: cell && view.ranks.pointedCell(row, event) };
};
document.onpointermove = document.onpointerdown = event => {
  const at = event.target.closest && pointed(event.target, event);
  tip.hidden = !at;
  if (tip.hidden) return;
  const { s } = at.view;
  tip.textContent = at.node !== null ? s.describe(at.node, at.rank) : at.cell ? `rank ${at.rank}, ${at.cell}` : s.rankText(at.rank, state.time);
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = (event.clientY + 18 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 18) + "px";
};
document.onclick = event => {
  const at = event.target.closest && pointed(event.target, event);
  if (at) choose(at.rank, at.node, at.view.s.number);
};

// Boxes whose contents go on to the right show that by fading; the charts scroll together.
let boxes = [];
const fade = box => box.classList.toggle("cut", box.scrollWidth - box.clientWidth - box.scrollLeft > 4);
window.onresize = () => boxes.forEach(fade);

// Shows the schedules of some data from their start.
const open = shown => {
  pause();
  data = shown;
  schedules = data.schedules.map(unpacked);
  times = [...new Set(schedules.flatMap(s => s.times))].sort((a, b) => a - b);
  element("controls").inert = false;
  slider.max = lastInstant = times.length - 1;
  // On a small window, the panel beside several schedules begins folded: they have the room.
  const unfolded = element("panel")?.open ?? (schedules.length === 1 || matchMedia("(min-width: 700px)").matches);
  fillSections();
  element("panel").open = unfolded;
  scaleCharts();
  views = schedules.map(s => ({ s, picture: makePicture(s), ranks: makeRanks(s), chart: makeChart(s) }));
  Object.assign(state, { time: 0, schedule: 0, rank: schedules[0].root ?? 0, node: null });
  listed = "";
  boxes = [...document.querySelectorAll(".scroll, .picture")];
  for (const box of boxes) {
    box.onscroll = () => {
      fade(box);
      if (box.matches(".gantt")) for (const { chart } of views) chart.chart.scrollLeft = box.scrollLeft;
    };
  }
  show();
  boxes.forEach(fade);
};

showCritical(true);
// For scripts that drive the page; it is there when the page is.
const driver = { state, goTo, move, choose };
if (element("data").textContent) {
  open(await unpack(element("data").textContent));
  globalThis.player = driver;
}
