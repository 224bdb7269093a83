// The large view of a picture, its film, and the filters of the galleries. Without this script the
// pictures stand in the page as they are.

const MARKS = { truth: "#fff", right: "#00be78", wrong: "#ff6a3c" };
const RATE = 6; // frames a second
const HUES = 5; // answers with a colour of their own
const SVG = "http://www.w3.org/2000/svg";
const NAMES = { model: "Model", class: "Class", kind: "Kind" };

const dialog = document.getElementById("large");
const still = matchMedia("(prefers-reduced-motion: reduce)");
const part = (selector) => dialog.querySelector(selector);

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function drawn(tag, attributes, text = "") {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
}

// ---- galleries and their filters ------------------------------------------------------------

class Gallery {
  constructor(node, number) {
    this.node = node;
    this.number = number;
    this.section = node.closest("section")?.id ?? "";
    this.cards = [...node.querySelectorAll(".card")];
    this.facets = new Map(this.cards.map((card) => [card, JSON.parse(card.dataset.facets)]));
    this.selects = new Map();
    this.build();
  }

  build() {
    for (const name of Object.keys(NAMES)) {
      const values = new Set(this.cards.flatMap((card) => this.facets.get(card)[name]));
      if (values.size < 2) continue;
      const select = element("select");
      select.append(element("option", { value: "", textContent: "all" }));
      for (const value of [...values].sort()) select.append(element("option", { value }));
      select.addEventListener("change", () => (this.filter(), remember()));
      this.selects.set(name, select);
    }
    this.count = element("span", { role: "status" });
    this.reset = element("button", { type: "button", textContent: "Show all" });
    this.reset.addEventListener("click", () => (this.choose({}), remember(), this.first?.focus()));
    if (!this.selects.size) return;
    const labels = [...this.selects].map(([name, select]) => element("label", {}, NAMES[name], select));
    this.node.before(element("div", { className: "filters" }, ...labels, this.count, this.reset));
    this.filter();
  }

  get first() {
    return this.selects.values().next().value;
  }

  get chosen() {
    return Object.fromEntries([...this.selects].flatMap(([name, s]) => (s.value ? [[name, s.value]] : [])));
  }

  get visible() {
    return this.cards.filter((card) => !card.hidden);
  }

  choose(values) {
    for (const [name, select] of this.selects) select.value = values[name] ?? "";
    for (const select of this.selects.values()) if (select.selectedIndex < 0) select.value = "";
    this.filter();
  }

  matches(card, chosen, except) {
    const facets = this.facets.get(card);
    return Object.entries(chosen).every(([name, value]) => name === except || facets[name].includes(value));
  }

  filter() {
    const chosen = this.chosen;
    for (const card of this.cards) card.hidden = !this.matches(card, chosen);
    for (const [name, select] of this.selects) {
      const rest = this.cards.filter((card) => this.matches(card, chosen, name));
      for (const option of [...select.options].slice(1)) {
        const count = rest.filter((card) => this.facets.get(card)[name].includes(option.value)).length;
        option.textContent = `${option.value} (${count})`;
        option.disabled = !count && !option.selected;
      }
    }
    this.count.textContent = `${this.visible.length} of ${this.cards.length} shown`;
    this.reset.hidden = !Object.keys(chosen).length;
    let heading = null;
    for (const each of this.node.children) {
      if (each.matches(".group")) {
        heading = each;
        heading.hidden = true;
      } else if (heading && !each.hidden) heading.hidden = false;
    }
  }
}

// ---- the view in the address: #section&1.model=a&open=1.4.12 ----------------------------------

function remember() {
  const words = new URLSearchParams();
  for (const gallery of galleries) {
    for (const [name, value] of Object.entries(gallery.chosen)) words.set(`${gallery.number}.${name}`, value);
  }
  if (dialog.open) {
    const frame = view.film ? `.${view.frame}` : "";
    words.set("open", `${view.gallery.number}.${view.gallery.cards.indexOf(view.card)}${frame}`);
  }
  const section = (dialog.open ? view.gallery : galleries.find((one) => words.has(`${one.number}.${Object.keys(one.chosen)[0]}`)))?.section;
  const said = [section, words.toString()].filter(Boolean).join("&");
  if (said || location.hash.includes("=")) history.replaceState(null, "", `#${said}`);
}

