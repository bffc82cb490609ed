"use strict";
// The table of queries. All content of the report is inserted as text, by append() and setAttribute(), never as HTML.
//
// Keys of a query: i id, v displayed id if different, p location, q question, t indexes of its tags, m metrics now,
// b metrics before, d documents [name, forbidden, rank now, rank before] with 0 for missing, s status if not pass,
// f findings, each a list of text and [name], u indexes of the documents whose ranks these name, r broken rules, y why it
// does not fail, w weight if not 1, c change (gain in reciprocal rank, negative is worse), n results now and o results
// before of a broken query, each [document, "relevant", "forbidden" or "", chunk and score, its text if that is known and
// it entered or left the results], g what was said and seen [title, now, before], each side
// [texts, number of others], a which of its rows these are if it has several. Queries are sorted worst first.
// data.lower has 1 for each metric of which lower is better, data.offered the indexes of the metrics to choose from.

const data = JSON.parse(document.getElementById("data").textContent);
const ROWS = 20, PRINTED = 500, NAMED = 5, DOCUMENTS = 200;
const WIDTH = 3 + (data.offered.length > 0) + (data.compared && data.offered.length > 0) + (data.tags.length > 0);
const STATUSES = ["fail", "counted", "warn", "skipped", "waived", "known", "pass"];
const SORTS = {
  query: { title: "Query", of: (query) => shownId(query) },
  status: { title: "Status", of: (query) => STATUSES.indexOf(statusOf(query)) },
  metric: { title: "Metric", of: (query) => query.m[state.metric] },
  change: { title: "Change", of: (query) => change(query, state.metric) },
  now: { title: "Ranks", of: (query) => bestRank(query) },
};
const INITIAL = { text: "", status: "", tag: "", move: null, sort: "", descending: false, page: 0 };
const state = { ...INITIAL, metric: data.metric, open: new Set() };
const collator = new Intl.Collator("en", { numeric: true });
let found = [];

function $(id) { return document.getElementById(id); }

function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function plural(number, noun) {
  const many = noun.endsWith("y") ? `${noun.slice(0, -1)}ies` : `${noun}s`;
  return `${number.toLocaleString("en")} ${number === 1 ? noun : many}`;
}

function statusOf(query) { return query.s ?? "pass"; }
function shownId(query) { return query.v ?? query.i; }
function rankText(rank) { return rank ? String(rank) : "missing"; }
function fixed(value) { return value == null ? "n/a" : value.toFixed(data.digits); }

function change(query, metric) {
  const now = query.m[metric], before = query.b?.[metric];
  return now == null || before == null ? null : now - before;
}

function signed(value) {
  if (value == null) return "n/a";
  const digits = Math.abs(value).toFixed(data.digits);
  return Number(digits) === 0 ? digits : (value > 0 ? "+" : "-") + digits;
}

// The best rank now of a relevant document.
function bestRank(query) {
  const wanted = query.d.filter((each) => !each[1]);
  return wanted.length ? Math.min(...wanted.map((each) => each[2] || Infinity)) : null;
}

// The searchable text of a query, created on the first search.
function haystack(query) {
  query.h ??= [query.i, query.v ?? "", query.q, ...(query.t ?? []).map((tag) => data.tags[tag]),
    ...query.d.map((each) => each[0])].join("\n").toLowerCase();
  return query.h;
}

function matching() {
  const terms = state.text.toLowerCase().split(/\s+/).filter(Boolean);
  const status = {
    fail: (query) => query.s === "fail", tolerated: (query) => query.s && query.s !== "fail", pass: (query) => !query.s,
    worse: (query) => query.c < 0, better: (query) => query.c > 0,
  }[state.status] ?? (() => true);
  const tag = state.tag === "" ? null : Number(state.tag);
  return data.queries.filter((query) => status(query)
    && (tag === null || query.t?.includes(tag))
    && (!state.move || state.move.queries.has(query))
    && terms.every((term) => haystack(query).includes(term)));
}

// Queries without a value come last in both directions.
function sorted(queries) {
  const of = SORTS[state.sort]?.of;
  if (!of) return queries;
  const way = state.descending ? -1 : 1;
  return queries.map((query) => [of(query), query]).sort(([a], [b]) => {
    if (a === b) return 0;
    if (a == null || b == null) return a == null ? 1 : -1;
    return way * (typeof a === "string" ? collator.compare(a, b) : a < b ? -1 : 1);
  }).map((pair) => pair[1]);
}

