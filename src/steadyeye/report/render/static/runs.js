const content = JSON.parse(document.getElementById("content").textContent);
const root = document.documentElement;
const preferred = matchMedia("(prefers-color-scheme: dark)");
const form = document.getElementById("filters");
const head = document.querySelector("thead tr");
const body = document.querySelector("tbody");
const count = document.getElementById("count");
const compare = document.getElementById("compare");
const command = document.getElementById("command");
const more = document.getElementById("more");
const PAGE = 200;
const BAD = new Set(["unfinished", "damaged"]);
const chosen = new Set();
const state = { sort: "date", down: true, most: PAGE };

const rows = content.rows.map((row) => ({ ...row, of: content.runs[row.run] }));
for (const row of rows) {
  const { path, kind, state: told, reason } = row.of;
  row.text = [path, kind, told, reason, row.model, row.data].join(" ").toLowerCase();
}

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

function setTheme(name) {
  root.dataset.theme = name;
}

function field(name) {
  return form.elements[name].value;
}

function columns() {
  return field("metric") ? [field("metric")] : content.columns;
}

function day(seconds) {
  if (seconds === null) return "";
  const date = new Date(seconds * 1000);
  const two = (number) => String(number).padStart(2, "0");
  const ymd = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join("-");
  return `${ymd} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

function key(row, name) {
  if (name === "date") return row.of.date;
  if (name === "run") return row.of.path;
  if (name === "model" || name === "data") return row[name];
  if (name === "kind" || name === "state") return row.of[name];
  return row.numbers[name]?.value ?? null;
}

function order(one, other) {
  const [a, b] = [key(one, state.sort), key(other, state.sort)];
  // what has no value comes last, whichever way is up
  if (a === null || b === null) return (a === null) - (b === null);
  const apart = typeof a === "string" ? a.localeCompare(b, undefined, { numeric: true }) : a - b;
  return (state.down ? -apart : apart) || one.of.path.localeCompare(other.of.path);
}

function fits(row) {
  const words = field("text").toLowerCase().split(/\s+/).filter(Boolean);
  return (
    words.every((word) => row.text.includes(word)) &&
    (!field("model") || row.model === field("model")) &&
    (!field("data") || row.data === field("data")) &&
    (!field("kind") || row.of.kind === field("kind")) &&
    (!field("state") || row.of.state === field("state")) &&
    (!field("metric") || field("metric") in row.numbers)
  );
}

function heading(name, label, number = false) {
  const sorted = state.sort === name;
  const arrow = sorted ? (state.down ? " ↓" : " ↑") : "";
  // a long name breaks after its underscores
  const parts = label.split(/(?<=_)|(?=\()/).flatMap((part) => [part, element("wbr")]);
  const button = element("button", { type: "button" }, ...parts, arrow);
  button.dataset.sort = name;
  const made = element("th", { scope: "col", className: number ? "n" : "" }, button);
  if (sorted) made.setAttribute("aria-sort", state.down ? "descending" : "ascending");
  return made;
}

function number(found, name) {
  if (!found) return element("td", { className: "n none" }, "—");
  const range = found.bar && element("span", { className: "range", ariaHidden: "true" });
  if (range) {
    const [low, high] = found.bar;
    const interval = element("i");
    interval.style.left = `${low * 100}%`;
    interval.style.width = `${(high - low) * 100}%`;
    const at = element("u");
    at.style.left = `${found.value * 100}%`;
    range.append(interval, at);
  }
  const beneath = found.span === "—" ? "no interval" : found.span;
  const size = element("span", { className: "size" }, `n = ${found.n.toLocaleString("en")}`);
  const value = element("span", { className: "value" }, element("b", {}, found.shown), " ", size);
  const cell = element("td", { className: "n" }, value, range || null, element("small", {}, beneath));
  cell.dataset.name = name;
  return cell;
}

function line(row) {
  const run = row.of;
  const box = element("input", { type: "checkbox", checked: chosen.has(run.path) });
  box.setAttribute("aria-label", `Select ${run.path}`);
  box.dataset.path = run.path;
  box.disabled = !run.comparable;
  const name = run.link ? element("a", { href: run.link }, run.path) : run.path;
  const kind = element("small", {}, run.kind);
  const kept = element("b", {}, run.state);
  const why = run.reason ? element("small", {}, run.reason) : null;
  const good = BAD.has(run.state) ? "state bad" : "state good";
  // where there are no numbers, their place is the reason's
  const bare = !Object.keys(row.numbers).length;
  const told = element("td", { className: good, colSpan: bare ? columns().length + 1 : 1 }, kept, why);
  return element(
    "tr",
    {},
    element("td", { className: "pick" }, box),
    element("th", { scope: "row", className: "path" }, name, kind),
    element("td", { className: "words model" }, row.model),
    element("td", { className: "words data" }, row.data),
    element("td", { className: "when" }, day(run.date)),
    told,
    ...(bare ? [] : columns().map((metric) => number(row.numbers[metric], metric))),
  );
}

function draw() {
  const shown = rows.filter(fits).sort(order);
  head.replaceChildren(
    element("td", { className: "pick" }),
    heading("run", "Run"),
    heading("model", "Model"),
    heading("data", "Data"),
    heading("date", "Date"),
    heading("state", "State"),
    ...columns().map((metric) => heading(metric, metric, true)),
  );
  body.replaceChildren(...shown.slice(0, state.most).map(line));
  more.hidden = shown.length <= state.most;
  const runs = new Set(shown.map((row) => row.run)).size;
  count.textContent = `${runs.toLocaleString("en")} of ${content.runs.length.toLocaleString("en")} ${content.runs.length === 1 ? "run" : "runs"}`;
  tell();
  keep();
}

function tell() {
  const several = chosen.size >= 2;
  compare.disabled = !several;
  const what = content.served ? "Compare" : "Command that compares";
  compare.textContent = several ? `${what} ${chosen.size} runs` : `${what}: select two or more`;
  if (!several) command.hidden = true;
}

function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

function startComparing() {
  const paths = content.runs.map((run) => run.path).filter((path) => chosen.has(path));
  if (content.served) {
    const asked = paths.map((path) => `run=${encodeURIComponent(path)}`).join("&");
    location.href = `compare?${asked}`;
    return;
  }
  const folders = paths.map((path) => quoted(path === "." ? content.folder : `${content.folder}/${path}`));
  command.textContent = `steadyeye compare ${folders.join(" ")} --out compare.html`;
  command.hidden = false;
  command.focus();
}

// what is chosen is kept in the address, so that Back from a report finds it as it was
function keep() {
  const told = new URLSearchParams();
  for (const { name, value } of form.elements) if (name && value) told.set(name, value);
  if (state.sort !== "date" || !state.down) told.set("sort", `${state.down ? "-" : ""}${state.sort}`);
  for (const path of chosen) told.append("select", path);
  history.replaceState(null, "", told.size ? `#${told}` : location.pathname + location.search);
}

