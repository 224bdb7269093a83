// Pictures of items, loaded and decoded before they are shown.

import { ask, make, wait, why } from "./page.js";

export function pictures(late) {
  const made = new Map();

  // why a picture will not come; "" where it may yet
  async function refusal(name, tries) {
    const answer = await ask(`/images/${name}`).catch(() => ({ status: 0 }));
    if (answer.status === 200 && tries > 2) return "a picture cannot be shown";
    return answer.status >= 400 && answer.status < 500 && answer.status !== 429 ? why(answer) : "";
  }

  async function load(name) {
    for (let tries = 0; ; tries += 1) {
      const image = make("img", { src: `/images/${name}`, draggable: "false" });
      try {
        await image.decode();
        return image;
      } catch {
        const reason = await refusal(name, tries);
        if (reason) throw new Error(reason);
        late();
        await wait(Math.min(5, 0.25 * 2 ** tries));
      }
    }
  }

  // images by role; `names`: role → name; fails where one of them is missing
  function of(item, names) {
    if (!made.has(item.assignment)) {
      const roles = Object.entries(names(item.payload));
      const loading = Promise.all(roles.map(async ([role, name]) => [role, await load(name)]));
      made.set(item.assignment, loading.then(Object.fromEntries, (error) => {
        made.delete(item.assignment);
        throw error;
      }));
      while (made.size > 12) made.delete(made.keys().next().value);
    }
    return made.get(item.assignment);
  }

  return { of };
}
