// A stage: shows one item after another, takes answers, and never waits for the network to go on.

import { anchors } from "./anchors.js";
import { boxes } from "./boxes.js";
import { clock } from "./clock.js";
import { listen } from "./keys.js";
import { labels } from "./labels.js";
import { objects } from "./objects.js";
import { all, find } from "./page.js";
import { pairs } from "./pairs.js";
import { pictures } from "./pictures.js";
import { quiz } from "./quiz.js";
import { session } from "./session.js";

const FORMS = { anchors, pairs, joint: pairs, classification: objects, boxes, box_check: boxes, labels };

const setup = JSON.parse(find("#setup").textContent);
const time = clock();
const loaded = pictures(() => trouble("The picture is not loaded yet: the server does not answer. Trying again."));
const lacking = new Set(); // assignments without a picture
const MANY = 20; // of these, one after the other, of which the page asks for no more by itself
let lack = ""; // why the last of them has none
let lost = 0; // how many of them came since one was shown
let before = 0; // how many there were when others were asked for
let next = []; // items that wait
let shown = null; // the item on the screen
let ready = false; // its pictures are on the screen too
let asked = null; // when the last decision was made
let counts = null;
let rested = false;

function say(selector, text) {
  const place = find(selector);
  if (place.textContent !== text) place.textContent = text;
}

let refusal = ""; // of an answer that was not taken, until the next one is given

function trouble(text) {
  say("#trouble", text || refusal);
  wordConnection();
}

// what is refused stays to be read while the page goes on, and counts no more as decided
function refused(text) {
  refusal = text;
  trouble("");
  count();
}

// offline, the buttons say where answers go, and that there is nothing to answer until it is over
function wordConnection() {
  const away = !navigator.onLine || kept.lost();
  const waiting = kept.unsaved();
  const many = waiting === 1 ? "1 answer waits" : `${waiting} answers wait`;
  const sent = waiting ? `${many} in this tab to be sent` : "answers wait in this tab and are sent later";
  say("#offline", away ? `Offline: ${sent}${ready || !shown && rested ? "" : "; the next picture loads then"}.` : "");
  document.documentElement.toggleAttribute("data-offline", away);
  for (const button of all(".answers button")) button.disabled = away && !ready;
}

const form = FORMS[setup.stage]({
  classes: setup.classes,
  decide(answer, words) {
    if (!shown || !ready) return;
    // half an emoji is no letter
    const comment = find("#comment").value.trim().replace(/\p{Surrogate}|\0/gu, "\ufffd");
    const item = shown;
    if (entry) {
      shown = null;
      entry.answer(answer);
      return;
    }
    refusal = "";
    asked = performance.now();
    delete document.documentElement.dataset.nextMs;
    shown = null;
    ready = false;
    find("#item").setAttribute("aria-busy", "true");
    if (counts) counts = { ...counts, mine: counts.mine + 1, left: Math.max(0, counts.left - 1) };
    kept.decide(item, { answer, seconds: time.seconds(), comment }, words);
    wordConnection();
  },
  tell: (text) => say("#now", text),
  refuse: trouble,
  read: (path) => kept.read(path),
});

const entry = setup.quiz ? quiz(setup, { show, trouble }) : null;
const kept = session(setup, { items: arrived, saved, trouble, refused });

function saved(text) {
  say("#saved span", text);
  document.documentElement.dataset.unsaved = kept.unsaved();
}

function arrived(known, paused) {
  const told = document.documentElement.dataset;
  told.unsaved = kept.unsaved();
  told.loaded = 0;
  next = known;
  const whole = known.filter(({ assignment }) => !lacking.has(assignment));
  Promise.all(whole.map((item) => loaded.of(item, form.pictures)))
    .then((all) => { told.loaded = all.length; }, () => {});
  const [item] = whole;
  if (!item) {
    // the server knows of them now, and gives others
    if (lacking.size > before && lost < MANY) askOthers();
    else if (!kept.unsaved()) rest(paused);
    return;
  }
  rested = false;
  if (item.assignment !== shown?.assignment) show(item);
  tally();
}

function askOthers() {
  before = lacking.size;
  if (entry) entry.another();
  else kept.reload();
}

