// Boxes: draw, move, resize, relabel, delete, by pointer and by keyboard.

import { classes as pick } from "./classes.js";
import { pointing } from "./drawing.js";
import { moved, stretched, within } from "./geometry.js";
import { find, make } from "./page.js";
import { describe, numberTracks, takeOver, tracks } from "./tracks.js";
import { hang, view } from "./view.js";

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const PART = 0.1; // of the canvas, by which an arrow moves the view

export function boxes({ classes, decide, tell, refuse, read }) {
  const frames = find(".frames");
  const list = find("#boxes");
  const over = make("svg", { class: "over", "aria-hidden": "true" });
  const refused = make("svg", { class: "under", "aria-hidden": "true" }); // rejected suggestions
  let size = [1, 1];
  let drawn = []; // {box, label}, of a video also track
  let chosen = -1;
  let before = []; // earlier states, for undoing edits
  let number = null; // of the assignment
  const saved = new Map(); // assignment → what was saved, for one that is taken back

  const on = (name) => find(`[data-do=${name}]`).getAttribute("aria-pressed") === "true";
  const looking = view(frames, () => on("hand"));
  const leave = () => (button(chosen) ?? find("#item")).focus({ preventScroll: true });
  const choice = pick(classes, { choose: label, leave, tell });

  const around = tracks(find, { read, take, setTrack, leave, tell });

  // boxes of other frames, as one edit
  function take(others) {
    const { boxes: next, added, matched } = takeOver(drawn, others, size);
    if (added + matched) change(next, Math.max(chosen, 0));
    return `${added} added, boxes of this frame joined to a track: ${matched}`;
  }

  function setTrack(track) {
    if (chosen < 0) return;
    const other = drawn.findIndex((one, at) => at !== chosen && track !== undefined && one.track === track);
    if (other >= 0) tell(`Box ${other + 1} is of track ${track} already`);
    else change(drawn.map((one, at) => (at === chosen ? { ...one, track } : one)));
  }

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
    drawn.forEach((one, index) => {
      const [x0, y0, x1, y1] = one.box.map(Math.round);
      const track = around.known ? `, ${describe(one)}` : "";
      button(index).textContent = `${index + 1}. ${one.label}${track}, ${x1 - x0} × ${y1 - y0} at ${x0}, ${y0}`;
      button(index).setAttribute("aria-pressed", String(index === chosen));
    });
    choice.set(chosen >= 0 ? drawn[chosen].label : choice.current);
    around.write(drawn[chosen]);
    find("[data-do=delete]").disabled = chosen < 0;
    find("[data-do=unedit]").disabled = before.length === 0;
    find("#labels").textContent = `${drawn.length} box${drawn.length === 1 ? "" : "es"}`;
    frames.dataset.boxes = JSON.stringify(drawn.map(({ box }) => box));
  }

  // rejected suggestions are visible but are no boxes: a person who disagrees draws the box
  function showRejected(rejected) {
    refused.setAttribute("viewBox", over.getAttribute("viewBox"));
    refused.replaceChildren(...rejected.map(({ box: [x0, y0, x1, y1] }) => make("rect", {
      class: "box rejected", x: x0, y: y0, width: x1 - x0, height: y1 - y0,
    })));
    const words = rejected.map((one) => `${one.label} (${one.reason})`).join(", ");
    find("#rejected").textContent = words && `Rejected suggestions (dotted, not saved): ${words}`;
  }

  function select(index) {
    chosen = index;
    draw();
  }

  function add(box) {
    change([...drawn, { box: within(box, size), label: choice.current }], drawn.length);
    tell(`Box added: ${choice.current}`);
  }

  function label(name) {
    choice.set(name);
    if (chosen < 0) return;
    change(drawn.map((one, at) => (at === chosen ? { ...one, label: name } : one)));
    tell(`Box ${chosen + 1} is ${name}`);
  }

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
      if (around.filling) {
        const asked = number;
        around.filling.then((filled) => {
          if (number !== asked) return;
          if (filled) refuse("Boxes were filled in just now: check them, then save.");
          else acts.save();
        });
        return;
      }
      refuse("");
      if (around.known) drawn = numberTracks(drawn, around.frame);
      saved.set(number, drawn);
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
      if (!before.length) return;
      ({ drawn, chosen } = before.pop());
      draw();
    },
    box: () => chosen >= 0 && looking.onto(drawn[chosen].box.map((value, at) => value / size[at % 2])),
    ...around.acts,
    closer: () => looking.zoom(1.4),
    farther: () => looking.zoom(1 / 1.4),
    whole: () => looking.whole(),
  };

  return {
    pictures: ({ image }) => ({ boxes: image }),
    words: (payload) => `${payload.boxes.length} suggested boxes: ${payload.boxes.map((one) => one.label).join(", ")}`,
    show(payload, images, assignment) {
      number = assignment;
      size = [images.boxes.naturalWidth, images.boxes.naturalHeight];
      over.setAttribute("viewBox", `0 0 ${size[0]} ${size[1]}`);
      hang(find("[data-frame=boxes]"), images.boxes, "The picture on which boxes are drawn", refused, over);
      showRejected(payload.rejected);
      drawn = saved.get(number) ?? payload.boxes.map(({ box, label: name, track }) => ({ box: within(box, size), label: name, track }));
      chosen = drawn.length ? 0 : -1;
      before = [];
      const untouched = () => !saved.has(assignment) && !before.length && drawn.every((one) => one.track === undefined);
      choice.offer(payload.boxes.map((one) => one.label));
      find("#away").textContent = `${size[0]} × ${size[1]} pixels${around.show(payload, number, untouched)}`;
      looking.whole();
      draw();
    },
    act(name) {
      if (acts[name]) acts[name]();
      else find(`[data-do=${name}]`).setAttribute("aria-pressed", String(!on(name)));
    },
    key(key, event) {
      if (key === "z" && event.ctrlKey) {
        acts.unedit();
        return true;
      }
      if (!ARROWS[key]) return false;
      const [dx, dy] = ARROWS[key].map((step) => step * (event.ctrlKey ? 10 : 1));
      if (chosen < 0 || on("hand")) {
        looking.pan(-PART * dx, -PART * dy);
        return true;
      }
      const { box } = drawn[chosen];
      const edges = event.altKey ? [1, 1, 0, 0] : event.shiftKey ? [0, 0, 1, 1] : null;
      put(chosen, edges ? stretched(box, edges, dx, dy, size) : moved(box, dx, dy, size));
      return true;
    },
  };
}