function recall() {
  const hash = location.hash.slice(1);
  if (!hash.includes("=")) return;
  const [section, ...rest] = hash.includes("&") && !hash.split("&")[0].includes("=") ? hash.split("&") : ["", hash];
  const words = new URLSearchParams(rest.join("&"));
  for (const gallery of galleries) {
    const names = [...gallery.selects.keys()];
    gallery.choose(Object.fromEntries(names.map((name) => [name, words.get(`${gallery.number}.${name}`) ?? ""])));
  }
  document.getElementById(section)?.scrollIntoView();
  const [number, card, frame] = (words.get("open") ?? "").split(".").map(Number);
  const gallery = galleries.find((one) => one.number === number);
  if (gallery?.cards[card]) show(gallery, gallery.cards[card], frame);
}

// ---- the large view --------------------------------------------------------------------------

const view = { gallery: null, card: null, film: null, frame: 0, timer: 0, opener: null };
let sheets = null;

function filmOf(card) {
  const script = card.querySelector("script.film");
  if (!script) return null;
  sheets ??= JSON.parse(document.getElementById("sheets").textContent);
  const film = JSON.parse(script.textContent);
  return { ...film, sheet: sheets[film.sheet] };
}

function show(gallery, card, frame) {
  pause();
  Object.assign(view, { gallery, card, film: filmOf(card) });
  const cards = gallery.visible.includes(card) ? gallery.visible : gallery.cards;
  part("h3").textContent = card.querySelector("h4").textContent;
  part(".by").textContent = card.querySelector(".by").textContent;
  part(".count").textContent = `${cards.indexOf(card) + 1} of ${cards.length}`;
  part(".player").hidden = !view.film;
  const pair = element("div", { className: "pair" });
  const shots = [...card.querySelectorAll(".shot")].map(copied);
  pair.style.setProperty("--n", view.film ? view.film.fixed + 1 : Math.min(shots.length, 4));
  pair.append(...(view.film ? shots.slice(0, view.film.fixed) : shots));
  part(".stage").replaceChildren(pair);
  part(".hint").textContent = view.film
    ? "← → other pictures · , . frames · space plays · Esc closes"
    : "← → other pictures · Esc closes";
  if (view.film) thread(pair, frame);
  if (!dialog.open) {
    view.opener = document.activeElement.closest(".lead button") ?? null;
    dialog.showModal();
  }
  remember();
}

function copied(shot) {
  const copy = shot.cloneNode(true);
  copy.querySelector(".plays")?.remove();
  return copy;
}

function step(by) {
  const cards = view.gallery.visible;
  const now = cards.indexOf(view.card);
  if (cards.length) show(view.gallery, cards[(now + by + cards.length) % cards.length]);
}

// ---- the film --------------------------------------------------------------------------------

function thread(pair, frame) {
  const { film } = view;
  pair.classList.add("filmed", film.fixed ? "beside" : "alone");
  pair.append(element("div", { className: "shot moving" }));
  const range = part("input");
  range.max = film.frames.length - 1;
  const answers = [...new Set(film.frames.map((one) => one.answer))];
  // a frame without a verdict or a height is none of the others
  const [judged, scored] = ["right", "score"].map((name) => film.frames.some((one) => one[name] !== undefined));
  const bars = film.frames.map((one, i) => {
    const bar = element("i", { title: `${one.at}: ${one.line}` }, tile(film, i));
    bar.className = judged ? verdict(one) || "none" : `hue${Math.min(answers.indexOf(one.answer), HUES)}`;
    bar.classList.toggle("home", one.still < film.fixed);
    bar.style.setProperty("--p", one.score ?? (scored ? 0 : 1));
    bar.addEventListener("click", () => (pause(), turn(i)));
    return bar;
  });
  part(".bars").replaceChildren(...bars);
  part(".player").style.setProperty("--n", film.frames.length);
  lanes(film);
  part(".legend").replaceChildren(...legend(film, answers));
  turn(film.frames[frame] ? frame : film.start);
  // so that nothing below moves while it plays
  part(".moving").style.minHeight = `${part(".moving").offsetHeight}px`;
}

// the timeline: a row for each object, a cell for each frame, which leads to it
const STATES = { p: "present", w: "below the threshold", r: "another class", l: "lost", u: "not known", a: "" };
const SIGNS = { p: "", w: "◐", r: "≠", l: "✗", u: "?", a: "" };

