// Looks through decisions and items: searches, takes decisions back, draws boxes over small pictures.

import { all, ask, find, fresh, make, why } from "./page.js";

const main = find("#main");
const told = find("#told");

// the policy of these pages lets no form be sent: an address does the same
find("#search").addEventListener("submit", (event) => {
  event.preventDefault();
  const asked = [...new FormData(event.target)].filter(([, value]) => value.trim());
  location.search = new URLSearchParams(asked);
});
// until here a click would have been refused
find("#search button").disabled = false;

async function takeBack(button) {
  button.disabled = true;
  const entry = button.closest("li");
  try {
    const answer = await ask(`/decisions/${button.dataset.undo}/undo`, { key: fresh() }, main.dataset.csrf);
    if (answer.status !== 200) throw new Error(why(answer));
    const words = find("h2", entry).textContent;
    entry.replaceChildren(
      make("p", {}, `Taken back: ${words}. `, make("a", { href: `/stages/${button.dataset.stage}` }, "Answer it again")),
    );
    entry.tabIndex = -1;
    entry.focus();
    told.textContent = `Taken back: ${words}`;
  } catch (error) {
    told.textContent = `Not taken back: ${error.message}`;
    button.disabled = false;
  }
}

for (const button of all("[data-undo]")) {
  button.addEventListener("click", () => takeBack(button));
  button.disabled = false;
}

for (const place of all("[data-boxes]")) {
  const image = find("img", place);
  image.decode().then(() => {
    const over = make("svg", { class: "over", viewBox: `0 0 ${image.naturalWidth} ${image.naturalHeight}`, "aria-hidden": "true" });
    over.append(...JSON.parse(place.dataset.boxes).map(([x, y, right, bottom]) =>
      make("rect", { class: "box", x, y, width: right - x, height: bottom - y })));
    place.append(over);
  }).catch(() => { /* a missing picture has no boxes to show */ });
}
