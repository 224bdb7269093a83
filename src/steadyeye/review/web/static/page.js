// What every page needs: its elements, its words, and a key that no other site knows.

export const find = (selector, within = document) => within.querySelector(selector);
export const all = (selector, within = document) => [...within.querySelectorAll(selector)];

// An element. Texts become text nodes: labels and comments are never read as HTML.
export function make(tag, attributes = {}, ...children) {
  const space = ["svg", "rect", "g", "path", "text"].includes(tag) ? "http://www.w3.org/2000/svg" : "http://www.w3.org/1999/xhtml";
  const made = document.createElementNS(space, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export function chips(labels) {
  if (!labels.length) return [make("span", { class: "soft" }, "none")];
  return labels.flatMap((label) => [make("span", { class: "chip" }, label), " "]);
}

// 128 random bits: crypto.randomUUID exists on https and localhost only
export function fresh() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");
}

export const wait = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));

// The answer of the server: {status, content, seconds}; content.detail says why where it refuses,
// `seconds` how long to wait before the same is asked again.
export async function ask(path, body, csrf) {
  const headers = { Accept: "application/json" };
  const options = { headers, cache: "no-store" };
  if (body !== undefined) {
    Object.assign(headers, { "Content-Type": "application/json", "X-CSRF-Token": csrf });
    const text = JSON.stringify(body);
    // kept alive, a request outlives its page; browsers allow that to 64 kB
    Object.assign(options, { method: "POST", body: text, keepalive: text.length < 30_000 });
  }
  const answer = await fetch(path, { ...options, signal: AbortSignal.timeout(20_000) });
  const content = await answer.json().catch(() => ({}));
  return { status: answer.status, content, seconds: Number(answer.headers.get("Retry-After")) || 0 };
}

const LATER = [429, 502, 503, 504]; // the same request is right a little later
const FAULTS = 4; // of the server itself: asked for ever it would fail for ever

// The same, again and again while the server cannot be reached or cannot serve it; `late` hears why.
export async function insist(path, body, csrf, late) {
  for (let tries = 0; ; tries += 1) {
    let reason = "the server does not answer";
    let seconds = Math.min(5, 0.25 * 2 ** tries);
    try {
      const answer = await ask(path, body, csrf);
      if (!LATER.includes(answer.status) && (answer.status < 500 || tries >= FAULTS)) return answer;
      reason = why(answer);
      seconds = Math.max(seconds, answer.seconds);
    } catch { /* no network: try again */ }
    late(reason);
    await Promise.race([wait(seconds), online()]);
  }
}

const online = () => new Promise((done) => addEventListener("online", done, { once: true }));

export const why = ({ status, content }) =>
  typeof content.detail === "string" ? content.detail : `the server refused it (${status})`;
