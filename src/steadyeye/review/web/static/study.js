// The study: what the labels show, drawn again whenever somebody adds, changes or takes back one.

import { ask, find, make } from "./page.js";

const SECONDS = 2; // between two looks
const HEIGHT = 280;
const LEFT = 48;
const RIGHT = 14;
const TOP = 14;
const BOTTOM = 34;

let study = JSON.parse(find("#setup").textContent).study;

const setText = (place, text) => { if (place.textContent !== text) place.textContent = text; };

// whole numbers of labels for the axis, at most six
function ticks(most) {
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000].find((one) => most / one <= 6) ?? 10000;
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => i * step);
}

// differences for the axis, a tenth or several apart, 0 among them
function tenths(lowest, highest) {
  const step = [1, 2, 5].find((tenth) => (highest - lowest) * 10 / tenth <= 6);
  const first = Math.ceil(Math.round(lowest * 10) / step);
  const last = Math.floor(Math.round(highest * 10) / step);
  return Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step / 10);
}

// a difference in percentage points
const signed = (share) => `${share > 0 ? "+" : share < 0 ? "−" : ""}${Math.abs(Math.round(100 * share))}`;

function draw() {
  const place = find("#closing .plot");
  const width = Math.max(280, place.clientWidth);
  const { trace, required, horizon, axis = null } = study.picture;
  const [lowest, highest] = axis ? [axis.lowest, axis.highest] : [0, 1];
  const x = (n) => LEFT + ((width - LEFT - RIGHT) * n) / horizon;
  const y = (share) => TOP + ((HEIGHT - TOP - BOTTOM) * (highest - share)) / (highest - lowest);
  const path = (points) => points.map(([n, share], i) => `${i ? "L" : "M"}${x(n).toFixed(1)} ${y(share).toFixed(1)}`).join("");
  const low = trace.map(([n, share]) => [n, share]);
  const high = trace.map(([n, , share]) => [n, share]);
  const line = (kind, points) => make("path", { class: kind, d: path(points) });
  const text = (kind, at, top, words) => make("text", { class: kind, x: at.toFixed(1), y: top.toFixed(1) }, words);
  const parts = [];
  for (const share of axis ? tenths(lowest, highest) : [0, 0.25, 0.5, 0.75, 1]) {
    const words = axis ? signed(share) : `${100 * share} %`;
    parts.push(line("grid", [[0, share], [horizon, share]]), text("tick up", LEFT - 6, y(share) + 4, words));
  }
  for (const n of ticks(horizon)) parts.push(text("tick", x(n), HEIGHT - BOTTOM + 16, String(n)));
  parts.push(text("tick", (LEFT + width - RIGHT) / 2, HEIGHT - 3, "labels"));
  parts.push(make("path", { class: "band", d: `${path(low)}${path([...high].reverse()).replace("M", "L")}Z` }));
  parts.push(line("end", low), line("end", high));
  if (required !== null) {
    parts.push(line("required", [[0, required], [horizon, required]]));
    const above = required < highest - 0.1 * (highest - lowest);
    const words = axis ? axis.dashed : `required: ${+(100 * required).toFixed(2)} %`;
    parts.push(text("tick end-on", width - RIGHT, y(required) + (above ? -6 : 16), words));
  }
  const [n, bottom, top] = trace.at(-1);
  parts.push(line("now", [[n, bottom], [n, top]]));
  place.replaceChildren(make("svg", {
    viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": study.sentences.headline,
  }, ...parts));
  place.dataset.labels = n;
}

function show() {
  setText(find("#headline"), study.sentences.headline);
  setText(find("#caption"), study.sentences.caption);
  find("#numbers").replaceChildren(...study.numbers.map(([name, text]) => make("div", {}, make("dt", {}, name), make("dd", {}, text))));
  find("#remarks").replaceChildren(...study.remarks.map((text) => make("li", {}, text)));
  find("#main").dataset.state = study.state;
  draw();
}

async function follow() {
  const answer = await ask("/study.json").catch(() => null);
  if (answer?.status === 200 && JSON.stringify(answer.content) !== JSON.stringify(study)) {
    study = answer.content;
    show();
  }
  setTimeout(follow, 1000 * SECONDS);
}

show();
addEventListener("resize", draw);
setTimeout(follow, 1000 * SECONDS);
