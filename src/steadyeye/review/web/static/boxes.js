// Boxes: draw, move, resize, relabel, delete, by pointer and by keyboard.

import { pointing } from "./drawing.js";
import { moved, stretched, within } from "./geometry.js";
import { find, make } from "./page.js";
import { hang, view } from "./view.js";

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export function boxes({ classes, decide, tell, refuse }) {
  const frames = find(".frames");
  const list = find("#boxes");
  const choice = find("#class");
  const over = make("svg", { class: "over", "aria-hidden": "true" });
  let size = [1, 1];
  let drawn = []; // {box, label}
  let chosen = -1;
  let before = []; // earlier states, for undoing edits

  const on = (name) => find(`[data-do=${name}]`).getAttribute("aria-pressed") === "true";
  const looking = view(frames, () => on("hand"));
  const title = (name) => (name === "ood" ? "ood (of no class)" : name);
  choice.append(...classes.map((name) => make("option", { value: name }, title(name))));

  function change(next, select = chosen) {
    before.push({ drawn, chosen });
    drawn = next;
    chosen = Math.min(select, drawn.length - 1);
    draw();
  }

  const put = (index, box) => change(drawn.map((one, at) => (at === index ? { ...one, box } : one)), index);

  const button = (index) => list.children[index]?.firstChild;

  function entry(index) {
    const made = make("button", { type: "button", class: "toggle" });
    for (const kind of ["focus", "click"]) made.addEventListener(kind, () => index !== chosen && select(index));
    return make("li", {}, made);
  }

  function draw() {
    const kind = (index) => `box${drawn[index].label === "ood" ? " outside" : ""}${index === chosen ? " chosen" : ""}`;
    over.replaceChildren(...drawn.map(({ box: [x0, y0, x1, y1] }, index) => make("rect", {
      class: kind(index), x: x0, y: y0, width: x1 - x0, height: y1 - y0,
    })));
    while (list.children.length < drawn.length) list.append(entry(list.children.length));
    while (list.children.length > drawn.length) list.lastChild.remove();
    drawn.forEach(({ box, label }, index) => {
      const [x0, y0, x1, y1] = box.map(Math.round);
      button(index).textContent = `${index + 1}. ${label}, ${x1 - x0} × ${y1 - y0} at ${x0}, ${y0}`;
      button(index).setAttribute("aria-pressed", String(index === chosen));
    });
    if (chosen >= 0) choice.value = drawn[chosen].label;
    find("[data-do=delete]").disabled = chosen < 0;
    find("[data-do=unedit]").disabled = before.length === 0;
    find("#labels").textContent = `${drawn.length} box${drawn.length === 1 ? "" : "es"}`;
    frames.dataset.boxes = JSON.stringify(drawn.map(({ box }) => box));
  }

  function select(index) {
    chosen = index;
    draw();
  }

  function add(box) {
    change([...drawn, { box: within(box, size), label: choice.value }], drawn.length);
    tell(`Box added: ${choice.value}`);
  }

  function label(name) {
    choice.value = name;
    if (chosen < 0) return;
    change(drawn.map((one, at) => (at === chosen ? { ...one, label: name } : one)));
    tell(`Box ${chosen + 1} is ${name}`);
  }

  choice.addEventListener("change", () => label(choice.value));
  choice.addEventListener("keydown", (event) => {
    if (!["Enter", "Escape"].includes(event.key)) return;
    event.preventDefault();
    (button(chosen) ?? find("#item")).focus({ preventScroll: true });
  });
  pointing(frames, over, {
    state: () => ({ drawn, chosen, size, drawing: on("draw"), idle: on("hand") }),
    select, put, add,
    // while the pointer is down only the picture follows
    preview(index, [x0, y0, x1, y1]) {
      const rect = over.children[index] ?? over.appendChild(make("rect", { class: "box chosen" }));
      for (const [name, value] of Object.entries({ x: x0, y: y0, width: x1 - x0, height: y1 - y0 })) rect.setAttribute(name, value);
    },
    restore: draw,
  });

  const acts = {
    save() {
      const unknown = drawn.find((one) => !classes.includes(one.label));
      if (unknown) {
        refuse(`“${unknown.label}” is no class of this set: choose another for that box.`);
        return;
      }
      refuse("");
      decide({ boxes: drawn }, `${drawn.length} box${drawn.length === 1 ? "" : "es"}`);
    },
    new: () => {
      add([0.4 * size[0], 0.4 * size[1], 0.6 * size[0], 0.6 * size[1]]);
      button(chosen).focus();
    },
    delete: () => {
      tell(`Box ${chosen + 1} deleted`);
      change(drawn.filter((_, at) => at !== chosen), chosen);
    },
    outside: () => label("ood"),
    unedit: () => {
      ({ drawn, chosen } = before.pop());
      draw();
    },
    closer: () => looking.zoom(1.4),
    farther: () => looking.zoom(1 / 1.4),
    whole: () => looking.whole(),
  };

  return {
    pictures: ({ image }) => ({ boxes: image }),
    words: (payload) => `${payload.boxes.length} suggested boxes: ${payload.boxes.map((one) => one.label).join(", ")}`,
    show(payload, images) {
      size = [images.boxes.naturalWidth, images.boxes.naturalHeight];
      over.setAttribute("viewBox", `0 0 ${size[0]} ${size[1]}`);
      hang(find("[data-frame=boxes]"), images.boxes, "The picture on which boxes are drawn", over);
      drawn = payload.boxes.map(({ box, label: name }) => ({ box: within(box, size), label: name }));
      chosen = drawn.length ? 0 : -1;
      before = [];
      find("#away").textContent = `${size[0]} × ${size[1]} pixels`;
      looking.whole();
      draw();
    },
    act(name) {
      if (acts[name]) acts[name]();
      else find(`[data-do=${name}]`).setAttribute("aria-pressed", String(!on(name)));
    },
    key(key, event) {
      if (/^[1-9]$/.test(key) && classes[key - 1]) {
        label(classes[key - 1]);
        return true;
      }
      if (!ARROWS[key] || chosen < 0) return false;
      const [dx, dy] = ARROWS[key].map((step) => step * (event.ctrlKey ? 10 : 1));
      const { box } = drawn[chosen];
      put(chosen, event.shiftKey ? stretched(box, [0, 0, 1, 1], dx, dy, size) : moved(box, dx, dy, size));
      return true;
    },
  };
}
