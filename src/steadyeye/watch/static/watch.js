"use strict";
// Shows state.json, and asks for it again every two seconds.

const SVG = "http://www.w3.org/2000/svg";
const EVERY = 2000;
const LONGEST = 5000; // a watch that does not answer within this time counts as ended
const byId = (id) => document.getElementById(id);

function element(tag, text, className) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (className) node.className = className;
  return node;
}

function percent(value, digits = 1) {
  return value === null || value === undefined ? "–" : `${(100 * value).toFixed(digits)}\u202f%`;
}

function interval(estimate) {
  if (estimate.low === null) return "no blocks yet";
  const ends = `${(100 * estimate.low).toFixed(1)}–${percent(estimate.high)}`;
  return `95\u202f% interval ${ends}, ${estimate.n.toLocaleString("en")} blocks`;
}

function span(seconds) {
  const [size, unit] = seconds % 3600 === 0 ? [3600, "hour"] : seconds % 60 === 0 ? [60, "minute"] : [1, "second"];
  return `${seconds / size} ${unit}${seconds === size ? "" : "s"}`;
}

function shape(tag, attributes) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

function chart(measure, limits, block) {
  const [width, height] = [400, 100];
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img" });
  svg.setAttribute("aria-label", `the last ${measure.blocks.length} blocks`);
  const values = measure.blocks.map((pair) => pair[1]);
  const tops = [...values, ...limits, measure.period.high ?? 0, 0.01];
  const top = Math.min(1.1 * Math.max(...tops), 1);
  const first = measure.blocks[0][0];
  const last = Math.max(measure.blocks.at(-1)[0], first + 10 * block);
  const x = (seconds) => (width * (seconds - first)) / (last - first);
  const y = (value) => height - (height * value) / top;
  if (measure.period.low !== null) {
    const [low, high] = [y(measure.period.low), y(measure.period.high)];
    svg.append(shape("rect", { class: "band", x: 0, width, y: high, height: Math.max(low - high, 1) }));
  }
  svg.append(shape("line", { class: "axis", x1: 0, x2: width, y1: height - 0.5, y2: height - 0.5 }));
  // no line crosses a gap between two blocks
  let path = "";
  let before = -Infinity;
  for (const [seconds, value] of measure.blocks) {
    const step = seconds - before > 1.5 * block ? "M" : "L";
    path += `${step}${x(seconds).toFixed(1)} ${y(value).toFixed(1)}`;
    if (step === "M") path += "h1";
    before = seconds;
  }
  svg.append(shape("path", { class: "line", d: path }));
  for (const limit of limits) {
    svg.append(shape("line", { class: "limit", x1: 0, x2: width, y1: y(limit), y2: y(limit) }));
  }
  return [svg, top, first, last];
}

