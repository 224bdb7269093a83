// What is cut, empty or twice on a page, a line each that names the element. What lies in a box that
// scrolls sideways is found by that box: nobody sees the value column that must be pulled into view.
() => {
  const found = [];
  const wide = document.documentElement.clientWidth;
  const named = (one) => {
    const section = one.closest("section, article, dialog, nav, header");
    const words = (one.textContent || one.getAttribute("alt") || "").trim().replace(/\s+/g, " ");
    const kind = one.tagName.toLowerCase() + (one.classList.length ? "." + [...one.classList].join(".") : "");
    return `${kind} "${words.slice(0, 50)}"` + (section && section.id ? ` in #${section.id}` : "");
  };
  const shown = (one) => one.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && one.getClientRects().length;
  if (document.documentElement.scrollWidth > wide) found.push("the page scrolls sideways");
  for (const one of document.body.querySelectorAll("*")) {
    if (!shown(one) || one.closest(".skip, .hidden, .sr, .unseen, [hidden], dialog:not([open])")) continue;
    const style = getComputedStyle(one);
    const svg = one.closest("svg");
    if (!svg) {
      const box = one.getBoundingClientRect();
      if (box.width && (box.right > wide + 1 || box.left < -1)) {
        const scroller = one.closest(".scroll, pre, .plot, .film, .strip");
        if (!scroller || scroller === one) found.push(`reaches out of the page: ${named(one)}`);
      }
      if (style.overflowX !== "visible" && one.scrollWidth > one.clientWidth + 1)
        found.push(`cut or scrolls sideways (${one.scrollWidth} in ${one.clientWidth}): ${named(one)}`);
    }
    if (one.tagName === "text" && one.textContent.trim()) {
      const box = one.getBoundingClientRect(), frame = svg.getBoundingClientRect();
      if (box.right > frame.right + 2 || box.left < frame.left - 2 || box.bottom > frame.bottom + 2 || box.top < frame.top - 2)
        found.push(`chart text cut: ${named(one)}`);
      if (one.textContent.includes("…")) found.push(`chart text shortened: ${named(one)}`);
    }
  }
  for (const svg of document.querySelectorAll(".plot svg")) {
    const texts = [...svg.querySelectorAll("text")].filter((one) => shown(one) && one.textContent.trim());
    const boxes = texts.map((one) => one.getBoundingClientRect());
    for (let i = 0; i < texts.length; i++) for (let j = i + 1; j < texts.length; j++) {
      const a = boxes[i], b = boxes[j];
      const over = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const deep = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      // two lines of one label touch; what is drawn over another word covers most of its height
      if (over > 2 && deep > 0.6 * Math.min(a.height, b.height))
        found.push(`chart texts overlap: "${texts[i].textContent}" and "${texts[j].textContent}" in ${svg.closest("figure").dataset.name}`);
    }
    const frame = svg.getBoundingClientRect();
    const room = svg.closest(".plot").getBoundingClientRect();
    if (frame.right > room.right + 1) found.push(`chart wider than its place: ${svg.closest("figure").dataset.name}`);
  }
  for (const section of document.querySelectorAll("main section")) {
    if (!shown(section)) continue;
    const rest = [...section.children].filter((one) => !/^H[1-6]$/.test(one.tagName) && shown(one));
    if (!rest.length) found.push(`section without content: ${named(section)}`);
  }
  for (const table of document.querySelectorAll("table"))
    if (!table.querySelector("tbody tr")) found.push(`table without rows: ${named(table)}`);
  for (const strip of document.querySelectorAll(".pair")) {
    const sources = [...strip.querySelectorAll("img")].map((one) => one.src);
    if (strip.closest(".wide") && new Set(sources).size < sources.length) found.push(`one picture twice in a strip: ${named(strip)}`);
  }
  return found;
}
