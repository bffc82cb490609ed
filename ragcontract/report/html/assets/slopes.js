// The chart of ranks before and now: a line for each move, thicker if more queries made it. The line of a query shows
// the document with the largest effect on it.

const SVG = "http://www.w3.org/2000/svg";
const LINES = 60, WORSE_LINES = 40, GAP = 16;
const TICKS = [1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 100, 200, 500, 1000, 10000, 100000, 1000000];

function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function step(query) {
  const gain = ([, forbidden, now, before]) => (forbidden ? -1 : 1) * ((now && 1 / now) - (before && 1 / before));
  const along = query.d.filter((each) => each[3] !== undefined && gain(each) * query.c > 0);
  return along.reduce((most, each) => (Math.abs(gain(each)) > Math.abs(gain(most)) ? each : most), along[0]);
}

// Moves, worst first. Queries with the same ranks before and now share one move.
function moves() {
  const groups = new Map();
  for (const query of data.queries) {
    const moved = query.c && step(query);
    if (!moved) continue;
    const [, forbidden, now, before] = moved;
    const key = `${before} ${now} ${forbidden}`;
    if (!groups.has(key)) groups.set(key, { before, now, forbidden, up: query.c > 0, change: 0, queries: new Set() });
    const group = groups.get(key);
    group.queries.add(query);
    group.change += query.c;
  }
  return [...groups.values()].sort((a, b) => a.change - b.change);
}

function chosen(all) {
  if (all.length <= LINES) return all;
  const worse = all.filter((move) => !move.up), better = all.filter((move) => move.up);
  const room = Math.max(WORSE_LINES, LINES - better.length);
  const first = worse.slice(0, room);
  return [...first, ...better.slice(first.length - LINES)];
}

function route(move) {
  const name = (rank) => (rank ? `rank ${rank}` : "missing");
  return `from ${name(move.before)} to ${name(move.now)}${move.forbidden ? " with a forbidden document" : ""}`;
}

function label(move, length) {
  const name = move.queries.size === 1 ? shownId([...move.queries][0]) : plural(move.queries.size, "query");
  const characters = [...name], end = move.forbidden ? " (forbidden)" : "";
  const room = length - end.length;
  return (characters.length > room ? `${characters.slice(0, room - 1).join("")}…` : name) + end;
}

function drawSlopes(shown, width) {
  const left = 64, right = Math.min(280, width * 0.45), top = 40;
  const height = Math.max(260, shown.length * GAP + 40);
  const deepest = Math.max(2, ...shown.flatMap((move) => [move.before, move.now]));
  const missing = top + height, end = width - right;
  const y = (rank) => (rank ? top + (Math.log(rank) / Math.log(deepest)) * (height - 48) : missing);
  const picture = svg("svg", { width, height: missing + 24, viewBox: `0 0 ${width} ${missing + 24}`, role: "group", "aria-labelledby": "slopes-title" });
  for (const [x, name] of [[left, "before"], [end, "now"]]) {
    picture.append(svg("text", { x, y: 20, "text-anchor": "middle", class: "rank" }, name),
      svg("line", { class: "axis", x1: x, x2: x, y1: top, y2: missing }));
  }
  let last = -Infinity;
  for (const rank of [...TICKS.filter((rank) => rank <= deepest), 0]) {
    if (y(rank) - last < GAP) continue;
    last = y(rank);
    picture.append(svg("text", { x: left - 10, y: y(rank) + 4, "text-anchor": "end", class: "rank" }, rank || "missing"));
  }
  const order = shown.toSorted((a, b) => y(a.now) - y(b.now) || y(a.before) - y(b.before));
  const heights = spread(order.map((move) => y(move.now)), top, missing);
  const lines = new Map();
  order.forEach((move, number) => lines.set(move, line(move, { left, end, y, at: heights[number], right })));
  picture.append(...shown.toReversed().map((move) => lines.get(move))); // the worst are drawn last, on top
  walk(shown.map((move) => lines.get(move)));
  return picture;
}

// Spaces the labels so that they do not overlap, each as close to the end of its line as possible.
function spread(wanted, top, bottom) {
  const heights = [];
  for (const y of wanted) heights.push(Math.max(y, heights.length ? heights.at(-1) + GAP : top));
  let lowest = bottom;
  for (let number = heights.length - 1; number >= 0; number--) {
    heights[number] = Math.min(heights[number], lowest);
    lowest = heights[number] - GAP;
  }
  return heights;
}

function line(move, { left, end, y, at, right }) {
  const from = y(move.before), to = y(move.now);
  const path = `M${left} ${from}L${end} ${to}`;
  const single = move.queries.size === 1;
  const name = `${label(move, 200)}, ${route(move)}, ${move.up ? "better" : "worse"}`;
  const made = svg("g", { class: move.up ? "slope up" : "slope", role: single ? "link" : "button", tabindex: -1,
    "aria-label": name }, svg("title", {}, name), svg("path", { class: "touch", d: path }),
  svg("path", { class: "leader", d: `M${end} ${to}L${end + 14} ${at}` }),
  svg("path", { d: path, "stroke-width": Math.min(7, 1 + Math.sqrt(move.queries.size)).toFixed(1) }),
  svg("text", { x: end + 18, y: at + 4 }, label(move, Math.floor((right - 22) / 6.7))));
  made.addEventListener("click", () => (single ? show([...move.queries][0]) : only(move)));
  return made;
}

// Keyboard navigation: the chart is one Tab stop, arrow keys move between lines, Enter activates one.
function walk(lines) {
  lines[0]?.setAttribute("tabindex", 0);
  lines.forEach((each, number) => each.addEventListener("keydown", (event) => {
    const to = { ArrowDown: number + 1, ArrowUp: number - 1, Home: 0, End: lines.length - 1 }[event.key];
    if (event.key === "Enter" || event.key === " ") each.dispatchEvent(new MouseEvent("click"));
    else if (to === undefined) return;
    event.preventDefault();
    if (!lines[to]) return;
    each.setAttribute("tabindex", -1);
    lines[to].setAttribute("tabindex", 0);
    lines[to].focus();
  }));
}

function show(query) {
  remember(address(query));
  follow();
}

function only(move) {
  reset();
  state.move = { queries: move.queries, route: route(move) };
  refresh();
  $("queries-title").scrollIntoView();
  $("queries-title").focus({ preventScroll: true });
}

function startSlopes() {
  const all = moves(), shown = chosen(all);
  if (!all.length) return;
  for (const name of ["slopes", "to-slopes"]) $(name).hidden = false;
  const queries = all.reduce((sum, move) => sum + move.queries.size, 0);
  const visible = shown.reduce((sum, move) => sum + move.queries.size, 0);
  const cut = shown.length < all.length ? ` The ${shown.length} largest moves are shown, those of ${plural(visible, "query")}.` : "";
  $("slopes-note").textContent = `${plural(queries, "query")} moved; a line is the document that matters most to its query.${cut} `
    + "Solid lines got worse, dashed ones better. Choose a line to see its queries; arrow keys go from line to line.";
  let width = 0;
  new ResizeObserver(() => {
    const now = $("chart").clientWidth;
    if (now === width) return;
    width = now;
    $("chart").replaceChildren(drawSlopes(shown, now));
  }).observe($("chart"));
}
