// A track: one object on several frames of a video. Boxes of frames nearby are taken over to this one.

import { overlap, within } from "./geometry.js";

const SAME = 0.5; // IoU from which boxes of one class on neighbouring frames are of one object
const FRAME = 1000; // tracks that can begin on one frame

const untracked = (one) => one.track === undefined;

// Boxes with those of another frame: a box here that is surely the same object takes its track, the rest
// is added; tracks that are here already stay as they are.
export function takeOver(drawn, others, size) {
  const boxes = [...drawn];
  const counts = { added: 0, matched: 0 };
  for (const other of others) {
    if (!untracked(other) && boxes.some((one) => one.track === other.track)) continue;
    const rank = (index) => {
      const one = boxes[index];
      return one && untracked(one) && one.label === other.label ? overlap(one.box, other.box) : 0;
    };
    const best = drawn.reduce((found, _, index) => (rank(index) > rank(found) ? index : found), -1);
    if (rank(best) >= SAME && !untracked(other)) {
      boxes[best] = { ...boxes[best], track: other.track };
      counts.matched += 1;
    } else if (rank(best) < SAME) {
      boxes.push({ ...other, box: within(other.box, size) });
      counts.added += 1;
    }
  }
  return { boxes, ...counts };
}

// Every box with a track. New ones are numbered by the frame on which they begin, so that nobody who
// draws elsewhere in the video at the same time gives the same number.
export function numberTracks(drawn, frame) {
  const used = new Set(drawn.map((one) => one.track));
  let next = 1;
  return drawn.map((one) => {
    if (!untracked(one)) return one;
    while (used.has(frame * FRAME + next)) next += 1;
    used.add(frame * FRAME + next);
    return { ...one, track: frame * FRAME + next };
  });
}

export const describe = (one) => (untracked(one) ? "new track" : `track ${one.track}`);

// `on`: read(path), take(boxes), which says what it did, setTrack(number, or undefined for a new one), leave(), tell(text)
export function tracks(find, on) {
  const group = find("#video");
  const typed = find("#track");
  let sequence = null;
  let assignment = null;
  let nearby = null; // a promise of what was drawn on the frames around; null: to be asked for
  let filling = null; // a promise of whether boxes were filled in; null once that is known

  async function read() {
    const asked = assignment;
    const { status, content } = await on.read(`/assignments/${asked}/nearby.json`);
    if (status !== 200) throw new Error(`status ${status}`);
    if (asked !== assignment) return null;
    const { before, after, between } = content;
    const ends = before && after ? `${between.length} tracks go from frame ${before.frame + 1} to ${after.frame + 1}` : "";
    find("#between").textContent = ends.replace("1 tracks go ", "1 track goes ");
    return content;
  }

  function know() {
    if (nearby) return nearby;
    const mine = read().catch(() => null).then((content) => {
      if (nearby !== mine) return null; // another frame is shown
      if (!content) nearby = null; // the next who needs it asks again
      return content;
    });
    nearby = mine;
    return mine;
  }

  async function give(choose, words) {
    const content = await know();
    const from = content && words(content);
    const told = !content ? "The boxes of nearby frames are not loaded yet: the server does not answer. Try again."
      : from ? `From ${from}: ${on.take(choose(content))}` : "No frame to take boxes from has an answer yet";
    find("#between").textContent = told;
    on.tell(told);
  }

  typed.addEventListener("focus", () => typed.select());
  typed.addEventListener("keydown", (event) => {
    if (!["Enter", "Escape"].includes(event.key)) return;
    event.preventDefault();
    if (event.key === "Enter") on.setTrack(/^[1-9]\d{0,8}$/.test(typed.value.trim()) ? Number(typed.value) : undefined);
    on.leave();
  });

  const acts = {
    copy: () => give(({ before }) => before?.boxes ?? [], ({ before }) => (before ? `frame ${before.frame + 1}` : "")),
    fill: () => give(({ between }) => between, ({ before, after }) => (before && after ? `frames ${before.frame + 1} and ${after.frame + 1}` : "")),
  };

  return {
    acts,
    get frame() { return sequence?.frame ?? 0; },
    get known() { return sequence !== null; },
    get filling() { return filling; },
    // `untouched`: whether nothing was drawn here yet, so that what lies between key frames is filled in
    show(payload, number, untouched) {
      sequence = payload.sequence ?? null;
      assignment = number;
      nearby = null;
      filling = null;
      group.hidden = !sequence;
      find("#between").textContent = "";
      if (!sequence) return "";
      const mine = know().then(async (content) => {
        const fills = Boolean(content?.between.length) && untouched();
        if (fills) await acts.fill();
        if (filling === mine) filling = null;
        return fills;
      });
      filling = mine;
      const { name, frame, frames, key } = sequence;
      return ` · ${name === "." ? "" : `${name}, `}frame ${frame + 1} of ${frames}${key ? ", key frame" : ""}`;
    },
    write: (one) => { if (document.activeElement !== typed) typed.value = one ? (one.track ?? "new") : ""; },
  };
}