function restore() {
  const told = new URLSearchParams(location.hash.slice(1));
  for (const { name } of form.elements) {
    if (name && told.has(name)) form.elements[name].value = told.get(name);
  }
  const sort = told.get("sort");
  if (sort) Object.assign(state, { down: sort.startsWith("-"), sort: sort.replace(/^-/, "") });
  const there = new Set(content.runs.filter((run) => run.comparable).map((run) => run.path));
  for (const path of told.getAll("select")) if (there.has(path)) chosen.add(path);
}

function offer(name, values) {
  const known = [...new Set(values)].filter(Boolean);
  if (name !== "metric") known.sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
  form.elements[name].append(...known.map((value) => element("option", { value }, value)));
}

offer("model", rows.map((row) => row.model));
offer("data", rows.map((row) => row.data));
offer("kind", content.runs.map((run) => run.kind));
offer("state", content.runs.map((run) => run.state));
offer("metric", content.metrics);
restore();

form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("input", () => {
  state.most = PAGE;
  draw();
});
head.addEventListener("click", ({ target }) => {
  const name = target.closest("button")?.dataset.sort;
  if (!name) return;
  const words = ["run", "model", "data", "state"].includes(name);
  state.down = state.sort === name ? !state.down : !words;
  state.sort = name;
  draw();
  head.querySelector(`[data-sort="${CSS.escape(name)}"]`).focus();
});
body.addEventListener("change", ({ target }) => {
  if (target.checked) chosen.add(target.dataset.path);
  else chosen.delete(target.dataset.path);
  // a run of several models has several rows
  for (const box of body.querySelectorAll("input")) box.checked = chosen.has(box.dataset.path);
  tell();
  keep();
});
more.addEventListener("click", () => {
  state.most += PAGE;
  draw();
});
compare.addEventListener("click", startComparing);
document.getElementById("theme").addEventListener("click", () => {
  setTheme((root.dataset.theme ?? "light") === "dark" ? "light" : "dark");
});
preferred.addEventListener("change", () => setTheme(preferred.matches ? "dark" : "light"));
setTheme(preferred.matches ? "dark" : "light");
draw();
root.dataset.drawn = "1";
