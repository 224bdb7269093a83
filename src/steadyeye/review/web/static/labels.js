// Labels of a set: the classes that its frames show, and whether all of them do.

import { classes as chooser } from "./classes.js";
import { ask, find, make } from "./page.js";
import { hang, view } from "./view.js";

const FRAME_MS = 250; // of the film
const MOST = 10; // labels of a set
const MOST_OF_IMAGE = 50; // classes that an image shows

// Classes that a word finds: synonyms and kinds, as the server knows them; each with that word.
function byWords(words, text) {
  const sought = text.trim().toLowerCase();
  if (!sought) return new Map();
  const keys = Object.keys(words).filter((word) => word.startsWith(sought));
  keys.sort((a, b) => (b === sought) - (a === sought) || a.length - b.length || (a < b ? -1 : 1));
  const found = new Map();
  for (const key of keys) for (const name of words[key]) if (!found.has(name)) found.set(name, key);
  return found;
}

export function labels({ classes: names, decide, tell, refuse }) {
  const looking = view(find(".frames"));
  const strip = find("#strip");
  let chosen = [];
  let words = {};
  let frames = [];
  let anchor = 0;
  let current = 0;
  let film = 0;
  let single = false; // all classes of one image are asked for

  ask("/stages/labels/words.json").then(({ status, content }) => {
    if (status === 200) words = Object.fromEntries(Object.entries(content.words).map(([word, own]) => [word, own.map((i) => names[i])]));
  }, () => {}); // without them classes are found by their names

  const combo = chooser(names, {
    choose: turn,
    leave: () => find("#item").focus({ preventScroll: true }),
    tell,
    more: (text) => byWords(words, text),
    pressed: (name) => chosen.includes(name),
    free: true,
  });

  function turn(name) {
    const drop = chosen.includes(name);
    const most = single ? MOST_OF_IMAGE : MOST;
    if (!drop && chosen.length === most) {
      refuse(`${single ? "An image" : "A set"} has at most ${most} classes.`);
      return;
    }
    chosen = drop ? chosen.filter((other) => other !== name) : [...chosen, name];
    refuse("");
    tell(`${name} ${drop ? "dropped" : "named"}`);
    draw();
  }

  function draw() {
    combo.set("");
    find("[data-do=yes] span").textContent = single ? (chosen.length ? "These are all" : "No object") : "Yes, all frames";
    find("#chosen span").replaceChildren(...(chosen.length ? chosen.flatMap((name) => [
      make("button", { type: "button", class: "chip", "data-drop": name, "aria-label": `Drop ${name}` }, name, " ×"), " ",
    ]) : [make("span", { class: "soft" }, "nothing yet")]));
  }

  function showFrame(index) {
    current = Math.min(Math.max(index, 0), frames.length - 1);
    const { image, words: alt } = frames[current];
    hang(find("[data-frame=set]"), image, alt);
    for (const [place, button] of [...strip.children].entries()) {
      button.setAttribute("aria-pressed", String(place === current));
    }
  }

  function stop() {
    clearInterval(film);
    film = 0;
  }

  function play() {
    if (film) {
      stop();
      showFrame(anchor);
      return;
    }
    showFrame(0);
    film = setInterval(() => {
      if (current === frames.length - 1) {
        stop();
        showFrame(anchor);
      } else {
        showFrame(current + 1);
      }
    }, FRAME_MS);
  }

  function step(by) {
    stop();
    showFrame(current + by);
    tell(frames[current].words);
  }

  function answer(whole) {
    if (single) {
      answerAll(whole);
      return;
    }
    if (whole && !chosen.length) {
      refuse("Name a class first, or say that you cannot tell.");
      find("#class").focus();
      return;
    }
    stop();
    refuse("");
    const said = { yes: "", no: ", not on all frames", unsure: ", unsure whether on all frames" };
    if (!whole) decide({ labels: [] }, "cannot tell");
    else decide({ labels: chosen, whole }, chosen.join(" or ") + said[whole]);
  }

  function answerAll(whole) {
    if (whole === "no" || whole === "unsure") return;
    refuse("");
    if (!whole) decide({ labels: [] }, "cannot tell");
    else decide({ labels: chosen, whole: "complete" }, chosen.join(" and ") || "no object");
  }

  // One image has no other frames, and nothing may be in it.
  function lay(isSingle) {
    single = isSingle;
    const question = single ? "Are these all the classes that it shows?" : "Do all the frames show it?";
    find(".ask p").textContent = single ? "Which classes does this image show?" : "What do these frames show?";
    find(".question").textContent = question;
    find(".answers").setAttribute("aria-label", question);
    for (const part of [strip, find(".film"), find("[data-do=no]"), find("[data-do=unsure]")]) part.hidden = single;
  }

  strip.addEventListener("click", (event) => {
    const place = event.target.closest("[data-place]")?.dataset.place;
    if (place === undefined) return;
    stop();
    showFrame(Number(place));
  });
  find("#chosen").addEventListener("click", (event) => {
    const name = event.target.closest("[data-drop]")?.dataset.drop;
    if (name === undefined) return;
    turn(name);
    find("#item").focus({ preventScroll: true });
  });

  return {
    pictures: ({ image, strip: small }) => ({ anchor: image, ...Object.fromEntries(small.map((one, i) => [i, one.image])) }),
    words: ({ strip: small, single: isSingle }) => (isSingle ? "an image" : `${small.length} frames`),
    show({ strip: small, answer: before, single: isSingle }, images) {
      stop();
      lay(Boolean(isSingle));
      anchor = small.findIndex(({ offset }) => offset === 0);
      frames = small.map(({ offset }, i) => ({
        image: i === anchor ? images.anchor : images[i].cloneNode(),
        words: single ? "The image" : offset === 0 ? "The middle frame of the set" : `The frame ${Math.abs(offset)} ${offset < 0 ? "before" : "after"} it`,
      }));
      strip.replaceChildren(...small.map(({ offset }, i) => {
        const button = make("button", { type: "button", "data-place": i, "aria-label": frames[i].words });
        images[i].alt = "";
        button.append(images[i], make("span", {}, offset > 0 ? `+${offset}` : offset < 0 ? `−${-offset}` : "middle"));
        return button;
      }));
      looking.whole();
      showFrame(anchor);
      chosen = before?.labels ?? [];
      draw();
    },
    act(name) {
      const acts = {
        yes: () => answer("yes"),
        no: () => answer("no"),
        unsure: () => answer("unsure"),
        unclear: () => answer(""),
        earlier: () => step(-1),
        later: () => step(1),
        play,
        closer: () => looking.zoom(1.4),
        farther: () => looking.zoom(1 / 1.4),
        whole: looking.whole,
      };
      acts[name]?.();
    },
  };
}
