// What is asked, what was answered, and what the server has not confirmed yet.

import { ask, fresh, insist, why } from "./page.js";

// `on`: items(known, paused), saved(text), trouble(text) with an empty text when it is over,
// refused(text) of an answer that is not taken, whatever is tried
export function session(setup, on) {
  const place = `steadyeye/${setup.place}/${setup.stage}`;
  const outbox = JSON.parse(sessionStorage.getItem(`${place}/outbox`) ?? "[]");
  const made = JSON.parse(sessionStorage.getItem(`${place}/made`) ?? "[]");
  let known = [];
  let last = Promise.resolve();
  let stopped = false;
  let lost = false; // whether the last request found no server

  function keep() {
    sessionStorage.setItem(`${place}/outbox`, JSON.stringify(outbox));
    sessionStorage.setItem(`${place}/made`, JSON.stringify(made.slice(-50)));
  }

  function learn({ next, paused }) {
    known = next.filter((item) => !outbox.some(({ body }) => body.assignment === item.assignment));
    on.items(known, paused);
  }

  function late(reason) {
    lost = true;
    on.trouble(`Not saved yet: ${reason}. Trying again automatically.`);
  }

  async function reload() {
    const { status, content } = await insist(`/stages/${setup.stage}.json`, undefined, "", late);
    lost = false;
    if (status === 200) learn(content);
    else on.trouble(why({ status, content }));
  }

  // `taken` hears whether the server took it; where the link opens nothing it hears nothing
  async function confirm({ status, content }, told, taken) {
    lost = false;
    if (status === 401 || status === 403) {
      stopped = true;
      const how = status === 401 ? "Open your link in this tab, and come back" : "Reload this page";
      on.trouble(`Not saved: ${why({ status, content })}. ${how}: your answer is kept.`);
      return;
    }
    taken(status === 200);
    keep();
    if (status === 200) {
      on.trouble("");
      on.saved(told);
      learn(content);
    } else {
      await reload();
      on.refused(`Not saved: ${why({ status, content })}`);
    }
  }

  async function flush() {
    while (outbox.length && !stopped) {
      const [{ body, words }] = outbox;
      const answer = await insist("/decisions", body, setup.csrf, late);
      await confirm(answer, `Saved: ${words}`, (ok) => {
        outbox.shift();
        if (ok) made.push({ decision: answer.content.decision, words });
      });
    }
  }

  async function takeBack() {
    const before = made.at(-1);
    if (stopped) return;
    if (!before) {
      on.saved("No decision of yours to undo on this page");
      return;
    }
    const answer = await insist(`/decisions/${before.decision}/undo`, { key: fresh() }, setup.csrf, late);
    await confirm(answer, `Undone: ${before.words}`, () => made.pop());
  }

  // one request after the other: the order of decisions is that in which they were made
  function then(work) {
    last = last.then(work);
    return last;
  }

  return {
    start() {
      learn(setup);
      then(flush);
    },
    decide({ assignment, nonce, replaces = null }, said, words) {
      outbox.push({ body: { assignment, nonce, replaces, key: fresh(), ...said }, words });
      keep();
      learn({ next: known, paused: "" });
      then(flush);
    },
    undo: () => then(takeBack),
    reload: () => then(reload),
    unsaved: () => outbox.length,
    lost: () => lost,
    risky: () => lost && outbox.length > 0, // closing the page now loses answers
    // after what was decided before, once: the page goes on without it
    read: (path) => last.then(() => ask(path)),
    // stages, and what to say where nothing is left in any
    progress: async () => (await ask("/index.json")).content,
  };
}