function lanes(film) {
  const place = part(".lanes");
  place.hidden = !film.lanes?.length;
  if (place.hidden) return place.replaceChildren();
  const rows = film.lanes.map(([name, states]) => {
    const row = element("tr", {}, element("th", { scope: "row", textContent: name }));
    [...states].forEach((state, i) => {
      const cell = element("td", { className: `lane ${state}`, textContent: SIGNS[state] });
      cell.title = `${name}, ${film.frames[i].at}: ${STATES[state] || "not there"}`;
      cell.addEventListener("click", () => (pause(), turn(i), remember()));
      row.append(cell);
    });
    return row;
  });
  const seen = [...new Set(film.lanes.flatMap(([, states]) => [...states]))].filter((state) => STATES[state]);
  const key = seen.map((state) => element("span", { className: "key" }, element("b", { className: `lane ${state}`, textContent: SIGNS[state] }), STATES[state]));
  place.replaceChildren(element("table", {}, element("caption", {}, ...key), element("tbody", {}, ...rows)));
}

function verdict(frame) {
  return frame.right === undefined ? "" : frame.right ? "right" : "wrong";
}

function legend(film, answers) {
  const key = (name, text) => element("span", { className: `key ${name}` }, element("i"), text);
  const judged = film.frames.some((one) => one.right !== undefined);
  const shown = judged ? [key("right", `● ${film.verdicts[0]}`), key("wrong", `✗ ${film.verdicts[1]}`)] : answers.slice(0, HUES).map((answer, i) => key(`hue${i}`, answer));
  if (!judged && answers.length > HUES) shown.push(key(`hue${HUES}`, "another"));
  if (film.fixed) shown.push(element("span", { textContent: "◉ anchor" }));
  if (film.frames.some((one) => one.score !== undefined)) shown.push(element("span", { textContent: `height: ${film.bar}` }));
  return shown;
}

function turn(to) {
  const { film, card } = view;
  view.frame = Math.max(0, Math.min(to, film.frames.length - 1));
  const frame = film.frames[view.frame];
  const shot = part(".moving");
  const sign = frame.right === undefined ? "" : frame.right ? "✓ " : "✗ ";
  const kept = frame.still === undefined ? null : card.querySelectorAll(".shot")[frame.still];
  shot.className = `shot moving ${verdict(frame)}`;
  if (kept?.querySelector("img") && !view.timer) shot.replaceChildren(...copied(kept).children);
  else {
    const title = element("span", { className: "title", textContent: sign + frame.at });
    const line = element("span", { className: "line", textContent: frame.line });
    shot.replaceChildren(tile(film, view.frame, true), title, line);
  }
  const range = part("input");
  range.value = view.frame;
  range.setAttribute("aria-valuetext", `${frame.at}: ${frame.line}${sign && `, ${film.verdicts[frame.right ? 0 : 1]}`}`);
  [...part(".bars").children].forEach((bar, i) => bar.classList.toggle("now", i === view.frame));
  for (const row of part(".lanes").querySelectorAll("tr")) [...row.cells].forEach((cell, i) => cell.classList.toggle("now", i === view.frame + 1));
}

// a frame in the shape of its image; a large one with its boxes
function tile(film, index, large = false) {
  const { sheet } = film;
  const frame = film.frames[index];
  const [width, height] = sheet.size;
  const svg = drawn("svg", { class: "tile", viewBox: `0 0 ${width} ${height}` });
  // a box of its own, so that its neighbours on the sheet are not seen in what room is left
  const box = drawn("svg", { width, height });
  box.append(drawn("image", {
    href: sheet.src, preserveAspectRatio: "none",
    x: -(index % sheet.columns) * width, y: -Math.floor(index / sheet.columns) * height,
    width: sheet.columns * width, height: sheet.rows * height,
  }));
  svg.append(box);
  if (!large) return svg;
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `${frame.at}: ${frame.line}`);
  const unit = Math.max(width, height) / 480;
  for (const [kind, x0, y0, x1, y1, text] of frame.marks ?? []) {
    const box = { x: x0, y: y0, width: x1 - x0, height: y1 - y0, fill: "none" };
    const dash = kind === "wrong" ? { "stroke-dasharray": `${7 * unit} ${4 * unit}` } : {};
    svg.append(drawn("rect", { ...box, stroke: "#141414", "stroke-width": 4 * unit }));
    svg.append(drawn("rect", { ...box, stroke: MARKS[kind], "stroke-width": 2 * unit, ...dash }));
    const side = x0 > 0.6 * width ? { x: x1 - 3 * unit, "text-anchor": "end" } : { x: x0 + 3 * unit };
    const place = { ...side, y: Math.max(y0 - 4 * unit, 14 * unit), "font-size": 14 * unit };
    svg.append(drawn("text", { ...place, fill: MARKS[kind], stroke: "#141414", "stroke-width": 4 * unit, "paint-order": "stroke" }, text));
  }
  return svg;
}

