const root = document.documentElement;
const preferred = matchMedia("(prefers-color-scheme: dark)");
const views = new Map();

function theme() {
  return root.dataset.theme ?? (preferred.matches ? "dark" : "light");
}

// the longest name that a legend of the chart shows, in characters
function longest(spec) {
  const names = [];
  JSON.stringify(spec, (key, value) => {
    if (key === "domain" && Array.isArray(value)) names.push(...value);
    return value;
  });
  return Math.max(8, ...names.filter((name) => typeof name === "string").map((name) => name.length));
}

function config(spec, room) {
  const style = getComputedStyle(root);
  const ink = style.getPropertyValue("--ink").trim();
  const line = style.getPropertyValue("--line").trim();
  const below = { anchor: "start", bounds: "full", direction: "vertical" };
  return {
    background: null,
    aria: false,
    font: "system-ui, sans-serif",
    view: { stroke: null },
    axis: {
      labelColor: ink, titleColor: ink, gridColor: line, domainColor: line, tickColor: line,
      titleFontWeight: 500, labelFontSize: 12, titleFontSize: 12,
    },
    axisX: { labelFlush: false, labelSeparation: 6 },
    legend: {
      labelColor: ink, titleColor: ink, labelFontSize: 12, labelLimit: Math.max(room - 50, 100),
      // as many names side by side as fit, 7 pixels a character and a symbol each
      columns: Math.max(1, Math.min(4, Math.floor(room / (7 * longest(spec) + 60)))),
      symbolBaseStrokeColor: ink, symbolBaseFillColor: ink,
      layout: { bottom: below, top: below },
    },
    header: { labelColor: ink, labelFontSize: 12, labelFontWeight: 600 },
    rule: { color: ink },
    text: { color: ink },
  };
}

// expressions for the lines of a label: each ends before its last space, or where it is full
function splitWords(most) {
  let rest = "datum.label";
  const lines = [];
  for (let line = 0; line < 2; line++) {
    const space = `lastindexof(slice(${rest}, 0, ${most + 1}), ' ')`;
    const end = `(length(${rest}) > ${most} && ${space} > 0 ? ${space} : ${most})`;
    lines.push(`slice(${rest}, 0, ${end})`);
    rest = `trim(slice(${rest}, ${end}))`;
  }
  return [...lines, rest];
}

// an expression for a label on two or three lines where it is longer than `most` characters
function broken(most) {
  const part = (from) => `slice(datum.label, ${from}, ${from + most})`;
  const [first, second, rest] = splitWords(most);
  const words = `length(${rest}) ? [${first}, ${second}, ${rest}] : [${first}, ${second}]`;
  // words that leave too much for the third line are cut where each line is full
  const full = `[${part(0)}, ${part(most)}, slice(datum.label, ${2 * most})]`;
  return `length(datum.label) > ${most} ? (length(${rest}) > ${most} ? ${full} : (${words})) : datum.label`;
}

// breaks long names in legends and down the side, which would else be cut on a phone
function breakNames(spec, room) {
  const side = room < 560 ? 20 : 36;
  let names = 0; // characters that names down the side leave to the legend no room for
  const channels = [];
  (function collect(unit) {
    channels.push(...Object.entries(unit.encoding ?? {}));
    for (const inner of [...(unit.layer ?? []), ...(unit.spec ? [unit.spec] : [])]) collect(inner);
  })(spec);
  for (const [name, channel] of channels) {
    if (name !== "y" || channel.type !== "nominal" || channel.axis === null) continue;
    names = side;
    if (channel.axis?.labelExpr) continue;
    channel.axis = { ...channel.axis, labelExpr: broken(side), labelLimit: side * 9 };
  }
  const most = Math.max(16, Math.floor(room / 7) - names - 10);
  for (const [, channel] of channels) {
    if (channel.legend && channel.type === "nominal" && !channel.legend.labelExpr)
      channel.legend = { ...channel.legend, labelExpr: broken(most) };
  }
}

async function embed(plot, spec, room) {
  const tooltip = { theme: theme() };
  const options = { renderer: "svg", actions: false, config: config(spec, room), ast: true, tooltip };
  const { view } = await window.vegaEmbed(plot, spec, options);
  // its place is an image with words of its own
  plot.querySelector("svg").setAttribute("aria-hidden", "true");
  return view;
}

async function draw(figure) {
  const plot = figure.querySelector(".plot");
  const room = plot.clientWidth;
  if (!room) return; // folded away: drawn when it is unfolded
  const spec = JSON.parse(figure.querySelector("script").textContent);
  breakNames(spec, room);
  const small = spec.facet && spec.spec;
  if (small) spec.columns = Math.max(1, Math.min(spec.columns, Math.floor((room - 60) / small.width)));
  views.set(figure, await embed(plot, spec, room));
  if (!small) return;
  // small charts side by side fill their row; what names and axes take is known once it is drawn
  const spare = room - plot.querySelector("svg").clientWidth;
  small.width = Math.min(small.width + Math.floor(spare / spec.columns), 2 * small.width);
  views.set(figure, await embed(plot, spec, room));
}

let drawing = Promise.resolve();
let width = 0;

// one after the other: the theme may change while charts are being drawn
function drawAll() {
  drawing = drawing.then(async () => {
    width = document.querySelector("main").clientWidth;
    const figures = document.querySelectorAll("figure.chart");
    for (const figure of figures) await draw(figure);
    root.dataset.drawn = String(figures.length);
  });
}

async function save(button) {
  const figure = button.closest("figure");
  const kind = button.dataset.save;
  const view = views.get(figure);
  const before = view.background();
  // saved figures stand on a ground of their own: a transparent dark one is unreadable on paper
  view.background(getComputedStyle(root).getPropertyValue("--ground").trim());
  const link = document.createElement("a");
  link.href = await view.toImageURL(kind, 2);
  view.background(before);
  link.download = `${figure.dataset.name}.${kind}`;
  link.click();
}

function setTheme(name) {
  root.dataset.theme = name;
  if (window.vegaEmbed) drawAll();
}

let later = 0;
addEventListener("resize", () => {
  clearTimeout(later);
  later = setTimeout(() => {
    if (window.vegaEmbed && document.querySelector("main").clientWidth !== width) drawAll();
  }, 150);
});

// paper has nothing to click on: all that is folded is printed unfolded
addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details:not([open])")) {
    folded.open = true;
    folded.dataset.folded = "";
  }
});
addEventListener("afterprint", () => {
  for (const each of document.querySelectorAll("details[data-folded]")) {
    each.open = false;
    delete each.dataset.folded;
  }
});
for (const button of document.querySelectorAll("[data-save]")) {
  button.addEventListener("click", () => save(button));
}
for (const fold of document.querySelectorAll("details")) {
  fold.addEventListener("toggle", () => {
    for (const figure of fold.querySelectorAll("figure.chart")) if (!views.has(figure)) draw(figure);
  });
}
document.getElementById("theme").addEventListener("click", () => {
  setTheme(theme() === "dark" ? "light" : "dark");
});
preferred.addEventListener("change", () => setTheme(preferred.matches ? "dark" : "light"));
setTheme(theme());
