// Zoom and pan of all pictures on the page together: keys, wheel, drag, pinch.

import { all } from "./page.js";

const MOST = 24;

// `drags`: whether one pointer moves the view; where it draws instead, two still do
export function view(frames, drags = () => true) {
  let scale = 1;
  let left = 0; // of the layer, in widths of the canvas
  let top = 0;
  const held = new Map(); // pointers that are down
  let middle = false; // whether the middle button is, which moves the view whatever else drags do

  function apply() {
    left = Math.min(0, Math.max(1 - scale, left));
    top = Math.min(0, Math.max(1 - scale, top));
    for (const layer of all(".layer", frames)) {
      layer.style.transform = `translate(${100 * left}%, ${100 * top}%) scale(${scale})`;
    }
    frames.dataset.scale = scale.toFixed(2);
  }

  function zoom(factor, x = 0.5, y = 0.5) {
    const next = Math.min(MOST, Math.max(1, scale * factor));
    left = x - ((x - left) * next) / scale;
    top = y - ((y - top) * next) / scale;
    scale = next;
    apply();
  }

  function pan(dx, dy) {
    left += dx;
    top += dy;
    apply();
  }

  function place(event, canvas) {
    const { x, y, width, height } = canvas.getBoundingClientRect();
    return { canvas, x: (event.clientX - x) / width, y: (event.clientY - y) / height };
  }

  function pinch(before, now, other) {
    const apart = ({ x, y }) => Math.hypot(x - other.x, y - other.y);
    pan((now.x - before.x) / 2, (now.y - before.y) / 2);
    if (apart(before) > 0) zoom(apart(now) / apart(before), (now.x + other.x) / 2, (now.y + other.y) / 2);
  }

  frames.addEventListener("wheel", (event) => {
    const canvas = event.target.closest(".canvas");
    if (!canvas) return;
    event.preventDefault();
    const { x, y } = place(event, canvas);
    zoom(Math.exp(-event.deltaY / 400), x, y);
  }, { passive: false });
  frames.addEventListener("pointerdown", (event) => {
    const canvas = event.target.closest(".canvas");
    if (!canvas) return;
    held.set(event.pointerId, place(event, canvas));
    middle = event.button === 1;
    frames.setPointerCapture(event.pointerId);
    if (held.size > 1) frames.dispatchEvent(new CustomEvent("pinch"));
  });
  frames.addEventListener("mousedown", (event) => event.button === 1 && event.preventDefault());
  frames.addEventListener("pointermove", (event) => {
    const before = held.get(event.pointerId);
    if (!before) return;
    const now = place(event, before.canvas);
    held.set(event.pointerId, now);
    const other = [...held].find(([id]) => id !== event.pointerId)?.[1];
    if (other) pinch(before, now, other);
    else if (middle || drags()) pan(now.x - before.x, now.y - before.y);
  });
  for (const end of ["pointerup", "pointercancel"]) {
    frames.addEventListener(end, (event) => held.delete(event.pointerId));
  }

  return {
    zoom,
    pan,
    whole: () => zoom(0),
    // a part of the picture, in shares of it, with room around
    onto([x0, y0, x1, y1]) {
      scale = Math.min(MOST, Math.max(1, 0.6 / Math.max(x1 - x0, y1 - y0)));
      left = 0.5 - (scale * (x0 + x1)) / 2;
      top = 0.5 - (scale * (y0 + y1)) / 2;
      apply();
    },
  };
}

// Puts a decoded picture, and what lies over it, into a figure.
export function hang(figure, image, alt, ...over) {
  image.alt = alt;
  const canvas = figure.querySelector(".canvas");
  canvas.style.setProperty("--ratio", image.naturalWidth / image.naturalHeight);
  canvas.querySelector(".layer").replaceChildren(image, ...over);
}
