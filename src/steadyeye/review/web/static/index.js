// The first page: Enter goes on with what waits; signs out.

import { ask, find, why } from "./page.js";

const button = find("#leave");
button.addEventListener("click", async () => {
  try {
    const answer = await ask("/sign-out", {}, button.dataset.csrf);
    if (answer.status !== 200 && answer.status !== 401) throw new Error(why(answer));
    location.replace("/");
  } catch (error) {
    find("#left").textContent = `Not signed out: ${error.message}`;
  }
});
button.disabled = false;
// not by `autofocus`, which a browser refuses with a warning where something has the focus already
if (document.activeElement === document.body) document.querySelector("a.go")?.focus();
