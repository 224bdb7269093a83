// The dashboard's changes: people paused, let go on, added, given a new link.

import { all, ask, find, why } from "./page.js";

const { csrf } = find("#main").dataset;

async function change(path, body, done) {
  try {
    const answer = await ask(path, body, csrf);
    if (answer.status !== 200) throw new Error(why(answer));
    find("#told").textContent = "";
    done(answer.content);
  } catch (error) {
    find("#told").textContent = `Not done: ${error.message}`;
  }
}

function reveal({ name, link }) {
  const place = find("#link");
  find("b", place).textContent = `${name}:`;
  find("textarea", place).value = link;
  find("button", place).textContent = "Copy";
  place.hidden = false;
  find("textarea", place).select();
}

async function copy(event) {
  const field = find("#link textarea");
  field.select();
  let copied = true;
  // the clipboard exists on https and localhost only
  if (navigator.clipboard) await navigator.clipboard.writeText(field.value).catch(() => { copied = false; });
  else copied = document.execCommand("copy");
  event.target.textContent = copied ? "Copied" : "Select and copy it";
}

function show(row, state) {
  const place = find("[data-state]", row);
  if (!place.textContent.startsWith("paused")) place.textContent = state;
}

for (const row of all("[data-reviewer]")) {
  const { reviewer } = row.dataset;
  find("[data-pause]", row).addEventListener("click", ({ target }) => {
    change(`/reviewers/${reviewer}/pause`, { why: target.dataset.pause }, () => location.reload());
  });
  find("[data-renew]", row).addEventListener("click", () => {
    if (confirm(`The current link of ${row.dataset.name} will stop working. Continue?`)) {
      change(`/reviewers/${reviewer}/link`, {}, (made) => {
        reveal(made);
        show(row, "reviewing");
      });
    }
  });
  find("[data-revoke]", row).addEventListener("click", () => {
    if (confirm(`${row.dataset.name} is signed out everywhere, and has no link until you make a new one. Continue?`)) {
      change(`/reviewers/${reviewer}/revoke`, {}, ({ name }) => {
        find("#told").textContent = `${name} is signed out; the link no longer works.`;
        show(row, "no link");
      });
    }
  });
}
find("#add").addEventListener("submit", (event) => {
  event.preventDefault();
  const form = event.target;
  change("/reviewers", { name: form.elements.name.value }, (made) => {
    reveal(made);
    form.reset();
  });
});
find("#link button").addEventListener("click", copy);

// until here a click would have done nothing
for (const control of all("#main [disabled]")) control.disabled = false;
