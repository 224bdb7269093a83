// The entry quiz: questions with known answers before the first vote, the right answer after each.

import { find, insist, make, why } from "./page.js";

// `on`: show(item), trouble(text)
export function quiz(setup, on) {
  const place = find("#quiz");
  const wrong = find("ul", place);
  const button = find("button", place);
  let question = setup.quiz;
  let proceed = () => {};

  const head = (text) => { find(".headline", place).textContent = text; };

  function ask() {
    place.hidden = false;
    wrong.hidden = button.hidden = true;
    head(`Entry quiz, question ${question.number} of ${question.size}. The right answers are known; yours do not count as votes.`);
    on.show({ assignment: `quiz ${question.item}`, payload: question.payload });
  }

  const late = (reason) => on.trouble(`Not saved yet: ${reason}. Trying again automatically.`);

  async function next() {
    button.hidden = true;
    const { status, content } = await insist(`/stages/${setup.stage}.json`, undefined, "", late);
    on.trouble(status === 200 ? "" : why({ status, content }));
    // over, passed or paused: the page is made anew
    if (status !== 200 || !content.quiz) {
      location.reload();
      return;
    }
    question = content.quiz;
    ask();
  }

  function tell({ right, answer, expected, finished, passed, wrong: mistakes }) {
    const result = right ? `Right: ${expected}.` : `Not right. You said: ${answer}. The answer is: ${expected}.`;
    const [number, all] = finished ?? [];
    const end = finished ? ` ${number} of ${all} were right: ${passed ? "you passed." : "too few. See what was wrong, then continue."}` : "";
    head(result + end);
    wrong.replaceChildren(...mistakes.map(([said, known]) => make("li", {}, `You said: ${said}. The answer is: ${known}.`)));
    wrong.hidden = !finished || passed || !mistakes.length;
    find("span", button).textContent = finished ? "Continue" : "Next question";
    button.hidden = false;
    place.focus();
    place.scrollIntoView({ block: "nearest" });
    proceed = next;
  }

  return {
    start: ask,
    another: next, // in the place of a question whose picture cannot be shown
    proceed: () => proceed(),
    async answer(answer) {
      proceed = () => {};
      const body = { item: question.item, answer };
      const { status, content } = await insist(`/stages/${setup.stage}/quiz`, body, setup.csrf, late);
      on.trouble(status === 200 ? "" : `Not saved: ${why({ status, content })}`);
      if (status === 200) tell(content);
      else ask();
    },
  };
}
