const root = document.documentElement;
const preferred = matchMedia("(prefers-color-scheme: dark)");
const views = new Map();

function theme() {
  return root.dataset.theme ?? (preferred.matches ? "dark" : "light");
}

function config() {
  const style = getComputedStyle(root);
  const ink = style.getPropertyValue("--ink").trim();
  const line = style.getPropertyValue("--line").trim();
  return {
    background: null,
    font: "system-ui, sans-serif",
    view: { stroke: null },
    axis: {
      labelColor: ink, titleColor: ink, gridColor: line, domainColor: line, tickColor: line,
      titleFontWeight: 500, labelFontSize: 12, titleFontSize: 12,
    },
    legend: { labelColor: ink, titleColor: ink, labelFontSize: 12 },
    header: { labelColor: ink, labelFontSize: 12, labelFontWeight: 600 },
    rule: { color: ink },
    text: { color: ink },
  };
}

async function draw(figure) {
  const spec = JSON.parse(figure.querySelector("script").textContent);
  const tooltip = { theme: theme() };
  const options = { renderer: "svg", actions: false, config: config(), ast: true, tooltip };
  const { view } = await window.vegaEmbed(figure.querySelector(".plot"), spec, options);
  views.set(figure, view);
}

async function drawAll() {
  for (const figure of document.querySelectorAll("figure.chart")) await draw(figure);
  root.dataset.drawn = String(views.size);
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

for (const button of document.querySelectorAll("[data-save]")) {
  button.addEventListener("click", () => save(button));
}
document.getElementById("theme").addEventListener("click", () => {
  setTheme(theme() === "dark" ? "light" : "dark");
});
preferred.addEventListener("change", () => setTheme(preferred.matches ? "dark" : "light"));
setTheme(theme());
