// The pointer on a picture with boxes: draws, moves and resizes them.

import { area, hold, inside, LEAST, moved, stretched, within } from "./geometry.js";

const REACH = { mouse: 8, pen: 14, touch: 22 }; // pixels of the screen around an edge

// `to`: state(), select(index), put(index, box), add(box), preview(index, box), restore()
export function pointing(frames, over, to) {
  let held = null; // what the pointer does: {index, box, from, change}

  function at(event) {
    const { x, y, width, height } = over.getBoundingClientRect();
    const { size } = to.state();
    return [((event.clientX - x) / width) * size[0], ((event.clientY - y) / height) * size[1], size[0] / width];
  }

  function start(event) {
    const { drawn, chosen, size, drawing } = to.state();
    const [x, y, perPixel] = at(event);
    const reach = REACH[event.pointerType] * perPixel;
    const resize = (index, edges) => ({ index, change: (dx, dy) => stretched(drawn[index].box, edges, dx, dy, size) });
    const mine = !drawing && chosen >= 0 ? hold(drawn[chosen].box, x, y, reach) : null;
    if (mine) return resize(chosen, mine);
    const under = drawing ? [] : drawn.map((one, index) => index).filter((index) => inside(drawn[index].box, x, y));
    under.sort((a, b) => area(drawn[a].box) - area(drawn[b].box));
    // of a box that is not chosen, its corners and what of its edges lies inside
    const cornered = drawing ? -1 : drawn.findIndex(({ box }) => hold(box, x, y, reach)?.filter(Boolean).length === 2);
    const index = under.includes(chosen) ? chosen : cornered >= 0 ? cornered : (under[0] ?? -1);
    if (index >= 0) {
      const edges = hold(drawn[index].box, x, y, reach);
      to.select(index);
      if (edges) return resize(index, edges);
      return { index, change: (dx, dy) => moved(drawn[index].box, dx, dy, size) };
    }
    return { index: -1, change: (dx, dy) => within([x, y, x + dx, y + dy], size) };
  }

  frames.addEventListener("pointerdown", (event) => {
    if (to.state().idle || event.button !== 0 || !event.isPrimary || !event.target.closest(".canvas")) return;
    event.preventDefault();
    const [x, y] = at(event);
    held = { ...start(event), from: [x, y], id: event.pointerId, box: null };
    frames.setPointerCapture(event.pointerId);
  });
  frames.addEventListener("pointermove", (event) => {
    if (held?.id !== event.pointerId) return;
    const [x, y] = at(event);
    held.box = held.change(x - held.from[0], y - held.from[1]);
    to.preview(held.index < 0 ? to.state().drawn.length : held.index, held.box);
  });
  frames.addEventListener("pointerup", (event) => {
    if (held?.id !== event.pointerId) return;
    const { index, box, from } = held;
    const [x, y, perPixel] = at(event);
    const far = Math.max(Math.abs(x - from[0]), Math.abs(y - from[1])) >= Math.max(LEAST, 3 * perPixel);
    held = null;
    if (!box || !far) to.restore();
    else if (index >= 0) to.put(index, box);
    else to.add(box);
  });
  for (const stop of ["pointercancel", "pinch"]) {
    frames.addEventListener(stop, () => {
      held = null;
      to.restore();
    });
  }
}
