// Pictures of items, loaded and decoded before they are shown.

import { make, wait } from "./page.js";

export function pictures(late) {
  const made = new Map();

  async function load(name) {
    for (let tries = 0; ; tries += 1) {
      const image = make("img", { src: `/images/${name}`, draggable: "false" });
      try {
        await image.decode();
        return image;
      } catch {
        late();
        await wait(Math.min(5, 0.25 * 2 ** tries));
      }
    }
  }

  // images by role; `names`: role → name
  function of(item, names) {
    if (!made.has(item.assignment)) {
      const roles = Object.entries(names(item.payload));
      const loading = Promise.all(roles.map(async ([role, name]) => [role, await load(name)]));
      made.set(item.assignment, loading.then(Object.fromEntries));
      while (made.size > 12) made.delete(made.keys().next().value);
    }
    return made.get(item.assignment);
  }

  return { of };
}
