// Sets up the page: controls, URL fragment and printing.

function turn(pages) {
  if ($(pages < 0 ? "previous" : "next").getAttribute("aria-disabled") === "true") return;
  state.page += pages;
  refresh({ keepPage: true });
  $("queries-title").scrollIntoView();
}

function sortBy(column, descending) {
  Object.assign(state, { sort: column, descending });
  refresh();
}

// Cycles through ascending, descending and worst first.
function nextSort(column) {
  if (state.sort !== column) sortBy(column, false);
  else if (!state.descending) sortBy(column, true);
  else sortBy("", false);
}

function startTable() {
  for (const head of document.querySelectorAll("th[data-sort]")) {
    const button = el("button", { type: "button", class: "plain" }, head.textContent);
    button.addEventListener("click", () => nextSort(head.dataset.sort));
    head.replaceChildren(button);
  }
  $("sort").append(el("option", { value: "" }, "worst first"));
  for (const [name, { title }] of Object.entries(SORTS).filter(([name]) => document.querySelector(`th[data-sort="${name}"]`))) {
    $("sort").append(el("option", { value: `${name} false` }, `${title} ↑`), el("option", { value: `${name} true` }, `${title} ↓`));
  }
  data.tags.forEach((tag, number) => $("tag").append(el("option", { value: number }, tag)));
  for (const number of data.offered) $("metric").append(el("option", { value: number }, data.metrics[number]));
  $("metric").value = state.metric;
  $("tag").parentElement.hidden = !data.tags.length;
  $("metric").parentElement.hidden = data.offered.length < 2;
  for (const name of ["controls", "count"]) $(name).hidden = false;
}

function startControls() {
  const set = (name, value) => { state[name] = value; refresh(); };
  $("controls").addEventListener("submit", (event) => event.preventDefault());
  $("search").addEventListener("input", () => set("text", $("search").value));
  $("status").addEventListener("change", () => set("status", $("status").value));
  $("tag").addEventListener("change", () => set("tag", $("tag").value));
  $("metric").addEventListener("change", () => set("metric", Number($("metric").value)));
  $("sort").addEventListener("change", () => {
    const [column, descending] = $("sort").value.split(" ");
    sortBy(column, descending === "true");
  });
  $("reset").addEventListener("click", () => { remember(" "); reset(); });
  $("previous").addEventListener("click", () => turn(-1));
  $("next").addEventListener("click", () => turn(1));
}

// Makes each tag name in the table of tags a button that shows its queries.
function startTags() {
  for (const name of document.querySelectorAll("[data-tag]")) {
    const button = el("button", { type: "button", class: "plain", title: "Show its queries" });
    name.replaceWith(button);
    button.append(name);
    button.addEventListener("click", () => {
      reset();
      $("tag").value = state.tag = name.dataset.tag;
      refresh();
      $("queries-title").scrollIntoView();
      $("queries-title").focus({ preventScroll: true });
    });
  }
}

function startPrinting() {
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const fold of closed) fold.open = true;
    draw(found.slice(0, PRINTED));
    if (found.length > PRINTED) {
      $("rows").append(el("tr", { role: "row" }, el("td", { role: "cell", colspan: WIDTH, class: "empty" },
        `… and ${plural(found.length - PRINTED, "more query")}`)));
    }
  });
  addEventListener("afterprint", () => {
    for (const fold of closed) fold.open = false;
    refresh({ keepPage: true });
  });
}

startTable();
startControls();
startTags();
startPrinting();
refresh();
startSlopes();
addEventListener("hashchange", follow);
follow();