function refresh({ keepPage = false } = {}) {
  found = sorted(matching());
  const pages = Math.max(1, Math.ceil(found.length / ROWS));
  state.page = keepPage ? Math.min(state.page, pages - 1) : 0;
  draw(found.slice(state.page * ROWS, (state.page + 1) * ROWS));
  const all = plural(data.queries.length, "query");
  const move = state.move ? ` that went ${state.move.route}` : "";
  $("count").textContent = (found.length === data.queries.length ? all : `${found.length.toLocaleString("en")} of ${all}`)
    + move + (state.sort ? "" : ", worst first");
  $("page").textContent = `Page ${(state.page + 1).toLocaleString("en")} of ${pages.toLocaleString("en")}`;
  $("pager").hidden = pages === 1;
  $("previous").setAttribute("aria-disabled", state.page === 0);
  $("next").setAttribute("aria-disabled", state.page === pages - 1);
  for (const head of document.querySelectorAll("th[data-sort]")) {
    const way = state.descending ? "descending" : "ascending";
    head.setAttribute("aria-sort", head.dataset.sort === state.sort ? way : "none");
  }
  const metric = document.querySelector('th[data-sort="metric"] button');
  if (metric) metric.textContent = data.metrics[state.metric];
  $("sort").value = state.sort && `${state.sort} ${state.descending}`;
}

function draw(queries) {
  const rows = queries.flatMap((query) => state.open.has(query) ? [row(query), detail(query)] : [row(query)]);
  if (!rows.length) {
    rows.push(el("tr", { role: "row" }, el("td", { role: "cell", colspan: WIDTH, class: "empty" },
      "No query matches. Reset shows all.")));
  }
  $("rows").replaceChildren(...rows);
}

function row(query) {
  const open = state.open.has(query);
  const moved = change(query, state.metric);
  const gained = data.lower[state.metric] ? -moved : moved;
  const direction = gained < 0 ? "worse" : gained > 0 ? "better" : "";
  const status = el("span", { class: `status ${statusOf(query)}` }, data.status[statusOf(query)]);
  const toggle = el("button", { type: "button", class: "plain toggle", "aria-expanded": open },
    el("bdi", { class: "id" }, shownId(query)));
  const made = el("tr", { role: "row", class: open ? "open" : null },
    cell("Query", toggle, el("p", { class: "question", dir: "auto" }, query.q)),
    cell("Status", status),
    cell(data.offered.length ? "Broken rules and ranks" : "Broken rules", happened(query)),
    ...(data.offered.length ? [cell(data.metrics[state.metric], fixed(query.m[state.metric]))] : []),
    ...(data.offered.length && data.compared ? [cell("Change", el("span", { class: direction }, signed(moved)))] : []),
    ...(data.tags.length ? [cell("Tags", el("span", {}, ...(query.t ?? []).map((tag) => el("bdi", { class: "tag" }, data.tags[tag]))))] : []));
  // The whole row opens, but for selected text.
  made.addEventListener("click", () => { if (getSelection().isCollapsed) flip(query, made, toggle); });
  made.query = query;
  return made;
}

// What broke, then the documents that this does not name, with their ranks before and now: the first few of them.
function happened(query) {
  const sentence = (phrase) => phrase.map((part) => (typeof part === "string" ? part : el("code", {}, ...part)));
  const others = query.d.filter((_, number) => !query.u?.includes(number));
  const items = [...(query.f ?? []).map((phrase) => el("li", { class: "broken" }, ...sentence(phrase))),
    ...others.slice(0, NAMED).map((each) => el("li", {}, el("bdi", {}, each[0]), each[1] ? " (forbidden) " : " ", rankStep(each)))];
  if (others.length > NAMED) items.push(el("li", {}, `${(others.length - NAMED).toLocaleString("en")} more`));
  return el("div", {}, el("ul", {}, ...items), ...(query.y ? [el("p", { class: "why" }, query.y)] : []));
}

function cell(label, ...children) {
  return el("td", { role: "cell", "data-label": label }, ...children);
}

function rankStep([, , now, before]) {
  return before === undefined || before === now ? rankText(now) : `${rankText(before)} → ${rankText(now)}`;
}

function flip(query, made, toggle) {
  const opening = !state.open.delete(query);
  if (opening) state.open.add(query);
  made.classList.toggle("open", opening);
  toggle.setAttribute("aria-expanded", opening);
  if (opening) made.after(detail(query));
  else made.nextElementSibling.remove();
  remember(opening ? address(query) : " ");
}

function address(query) { return `#q=${encodeURIComponent(query.i)}`; }

function remember(hash) {
  try {
    history.replaceState(null, "", hash.trim() || location.pathname + location.search);
  } catch { /* a viewer that shows the page in a frame can forbid this */ }
}