function pause() {
  clearInterval(view.timer);
  view.timer = 0;
  part(".play").textContent = "▶ Play";
}

function play() {
  if (view.timer) {
    pause();
    turn(view.frame);
    remember();
    return;
  }
  const last = view.film.frames.length - 1;
  part(".play").textContent = "❚❚ Pause";
  // with reduced motion, frames change slowly, one at a time
  view.timer = setInterval(() => {
    if (view.frame + 1 === last) pause();
    turn(view.frame + 1);
  }, 1000 / (still.matches ? 1 : RATE));
  turn(view.frame === last ? 0 : view.frame);
}

function move(by) {
  pause();
  turn(view.frame + by);
  remember();
}

// ---- mouse, keys and fingers ------------------------------------------------------------------

dialog.addEventListener("click", (event) => {
  const { step: by, frame } = event.target.dataset;
  if (by) step(Number(by));
  if (frame) move(Number(frame));
  if (event.target.matches(".play")) play();
  if ("close" in event.target.dataset || event.target === dialog) dialog.close();
});
dialog.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const inRange = event.target.matches("input");
  if (event.key === "ArrowRight" && !inRange) step(1);
  else if (event.key === "ArrowLeft" && !inRange) step(-1);
  else if (view.film && event.key === ".") move(1);
  else if (view.film && event.key === ",") move(-1);
  else if (view.film && event.key === " " && !event.target.matches("button")) play();
  else return;
  event.preventDefault();
});
part("input").addEventListener("input", (event) => (pause(), turn(Number(event.target.value))));
part("input").addEventListener("change", remember);
dialog.addEventListener("close", () => {
  pause();
  remember();
  (view.opener ?? view.card.querySelector(".pair")).focus();
});

let touch = null;
part(".stage").addEventListener("touchstart", (event) => {
  touch = event.touches.length === 1 ? event.touches[0] : null;
}, { passive: true });
part(".stage").addEventListener("touchend", (event) => {
  if (!touch) return;
  const x = event.changedTouches[0].clientX - touch.clientX;
  const y = event.changedTouches[0].clientY - touch.clientY;
  if (Math.abs(x) > 50 && Math.abs(x) > 2 * Math.abs(y)) step(x < 0 ? 1 : -1);
}, { passive: true });

const galleries = [...document.querySelectorAll(".gallery")].map((node, i) => new Gallery(node, i + 1));
for (const gallery of galleries) {
  for (const card of gallery.cards) {
    const button = card.querySelector(".pair");
    if (card.querySelector("script.film")) [...button.querySelectorAll(".shot")].at(-1).append(element("span", { className: "plays", textContent: "▶ Film" }));
    button.addEventListener("click", () => show(gallery, card));
  }
}
// the pictures of the first screen are of a card further down, or each is of a card of its own
for (const figure of document.querySelectorAll("figure.lead")) {
  const sources = (node) => [...node.querySelectorAll("img")].map((image) => image.src);
  const all = galleries.flatMap((gallery) => gallery.cards.map((card) => [gallery, card]));
  const found = (wanted) => all.find(([, card]) => wanted.every((each) => sources(card).includes(each)));
  for (const image of figure.querySelectorAll("img")) {
    const place = found(sources(figure)) ?? found([image.src]);
    if (!place) continue;
    image.classList.add("opens");
    image.addEventListener("click", () => show(...place));
  }
  const [gallery, card] = found(sources(figure)) ?? found(sources(figure).slice(0, 1)) ?? [];
  if (!card) continue;
  const film = card.querySelector("script.film");
  const button = element("button", { type: "button", textContent: film ? "▶ Play all frames" : "Enlarge" });
  button.addEventListener("click", () => show(gallery, card));
  figure.querySelector("figcaption").append(" ", button);
}
window.addEventListener("hashchange", recall);
recall();