function clock(seconds, isFile) {
  if (isFile) return `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
  return new Date(1000 * seconds).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}

function showMeasures(state) {
  const isFile = !Object.values(state.measures).some((m) => m.blocks.some((b) => b[0] > 1e9));
  byId("about-measures").textContent =
    `Means of blocks of ${span(state.block)} each, in the current period of ${span(state.period)}; the interval ` +
    "is valid at any time. Line: blocks; band: interval; dashed line: limit of a promise.";
  const cards = Object.entries(state.measures).map(([name, measure]) => {
    const card = element("div", undefined, "measure");
    card.append(element("h3", name.replaceAll("_", " ")));
    card.append(element("p", measure.about, "note"));
    card.append(element("div", percent(measure.period.value), "value"));
    card.append(element("p", interval(measure.period), "note"));
    if (measure.total.n !== measure.period.n) {
      card.append(element("p", `since the start: ${percent(measure.total.value)}, ${interval(measure.total)}`, "note"));
    }
    const limits = state.promises.filter((p) => p.measure === name).map((p) => p.limit);
    if (measure.blocks.length) {
      const [svg, top, first, last] = chart(measure, limits, state.block);
      const ends = element("div", undefined, "ends");
      ends.append(element("span", clock(first, isFile)));
      ends.append(element("span", clock(last, isFile)));
      card.append(element("div", percent(top, top < 0.1 ? 1 : 0), "top"), svg, ends);
    }
    return card;
  });
  byId("measures").replaceChildren(...cards);
  if (!cards.length) byId("about-measures").textContent = `The first block of ${span(state.block)} has not ended yet.`;
}

function showPromises(state) {
  byId("promises-section").hidden = !state.promises.length;
  const items = state.promises.map((promise) => {
    const item = element("li", undefined, promise.is_broken ? "broken" : "");
    item.append(element("b", promise.promise));
    const isMeasured = promise.measure in state.measures;
    const unbroken = isMeasured ? "kept" : "not measured yet";
    item.append(element("span", promise.is_broken ? "broken" : unbroken, isMeasured ? "state" : "soft"));
    item.append(element("span", ` · ${promise.broken || "no"} alert${promise.broken === 1 ? "" : "s"} so far`, "soft"));
    const bar = element("progress");
    bar.max = 1;
    bar.value = promise.evidence;
    const what = promise.is_broken ? "that it is kept again" : "that it is broken";
    bar.setAttribute("aria-label", `evidence ${what}`);
    item.append(bar, element("div", `evidence ${what}: ${percent(promise.evidence, 0)} of what an alert needs`, "note"));
    return item;
  });
  byId("promises").replaceChildren(...items);
}

function showFrames(state) {
  const { newest, number, bytes, most, left_out: leftOut } = state.frames;
  byId("frames-section").hidden = !newest.length;
  byId("about-frames").textContent =
    `${number.toLocaleString("en")} frame${number === 1 ? "" : "s"}, ${(bytes / 1e6).toFixed(1)} of ${(most / 1e6).toFixed(0)} MB; ` +
    `at most one per second and measure, ${leftOut.toLocaleString("en")} more not stored`;
  // items that are on the page stay, and keep the focus
  const list = byId("frames");
  const names = new Set(newest.map((frame) => frame.name));
  for (const item of [...list.children]) if (!names.has(item.dataset.name)) item.remove();
  newest.forEach((frame, place) => {
    const there = list.children[place];
    if (there?.dataset.name !== frame.name) list.insertBefore(frameItem(frame), there ?? null);
  });
}

function frameItem(frame) {
  const item = element("li");
  item.dataset.name = frame.name;
  const figure = element("figure");
  const link = element("a", undefined, "picture");
  link.href = `frames/${frame.name}`;
  const image = element("img");
  image.src = link.href;
  image.loading = "lazy";
  image.alt = `frame ${frame.frame}: ${frame.what}`;
  link.append(image);
  if (frame.box) image.addEventListener("load", () => link.append(box(frame.box, image)));
  figure.append(link, element("figcaption", `${frame.measure?.replaceAll("_", " ")}: ${frame.what} (frame ${frame.frame})`));
  item.append(figure);
  return item;
}

function box([x0, y0, x1, y1], image) {
  const node = element("span", undefined, "box");
  const across = (value) => Math.min(Math.max(value / image.naturalWidth, 0), 1);
  const down = (value) => Math.min(Math.max(value / image.naturalHeight, 0), 1);
  node.style.left = `${100 * across(x0)}%`;
  node.style.top = `${100 * down(y0)}%`;
  node.style.width = `${100 * (across(x1) - across(x0))}%`;
  node.style.height = `${100 * (down(y1) - down(y0))}%`;
  return node;
}

function showAlerts(state) {
  byId("alerts-section").hidden = !state.alerts.length;
  const items = state.alerts.map((alert) => {
    const item = element("li");
    item.append(element("span", new Date(alert.time).toLocaleString()), element("span", alert.promise));
    item.append(element("span", alert.event, alert.event === "broken" ? "bad" : "good"));
    item.append(element("span", `last block ${percent(alert.last_block)}`));
    const { value, low, high } = alert.period;
    item.append(element("span", `period ${percent(value)} (${(100 * low).toFixed(1)}–${percent(high)})`));
    return item;
  });
  byId("alerts").replaceChildren(...items);
}

function showCounts(state) {
  const { counts } = state;
  const number = (value) => Math.round(value).toLocaleString("en");
  const entries = {
    "frames received": number(counts.received),
    "processed by the model": number(counts.processed),
    "skipped, model busy": number(counts.left_out),
    "skipped, above the frame rate": number(counts.thinned),
    damaged: number(counts.damaged),
    "without a valid prediction": number(counts.failed),
    "frames per second": state.rate.toFixed(1),
    "losses of the stream": number(counts.lost_streams),
    "seconds without stream": number(counts.seconds_down),
    "starts of the watch": number(state.starts),
  };
  const pairs = Object.entries(entries).map(([name, value]) => {
    const pair = element("div");
    pair.append(element("dt", name), element("dd", value));
    return pair;
  });
  byId("counts").replaceChildren(...pairs);
}

function show(state) {
  byId("source").textContent = `${state.source} · ${state.model} (${state.kind})`;
  byId("status").textContent = state.status;
  byId("notes").textContent = state.notes.join("; ");
  byId("status").className = state.status.startsWith("no stream") ? "bad" : "";
  showPromises(state);
  showMeasures(state);
  showFrames(state);
  showAlerts(state);
  showCounts(state);
  document.title = state.promises.some((p) => p.is_broken) ? "✗ steadyeye watch" : "steadyeye watch";
}

async function refresh() {
  try {
    const answer = await fetch("state.json", { signal: AbortSignal.timeout(LONGEST) });
    show(await answer.json());
  } catch {
    byId("status").textContent = "the watch has ended, or cannot be reached; the numbers are the last ones received";
    byId("status").className = "bad";
  }
  setTimeout(refresh, EVERY);
}

refresh();