function detail(query) {
  const compared = Boolean(query.b), before = compared ? ["Before"] : [];
  const documents = query.d.slice(0, DOCUMENTS).map((each) => el("tr", {},
    el("td", {}, el("bdi", {}, each[0]), each[1] ? " (forbidden)" : ""),
    ...(compared ? [el("td", {}, rankText(each[3]))] : []), el("td", {}, rankText(each[2]))));
  const metrics = data.metrics.flatMap((label, number) => query.m[number] == null && query.b?.[number] == null ? [] : [
    el("tr", {}, el("td", {}, label), ...(compared ? [el("td", {}, fixed(query.b[number]))] : []),
      el("td", {}, fixed(query.m[number])), ...(compared ? [el("td", {}, signed(change(query, number)))] : []))]);
  const facts = [query.p, query.w ? `weight ${query.w}` : "", query.r ? `breaks ${[...new Set(query.r)].join(", ")}` : "",
    query.d.length > DOCUMENTS ? `${plural(query.d.length - DOCUMENTS, "more document")} not shown` : ""];
  return el("tr", { role: "row", class: "detail" }, el("td", { role: "cell", colspan: WIDTH },
    el("div", { class: "facts" },
      el("p", {}, `${facts.filter(Boolean).join(" · ")} `,
        el("a", { href: address(query), class: "permalink" }, "Link to this query")),
      ...(query.g ? [texts(query)] : []),
      ...(query.n ? [results(query)] : []),
      ...(documents.length ? [small("Documents and their ranks", ["Document", ...before, "Now"], documents)] : []),
      ...(metrics.length ? [small("Metrics", ["Metric", ...before, "Now", ...(compared ? ["Change"] : [])], metrics)] : []))));
}

function results(query) {
  const sides = query.o ? [query.o, query.n] : [query.n];
  const ranks = Math.max(...sides.map((side) => side.length));
  const rows = Array.from({ length: ranks }, (_, rank) => el("tr", {},
    el("td", {}, String(rank + 1)), ...sides.map((side) => el("td", {}, ...(side[rank] ? result(side[rank]) : [])))));
  const none = el("tr", {}, el("td"), ...sides.map(() => el("td", {}, "nothing")));
  const made = small(`What was retrieved: ${data.top}`, ["", ...(query.o ? ["Before", "Now"] : ["Now"])], ranks ? rows : [none]);
  made.classList.add("results");
  if (query.a) made.querySelector("caption").append(el("span", { class: "muted" }, ` ${query.a}`));
  return made;
}

// What was said and seen, side by side; line breaks stay.
function texts(query) {
  const compared = query.g.some((each) => each.length > 2);
  const side = ([listed, more]) => el("td", {}, ...listed.map((text) => el("p", { dir: "auto" }, text)),
    ...(more ? [el("p", { class: "muted" }, `… ${more.toLocaleString("en")} more`)] : []));
  const rows = query.g.map(([title, now, before]) => el("tr", {}, el("th", { scope: "row" }, title),
    ...(compared ? [side(before ?? [[], 0])] : []), side(now)));
  const made = small("What was answered", ["", ...(compared ? ["Before", "Now"] : ["Now"])], rows);
  made.classList.add("said");
  if (query.a) made.querySelector("caption").append(el("span", { class: "muted" }, ` ${query.a}`));
  return made;
}

function result([name, wanted, about, text]) {
  const label = { relevant: "✓ relevant", forbidden: "✕ forbidden" }[wanted];
  return [el("bdi", {}, name), ...(label ? [" ", el("span", { class: `status ${wanted === "relevant" ? "pass" : "fail"}` }, label)] : []),
    ...(about ? [el("div", { class: "muted" }, about)] : []), ...(text ? [el("p", { class: "passage", dir: "auto" }, text)] : [])];
}

function small(caption, titles, rows) {
  return el("table", {}, el("caption", {}, caption),
    el("thead", {}, el("tr", {}, ...titles.map((title) => el("th", { scope: "col" }, title)))),
    el("tbody", {}, ...rows));
}

// Shows, opens and focuses the query in the URL fragment, whatever filters are set.
function follow() {
  if (!location.hash.startsWith("#q=")) return;
  let id;
  try { id = decodeURIComponent(location.hash.slice(3)); } catch { return; }
  const query = data.queries.find((each) => each.i === id);
  if (!query) {
    $("count").textContent = "The query that this link leads to is not in this report.";
    return;
  }
  state.open.add(query);
  if (!found.includes(query)) reset();
  state.page = Math.floor(found.indexOf(query) / ROWS);
  refresh({ keepPage: true });
  const made = [...$("rows").children].find((each) => each.query === query);
  made.querySelector(".toggle").focus({ preventScroll: true });
  made.scrollIntoView({ block: "center" });
}

function reset() {
  Object.assign(state, INITIAL);
  for (const name of ["search", "status", "tag"]) $(name).value = "";
  refresh();
}
