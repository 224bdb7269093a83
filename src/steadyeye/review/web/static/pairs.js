// Pairs: correctly labelled, and similar? One key where both hold.

import { all, chips, find } from "./page.js";
import { hang, view } from "./view.js";

const STEP = 0.1;
const ARROWS = { ArrowLeft: [STEP, 0], ArrowRight: [-STEP, 0], ArrowUp: [0, STEP], ArrowDown: [0, -STEP] };
const REASONS = () => all(".reason").map((chip) => chip.dataset.do);

export function pairs({ decide, tell }) {
  const frames = find(".frames");
  const looking = view(frames);
  const figure = (role) => find(`[data-frame=${role}]`);
  const chip = (name) => find(`[data-do=${name}]`);
  const on = (name) => chip(name).getAttribute("aria-pressed") === "true";
  const turn = (name, value = !on(name)) => chip(name).setAttribute("aria-pressed", String(value));
  const narrow = matchMedia("(max-width: 40rem) and (max-height: 44rem)");
  const stacked = matchMedia("(max-width: 40rem), (orientation: portrait)"); // as in review.css

  function step(name) {
    const lost = find(`[data-step]:not([data-step=${name}])`).contains(document.activeElement);
    for (const group of all("[data-step]")) group.hidden = group.dataset.step !== name;
    if (lost) find(`[data-step=${name}] button`).focus();
    if (name === "why") tell("Why is it not similar? A key saves; with Shift it adds a reason.");
  }

  function lay(layout) {
    frames.dataset.layout = layout;
    chip("side").setAttribute("aria-pressed", String(layout === "side"));
  }

  function wordLayout() {
    find("span", chip("side")).textContent = stacked.matches ? "Stacked" : "Side by side";
  }

  function flip() {
    lay("place");
    frames.dataset.front = frames.dataset.front === "anchor" ? "neighbour" : "anchor";
    tell(`The ${frames.dataset.front} is shown`);
  }

  function answer(similar, reasons = []) {
    const correct = on("label") ? "no" : similar === "unsure" ? "unsure" : "yes";
    const words = [
      { yes: "similar", no: `not similar, ${reasons.join(" and ")}`, unsure: "unsure" }[similar],
      ...(on("label") ? ["label wrong"] : []),
    ];
    decide({ correct, similar, reasons }, words.join(", "));
  }

  function why() {
    const reasons = REASONS().filter(on);
    if (reasons.length) answer("no", reasons);
    else tell("Choose at least one reason.");
  }

  // a reason's own key saves at once; with Shift, and by pointer, several can be chosen
  document.addEventListener("press", (event) => {
    if (!event.target.matches(".reason") || event.detail) return;
    turn(event.target.dataset.do, true);
    event.preventDefault();
    why();
  });
  lay(narrow.matches ? "place" : "side");
  stacked.addEventListener("change", wordLayout);
  wordLayout();

  return {
    pictures: ({ anchor, image }) => ({ anchor, neighbour: image }),
    words: ({ labels, offset }) => [labels.join(", ") || "no label", ...away(offset)].join("; "),
    show({ labels, offset, video }, images) {
      hang(figure("anchor"), images.anchor, `The anchor of ${video}`);
      hang(figure("neighbour"), images.neighbour, ["The neighbour", ...away(offset)].join(", "));
      find("#labels").replaceChildren(...chips(labels));
      find("#away").textContent = [video, ...away(offset)].join(", ");
      frames.dataset.front = "neighbour";
      looking.whole();
      for (const name of ["label", ...REASONS()]) turn(name, false);
      step("first");
    },
    act(name) {
      const acts = {
        similar: () => answer("yes"),
        different: () => step("why"),
        unsure: () => answer("unsure"),
        label: () => turn("label"),
        save: why,
        back: () => step("first"),
        flip,
        side: () => lay(frames.dataset.layout === "side" ? "place" : "side"),
        closer: () => looking.zoom(1.4),
        farther: () => looking.zoom(1 / 1.4),
        whole: looking.whole,
      };
      if (acts[name]) acts[name]();
      else turn(name);
    },
    key(key) {
      if (ARROWS[key]) looking.pan(...ARROWS[key]);
      return key in ARROWS;
    },
  };
}

// hidden from the judge unless the plan shows it: a frame near in time is expected to be similar
function away(offset) {
  if (offset === undefined) return [];
  return [`${Math.abs(offset)} frame${Math.abs(offset) === 1 ? "" : "s"} ${offset < 0 ? "before" : "after"} the anchor`];
}
