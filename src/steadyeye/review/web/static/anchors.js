// Anchor labels: the classes that a frame shows, and whether it shows them well.

import { chips, find, make } from "./page.js";
import { hang, view } from "./view.js";

const MOST = 48; // choices on the screen; the rest is found by typing

export function anchors({ classes, decide, tell, refuse }) {
  const looking = view(find(".frames"));
  const typed = find("#find");
  const choices = find("#choices");
  let chosen = new Set();
  let first = []; // suggested labels, then labels used lately: they have digits
  let recent = [];

  function found() {
    const text = typed.value.trim().toLowerCase();
    const rest = classes.filter((name) => !first.includes(name));
    const ordered = [...first, ...rest];
    if (!text) return ordered;
    const starts = (name) => name.toLowerCase().split(/[\s_-]+/).some((word) => word.startsWith(text));
    const matching = ordered.filter((name) => name.toLowerCase().startsWith(text) || starts(name));
    return matching.length ? matching : ordered.filter((name) => name.toLowerCase().includes(text));
  }

  function draw() {
    const names = found();
    find("#labels").replaceChildren(...chips([...chosen]));
    choices.replaceChildren(...names.slice(0, MOST).map((name) => {
      const digit = String(first.indexOf(name) + 1);
      const digits = digit >= "1" && digit <= "9" && digit.length === 1;
      const button = make("button", {
        type: "button", class: "toggle", "data-label": name, "aria-pressed": String(chosen.has(name)),
        ...(digits ? { "data-key": digit, "aria-keyshortcuts": digit } : {}),
      }, make("span", {}, name));
      if (digits) button.append(" ", make("kbd", { "aria-hidden": "true" }, digit));
      return button;
    }));
    if (names.length > MOST) choices.append(make("span", { class: "soft" }, `and ${names.length - MOST} more: type to find them`));
    if (!names.length) choices.append(make("span", { class: "soft" }, "no matching label"));
  }

  function turn(name) {
    if (!chosen.delete(name)) chosen.add(name);
    tell(`${name} ${chosen.has(name) ? "added" : "dropped"}`);
    draw();
  }

  function answer(quality) {
    const labels = quality === "bad" ? [] : classes.filter((name) => chosen.has(name));
    if (quality === "good" && classes.length && !labels.length) {
      refuse("A good anchor needs at least one label: choose one, or say bad.");
      return;
    }
    refuse("");
    recent = [...new Set([...labels, ...recent])].slice(0, 9);
    decide({ quality, labels }, [quality, ...labels].join(", "));
  }

  choices.addEventListener("click", (event) => {
    const button = event.target.closest("[data-label]");
    if (!button) return;
    const within = choices.contains(document.activeElement);
    turn(button.dataset.label);
    // rendered again: the focus stays on the same label
    if (within) [...choices.children].find((one) => one.dataset.label === button.dataset.label)?.focus();
  });
  typed.addEventListener("input", draw);
  typed.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      typed.value = "";
      draw();
      find("#item").focus({ preventScroll: true });
    }
    if (event.key === "Enter" && typed.value.trim() && found().length) {
      turn(found()[0]);
      typed.value = "";
      draw();
    }
    if (["Enter", "Escape"].includes(event.key)) event.preventDefault();
  });

  return {
    pictures: ({ image }) => ({ anchor: image }),
    words: ({ labels }) => labels.join(", ") || "no label",
    show({ labels, video, frame, seconds, duplicate_of: twin, duplicate_image: picture }, images) {
      hang(find("[data-frame=anchor]"), images.anchor, `A frame of ${video}`);
      find("#away").textContent = [video, `frame ${frame}`, ...when(seconds)].join(", ");
      find("#twin").hidden = !twin;
      if (twin) {
        find("#twin img").src = `/images/${picture}`;
        find("#twin span").textContent = `Nearly the same as an earlier anchor, ${twin}`;
      }
      chosen = new Set(labels);
      first = [...new Set([...labels, ...recent])];
      typed.value = "";
      if (first.length < 9) first.push(...classes.filter((name) => !first.includes(name)).slice(0, 9 - first.length));
      looking.whole();
      draw();
    },
    act(name) {
      const acts = { closer: () => looking.zoom(1.4), farther: () => looking.zoom(1 / 1.4), whole: looking.whole };
      if (acts[name]) acts[name]();
      else answer(name);
    },
  };
}

// sources without times give 0 for all
const when = (seconds) => (seconds === null ? [] : [`${seconds.toFixed(2)} s`]);