async function show(item) {
  shown = item;
  ready = false;
  let images = null;
  try {
    images = await loaded.of(item, form.pictures);
  } catch (error) {
    leaveOut(item, error.message);
  }
  if (shown !== item) return;
  find("#rest").hidden = true;
  find("#item").hidden = false;
  find("#comment").value = "";
  find("#remark").open = false;
  form.show(item.payload, images, item.assignment);
  find("#item").dataset.assignment = item.assignment;
  // who works with Tab and Enter stays on the answer; all others begin at the top
  if (!document.activeElement.matches(".answers:not([hidden]) button")) find("#item").focus({ preventScroll: true });
  find("#item").setAttribute("aria-busy", "false");
  if (!kept.unsaved()) trouble(lack);
  say("#now", `Next: ${form.words(item.payload)}`);
  ready = true;
  lost = 0;
  find("#item").scrollTop = 0;
  wordConnection();
  time.start();
  measure();
}

// goes on with the others: what has no picture cannot be answered
function leaveOut(item, reason) {
  lacking.add(item.assignment);
  lost += 1;
  lack = `Left out: ${reason}. Tell the admin.`;
  trouble(lack);
  if (shown !== item) return;
  shown = null;
  arrived(next, "");
}

// from the decision to the frame on which the next picture is painted
function measure() {
  if (asked === null) return;
  const from = asked;
  asked = null;
  requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      document.documentElement.dataset.nextMs = (performance.now() - from).toFixed(1);
    };
    port2.postMessage(0);
  });
}

async function rest(paused) {
  shown = null;
  if (!paused && lacking.size) trouble(lack);
  if (rested) return;
  rested = true;
  find("#item").hidden = true;
  find("#rest").hidden = false;
  const headline = find("#rest .headline");
  headline.textContent = paused ? `You are paused: ${paused}` : "No open decisions for you in this stage now.";
  if (!paused && lacking.size) headline.textContent = "Your next items cannot be shown: their pictures are missing.";
  find("#rest").focus({ preventScroll: true });
  say("#now", headline.textContent);
  const go = find("#rest .go");
  go.href = "/";
  go.textContent = "Overview ⏎";
  find("#count").textContent = "";
  if (paused) return;
  const { stages = [], rest: words = "" } = await kept.progress().catch(() => ({}));
  if (!rested) return;
  if (words) {
    headline.textContent = words;
    say("#now", words);
  }
  const other = stages.find(({ stage, left }) => left && stage !== setup.stage);
  if (!other) return;
  go.href = `/stages/${other.stage}`;
  go.textContent = `Continue: ${other.title}, ${other.left} left ⏎`;
}

function tally() {
  if (counts && shown) say("#count", `${counts.mine} decided by you, ${counts.left} left`);
}

async function count() {
  const { stages = [] } = await kept.progress().catch(() => ({}));
  counts = stages.find(({ stage }) => stage === setup.stage) ?? null;
  tally();
}

function act(name) {
  if (name === "proceed") {
    entry?.proceed();
  } else if (name === "undo") {
    kept.undo().then(count);
  } else if (name === "again") {
    rested = false;
    lacking.clear();
    lack = "";
    lost = before = 0;
    trouble("");
    kept.reload();
  } else if (shown && ready) {
    form.act(name);
  }
}

let clicked = null; // the item under the first of several clicks in a row
document.addEventListener("click", (event) => {
  const name = event.target.closest("[data-do]")?.dataset.do;
  if (event.detail < 2) clicked = shown;
  // the second click of a double one is no answer to what came after the first
  else if (clicked !== shown && event.target.closest(".answers")) return;
  if (name) act(name);
});
// opened at once rather than after the event: what is typed next belongs to the comment
find("#remark summary").addEventListener("click", (event) => {
  event.preventDefault();
  find("#remark").open = !find("#remark").open;
  if (find("#remark").open) find("#comment").focus();
});
find("#comment").addEventListener("keydown", (event) => {
  if (["Enter", "Escape"].includes(event.key)) find("#item").focus({ preventScroll: true });
});
find("#guide").addEventListener("toggle", (event) => {
  if (event.newState === "open") find("#guide").focus({ preventScroll: true });
});
for (const change of ["online", "offline"]) addEventListener(change, wordConnection);
addEventListener("beforeunload", (event) => kept.risky() && event.preventDefault());
listen((key, event) => shown && ready && form.key?.(key, event));
if (entry) {
  find("footer [data-do=undo]").hidden = find("#remark").hidden = true;
  entry.start();
} else {
  kept.start();
  count();
}
document.documentElement.dataset.ready = "true";
