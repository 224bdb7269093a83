// A class is chosen by typing or by a digit: a combobox with a list (ARIA Authoring Practices 1.2).

import { find, make } from "./page.js";

const MOST = 60; // options in the list; the rest is found by typing
const DIGITS = 9;
const LETTERS = 80; // of a name that is in no list

// Names that a text finds, the best first: those that begin with it, have a word that does, or hold it.
export function search(names, text) {
  const sought = text.trim().toLowerCase();
  const rank = (name) => {
    const low = name.toLowerCase();
    if (low.startsWith(sought)) return low === sought ? 0 : 1;
    return low.split(/[^\p{L}\p{N}]+/u).some((word) => word.startsWith(sought)) ? 2 : low.includes(sought) ? 3 : 4;
  };
  return [0, 1, 2, 3].flatMap((wanted) => names.filter((name) => rank(name) === wanted));
}

// `on`: choose(name), leave() once the list is done with, tell(text); and where several are chosen
// pressed(name), whether one is; more(text), other names that a text finds, each with the word that
// it is found by; free, whether a name may be outside the list
export function classes(names, on) {
  const typed = find("#class");
  const list = find("#names");
  const quick = find("#quick");
  let current = names[0] ?? "";
  let matching = [];
  let active = -1;
  const listed = names.filter((name) => name !== "ood"); // which has a key of its own
  let digits = listed.length <= DIGITS ? listed : []; // a class keeps its digit while it has one
  let lately = []; // classes chosen lately, the newest first

  let why = new Map(); // name → the word that it was found by, or that it is in no list

  const pressed = on.pressed ?? ((name) => name === current);
  const title = (name) => (name === "ood" ? "ood (of no class)" : name);
  const open = () => !list.hidden;

  function option(name, index) {
    const facts = { role: "option", id: `name${index}`, "aria-selected": String(index === active) };
    const place = { "aria-posinset": index + 1, "aria-setsize": matching.length };
    return make("li", { ...facts, ...place, "data-name": name }, title(name), ...note(name));
  }

  const note = (name) => (why.has(name) ? [" ", make("span", { class: "why" }, why.get(name))] : []);

  function draw() {
    const more = matching.length - MOST;
    list.replaceChildren(...matching.slice(0, MOST).map(option));
    if (more > 0) list.append(make("li", { role: "option", "aria-disabled": "true", class: "soft" }, `${more} more: type to find them`));
    if (!matching.length) list.append(make("li", { role: "option", "aria-disabled": "true", class: "soft" }, "no matching class"));
    if (active >= 0) typed.setAttribute("aria-activedescendant", `name${active}`);
    else typed.removeAttribute("aria-activedescendant");
    list.children[active]?.scrollIntoView({ block: "nearest" });
  }

  function show(text) {
    // without a text those used lately come first
    matching = text ? search(names, text) : [...new Set([...lately, ...names])];
    addMore(text.trim());
    active = matching.length ? 0 : -1;
    list.hidden = false;
    typed.setAttribute("aria-expanded", "true");
    draw();
    if (text) on.tell(`${matching.length} class${matching.length === 1 ? "" : "es"}`);
  }

  function addMore(text) {
    why = new Map([...(on.more?.(text) ?? [])].filter(([name]) => !matching.includes(name)));
    matching.push(...why.keys());
    const same = (name) => name.toLowerCase() === text.toLowerCase();
    if (!on.free || !text || matching.some(same)) return;
    const free = text.slice(0, LETTERS);
    why.set(free, "not in the list");
    matching.splice(matching.length > MOST ? MOST - 1 : matching.length, 0, free);
  }

  function close() {
    list.hidden = true;
    typed.setAttribute("aria-expanded", "false");
    typed.removeAttribute("aria-activedescendant");
    typed.value = current;
  }

  function drawQuick() {
    quick.replaceChildren(...digits.map((name, index) => make("button", {
      type: "button", class: "toggle", "data-name": name, "data-key": index + 1,
      "aria-keyshortcuts": index + 1, "aria-pressed": String(pressed(name)),
    }, make("span", {}, name), " ", make("kbd", { "aria-hidden": "true" }, index + 1))));
  }

  function use(name) {
    lately = [name, ...lately.filter((other) => other !== name)];
    if (name === "ood" || digits.includes(name)) return;
    const last = lately.findLast((other) => digits.includes(other)); // used longest ago
    digits = digits.length < DIGITS ? [...digits, name] : digits.map((other) => (other === last ? name : other));
  }

  function set(name) {
    const same = !on.pressed && name === current && quick.children.length === digits.length;
    current = name;
    if (!open()) typed.value = name;
    if (!same) drawQuick();
  }

  function choose(name) {
    use(name);
    current = name;
    drawQuick();
    on.choose(name);
    close();
    on.leave();
  }

  function step(by) {
    if (!open()) {
      show("");
      return;
    }
    const last = Math.min(matching.length, MOST) - 1;
    active = by > 0 && active === last ? 0 : by < 0 && active <= 0 ? last : Math.min(Math.max(active + by, 0), last);
    draw();
  }

  const keys = {
    ArrowDown: () => step(1),
    ArrowUp: () => step(-1),
    PageDown: () => step(8),
    PageUp: () => step(-8),
    Enter: () => (open() && active >= 0 ? choose(matching[active]) : on.leave()),
    Escape: () => {
      close();
      on.leave();
    },
  };
  typed.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.isComposing) return;
    event.preventDefault();
    keys[event.key]();
  });
  typed.addEventListener("focus", () => typed.select());
  typed.addEventListener("click", () => open() || show(""));
  typed.addEventListener("input", () => show(typed.value));
  typed.addEventListener("blur", close);
  // the focus stays in the text until a class is chosen
  list.addEventListener("pointerdown", (event) => event.preventDefault());
  list.addEventListener("click", (event) => {
    const name = event.target.closest("[data-name]")?.dataset.name;
    if (name !== undefined) choose(name);
  });
  quick.addEventListener("click", (event) => {
    const name = event.target.closest("[data-name]")?.dataset.name;
    if (name === undefined) return;
    use(name);
    on.choose(name);
  });

  return {
    get current() { return current; },
    set,
    offer(some) {
      some.filter((name) => names.includes(name)).forEach(use);
      drawQuick();
    },
  };
}
