// The picture of the ranks in their tree or in a circle, with the messages on their way.
const picture = element("picture");
{
  const lamps = data.lanes.length, [width, height] = data.size;
  const ports = lamps > 1 ? `The squares below a rank are its ports (${data.lanes.join(", ")})` : "The square below a rank is its port";
  let svg = `<svg viewBox="0 0 ${width} ${height}" style="--natural:${width}" role="group" aria-label="Ranks and messages">`;
  svg += `<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="5" markerHeight="5" orient="auto">` +
    `<path d="M0 0L8 4L0 8z" fill="context-stroke"/></marker></defs>`;
  for (const [a, b] of data.edges) {
    const [[x1, y1], [x2, y2]] = [data.places[a], data.places[b]];
    svg += `<line class="edge" x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}"/>`;
  }
  svg += `<g id="messages"></g>`;
  data.places.forEach(([x, y], rank) => {
    svg += `<g class="rank" data-rank="${rank}"><circle cx="${x}" cy="${y}" r="13"/>` +
      `<text x="${x}" y="${y + 4}" text-anchor="middle">${rank}</text>`;
    for (let lane = 0; lane < lamps; lane++) {
      svg += `<rect class="lamp" data-lane="${lane}" x="${x + (lane - lamps / 2) * 7 + 1}" y="${y + 15}" width="5" height="5"/>`;
    }
    svg += `</g>`;
  });
  picture.innerHTML = svg + `</svg><p class="note">${ports}; a port at work has the colour of what it moves.</p>`;
}
const messages = element("messages");
const circles = [...picture.querySelectorAll(".rank")];
const lampsOf = circles.map(circle => [...circle.querySelectorAll(".lamp")]);

// Shows what is under way at time `t`: messages as arrows with a dot as far as they have got.
const showPicture = (t, active) => {
  for (const lamps of lampsOf) for (const lamp of lamps) lamp.style.fill = "";
  for (const circle of circles) circle.classList.remove("computes", "critical");
  let svg = "";
  for (const i of active) {
    const colour = data.colors[nodes.color[i]], lit = critical.has(i) ? " critical" : "";
    for (const end of endsOf(i)) {
      if (nodes.kind[i] === TRANSFER) lampsOf[end.rank][end.lane].style.fill = colour;
      else circles[end.rank].classList.add("computes");
      if (lit && nodes.kind[i] !== TRANSFER) circles[end.rank].classList.add("critical");
    }
    if (nodes.kind[i] !== TRANSFER) continue;
    const [[x1, y1], [x2, y2]] = [data.places[nodes.from[i]], data.places[nodes.to[i]]];
    const part = (t - times[nodes.start[i]]) / (times[nodes.end[i]] - times[nodes.start[i]]);
    const length = Math.hypot(x2 - x1, y2 - y1), from = 14 / length, to = 1 - 16 / length;
    const at = share => [x1 + (x2 - x1) * share, y1 + (y2 - y1) * share].map(v => v.toFixed(1));
    const [[ax, ay], [bx, by], [cx, cy]] = [at(from), at(to), at(from + (to - from) * part)];
    svg += `<g class="message${lit}" data-node="${i}"><line class="glow" x1="${ax}" y1="${ay}" x2="${bx}" y2="${by}"/>` +
      `<line x1="${ax}" y1="${ay}" x2="${bx}" y2="${by}" stroke="${colour}" marker-end="url(#head)"/>` +
      `<circle cx="${cx}" cy="${cy}" r="5.5" fill="${colour}"/></g>`;
  }
  messages.innerHTML = svg;
};
// Keeps the place of a rank in view where the picture is wider than its box.
const showPlace = rank => {
  const wide = picture.scrollWidth - picture.clientWidth, x = data.places[rank][0] / data.size[0] * picture.scrollWidth;
  if (wide > 0) picture.scrollLeft = x - picture.clientWidth / 2;
};
