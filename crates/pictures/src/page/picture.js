// The picture of the ranks of a schedule, in their tree or in a circle, with the messages on their
// way and what waits for ever.
const RADIUS = 17;
const waitClass = wait => wait.cycle || wait.alone ? " cause" : "";
const makePicture = s => {
  const picture = s.part("picture"), lamps = s.lanes.length, [width, height] = s.size;
  // Where an arrow leads along: straight in a tree. In a circle it bends inwards, so that it passes
  // neither behind the ranks between its ends nor along the arrow back.
  const curve = (from, to, aside) => {
    const [[x1, y1], [x2, y2]] = [s.places[from], s.places[to]];
    const length = Math.hypot(x2 - x1, y2 - y1);
    let bend = [(x1 + x2) / 2 - (y2 - y1) / length * aside, (y1 + y2) / 2 + (x2 - x1) / length * aside];
    if (s.circle) bend = [width / 2 + (bend[0] - width / 2) * .5 - (y2 - y1) / length * 16, height / 2 + (bend[1] - height / 2) * .5 + (x2 - x1) / length * 16];
    const towards = (x, y, far) => {
      const distance = Math.hypot(bend[0] - x, bend[1] - y);
      return [x + (bend[0] - x) / distance * far, y + (bend[1] - y) / distance * far];
    };
    const [start, end] = [towards(x1, y1, RADIUS + 1), towards(x2, y2, RADIUS + 3)];
    const text = point => point.map(v => v.toFixed(1)).join(" ");
    const at = share => [0, 1].map(i => (1 - share) ** 2 * start[i] + 2 * share * (1 - share) * bend[i] + share ** 2 * end[i]);
    return { path: `M${text(start)}Q${text(bend)} ${text(end)}`, at, middle: at(.5) };
  };
  // Beside the tree's edges an arrow bends around the ranks that it would cross.
  const crosses = ({ at }, from, to) => s.places.some(([x, y], rank) => rank !== from && rank !== to &&
    [.1, .2, .3, .4, .5, .6, .7, .8, .9].some(share => Math.hypot(at(share)[0] - x, at(share)[1] - y) < RADIUS + 5));
  const ways = new Map(), way = (from, to) => {
    const key = `${from} ${to}`, asides = s.circle ? [0] : [0, 60, -60, 110, -110, 170, -170];
    if (!ways.has(key)) ways.set(key, asides.map(aside => curve(from, to, aside)).find(way => !crosses(way, from, to)) ?? curve(from, to, 0));
    return ways.get(key);
  };
  // Room for those that bend beyond the ranks.
  const edges = [0, 0, width, height];
  for (const [from, to] of [...s.nodes.from.map((from, i) => [from, s.nodes.to[i]]), ...s.waits.map(wait => [wait.rank, wait.peer])]) {
    if (from === to || to < 0) continue;
    const [x, y] = way(from, to).middle;
    [x - 12, y - 12].forEach((v, i) => edges[i] = Math.min(edges[i], v));
    [x + 12, y + 12].forEach((v, i) => edges[2 + i] = Math.max(edges[2 + i], v));
  }
  const natural = edges[2] - edges[0];
  {
    const ports = lamps > 1 ? `The squares in a rank are its ports (${s.lanes.join(", ")})` : "The square in a rank is its port";
    const head = `head${s.number}`, pitch = Math.min(7, 26 / lamps);
    let svg = `<svg viewBox="${edges[0]} ${edges[1]} ${natural} ${edges[3] - edges[1]}" style="--natural:${natural}" role="group" aria-label="Ranks and messages">`;
    svg += `<defs><marker id="${head}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="5" markerHeight="5" orient="auto">` +
      `<path d="M0 0L8 4L0 8z" fill="context-stroke"/></marker></defs>`;
    for (const [a, b] of s.edges) svg += `<path class="edge" d="${way(a, b).path}"/>`;
    svg += `<g id="${s.idOf("messages")}" style="--head:url(#${head})"></g>`;
    s.places.forEach(([x, y], rank) => {
      svg += `<g class="rank" data-rank="${rank}"><circle cx="${x}" cy="${y}" r="${RADIUS}"/>` +
        `<text x="${x}" y="${y + 2}" text-anchor="middle">${rank}</text>`;
      for (let lane = 0; lane < lamps; lane++) {
        svg += `<rect class="lamp" x="${(x + (lane - lamps / 2) * pitch + pitch / 2 - 2.5).toFixed(1)}" y="${y + 5}" width="${Math.min(5, pitch)}" height="5"/>`;
      }
      svg += `</g>`;
    });
    picture.innerHTML = svg + `</svg>`;
    picture.insertAdjacentHTML("afterend", `<p class="note">${ports}; a port at work has the colour of what it moves.` +
      (s.waits.length ? " Dashed arrows wait for ever, red ones in a cycle or without a partner." : "") + "</p>");
  }
  const messages = s.part("messages"), circles = [...picture.querySelectorAll(".rank")];
  const lampsOf = circles.map(circle => [...circle.querySelectorAll(".lamp")]);

  // Shows what is under way at time `t`: messages as arrows with a dot as far as they have got.
  const show = (t, active) => {
    for (const lamps of lampsOf) for (const lamp of lamps) lamp.style.fill = "";
    for (const circle of circles) circle.classList.remove("computes", "critical");
    let svg = "";
    for (const wait of s.waitsAt(t)) {
      if (wait.peer < 0) continue;
      const [from, to] = wait.sends ? [wait.rank, wait.peer] : [wait.peer, wait.rank];
      svg += `<path class="waits${waitClass(wait)}" d="${way(from, to).path}"/>`;
    }
    for (const i of active) {
      const colour = data.colors[s.nodes.color[i]], lit = s.critical.has(i) ? " critical" : "";
      for (const end of s.endsOf(i).filter(end => s.isAt(end, t))) {
        if (s.nodes.kind[i] === TRANSFER) lampsOf[end.rank][end.lane].style.fill = colour;
        else circles[end.rank].classList.add("computes");
        if (lit && s.nodes.kind[i] !== TRANSFER) circles[end.rank].classList.add("critical");
      }
      if (s.nodes.kind[i] !== TRANSFER) continue;
      const start = s.times[s.nodes.start[i]], part = (t - start) / (s.times[s.nodes.end[i]] - start);
      const { path, at } = way(s.nodes.from[i], s.nodes.to[i]), [x, y] = at(part).map(v => v.toFixed(1));
      svg += `<g class="message${lit}" data-node="${i}"><path class="glow" d="${path}"/><path d="${path}" stroke="${colour}"/>` +
        `<circle cx="${x}" cy="${y}" r="5.5" fill="${colour}"/></g>`;
    }
    messages.innerHTML = svg;
  };
  // Keeps the place of a rank in view where the picture is wider than its box.
  const showPlace = rank => {
    const wide = picture.scrollWidth - picture.clientWidth, x = (s.places[rank][0] - edges[0]) / natural * picture.scrollWidth;
    if (wide > 0) picture.scrollLeft = x - picture.clientWidth / 2;
  };
  return { show, showPlace, circles };
};
