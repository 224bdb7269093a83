// Boxes [x0, y0, x1, y1] in pixels of an image; `size`: [width, height] of it.

export const LEAST = 2; // pixels of a side
const tidy = (box) => box.map((value) => Math.round(value * 10) / 10);
const limit = (value, low, high) => Math.min(Math.max(value, low), high);

export function within([x0, y0, x1, y1], [width, height]) {
  const left = limit(Math.min(x0, x1), 0, width - LEAST);
  const top = limit(Math.min(y0, y1), 0, height - LEAST);
  const right = limit(Math.max(x0, x1), left + LEAST, width);
  const bottom = limit(Math.max(y0, y1), top + LEAST, height);
  return tidy([left, top, right, bottom]);
}

export function moved([x0, y0, x1, y1], dx, dy, [width, height]) {
  const right = limit(dx, -x0, width - x1);
  const down = limit(dy, -y0, height - y1);
  return tidy([x0 + right, y0 + down, x1 + right, y1 + down]);
}

// `edges`: which of [x0, y0, x1, y1] move
export function stretched(box, edges, dx, dy, size) {
  const by = [dx, dy, dx, dy];
  return within(box.map((value, index) => (edges[index] ? value + by[index] : value)), size);
}

// Which edges of a box a point takes hold of, or null; `reach` in pixels of the image.
export function hold([x0, y0, x1, y1], x, y, reach) {
  if (x < x0 - reach || x > x1 + reach || y < y0 - reach || y > y1 + reach) return null;
  const near = (value, low, high) => [Math.abs(value - low), Math.abs(value - high)];
  // a small box keeps a middle by which it is moved
  const across = Math.min(reach, (x1 - x0) / 4);
  const along = Math.min(reach, (y1 - y0) / 4);
  const [left, right] = near(x, x0, x1);
  const [top, bottom] = near(y, y0, y1);
  const inner = (value, low, high, gap, room) => gap <= (value < low || value > high ? reach : room);
  const edges = [
    left <= right && inner(x, x0, x1, left, across),
    top <= bottom && inner(y, y0, y1, top, along),
    right < left && inner(x, x0, x1, right, across),
    bottom < top && inner(y, y0, y1, bottom, along),
  ];
  return edges.some(Boolean) ? edges : null;
}

export const inside = ([x0, y0, x1, y1], x, y) => x >= x0 && x <= x1 && y >= y0 && y <= y1;
export const area = ([x0, y0, x1, y1]) => (x1 - x0) * (y1 - y0);

// Intersection over union.
export function overlap(a, b) {
  const side = (low, high) => Math.max(0, Math.min(a[high], b[high]) - Math.max(a[low], b[low]));
  const shared = side(0, 2) * side(1, 3);
  return shared / (area(a) + area(b) - shared);
}
