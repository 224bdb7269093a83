// Exchanges the token after the # of a private link for a session.

import { find, insist, why } from "./page.js";

const say = (text) => { find("#entry").textContent = text; };

async function enter() {
  const token = location.hash.slice(1);
  // removes the token from the address bar and the history before anything else happens
  history.replaceState(null, "", location.pathname);
  if (!token) {
    say("This link is incomplete: its end is missing. Open the whole link.");
    return;
  }
  const answer = await insist("/sign-in", { token }, "", (reason) => say(`Not signed in yet: ${reason}. Trying again.`));
  if (answer.status === 200) location.replace("/");
  else say(`Not signed in: ${why(answer)}.`);
}

enter();
// another link pasted into the same tab
addEventListener("hashchange", enter);
